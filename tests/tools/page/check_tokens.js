/* What is seen of tokens: marks, shades, details, differences, threshold, timeline, numbers. */
'use strict';
const { SMALL, write, ended, texts } = require('./browser.js');

const style = (page, selector, pseudo) =>
    page
        .locator(selector)
        .first()
        .evaluate((e, p) => {
            const s = getComputedStyle(e, p);
            return {
                line: s.textDecorationLine,
                kind: s.textDecorationStyle,
                weight: Number(s.fontWeight),
                content: s.content,
            };
        }, pseudo);

async function marks(bench) {
    const page = await bench.page();
    await write(page, '@plain');
    const edge = await style(page, '.turn .edge'),
        cloud = await style(page, '.turn .cloud .w');
    bench.check(
        'the small model’s tokens are plain',
        edge.line === 'none' && edge.weight === 400,
        edge
    );
    bench.check(
        'the cloud’s are underlined and bold',
        cloud.line === 'underline' && cloud.kind === 'solid' && cloud.weight >= 700,
        cloud
    );
    const [word, whole] = await page.$eval('.turn .cloud', (e) => [
        e.querySelector('.w').textContent,
        e.textContent,
    ]);
    bench.check(
        'but not the space before',
        whole === ` ${word}` && (await style(page, '.turn .cloud')).line === 'none',
        whole
    );
    bench.check(
        'the cloud’s have a c',
        /^"c"/.test((await style(page, '.turn .cloud', '::after')).content)
    );
    const memo = await style(page, '.marks .memo .w');
    bench.check(
        'remembered ones are dotted, with an m',
        memo.kind === 'dotted' &&
            /^"m"/.test((await style(page, '.marks .memo', '::after')).content),
        memo
    );
    await write(page, '@fail');
    const fall = await style(page, '.turn .fallback .w');
    bench.check(
        'fallbacks are wavy, with an !',
        fall.kind === 'wavy' &&
            fall.line === 'underline' &&
            /^"!/.test((await style(page, '.turn .fallback', '::after')).content),
        fall
    );
    await page.check('#colour [value=score]');
    await page.locator('.turn >> nth=1 >> .t[data-h]').nth(50).waitFor();
    const heat = await page.$$eval(
        '.turn .t[data-h]',
        (all) => [...new Set(all.map((e) => e.dataset.h))].length
    );
    bench.check('scores have tints of several strengths', heat >= 3, heat);
    const tint = await page.$eval('.turn .t[data-h="0"], .turn .t[data-h="1"]', (e) =>
        getComputedStyle(e)
    );
    bench.check(
        'a tint is no picture, and is printed',
        tint.backgroundImage === 'none' && tint.printColorAdjust === 'exact',
        [tint.backgroundImage, tint.printColorAdjust]
    );
    await page.emulateMedia({ media: 'print' });
    bench.check(
        'on paper there is the key, without what only a screen can do',
        (await page.isVisible('.marks .cloud')) &&
            (await page.isVisible('#shade')) &&
            (await page.isHidden('#colour')) &&
            (await page.$eval('.lanes i', (e) => getComputedStyle(e).printColorAdjust)) === 'exact'
    );
    await page.emulateMedia({ media: null });
    await page.check('#colour [value=probability]');
    await bench.says(page, '#shade', 'shades are explained', /less probable/);
    await page.check('#colour [value=""]');
    await page.waitForFunction(() => !document.querySelector('.turn .t[data-h]'));
    bench.same('shades go away', await page.locator('.turn .t[data-h]').count(), 0);
}

async function details(bench) {
    const page = await bench.page();
    await write(page, '@plain');
    await page.hover('.turn .cloud >> nth=0');
    const said = await page.innerText('#details');
    bench.check(
        'hovering shows score and threshold',
        /Score 0\.\d+, below the threshold of 0\.500/.test(said),
        said
    );
    bench.check(
        'and five choices with probabilities',
        (await page.locator('.choice').count()) >= 5
    );
    bench.check(
        'and time, bytes and retries',
        /Written after/.test(said) && /Sent/.test(said) && /Retries/.test(said)
    );
    await page.mouse.move(5, 5);
    await bench.says(page, '#details', 'leaving ends it', /Point at a token/);
    await page.click('.turn .cloud >> nth=1');
    await page.mouse.move(5, 5);
    await bench.says(page, '#details', 'a click keeps it', /written by the cloud/);
    await bench.shot(page, 'details');
    const at = await page.$eval('.turn .at', (e) => e.index),
        chosen = page.locator('.choice').nth(2);
    const id = (await page.locator('.choice bdi').nth(2).textContent()).replace(/␣/g, ' ');
    await chosen.click();
    await ended(page);
    const kept = await texts(page, '.turn >> nth=0 >> .t'),
        now = await texts(page, '.turn >> nth=1 >> .t');
    bench.same('what was before stays', now.slice(0, at), kept.slice(0, at));
    bench.same('then comes the chosen token', now[at], id);
    bench.check(
        'it is marked',
        await page
            .locator('.turn >> nth=1 >> .t')
            .nth(at)
            .evaluate((e) => e.classList.contains('you'))
    );
    const body = page.bodies[page.bodies.length - 1];
    bench.check(
        'the ids up to it are the prompt',
        body.path === '/v1/completions' &&
            body.prompt.length === 3 + at + 1 &&
            body.prompt.every((x) => Number.isInteger(x)),
        body.prompt
    );
    bench.check('the model goes on from there', now.length > at + 1);
}

