/* The network of the stand-in, which all texts share: these checks run alone. */
'use strict';
const { begin, ended, json } = require('./browser.js');

async function slow(bench) {
    const page = await bench.page();
    const set = async (id, value) => {
        const done = page.waitForResponse('**/mizzle/network');
        await page.fill(`#${id}`, value);
        await page.dispatchEvent(`#${id}`, 'change');
        await done;
    };
    await page.click('#network summary');
    await page.click('#settings summary');
    await page.selectOption('#policy', 'always');
    await set('latency_ms', '400');
    const { cloud } = await json(`${bench.url}/mizzle/info`);
    bench.same('a slider sets the network of the stand-in', cloud.network.latency_ms, 400);
    await begin(page, 'A slow network');
    await page.locator('.turn .cloud').first().waitFor();
    await page.locator('.turn .cloud').first().click();
    const ms = /Call\s+([\d.]+) (m?s)/.exec(await page.innerText('#details'));
    bench.check('a call takes that long', ms && ms[1] * (ms[2] === 's' ? 1000 : 1) >= 400, ms);
    await page.keyboard.press('Escape');
    await ended(page);
    await page.waitForFunction(() =>
        /stopped/.test(document.querySelector('.answer .note').textContent)
    );
    bench.check('Esc stops the text', true);
    let busy = true;
    for (let i = 0; i < 100 && busy; i++) {
        await page.waitForTimeout(50);
        busy = !/^mizzle_slots_busy 0$/m.test(await (await fetch(`${bench.url}/metrics`)).text());
    }
    bench.check('and frees its place', !busy);
    await set('latency_ms', '20');
    await page.context().close();
}

module.exports = [slow];
