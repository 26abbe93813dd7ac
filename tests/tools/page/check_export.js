/* The page as one file: it opens without a server and sends nothing. */
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { write, save, texts } = require('./browser.js');

async function reopened(bench, at) {
    const context = await bench.browser.newContext({
        viewport: { width: 1280, height: 860 },
        offline: true,
    });
    const page = await context.newPage();
    Object.assign(page, { errors: [], requests: [] });
    page.on('pageerror', (e) => page.errors.push(e.message));
    page.on('console', (m) => m.type() === 'error' && page.errors.push(m.text()));
    page.on('request', (r) => page.requests.push(r.url()));
    await page.goto(`file://${at}`);
    return page;
}

async function recording(bench) {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'page-'));
    const page = await bench.page();
    await page.check('#side');
    await write(page, '@hostile');
    await page.uncheck('#side');
    await write(page, '@plain');
    const before = await texts(page, '.turn .t'),
        file = await save(page, path.join(dir, 'a.html'));
    await page.waitForFunction(() =>
        /^60 steps/.test(document.querySelector('.words').textContent)
    );
    const words = await page.textContent('.words');
    const source = fs.readFileSync(file, 'utf8');
    bench.check(
        'the file is one page with a policy of its own',
        /Content-Security-Policy" content="default-src 'none'/.test(source) &&
            !/(src|href)="(?!data:|#)/.test(source.replace(/<script[^]*?<\/script>/g, ''))
    );
    bench.check(
        'the server’s address is not in it',
        !source.includes(bench.url) && !source.includes('127.0.0.1')
    );
    const again = await reopened(bench, file);
    await again.waitForFunction(
        (n) => document.querySelectorAll('.turn .t').length === n,
        before.length
    );
    bench.same('all tokens are there', await texts(again, '.turn .t'), before);
    bench.same(
        'nothing was requested but the file',
        again.requests.filter((u) => !/^data:image/.test(u)),
        [`file://${file}`]
    );
    bench.same('no error', again.errors, []);
    await again.waitForTimeout(300);
    bench.same('the timeline says the same', await again.textContent('.words'), words);
    await again.hover('.turn >> nth=1 >> .cloud >> nth=0');
    bench.check(
        'details open',
        /Score .* below the threshold/.test(await again.innerText('#details'))
    );
    bench.same(
        'nothing can be asked',
        [
            await again.locator('#form').count(),
            await again.locator('#again').count(),
            await again.locator('button.choice').count(),
        ],
        [0, 0, 0]
    );
    await again.fill('#threshold', '0.95');
    await again.locator('.flips').first().waitFor();
    bench.check('the threshold can be tried', (await again.locator('.flips').count()) > 5);
    await again.click('#replay');
    await again.waitForFunction(() => document.querySelectorAll('.turn:last-child .t').length < 50);
    await again.waitForFunction(
        () => document.querySelectorAll('.turn:last-child .t').length === 60
    );
    bench.check('it can be played', true);
    if (process.env.SHOTS) await again.screenshot({ path: `${process.env.SHOTS}/recording.png` });
    await again.context().close();
    fs.rmSync(dir, { recursive: true });
}

module.exports = [recording];
