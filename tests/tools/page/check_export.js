/* The page as one file: it opens without a server and sends nothing. */
'use strict';
const fs = require('fs');
const { shot, write, save, count, texts } = require('./browser.js');

const until = (page, n) =>
    page.waitForFunction((n) => document.querySelectorAll('.turn .t').length === n, n);

async function recording(bench) {
    const page = await bench.page();
    await page.check('#side');
    await write(page, '@hostile');
    await page.uncheck('#side');
    await write(page, '@plain');
    const before = await texts(page, '.turn .t'),
        file = await save(page, 'export');
    await page.waitForFunction(() =>
        /^60 steps/.test(document.querySelector('.words').textContent)
    );
    const words = await page.textContent('.words'),
        source = fs.readFileSync(file, 'utf8'),
        own = /Content-Security-Policy" content="default-src 'none'/.test(source),
        others = /(src|href)="(?!data:|#)/.test(source.replace(/<script[^]*?<\/script>/g, ''));
    bench.check('the file is one page with a policy of its own', own && !others);
    const address = source.includes(bench.url) || source.includes('127.0.0.1');
    bench.check('the server’s address is not in it', !address);

    const again = await bench.visit(`file://${file}`, { offline: true });
    await again.goto(again.home);
    await until(again, before.length);
    await bench.is('all tokens are there', texts(again, '.turn .t'), before);
    await again.waitForTimeout(300);
    await again.hover('.turn >> nth=1 >> .cloud >> nth=0');
    await bench.rows(again, [
        ['the timeline says the same', '.words', words],
        ['details open', '#details', /Score .* below the threshold/],
        ['nothing can be asked', ':is(#form, #again, button.choice)', 0],
    ]);
    await again.fill('#threshold', '0.95');
    await again.locator('.flips').first().waitFor();
    await bench.is('the threshold can be tried', count(again, '.flips'), (n) => n > 5);
    await again.click('#replay');
    await again.waitForFunction(() => document.querySelectorAll('.turn:last-child .t').length < 50);
    await until(again, before.length);
    bench.check('it can be played', true);
    await shot(again, 'recording');
}

module.exports = [recording];
