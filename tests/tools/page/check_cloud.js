/* What the page says when the cloud or the server fails. */
'use strict';
const { write, shot } = require('./browser.js');

const quiet = (page) =>
    page.waitForFunction(() => document.querySelector('#banner').textContent === '');
const badge = (page) => page.getAttribute('#cloud', 'data-state');

async function failure(bench) {
    const page = await bench.page();
    await bench.rows(page, [['there is no banner while all is well', '#banner', '']]);
    await write(page, '@fail');
    await page.click('.turn .fallback >> nth=0');
    const why = /could not help with 5 tokens \(connection refused\)/;
    await bench.rows(page, [
        ['a failure has a banner with its reason', '#banner', why],
        ['the token tells it, too', '#details', /could not help: connection refused/],
        ['it is an alert', '#banner[role=alert]', 1],
    ]);
    await bench.is('the badge says so, too', badge(page), 'failing');
    const at = await page.$eval('#banner', (e) => e.getBoundingClientRect().top);
    const scrolled = await page.evaluate(() => scrollY);
    bench.check('it stays in sight', at >= 0 && at < 300 && scrolled > 0, [at, scrolled]);
    const still = () =>
        document.documentElement.scrollWidth <= innerWidth &&
        document.querySelector('main').getBoundingClientRect().left < 50;
    await bench.rows(page, [['it moves nothing aside', still, true]]);
    await shot(page, 'banner');
    await write(page, '@plain');
    await quiet(page);
    bench.check('it goes when the next text is well', true);
    await bench.is('and the badge is well again', badge(page), 'working');
}

/* What the page keeps when its server ends. */
async function dead(bench) {
    let ends = false;
    const gone = { status: 500, json: {} },
        info = (i) => (ends ? gone : { ...i, router: { ...i.router, threshold: 0.3 } });
    const page = await bench.page({ info });
    ends = true;
    await page.$eval('#policy', (e) => (e.value = 'random')); /* in a menu that is closed */
    await page.$eval('#mode [value=chat]', (e) => (e.checked = true));
    await write(page, '@refuse');
    await bench.rows(page, [
        ['a server that ended has a banner', '#banner', /does not answer/],
        ['no badge says that the cloud is well', '#cloud', false],
    ]);
    await page.setViewportSize({ width: 900, height: 660 });
    await page.waitForTimeout(200);
    await bench.is('the threshold stays', page.inputValue('#threshold'), '0.3');
    ends = false;
    await page.locator('#cloud').waitFor();
    await bench.is('the policy stays when it is back', page.inputValue('#policy'), 'random');
    await bench.is('so does the prompt', page.isChecked('#mode [value=chat]'), true);
}

async function state(bench, name, words) {
    let is = name;
    const cloud = (i) => ({ ...i.cloud, state: is, why: 'bad key', retry_s: 8 });
    const page = await bench.page({ info: (i) => ({ ...i, cloud: cloud(i) }) });
    await page.locator('#banner:not(:empty)').waitFor();
    await bench.is(`the state “${name}” is explained`, page.textContent('#banner'), words);
    is = 'working';
    await quiet(page);
    await bench.is(`and withdrawn after “${name}”`, badge(page), 'working');
}

async function none(bench) {
    const page = await bench.page({ info: (i) => ({ ...i, cloud: null, router: null }) });
    const alone = 'without a cloud the small model writes alone';
    await bench.rows(page, [[alone, '#cloud', /writes alone/]]);
    await page.check('#side');
    await write(page, '@plain');
    await bench.rows(page, [['and there are two columns', '.answer', 2]]);
}

async function loading(bench) {
    let reading = true;
    const busy = { status: 503, json: { error: { message: 'loading' } } };
    const page = await bench.page({ info: (i) => (reading ? busy : i) });
    await bench.says(page, '#model', 'while the model is loaded the page says so', /being loaded/);
    reading = false;
    await page.waitForFunction(() => !/loaded/.test(document.querySelector('#model').textContent));
    bench.check('and goes on by itself', (await page.locator('#policy option').count()) > 0);
}

const STATES = {
    refused: /refused: bad key/,
    paused: /left alone.*again in 8 s/,
    off: /cannot be reached/,
};
const states = Object.entries(STATES).map(([name, words]) => (bench) => state(bench, name, words));
module.exports = [failure, dead, ...states, none, loading];
