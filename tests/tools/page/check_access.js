/* Everybody can use it: axe-core in all states and looks, contrast, sentences, motion, 320 px. */
'use strict';
const { ALL_ELSE, CONTRAST, LARGE, write, texts, shot } = require('./browser.js');

const LOOKS = {
    light: { colorScheme: 'light', viewport: LARGE },
    dark: { colorScheme: 'dark', viewport: LARGE },
    forced: { colorScheme: 'dark', forcedColors: 'active', viewport: LARGE },
    narrow: { colorScheme: 'light', viewport: { width: 320, height: 640 }, hasTouch: true },
};

/* What axe-core has to look at anew. */
const RULES = { dark: CONTRAST, forced: CONTRAST, narrow: ALL_ELSE };

/* The states of the page in one look. */
async function look(bench, name, options) {
    const page = await bench.page({ ...options, bypassCSP: true });
    await bench.axe(page, `${name}: empty`, RULES[name]);
    await write(page, `@plain${'\nof many lines'.repeat(20)}`);
    await page.click('.turn .cloud >> nth=0');
    if (name === 'narrow') await shot(page, 'narrow-details');
    await bench.axe(page, `${name}: details open`, RULES[name]);
    await page.click('#details .close');
    await page.$eval('#settings', (e) => (e.open = true));
    await page.check('#colour [value=score]');
    await page.check('#side');
    await write(page, '@fail');
    await page.fill('#threshold', '0.95');
    await bench.axe(page, `${name}: side by side, shades, banner, settings`, RULES[name]);
    const beyond = () => document.documentElement.scrollWidth - innerWidth,
        what = `${name}: nothing is wider than the window`;
    await bench.rows(page, [[what, beyond, (n) => n <= 0]]);
    await shot(page, name);
}

/* Marks have 3:1 against the paper, texts 4.5:1, also on top of the darkest shade. */
const LEAST = { ink: 4.5, soft: 4.5, cloud: 3, fall: 3, memo: 3, edge: 3, rim: 3 };

function ratios(names) {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const css = getComputedStyle(document.documentElement);
    /* The luminance of colours that are painted one over the other. */
    const light = (...layers) => {
        for (const name of layers) {
            canvas.fillStyle = css.getPropertyValue(name).trim();
            canvas.fillRect(0, 0, 1, 1);
        }
        const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4),
            rgb = [...canvas.getImageData(0, 0, 1, 1).data].map((x) => linear(x / 255));
        return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
    };
    const against = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const min = (n) => Math.min(...['--paper', '--desk'].map((on) => against(light(n), light(on))));
    return {
        ...Object.fromEntries(names.map((name) => [name, min(`--${name}`)])),
        shaded: against(light('--paper', '--heat'), light('--ink')),
        button: against(light('--main'), light('--on-main')),
    };
}

async function contrast(bench, colorScheme) {
    const page = await bench.page({ colorScheme }),
        found = await page.evaluate(ratios, Object.keys(LEAST));
    for (const [name, least] of Object.entries({ ...LEAST, shaded: 4.5, button: 4.5 })) {
        const what = `${colorScheme}: contrast of ${name} is at least ${least}`;
        bench.check(what, found[name] >= least, found[name]);
    }
}

async function sentences(bench) {
    const page = await bench.page({ reducedMotion: 'reduce' });
    await write(page, '@plain');
    const said = await texts(page, '.answer [aria-live] p'),
        whole = (list) => list.join('').replace(/\s+/g, ''),
        ends = (list) => list.slice(0, -1).every((s) => /[.!?]$/.test(s));
    await bench.is('it speaks in sentences', said, (s) => s.length > 1 && s.length < 10 && ends(s));
    await bench.is('and leaves nothing out', whole(said), whole(await texts(page, '.turn .t')));
    await bench.rows(page, [
        ['there is one live region for the text', '.answer [aria-live=polite]', 1],
        ['tokens are one control, not sixty', '.turn [role=slider]', 1],
        ['nothing moves for those who want no motion', () => document.getAnimations().length, 0],
    ]);
    const words = page.getAttribute('#time canvas', 'aria-label');
    await bench.is('the timeline has words', words, (s) => s.length > 40);
    await page.check('#side');
    await write(page, '@plain');
    const live = '.turn:nth-child(2) [aria-live]';
    await bench.rows(page, [['side by side, only the routed text speaks', live, 1]]);
}

const looks = Object.entries(LOOKS).map(([name, options]) => (bench) => look(bench, name, options));
const schemes = ['light', 'dark'].map((scheme) => (bench) => contrast(bench, scheme));
module.exports = [...looks, ...schemes, sentences];
