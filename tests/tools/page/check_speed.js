/* 4,000 tokens, as a stream and all at once, without a task over 50 ms. A PerformanceObserver tells
 * how long tasks last. On a busy machine that includes the time of other programs, so if it finds
 * any, the browser's own trace must show that none took 50 ms of processor time. */
'use strict';
const { begin, ended } = require('./browser.js');

/* Run the work and return the tasks over 50 ms, in milliseconds. */
async function longTasks(bench, page, work) {
    await page.evaluate(() => {
        window.seen.tasks.length = 0;
    });
    await bench.browser.startTracing(page, { categories: ['toplevel'] });
    await work();
    await page.waitForTimeout(100);
    const seen = await page.evaluate(() => window.seen.tasks);
    const { traceEvents } = JSON.parse(await bench.browser.stopTracing());
    const main = new Set(
        traceEvents
            .filter((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain')
            .map((e) => `${e.pid} ${e.tid}`)
    );
    const tasks = traceEvents
        .filter((e) => e.tdur && /RunTask/.test(e.name) && main.has(`${e.pid} ${e.tid}`))
        .map((e) => Math.round(e.tdur / 1000));
    console.log(
        `     ${tasks.length} tasks, the longest took ${Math.max(...tasks)} ms of processor time` +
            (seen.length ? `; observed with other programs: ${seen}` : '')
    );
    if (!tasks.length) return ['no task in the trace'];
    return seen.length ? tasks.filter((ms) => ms > 50) : [];
}

async function long(bench, script) {
    const page = await bench.page();
    const tasks = await longTasks(bench, page, async () => {
        await begin(page, script);
        await ended(page);
    });
    bench.same(`${script}: 4,000 tokens`, await page.locator('.turn .t').count(), 4000);
    bench.same(`${script}: no task over 50 ms`, tasks, []);
    bench.same(
        `${script}: keys, threshold and shades without a task over 50 ms`,
        await longTasks(bench, page, async () => {
            await page.focus('.text');
            for (const key of ['End', 'Home', 'PageDown', 'ArrowDown', 'Enter'])
                await page.keyboard.press(key);
            await page.fill('#threshold', '0.95');
            await page.check('#colour [value=score]');
        }),
        []
    );
    bench.same(`${script}: no error`, page.errors, []);
}

module.exports = ['@long', '@line', '@burst'].map((script) => (bench) => long(bench, script));
