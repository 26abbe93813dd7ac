/* What is seen of tokens: marks, shades, details, differences, threshold, timeline, numbers. */
'use strict';
const { SMALL, count, shot, write, ended, texts } = require('./browser.js');

/* How the first element of a selector, or what stands behind it, is drawn. */
const style = (page, selector, pseudo) =>
    page.locator(selector).first().evaluate((e, p) => {
        const s = getComputedStyle(e, p);
        return `${s.textDecorationLine} ${s.textDecorationStyle} ${s.fontWeight} ${s.content}`;
    }, pseudo);

const MARKS = [
    ['the small model’s tokens are plain', '.turn .edge', null, /^none \w+ 400 /],
    ['the cloud’s are underlined and bold', '.turn .cloud .w', null, /^underline solid [789]00 /],
    ['but not the space before', '.turn .cloud', null, /^none /],
    ['the cloud’s have a c', '.turn .cloud', '::after', / "c"/],
    ['remembered ones are dotted', '.marks .memo .w', null, /^\w+ dotted /],
    ['with an m', '.marks .memo', '::after', / "m"/],
    ['fallbacks are wavy', '.turn .fallback .w', null, /^underline wavy /],
    ['with an !', '.turn .fallback', '::after', / "!/],
];

async function marks(bench) {
    const page = await bench.page();
    await write(page, '@plain');
    await write(page, '@fail');
    for (const [what, selector, pseudo, wanted] of MARKS)
        await bench.is(what, style(page, selector, pseudo), wanted);
    const space = () => {
        const e = document.querySelector('.turn .cloud');
        return e.textContent === ` ${e.querySelector('.w').textContent}`;
    };
    await page.check('#colour [value=score]');
    await page.locator('.turn >> nth=1 >> .t[data-h]').nth(50).waitFor();
    const strengths = () =>
        new Set([...document.querySelectorAll('.turn .t[data-h]')].map((e) => e.dataset.h)).size;
    const tint = () => {
        const e = document.querySelector('.turn .t:is([data-h="0"], [data-h="1"])'),
            s = getComputedStyle(e);
        return `${s.backgroundImage} ${s.printColorAdjust}`;
    };
    const printed = () => getComputedStyle(document.querySelector('.lanes i')).printColorAdjust;
    await bench.rows(page, [
        ['which is no part of the word', space, true],
        ['scores have tints of several strengths', strengths, (n) => n >= 3],
        ['a tint is no picture, and is printed', tint, 'none exact'],
    ]);
    await page.emulateMedia({ media: 'print' });
    await bench.rows(page, [
        ['on paper there is the key', '.marks .cloud', true],
        ['and what shades mean', '#shade', true],
        ['without what only a screen can do', '#colour', false],
        ['in colour', printed, 'exact'],
    ]);
    await page.emulateMedia({ media: null });
    await page.check('#colour [value=probability]');
    await bench.says(page, '#shade', 'shades are explained', /less probable/);
    await page.check('#colour [value=""]');
    await page.waitForFunction(() => !document.querySelector('.turn .t[data-h]'));
    bench.check('shades go away', true);
}

async function details(bench) {
    const page = await bench.page();
    await write(page, '@plain');
    await page.hover('.turn .cloud >> nth=0');
    const parts = /Score 0\.\d+, below the threshold of 0\.500[^]*Written after[^]*Sent[^]*Retries/;
    await bench.says(page, '#details', 'hovering shows score, time, bytes and retries', parts);
    await bench.is('and five choices with probabilities', count(page, '.choice'), (n) => n >= 5);
    await page.mouse.move(5, 5);
    await bench.says(page, '#details', 'leaving ends it', /Point at a token/);
    await page.click('.turn .cloud >> nth=1');
    await page.mouse.move(5, 5);
    await bench.says(page, '#details', 'a click keeps it', /written by the cloud/);
    await shot(page, 'details');
    const at = await page.$eval('.turn .at', (e) => e.index),
        chosen = (await page.locator('.choice bdi').nth(2).textContent()).replace(/␣/g, ' ');
    await page.locator('.choice').nth(2).click();
    await ended(page);
    const kept = await texts(page, '.turn >> nth=0 >> .t'),
        now = await texts(page, '.turn >> nth=1 >> .t');
    await bench.is('what was before stays', now.slice(0, at), kept.slice(0, at));
    await bench.is('then comes the chosen token', now[at], chosen);
    await bench.is('and the model goes on', now.length, (n) => n > at + 1);
    const yours = page.locator('.turn >> nth=1 >> .t').nth(at).getAttribute('class');
    await bench.is('it is marked', yours, /\byou\b/);
    const { path, prompt } = page.bodies[page.bodies.length - 1],
        ids = prompt.length === 3 + at + 1 && prompt.every((x) => Number.isInteger(x));
    bench.check('the ids up to it are the prompt', path === '/v1/completions' && ids, prompt);
}

async function sideBySide(bench) {
    const page = await bench.page();
    await page.check('#side');
    await write(page, '@plain');
    const heads = ['Small model alone', 'Routed', 'Cloud alone'];
    await bench.is('there are three columns', texts(page, '.answer h3'), heads);
    const names = page.bodies.map((b) => b.model.replace(/^[^:]*/, '')).join(' ');
    await bench.is('each is asked by its name', names, /^:edge (:routed)? ?:cloud$/);
    const column = (i) => texts(page, `.answer >> nth=${i} >> .t`),
        [edge, routed] = [await column(0), await column(1)],
        first = edge.findIndex((t, i) => t !== routed[i]);
    await page.locator('.differs').first().waitFor();
    const marked = () =>
        [...document.querySelectorAll('.answer:nth-child(3) .t')].filter((e) =>
            /"\S+"/.test(getComputedStyle(e, '::after').content)
        ).length;
    const different = () => document.querySelector('.answer .differs').index,
        told = new RegExp(`token ${first + 1}\\b`);
    await bench.rows(page, [
        ['a text of one author has no marks', marked, 0],
        ['its head says so once', '.answer:nth-child(3) .note', /all by the cloud/],
        ['the first difference is marked', different, first],
        ['and told', '.answer >> nth=0 >> .diff', told],
    ]);
    for (const width of [1280, 1200, 965, 900, 880]) {
        await page.setViewportSize({ width, height: 660 });
        const tops = () =>
            new Set([...document.querySelectorAll('.answer')].map((e) => e.offsetTop)).size;
        await bench.rows(page, [[`lines of columns at ${width} px`, tops, width < 900 ? 3 : 1]]);
    }
    await page.setViewportSize(SMALL);
    await shot(page, 'side');
}

async function threshold(bench) {
    const page = await bench.page();
    await write(page, '@plain');
    const below = async (limit) => {
        await page.fill('#threshold', limit);
        await page.waitForTimeout(200);
        return Number(/, (\d+) (is|are) below/.exec(await page.textContent('#below'))[1]);
    };
    const few = await below('0.5'),
        more = (await below('0.97')) - few;
    bench.check('a higher threshold covers more scores', more > 0 && few > 0, [few, more]);
    await bench.rows(page, [
        ['it says that this is only an estimate', '#below', /only an estimate \(open loop\)/],
        ['tokens that would change sides are framed', '.flips', more],
    ]);
    await page.click('#again');
    await ended(page);
    await bench.rows(page, [
        ['the numbers say whose they are', '#numbers-name', 'In numbers: routed, text 2'],
    ]);
    await page.click('.turn:nth-child(1) .t >> nth=2');
    await bench.rows(page, [
        ['also those of an older text', '#numbers-name', 'In numbers: routed, text 1'],
        ['as do the counts', '#whose', /^Counted: routed, text 1$/],
        ['which is named so', '.turn:nth-child(1) h2', /text 1$/],
    ]);
    const sent = page.bodies[page.bodies.length - 1].mizzle.threshold,
        clouds = count(page, '.turn:nth-child(2) :is(.cloud, .memo)');
    await bench.is('Write again sends it', sent, 0.97);
    await bench.is('and the cloud writes more', clouds, (n) => n > few);
}

async function timeline(bench) {
    const page = await bench.page();
    await write(page, '@plain');
    await page.waitForTimeout(300);
    const inks = () => {
        const c = document.querySelector('#time canvas'),
            { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
        return new Set(new Uint32Array(data.buffer)).size;
    };
    const words = page.textContent('.words'),
        steps = /\d+ steps of the small model and \d+ calls?.*hidden.*discarded/;
    await bench.rows(page, [['the timeline is drawn', inks, (n) => n > 4]]);
    await bench.is('and told in words', words, steps);
    const width = () => page.$eval('.room', (e) => e.clientWidth),
        before = await width();
    await page.click('[data-zoom="2"]');
    await page.waitForFunction((w) => document.querySelector('.room').clientWidth > w, before);
    await bench.is('it zooms', width(), 2 * before);
    await page.click('#time canvas', { position: { x: 300, y: 40 } });
    const at = () => document.querySelector('.turn .at').index;
    await bench.rows(page, [['a click there chooses the token of that time', at, (n) => n > 5]]);
    await page.evaluate(() => document.querySelector('#replay').click());
    await page.waitForFunction(() => {
        const n = document.querySelectorAll('.turn .t').length;
        return n > 2 && n < 50;
    });
    await page.waitForFunction(() => document.querySelectorAll('.turn .t').length === 60);
    bench.check('a text can be played again', true);
}

module.exports = [marks, details, sideBySide, threshold, timeline];
