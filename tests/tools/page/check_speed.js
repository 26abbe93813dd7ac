/* 4,000 tokens, as a stream and all at once, without a long task: one that takes over 50 ms of the
 * processor's time by the browser's own trace or, where that is slow, two and a half times what a
 * plain page of 4,000 words takes there, but never over 150. */
'use strict';
const { begin, ended } = require('./browser.js');

/* Run the work and return how long the tasks of the pages took, in ms, the longest first. */
async function traced(bench, page, work) {
    await bench.browser.startTracing(page, { categories: ['toplevel'] });
    await work();
    await page.waitForTimeout(100);
    const { traceEvents } = JSON.parse(await bench.browser.stopTracing());
    const main = new Set(
        traceEvents
            .filter((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain')
            .map((e) => `${e.pid} ${e.tid}`)
    );
    return traceEvents
        .filter((e) => e.tdur && /RunTask/.test(e.name) && main.has(`${e.pid} ${e.tid}`))
        .map((e) => Math.round(e.tdur / 1000))
        .sort((a, b) => b - a);
}

/* What an element for each of 4,000 words and their layout take now, in ms: the median of five. */
async function plainPage(bench) {
    const page = await bench.browser.newPage();
    const tasks = await traced(bench, page, async () => {
        for (let i = 0; i < 5; i++)
            await page.evaluate(() => {
                const div = document.createElement('div');
                for (let n = 0; n < 4000; n++)
                    div.appendChild(document.createElement('span')).textContent = ` word${n}`;
                document.body.replaceChildren(div);
                return div.offsetHeight;
            });
    });
    await page.close();
    return tasks[2];
}

let before; /* what a plain page took when it was last measured */

/* Run the work and return the long tasks, in milliseconds. */
async function longTasks(bench, page, work) {
    before = before || (await plainPage(bench));
    const tasks = await traced(bench, page, work);
    const after = await plainPage(bench);
    const plain = Math.max(before, after);
    before = after;
    const most = `the longest took ${tasks[0]} ms; a plain page ${plain}`;
    console.log(`     ${tasks.length} tasks, ${most}`);
    if (!tasks.length || !(plain > 0)) return ['no task in the trace'];
    return tasks.filter((ms) => ms > Math.min(150, Math.max(50, 2.5 * plain)));
}

async function long(bench, script) {
    const page = await bench.page();
    const tasks = await longTasks(bench, page, async () => {
        await begin(page, script);
        await ended(page);
    });
    await bench.rows(page, [[`${script}: 4,000 tokens`, '.turn .t', 4000]]);
    await bench.is(`${script}: no long task`, tasks, []);
    const use = async () => {
        await page.focus('.text');
        for (const key of ['End', 'Home', 'PageDown', 'ArrowDown', 'Enter'])
            await page.keyboard.press(key);
        await page.fill('#threshold', '0.95');
        await page.check('#colour [value=score]');
    };
    const what = `${script}: keys, threshold and shades without a long task`;
    await bench.is(what, longTasks(bench, page, use), []);
}

module.exports = ['@long', '@line', '@burst'].map((script) => (bench) => long(bench, script));
