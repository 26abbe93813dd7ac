/* Everybody can use it: axe-core in all states and looks, contrast, sentences, motion, 320 px. */
'use strict';
const { LARGE, write, texts } = require('./browser.js');

const LOOKS = {
    light: { colorScheme: 'light', viewport: LARGE },
    dark: { colorScheme: 'dark', viewport: LARGE },
    forced: { colorScheme: 'dark', forcedColors: 'active', viewport: LARGE },
    narrow: { colorScheme: 'light', viewport: { width: 320, height: 640 }, hasTouch: true },
};

/* The states of the page in one look. */
async function look(bench, name, options) {
    const page = await bench.page({ ...options, bypassCSP: true });
    await bench.axe(page, `${name}: empty`);
    await write(page, `@plain${'\nof many lines'.repeat(20)}`);
    await page.click('.turn .cloud >> nth=0');
    if (name === 'narrow') await bench.shot(page, 'narrow-details');
    await bench.axe(page, `${name}: details open`);
    await page.click('#details .close');
    await page.$eval('#settings', (e) => {
        e.open = true;
    });
    await page.check('#colour [value=score]');
    await page.check('#side');
    await write(page, '@fail');
    await page.fill('#threshold', '0.95');
    await bench.axe(page, `${name}: side by side, shades, banner, settings`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    bench.check(`${name}: nothing is wider than the window`, wide <= 0, wide);
    await bench.shot(page, name);
}

/* Marks have 3:1 against the paper, texts 4.5:1, also on top of the darkest shade. */
async function contrast(bench, colorScheme) {
    const page = await bench.page({ colorScheme });
    await write(page, '@plain');
    const ratio = await page.evaluate(() => {
        const canvas = document
            .createElement('canvas')
            .getContext('2d', { willReadFrequently: true });
        const css = getComputedStyle(document.documentElement),
            value = (n) => css.getPropertyValue(n).trim();
        const rgb = (...layers) => {
            layers.forEach((l) => {
                canvas.fillStyle = l;
                canvas.fillRect(0, 0, 1, 1);
            });
            return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
        };
        const light = (c) =>
            c
                .map((x) => x / 255)
                .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
                .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
        const against = (a, b) => {
            const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
            return (x + 0.05) / (y + 0.05);
        };
        const paper = rgb(value('--paper')),
            desk = rgb(value('--desk')),
            min = (n) => Math.min(against(rgb(value(n)), paper), against(rgb(value(n)), desk));
        return {
            ink: min('--ink'),
            soft: min('--soft'),
            cloud: min('--cloud'),
            fall: min('--fall'),
            memo: min('--memo'),
            edge: min('--edge'),
            rim: min('--rim'),
            shaded: against(rgb(value('--paper'), value('--heat')), rgb(value('--ink'))),
            button: against(rgb(value('--main')), rgb(value('--on-main'))),
        };
    });
    for (const [name, least] of Object.entries({
        ink: 4.5,
        soft: 4.5,
        shaded: 4.5,
        button: 4.5,
        cloud: 3,
        fall: 3,
        memo: 3,
        edge: 3,
        rim: 3,
    }))
        bench.check(
            `${colorScheme}: contrast of ${name} is at least ${least}`,
            ratio[name] >= least,
            ratio[name]
        );
}

async function sentences(bench) {
    const page = await bench.page({ reducedMotion: 'reduce' });
    await write(page, '@plain');
    const live = page.locator('.answer [aria-live=polite]'),
        said = await texts(page, '.answer [aria-live] p');
    bench.same('there is one live region for the text', await live.count(), 1);
    bench.check(
        'it speaks in sentences',
        said.length > 1 && said.slice(0, -1).every((s) => /[.!?]$/.test(s)) && said.length < 10,
        said
    );
    const whole = (await texts(page, '.turn .t')).join('').replace(/\s+/g, '');
    bench.same('and leaves nothing out', said.join('').replace(/\s+/g, ''), whole);
    bench.same(
        'tokens are one control, not sixty',
        await page.locator('.turn [role=slider]').count(),
        1
    );
    bench.same(
        'nothing moves for those who want no motion',
        await page.evaluate(() => document.getAnimations().length),
        0
    );
    bench.check(
        'the timeline has words',
        (await page.getAttribute('#time canvas', 'aria-label')).length > 40
    );
    await page.check('#side');
    await write(page, '@plain');
    bench.same(
        'side by side, only the routed text speaks',
        await page.locator('.turn:nth-child(2) [aria-live]').count(),
        1
    );
}

module.exports = [
    ...Object.entries(LOOKS).map(
        ([name, options]) =>
            (bench) =>
                look(bench, name, options)
    ),
    (bench) => contrast(bench, 'light'),
    (bench) => contrast(bench, 'dark'),
    sentences,
];
