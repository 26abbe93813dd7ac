/* Texts of a model, a prompt or a server that try to be more than text. */
'use strict';
const { write, HOSTILE, texts } = require('./browser.js');

/* Characters that must not reach the document: controls and those that reorder text. */
const FORBIDDEN = new RegExp(
    '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f' +
        '\\u2028-\\u202e\\u2060-\\u2069\\ufeff]'
);

async function harmless(bench, page, what) {
    bench.same(
        `${what}: no element was made`,
        await page.evaluate(
            () =>
                document.querySelectorAll(
                    '#thread :is(script, img, svg, a, iframe), #details :is(script, img, a)'
                ).length
        ),
        0
    );
    const text = await page.evaluate(
        () =>
            document.body.textContent +
            [...document.querySelectorAll('*')]
                .map((e) => [...e.attributes].map((a) => a.value).join(' '))
                .join(' ')
    );
    const found = FORBIDDEN.exec(text.replace(/\r/g, ''));
    bench.check(
        `${what}: no control character is in the document`,
        !found,
        found && text.slice(found.index - 80, found.index + 40)
    );
    bench.same(`${what}: no error, no dialog`, page.errors, []);
    bench.same(
        `${what}: the policy is not breached`,
        await page.evaluate(() => window.seen.breaches),
        []
    );
    bench.same(
        `${what}: no request went elsewhere`,
        page.requests.filter((u) => !u.startsWith(bench.url) && !/^(data|blob|file):/.test(u)),
        []
    );
}

async function tokens(bench) {
    const page = await bench.page();
    await page.check('#side');
    await write(page, '@hostile');
    const shown = await texts(page, '.answer >> nth=1 >> .t');
    bench.same('</script> is text', shown[0], HOSTILE[0]);
    bench.same('an image is text', shown[1], HOSTILE[1]);
    bench.same('U+202E is named', shown[2], ' U+202Eevil');
    bench.same('NUL is named', shown[3], 'NUL');
    bench.same('half a surrogate pair is named', shown[5], 'U+D800');
    bench.same(
        '10,000 combining marks are cut',
        shown[6],
        'e' + '\u0301'.repeat(8) + '+9992 marks'
    );
    bench.same('a token of 5,000 letters is cut', shown[8], 'x'.repeat(400) + '+4600 characters');
    bench.same('an entity is not decoded', shown[10], '&lt;');
    bench.same('Arabic stays as it is', shown[13], HOSTILE[13]);
    bench.same('joined emoji stay whole', shown[14], HOSTILE[14]);
    bench.same('a part of a character has a mark', shown[20], '·');
    const bidi = await page.$eval('.block', (e) => getComputedStyle(e).unicodeBidi);
    bench.check(
        'blocks are isolated from their surroundings',
        /plaintext|isolate/.test(bidi),
        bidi
    );
    const high = await page.$eval(
        '.text',
        (e) => e.getBoundingClientRect().height
    );
    bench.check(
        'nothing overflows upwards or sideways',
        high < 3000 &&
            (await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)),
        high
    );
    for (let i = 0; i < HOSTILE.length + 1; i++)
        await page.locator('.answer >> nth=1 >> .t').nth(i).dispatchEvent('click');
    await bench.says(page, '#details', 'details of all of them open', /Token/);
    await harmless(bench, page, 'tokens');
    await bench.shot(page, 'hostile');
}

async function elsewhere(bench) {
    const evil = HOSTILE.slice(0, 14).join(''),
        page = await bench.page({
            info: (i) => ({
                ...i,
                version: evil,
                model: { ...i.model, name: evil },
                questions: [evil],
                policies: [evil],
                cloud: { ...i.cloud, state: 'refused', why: evil, model: evil },
            }),
        });
    await write(page, `@refuse ${evil}`);
    await page.locator('#banner:not(:empty)').waitFor();
    bench.check(
        'a hostile reason is one line of the banner',
        (await page.textContent('#banner')).includes('</script>')
    );
    await harmless(bench, page, 'prompt and server');
}

module.exports = [tokens, elsewhere];
