/* What the page says when the cloud or the server fails. */
'use strict';
const { write } = require('./browser.js');

module.exports = async (bench) => {
    const said = (page) => page.textContent('#banner');
    let page = await bench.page();
    bench.same('there is no banner while all is well', await said(page), '');
    await write(page, '@fail');
    await page.locator('#banner:not(:empty)').waitFor();
    bench.check(
        'a failure has a banner with its reason',
        /could not help with 5 tokens \(connection refused\)/.test(await said(page)),
        await said(page)
    );
    bench.same('it is an alert', await page.getAttribute('#banner', 'role'), 'alert');
    await page.click('.turn .fallback >> nth=0');
    bench.check(
        'the token tells it, too',
        /could not help: connection refused/.test(await page.innerText('#details'))
    );
    await bench.shot(page, 'banner');
    await write(page, '@plain');
    await page.waitForFunction(() => document.querySelector('#banner').textContent === '');
    bench.check('it goes when the next text is well', true);
    await page.context().close();

    for (const [state, words] of [
        ['refused', /refused: bad key/],
        ['breaker', /left alone.*again in 8 s/],
        ['off', /cannot be reached/],
    ]) {
        let is = state;
        page = await bench.page({
            info: (i) => ({ ...i, cloud: { ...i.cloud, state: is, why: 'bad key', retry_s: 8 } }),
        });
        await page.locator('#banner:not(:empty)').waitFor();
        bench.check(
            `the state “${state}” is explained`,
            words.test(await said(page)),
            await said(page)
        );
        is = 'open';
        await page.waitForFunction(
            () => document.querySelector('#banner').textContent === '',
            null,
            { timeout: 8000 }
        );
        bench.same(
            `and withdrawn after “${state}”`,
            await page.getAttribute('#cloud', 'data-state'),
            'open'
        );
        await page.context().close();
    }
    page = await bench.page({ info: (i) => ({ ...i, cloud: null, router: null }) });
    bench.check(
        'without a cloud the small model writes alone',
        /writes alone/.test(await page.textContent('#cloud'))
    );
    await page.check('#side');
    await write(page, '@plain');
    bench.same('and there are two columns', await page.locator('.answer').count(), 2);
    await page.context().close();

    let loading = true;
    page = await bench.page({
        info: (i) => (loading ? { status: 503, json: { error: { message: 'loading' } } } : i),
    });
    bench.check(
        'while the model is loaded the page says so',
        /being loaded/.test(await page.textContent('#model'))
    );
    loading = false;
    await page.waitForFunction(() => !/loaded/.test(document.querySelector('#model').textContent));
    bench.check('and goes on by itself', (await page.locator('#policy option').count()) > 0);
    await page.context().close();
};
