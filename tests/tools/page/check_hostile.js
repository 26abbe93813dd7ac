/* Texts of a model, a prompt or a server that try to be more than text. */
'use strict';
const { write, shot, HOSTILE, texts, harmless } = require('./browser.js');

const MADE = ':is(#thread, #details) :is(script, img, a), #thread :is(svg, iframe)';

async function tokens(bench) {
    const page = await bench.page();
    await page.check('#side');
    await write(page, '@hostile');
    const shown = await texts(page, '.answer >> nth=1 >> .t');
    for (const [what, i, wanted] of [
        ['</script> is text', 0, HOSTILE[0]],
        ['an image is text', 1, HOSTILE[1]],
        ['U+202E is named', 2, ' U+202Eevil'],
        ['NUL is named', 3, 'NUL'],
        ['half a surrogate pair is named', 5, 'U+D800'],
        ['10,000 combining marks are cut', 6, 'e' + '\u0301'.repeat(8) + '+9992 marks'],
        ['a token of 5,000 letters is cut', 8, 'x'.repeat(400) + '+4600 characters'],
        ['an entity is not decoded', 10, '&lt;'],
        ['Arabic stays as it is', 13, HOSTILE[13]],
        ['joined emoji stay whole', 14, HOSTILE[14]],
        ['a part of a character has a mark', 20, '·'],
    ])
        await bench.is(what, shown[i], wanted);
    const bidi = () => getComputedStyle(document.querySelector('.block')).unicodeBidi;
    const overflows = () =>
        document.querySelector('.text').getBoundingClientRect().height >= 3000 ||
        document.documentElement.scrollWidth > innerWidth;
    await bench.rows(page, [
        ['blocks are isolated from their surroundings', bidi, /plaintext|isolate/],
        ['nothing overflows upwards or sideways', overflows, false],
    ]);
    for (let i = 0; i < HOSTILE.length + 1; i++)
        await page.locator('.answer >> nth=1 >> .t').nth(i).dispatchEvent('click');
    await bench.says(page, '#details', 'details of all of them open', /Token/);
    await harmless(bench, page, 'tokens', MADE, 'html');
    await shot(page, 'hostile');
}

async function elsewhere(bench) {
    const evil = HOSTILE.slice(0, 14).join('');
    const info = (i) => ({
        ...i,
        version: evil,
        model: { ...i.model, name: evil },
        questions: [evil],
        policies: [evil],
        cloud: { ...i.cloud, state: 'refused', why: evil, model: evil },
    });
    const page = await bench.page({ info });
    await write(page, `@refuse ${evil}`);
    await page.locator('#banner:not(:empty)').waitFor();
    await bench.is('a hostile reason is one line', page.textContent('#banner'), /<\/script>/);
    await harmless(bench, page, 'prompt and server', MADE, 'html');
}

module.exports = [tokens, elsewhere];
