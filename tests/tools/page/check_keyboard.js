/* Everything works by keys alone. */
'use strict';
const { count, ended } = require('./browser.js');

/* What has the focus, by what names it. */
const focused = () => {
    const e = document.activeElement;
    return e.id || e.name || e.dataset.zoom || e.className || e.tagName;
};

/* Each of these must be a stop of Tab. */
const STOPS =
    'skip replay save clear colour text 0.5 2 scroll side prompt threshold again SUMMARY';

async function keyboard(bench) {
    const page = await bench.page(),
        on = () => page.evaluate(focused),
        at = () => page.$eval('.turn .at', (e) => e.index);
    const keys = async (...names) => {
        for (const name of names) await page.keyboard.press(name);
    };
    await keys('Tab');
    await bench.is('the first stop is a link to the prompt', on(), 'skip');
    await keys('Enter');
    await page.keyboard.type('@plain');
    await bench.is('it leads there', page.inputValue('#prompt'), '@plain');
    await keys('Enter');
    await page.locator('.turn .t').first().waitFor();
    await ended(page);
    for (let i = 0; i < 30 && (await on()) !== 'text'; i++) await keys('Shift+Tab');
    await bench.is('the text is a stop', on(), 'text');
    await keys('Home', 'ArrowRight');
    await bench.is('arrows move by token', at(), 1);
    const value = page.getAttribute('.text', 'aria-valuetext'),
        heard = /^“.+”, (written|chosen) by .*, token 2 of 60$/;
    await bench.is('screen readers hear the token', value, heard);
    await keys('ArrowDown');
    await bench.is('and by line', at(), (n) => n > 5);
    await keys('ArrowUp');
    await bench.is('and back', at(), (n) => n < 3);
    await keys('End');
    await bench.is('End leads to the last', at(), 59);
    await keys('Home', 'PageDown');
    const chosen = page.$eval('.turn .at', (e) => e.className);
    await bench.is('Page Down leads to one of the cloud', chosen, /cloud|memo/);
    await bench.says(page, '#details', 'the details follow the keys', /written by the cloud/);
    const outline = page.$eval('.turn .at', (e) => getComputedStyle(e).outlineStyle);
    await bench.is('the token has a visible frame', outline, 'solid');
    await keys('Enter');
    await bench.is('Enter leads to its choices', on(), /choice/);
    await keys('Escape');
    await bench.is('Esc leads back', on(), 'text');
    await keys('ArrowRight', 'Escape');
    await bench.says(page, '#details', 'Esc ends the details', /Point at/);
    await keys('Enter', 'Tab', 'Enter');
    await page.locator('.turn').nth(1).waitFor();
    await ended(page);
    await bench.is('a choice is taken by Enter', count(page, '.turn'), 2);
    const stops = new Set();
    for (let i = 0; i < 80; i++) {
        await keys('Tab');
        stops.add(await on());
    }
    const missed = STOPS.split(' ').filter((stop) => !stops.has(stop));
    await bench.is('Tab reaches every control', missed, []);
}

module.exports = [keyboard];
