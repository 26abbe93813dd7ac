/* A server that requires a key: the page asks for it, and keeps it to itself. */
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { save, texts, write, ended } = require('./browser.js');

const KEY = 'sesame';

async function locked(bench) {
    const page = await bench.page({}, bench.locked);
    bench.check(
        'a server with a key asks for it',
        (await page.isVisible('#secret')) && (await page.isHidden('#form'))
    );
    bench.same('nothing else is offered', await page.locator('aside:visible').count(), 0);
    bench.same('it is typed unseen', await page.getAttribute('#secret', 'type'), 'password');
    bench.same(
        'and the cursor is there',
        await page.evaluate(() => document.activeElement.id),
        'secret'
    );
    await bench.axe(page, 'the key is asked for');
    await bench.shot(page, 'key');
    for (const wrong of ['Sesame', 'sésame', 'a b']) {
        await page.fill('#secret', wrong);
        const asked = /^[\x21-\x7e]+$/.test(wrong)
            ? page.waitForResponse('**/mizzle/info')
            : Promise.resolve();
        await page.press('#secret', 'Enter');
        await asked;
        await page.locator('#wrong:not(:empty)').waitFor();
        await bench.says(page, '#wrong', `the key “${wrong}” is refused`, /does not accept/);
    }
    await page.fill('#secret', ` ${KEY} `);
    await page.press('#secret', 'Enter');
    await page.locator('#form').waitFor();
    bench.check('the right one opens the page', await page.isHidden('#lock'));
    await page.check('#mode [value=text]');
    await page.click('#settings summary');
    await page.fill('#max', '8');
    await write(page, 'Question: Where might you spot the lisuge?\nAnswer:');
    bench.check('texts are written', (await page.locator('.turn .t').count()) > 0);
    const kept = await page.evaluate(() => [
        Object.keys(sessionStorage).length,
        document.cookie,
        JSON.stringify(localStorage) + location.href + document.documentElement.innerHTML,
    ]);
    bench.check(
        'the key is neither stored nor shown',
        kept[0] === 0 && kept[1] === '' && !kept[2].includes(KEY),
        kept.slice(0, 2)
    );
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'page-'));
    const file = await save(page, path.join(dir, 'a.html'));
    bench.check('nor saved', !fs.readFileSync(file, 'utf8').includes(KEY));
    fs.rmSync(dir, { recursive: true });
    bench.same('no error', page.errors, []);
    await page.click('#clear');
    bench.check('starting over does not ask again', await page.isVisible('#form'));
    await page.reload();
    await page.locator('#secret').waitFor();
    bench.same('a page that is loaded again does', await page.inputValue('#secret'), '');
}

/* A key that is withdrawn while the page is open. */
async function withdrawn(bench) {
    const page = await bench.page();
    await page.route('**/{v1,mizzle}/**', (r) =>
        r.fulfill({ status: 401, json: { error: { message: 'the key is wrong' } } })
    );
    await page.check('#mode [value=text]');
    await page.fill('#prompt', 'Once');
    await page.press('#prompt', 'Enter');
    await page.locator('#secret').waitFor();
    bench.same('a refused text says why', await texts(page, '.fail:not(:empty)'), [
        'the key is wrong',
    ]);
    await page.unroute('**/{v1,mizzle}/**');
    await page.fill('#secret', KEY);
    await page.press('#secret', 'Enter');
    await page.locator('#form').waitFor();
    bench.check('and the page goes on with a new key', true);
    await ended(page);
}

module.exports = [locked, withdrawn];
