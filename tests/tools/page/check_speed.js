/* 4,000 tokens, as a stream and all at once, without a long task: one of over 50 ms, or, where the
 * machine is slow or busy, of half more than a plain page of 4,000 words takes there. A
 * PerformanceObserver tells how long tasks last. That includes the time of other programs, so if it
 * finds any, the browser's own trace must show that none took as much of the processor's time. */
'use strict';
const { begin, ended } = require('./browser.js');

/* What an element for each of 4,000 words, and their layout, take now: the median, in ms. */
async function plainPage(bench) {
    const page = await bench.browser.newPage();
    const times = await page.evaluate(() =>
        Array.from({ length: 15 }, () => {
            const begin = performance.now();
            const div = document.createElement('div');
            for (let i = 0; i < 4000; i++)
                div.appendChild(document.createElement('span')).textContent = ` word${i}`;
            document.body.replaceChildren(div);
            return div.offsetHeight && performance.now() - begin;
        })
    );
    await page.close();
    return times.sort((a, b) => a - b)[7];
}

/* Run the work and return the long tasks, in milliseconds. */
async function longTasks(bench, page, work) {
    const before = await plainPage(bench);
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
    const plain = Math.round(Math.max(before, await plainPage(bench)));
    console.log(
        `     ${tasks.length} tasks, the longest took ${Math.max(...tasks)} ms of processor time,` +
            ` a plain page ${plain}` +
            (seen.length ? `; observed with other programs: ${seen}` : '')
    );
    if (!tasks.length) return ['no task in the trace'];
    return seen.length ? tasks.filter((ms) => ms > Math.max(50, 1.5 * plain)) : [];
}

async function long(bench, script) {
    const page = await bench.page();
    const tasks = await longTasks(bench, page, async () => {
        await begin(page, script);
        await ended(page);
    });
    bench.same(`${script}: 4,000 tokens`, await page.locator('.turn .t').count(), 4000);
    bench.same(`${script}: no long task`, tasks, []);
    bench.same(
        `${script}: keys, threshold and shades without a long task`,
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
