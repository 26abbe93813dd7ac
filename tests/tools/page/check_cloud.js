/* What the page says when the cloud or the server fails. */
'use strict';
const { write } = require('./browser.js');

const said = (page) => page.textContent('#banner');

async function failure(bench) {
    const page = await bench.page();
    bench.same('there is no banner while all is well', await said(page), '');
    await write(page, '@fail');
    await page.locator('#banner:not(:empty)').waitFor();
    bench.check(
        'a failure has a banner with its reason',
        /could not help with 5 tokens \(connection refused\)/.test(await said(page)),
        await said(page)
    );
    const badge = () => page.getAttribute('#cloud', 'data-state');
    bench.same('the badge says so, too', await badge(), 'failing');
    bench.same('it is an alert', await page.getAttribute('#banner', 'role'), 'alert');
    await page.click('.turn .fallback >> nth=0');
    const why = /could not help: connection refused/;
    await bench.says(page, '#details', 'the token tells it, too', why);
    const at = await page.$eval('#banner', (e) => e.getBoundingClientRect().top);
    bench.check('it stays in sight', at >= 0 && at < 300 && (await page.evaluate(() => scrollY)) > 0);
    bench.check(
        'it moves nothing aside',
        await page.evaluate(
            () =>
                document.documentElement.scrollWidth <= innerWidth &&
                document.querySelector('main').getBoundingClientRect().left < 50
        )
    );
    await bench.shot(page, 'banner');
    await write(page, '@plain');
    await page.waitForFunction(() => document.querySelector('#banner').textContent === '');
    bench.check('it goes when the next text is well', true);
    bench.same('and the badge is well again', await badge(), 'working');
}

/* What the page keeps when its server ends. */
async function dead(bench) {
    let ends = false;
    const page = await bench.page({
        info: (i) =>
            ends ? { status: 500, json: {} } : { ...i, router: { ...i.router, threshold: 0.3 } },
    });
    ends = true;
    await page.$eval('#policy', (e) => (e.value = 'random')); /* in a menu that is closed */
    await page.$eval('#mode [value=chat]', (e) => (e.checked = true));
    await write(page, '@refuse');
    await bench.says(page, '#banner', 'a server that ended has a banner', /does not answer/);
    bench.check('no badge says that the cloud is well', await page.isHidden('#cloud'));
    await page.setViewportSize({ width: 900, height: 660 });
    await page.waitForTimeout(200);
    bench.same('the threshold stays', await page.inputValue('#threshold'), '0.3');
    ends = false;
    await page.locator('#cloud').waitFor();
    bench.same('the policy stays when it is back', await page.inputValue('#policy'), 'random');
    bench.check('so does the prompt', await page.isChecked('#mode [value=chat]'));
}

async function state(bench, name, words) {
    let is = name;
    const page = await bench.page({
        info: (i) => ({ ...i, cloud: { ...i.cloud, state: is, why: 'bad key', retry_s: 8 } }),
    });
    await page.locator('#banner:not(:empty)').waitFor();
    const banner = await said(page);
    bench.check(`the state “${name}” is explained`, words.test(banner), banner);
    is = 'working';
    await page.waitForFunction(() => document.querySelector('#banner').textContent === '');
    bench.same(
        `and withdrawn after “${name}”`,
        await page.getAttribute('#cloud', 'data-state'),
        'working'
    );
}

async function none(bench) {
    const page = await bench.page({ info: (i) => ({ ...i, cloud: null, router: null }) });
    bench.check(
        'without a cloud the small model writes alone',
        /writes alone/.test(await page.textContent('#cloud'))
    );
    await page.check('#side');
    await write(page, '@plain');
    bench.same('and there are two columns', await page.locator('.answer').count(), 2);
}

async function loading(bench) {
    let reading = true;
    const page = await bench.page({
        info: (i) => (reading ? { status: 503, json: { error: { message: 'loading' } } } : i),
    });
    await bench.says(page, '#model', 'while the model is loaded the page says so', /being loaded/);
    reading = false;
    await page.waitForFunction(() => !/loaded/.test(document.querySelector('#model').textContent));
    bench.check('and goes on by itself', (await page.locator('#policy option').count()) > 0);
}

module.exports = [
    failure,
    dead,
    (bench) => state(bench, 'refused', /refused: bad key/),
    (bench) => state(bench, 'paused', /left alone.*again in 8 s/),
    (bench) => state(bench, 'off', /cannot be reached/),
    none,
    loading,
];
