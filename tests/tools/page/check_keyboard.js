/* Everything works by keys alone. */
'use strict';
const { ended } = require('./browser.js');

async function keyboard(bench) {
    const page = await bench.page(),
        key = (k) => page.keyboard.press(k);
    const on = () =>
        page.evaluate(
            () =>
                document.activeElement.id ||
                document.activeElement.className ||
                document.activeElement.tagName
        );
    await key('Tab');
    bench.same('the first stop is a link to the prompt', await on(), 'skip');
    await key('Enter');
    await page.keyboard.type('@plain');
    bench.same('it leads there', await page.inputValue('#prompt'), '@plain');
    await key('Enter');
    await page.locator('.turn .t').first().waitFor();
    await ended(page);
    for (let i = 0; i < 30 && (await on()) !== 'text'; i++) await key('Shift+Tab');
    bench.same('the text is a stop', await on(), 'text');
    const at = () => page.$eval('.turn .at', (e) => e.index);
    const value = () => page.getAttribute('.text', 'aria-valuetext');
    await key('Home');
    await key('ArrowRight');
    bench.same('arrows move by token', await at(), 1);
    bench.check(
        'screen readers hear the token',
        /^“.+”, (written|chosen) by .*, token 2 of 60$/.test(await value()),
        await value()
    );
    await key('ArrowDown');
    const below = await at();
    bench.check('and by line', below > 5, below);
    await key('ArrowUp');
    bench.check('and back', (await at()) < 3, await at());
    await key('End');
    bench.same('End leads to the last', await at(), 59);
    await key('Home');
    await key('PageDown');
    const cls = await page.$eval('.turn .at', (e) => e.className);
    bench.check('Page Down leads to one of the cloud', /cloud|memo/.test(cls), cls);
    await bench.says(page, '#details', 'the details follow the keys', /written by the cloud/);
    const outline = await page.$eval('.turn .at', (e) => getComputedStyle(e).outlineStyle);
    bench.same('the token has a visible frame', outline, 'solid');
    await key('Enter');
    bench.check('Enter leads to its choices', /choice/.test(await on()), await on());
    await key('Escape');
    bench.same('Esc leads back', await on(), 'text');
    await key('ArrowRight');
    await key('Escape');
    await bench.says(page, '#details', 'Esc ends the details', /Point at/);
    await key('Enter');
    await key('Tab');
    await key('Enter');
    await page.locator('.turn').nth(1).waitFor();
    await ended(page);
    bench.same('a choice is taken by Enter', await page.locator('.turn').count(), 2);
    const stops = new Set();
    for (let i = 0; i < 80; i++) {
        await key('Tab');
        stops.add(
            await page.evaluate(
                () =>
                    document.activeElement.id ||
                    document.activeElement.name ||
                    document.activeElement.dataset.zoom ||
                    document.activeElement.className ||
                    document.activeElement.tagName
            )
        );
    }
    const wanted = [
        'skip',
        'replay',
        'save',
        'clear',
        'colour',
        'text',
        '0.5',
        '2',
        'scroll',
        'mode',
        'side',
        'prompt',
        'threshold',
        'again',
        'SUMMARY',
    ];
    bench.same(
        'Tab reaches every control',
        wanted.filter((w) => !stops.has(w) && !(w === 'mode' && stops.has('prompt'))),
        []
    );
    bench.same('no error', page.errors, []);
}

module.exports = [keyboard];