async function sideBySide(bench) {
    const page = await bench.page();
    await page.check('#side');
    await write(page, '@plain');
    bench.same('there are three columns', await texts(page, '.answer h3'), [
        'Small model alone',
        'Routed',
        'Cloud alone',
    ]);
    const asked = page.bodies.map((b) => b.model);
    bench.check(
        'each is asked by its name',
        new Set(asked).size === 3 && asked[0].endsWith(':edge') && asked[2].endsWith(':cloud'),
        asked
    );
    const [edge, routed] = await Promise.all(
        [0, 1].map((i) => texts(page, `.answer >> nth=${i} >> .t`))
    );
    bench.same(
        'a text of one author has no marks',
        await page.$$eval(
            '.answer:nth-child(3) .t',
            (all) => all.filter((e) => /"\S+"/.test(getComputedStyle(e, '::after').content)).length
        ),
        0
    );
    await bench.says(page, '.answer:nth-child(3) .note', 'its head says so once', /all by the cloud/);
    const first = edge.findIndex((t, i) => t !== routed[i]);
    await page.locator('.differs').first().waitFor();
    bench.same(
        'the first difference is marked',
        await page.$eval('.answer .differs', (e) => e.index),
        first
    );
    bench.check(
        'and told',
        (await page.textContent('.answer >> nth=0 >> .diff')).includes(`token ${first + 1}`)
    );
    for (const [width, lines] of [
        [1280, 1],
        [1200, 1],
        [965, 1],
        [900, 1],
        [880, 3],
    ]) {
        await page.setViewportSize({ width, height: 660 });
        const tops = await page.$$eval('.answer', (all) => all.map((e) => e.offsetTop));
        bench.same(`the columns at ${width} px are in ${lines} line(s)`, new Set(tops).size, lines);
    }
    await page.setViewportSize(SMALL);
    await bench.shot(page, 'side');
}

async function threshold(bench) {
    const page = await bench.page();
    await write(page, '@plain');
    await page.fill('#threshold', '0.5');
    const n = async () =>
        Number(/, (\d+) (is|are) below/.exec(await page.textContent('#below'))[1]);
    await page.waitForTimeout(200);
    const few = await n();
    await page.fill('#threshold', '0.97');
    await page.waitForTimeout(200);
    const many = await n(),
        flips = await page.locator('.flips').count();
    bench.check('a higher threshold covers more scores', many > few && few > 0, [few, many]);
    bench.check(
        'it says that this is only an estimate',
        /only an estimate \(open loop\)/.test(await page.textContent('#below'))
    );
    bench.check('tokens that would change sides are framed', flips === many - few, [
        flips,
        many,
        few,
    ]);
    await page.click('#again');
    await ended(page);
    const title = () => page.textContent('#numbers-name');
    bench.same('the numbers say whose they are', await title(), 'In numbers: routed, text 2');
    await page.click('.turn:nth-child(1) .t >> nth=2');
    bench.same('also those of an older text', await title(), 'In numbers: routed, text 1');
    bench.same('as do the counts', await page.innerText('#whose'), 'Counted: routed, text 1');
    bench.check(
        'which is named so',
        (await page.textContent('.turn:nth-child(1) h2')).endsWith('text 1')
    );
    bench.same('Write again sends it', page.bodies[page.bodies.length - 1].mizzle.threshold, 0.97);
    bench.check(
        'and the cloud writes more',
        (await page.locator('.turn:nth-child(2) :is(.cloud, .memo)').count()) > few
    );
}

async function timeline(bench) {
    const page = await bench.page();
    await write(page, '@plain');
    await page.waitForTimeout(300);
    const inks = await page.$eval(
        '#time canvas',
        (c) =>
            new Set(
                new Uint32Array(
                    c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer
                )
            ).size
    );
    bench.check('the timeline is drawn', inks > 4, inks);
    bench.check(
        'and told in words',
        /\d+ steps of the small model and \d+ calls?.*hidden.*discarded/.test(
            await page.textContent('.words')
        ),
        await page.textContent('.words')
    );
    const before = await page.$eval('.room', (e) => e.clientWidth);
    await page.click('[data-zoom="2"]');
    await page.waitForFunction((w) => document.querySelector('.room').clientWidth > w, before);
    bench.same('it zooms', await page.$eval('.room', (e) => e.clientWidth), 2 * before);
    await page.click('#time canvas', { position: { x: 300, y: 40 } });
    bench.check(
        'a click there chooses the token of that time',
        (await page.$eval('.turn .at', (e) => e.index)) > 5
    );
    await page.evaluate(() => document.querySelector('#replay').click());
    await page.waitForFunction(() => {
        const n = document.querySelectorAll('.turn .t').length;
        return n > 2 && n < 50;
    });
    await page.waitForFunction(() => document.querySelectorAll('.turn .t').length === 60);
    bench.check('a text can be played again', true);
}

module.exports = [marks, details, sideBySide, threshold, timeline];
