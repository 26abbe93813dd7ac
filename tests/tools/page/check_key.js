/* A server that requires a key: the page asks for it, and keeps it to itself. */
'use strict';
const fs = require('fs');
const { save, shot, count, texts, write, ended } = require('./browser.js');

const KEY = 'sesame';

async function enter(page, key) {
    await page.fill('#secret', key);
    await page.press('#secret', 'Enter');
}

async function locked(bench) {
    const page = await bench.page({}, bench.locked);
    await bench.rows(page, [
        ['a server with a key asks for it', '#secret', true],
        ['and for no prompt', '#form', false],
        ['nothing else is offered', 'aside:visible', 0],
        ['it is typed unseen', '#secret[type=password]', 1],
        ['and the cursor is there', '#secret:focus', 1],
    ]);
    await bench.axe(page, 'the key is asked for');
    await shot(page, 'key');
    for (const wrong of ['Sesame', 'sésame', 'a b']) {
        const sent = /^[\x21-\x7e]+$/.test(wrong) && page.waitForResponse('**/mizzle/info');
        await enter(page, wrong);
        await sent;
        await page.locator('#wrong:not(:empty)').waitFor();
        await bench.says(page, '#wrong', `the key “${wrong}” is refused`, /does not accept/);
    }
    await enter(page, ` ${KEY} `);
    await page.locator('#form').waitFor();
    await bench.rows(page, [['the right one opens the page', '#lock', false]]);
    await page.check('#mode [value=text]');
    await page.click('#settings summary');
    await page.fill('#max', '8');
    await write(page, 'Question: Where might you spot the lisuge?\nAnswer:');
    await bench.is('texts are written', count(page, '.turn .t'), (n) => n > 0);
    const kept = () => Object.keys(sessionStorage).length + document.cookie,
        shown = () =>
            JSON.stringify(localStorage) + location.href + document.documentElement.innerHTML;
    await bench.rows(page, [['the key is not stored', kept, '0']]);
    bench.check('nor shown', !(await page.evaluate(shown)).includes(KEY));
    const file = await save(page, 'key');
    bench.check('nor saved', !fs.readFileSync(file, 'utf8').includes(KEY));
    await page.click('#clear');
    await bench.rows(page, [['starting over does not ask again', '#form', true]]);
    await page.reload();
    await page.locator('#secret').waitFor();
    await bench.is('a page that is loaded again does', page.inputValue('#secret'), '');
}

/* A key that is withdrawn while the page is open. */
async function withdrawn(bench) {
    const page = await bench.page(),
        wrong = { status: 401, json: { error: { message: 'the key is wrong' } } };
    await page.route('**/{v1,mizzle}/**', (r) => r.fulfill(wrong));
    await page.check('#mode [value=text]');
    await page.fill('#prompt', 'Once');
    await page.press('#prompt', 'Enter');
    await page.locator('#secret').waitFor();
    const said = texts(page, '.fail:not(:empty)');
    await bench.is('a refused text says why', said, ['the key is wrong']);
    await page.unroute('**/{v1,mizzle}/**');
    await enter(page, KEY);
    await page.locator('#form').waitFor();
    bench.check('and the page goes on with a new key', true);
    await ended(page);
}

module.exports = [locked, withdrawn];
