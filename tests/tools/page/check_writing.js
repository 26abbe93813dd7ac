/* A text is asked for, written, stopped and refused. */
'use strict';
const { gzipSync } = require('zlib');
const { SMALL, json, mode, write, begin, ended, texts } = require('./browser.js');

/* What the server sends, packed as it sends it. */
async function size(bench) {
    const page = await bench.page();
    const names = ['/', ...page.requests.map((u) => new URL(u).pathname)];
    const wanted = [...new Set(names)].filter((n) => /^\/$|\.(css|js)$/.test(n));
    let sum = 0;
    for (const name of wanted) sum += gzipSync(await (await fetch(bench.url + name)).text()).length;
    console.log(`     ${wanted.join(' ')}: ${sum} bytes, packed`);
    bench.check('the page has at most 30 kB', wanted.length >= 3 && sum <= 30000, sum);
}

async function firstLook(bench) {
    const page = await bench.page();
    bench.same('one heading says what this is', await page.locator('h1:visible').count(), 1);
    const { names } = await json(`${bench.url}/mizzle/info`);
    bench.same(
        'the model is named as in the API',
        (await page.textContent('#model')).split(' · ')[0],
        names[0]
    );
    bench.same('the key shows four marks', await page.locator('.marks li').count(), 4);
    bench.check(
        'nothing that was not written is shown',
        (await page.locator('#numbers').isHidden()) &&
            (await page.locator('#time').isHidden()) &&
            (await page.locator('#save').isHidden())
    );
    bench.same(
        'the policy of the page is not breached',
        await page.evaluate(() => window.seen.breaches),
        []
    );
    bench.same(
        'all requests go to the server',
        page.requests.filter((u) => !u.startsWith(bench.url) && !u.startsWith('data:')),
        []
    );
    await bench.shot(page, 'first');
}

/* Only what any server can do. */
async function plain(bench) {
    const page = await bench.page();
    await mode(page, 'text');
    await page.fill('#prompt', 'Question: Where might you spot the lisuge?\nAnswer:');
    await page.click('#settings summary');
    await page.fill('#max', '12');
    await page.press('#prompt', 'Enter');
    await ended(page);
    const n = await page.locator('.turn .t').count(),
        body = page.bodies[0];
    bench.check('tokens are written, at most as many as wanted', n > 0 && n <= 12, n);
    bench.check(
        'raw text goes to /v1/completions',
        body.path === '/v1/completions' &&
            body.max_tokens === 12 &&
            body.prompt.startsWith('Question') &&
            body.stream &&
            body.return_token_ids,
        body
    );
    bench.same('a trace is asked for', body.mizzle.trace, { top: 5, events: true });
    bench.same(
        'the numbers are there',
        (await texts(page, '#numbers dd')).filter((v) => v === '').length,
        0
    );
    bench.check(
        'screen readers hear that it is finished',
        /^Finished: \d+ tokens/.test(await page.textContent('#status'))
    );
    bench.same(
        'what is typed next replaces the prompt',
        await page.$eval('#prompt', (e) => e.selectionEnd - e.selectionStart - e.value.length),
        0
    );
    bench.same('no error', page.errors, []);
    const stored = await page.evaluate(() => [
        Object.keys(localStorage),
        Object.keys(sessionStorage),
        document.cookie,
        Object.keys(JSON.parse(localStorage.mizzle)).sort(),
    ]);
    bench.same('only settings are stored', stored, [
        ['mizzle'],
        [],
        '',
        ['ahead', 'colour', 'max', 'mode', 'most', 'side', 'temperature'],
    ]);
}

async function chat(bench) {
    const page = await bench.page({ info: (i) => ({ ...i, chat: true }) });
    bench.check('raw text goes without a word', await page.isHidden('#suits'));
    await mode(page, 'chat');
    await bench.says(page, '#suits', 'the demo pair was not taught to chat', /not taught/);
    await write(page, '@chat first');
    await write(page, '@chat second');
    const body = page.bodies[1],
        said = (await texts(page, '.turn >> nth=0 >> .t')).join('');
    bench.same('chat goes to /v1/chat/completions', body.path, '/v1/chat/completions');
    bench.same(
        'a conversation goes on',
        body.messages.map((m) => m.role),
        ['user', 'assistant', 'user']
    );
    bench.same('the answer is sent back as it was written', body.messages[1].content, said);
    bench.same('the prompt is empty again', await page.inputValue('#prompt'), '');
    const able = await bench.page({ info: (i) => ({ ...i, chat: true, questions: [] }) });
    bench.check(
        'another pair may have been',
        (await able.isChecked('#mode [value=chat]')) && (await able.textContent('#suits')) === ''
    );
    const other = await bench.page({ info: (i) => ({ ...i, chat: false }) });
    bench.check(
        'without a chat format there is raw text',
        (await other.isHidden('#mode')) && (await other.isChecked('#mode [value=text]'))
    );
}

async function questions(bench) {
    const all = Array.from({ length: 7 }, (_, i) => `Question: @question ${i}?\nAnswer:`);
    const page = await bench.page({ info: (i) => ({ ...i, chat: false, questions: all }) });
    bench.same('five questions are offered', (await texts(page, '#questions button')).slice(0, 5), [
        ...all.slice(0, 5).map((q) => q.split('\n')[0].slice(10)),
    ]);
    await page.click('#questions button >> nth=5');
    await page.click('#questions button >> nth=1');
    await page.locator('.turn .t').first().waitFor();
    bench.same('a click on one of the others asks it', page.bodies[0].prompt, all[6]);
    await page.keyboard.press('Escape');
}

/* Where it costs nothing, the page begins with a text, which the first screen shows. */
async function opening(bench, viewport) {
    const page = await bench.page({ opens: true, viewport }),
        { questions } = await json(`${bench.url}/mizzle/info`);
    await page.locator('.turn .t').nth(20).waitFor();
    await ended(page);
    const size = `${viewport.width} x ${viewport.height}`;
    bench.same(`${size}: the page begins with a question`, page.bodies[0].prompt, questions[2]);
    const marked = page.locator('.turn :is(.cloud, .memo)').first(),
        box = await marked.boundingBox(),
        form = await page.locator('#form').boundingBox();
    bench.check(
        `${size}: what the cloud wrote of it is in the first screen`,
        box.y + box.height <= Math.min(viewport.height, form.y),
        [box, form]
    );
    bench.same(`${size}: above it stands what this is`, await page.isVisible('#intro p'), true);
    await bench.shot(page, `opening-${viewport.width}`);
    /* README's picture. */
    await page.setViewportSize({ width: 1000, height: 560 });
    await page.locator('.turn :is(.cloud, .memo)').last().click();
    await bench.shot(page, `picture-${viewport.width}`);
    await page.click('#clear');
    await page.waitForTimeout(200);
    bench.same(`${size}: it does so once`, await page.locator('.turn').count(), 0);
    bench.same(`${size}: no error`, page.errors, []);
}

/* A text that nobody asked for takes nothing from a limit. */
async function sparing(bench) {
    const info = (i) => ({ ...i, cloud: { ...i.cloud, limited: true } }),
        page = await bench.page({ opens: true, info });
    await page.waitForTimeout(200);
    bench.same('with a limit, the page begins without a text', page.bodies, []);
}

/* It says what it waits for. */
async function waiting(bench) {
    const page = await bench.page();
    await begin(page, '@asks');
    await bench.says(page, '.answer .note', 'it says when it waits for the cloud', /asking the cloud …/);
    await page.keyboard.press('Escape');
    await ended(page);
}

async function stopping(bench) {
    const page = await bench.page();
    await begin(page, '@slow');
    await page.locator('.turn .t').nth(3).waitFor();
    bench.check(
        'the button says Stop',
        (await page.isVisible('#stop')) && (await page.isHidden('#go'))
    );
    await bench.shot(page, 'writing');
    await page.keyboard.press('Escape');
    await ended(page);
    const n = await page.locator('.turn .t').count();
    bench.check('Esc stops', n >= 4 && n < 60, n);
    await page.waitForFunction(() =>
        /stopped/.test(document.querySelector('.answer .note').textContent)
    );
    bench.check('what was stopped says so', true);
    await begin(page, '@slow');
    await page.locator('.turn >> nth=1 >> .t').nth(2).waitFor();
    await page.click('#stop');
    await ended(page);
    bench.check('the button stops', (await page.locator('.turn >> nth=1 >> .t').count()) < 60);
}

async function faults(bench) {
    const page = await bench.page();
    const said = async () => (await texts(page, '.answer .fail')).pop();
    await write(page, '@refuse');
    bench.same(
        'a refusal is shown as it was said',
        await said(),
        'the prompt has 5000 tokens, 4096 fit'
    );
    await write(page, '@error');
    bench.same('an error after the start is shown', await said(), 'the model broke');
    bench.same(
        'what was written before it stays',
        await page.locator('.turn >> nth=1 >> .t').count(),
        5
    );
    await write(page, '@ends');
    bench.check(
        'a text that is cut is not taken for complete',
        /before it was complete/.test(await said())
    );
    await page.route('**/v1/**', (r) => r.abort());
    await write(page, '@gone');
    bench.check(
        'a lost connection is explained',
        /connection to Mizzle is lost/.test(await said())
    );
    bench.same(
        'errors are not exceptions',
        page.errors.filter((e) => !/ERR_FAILED/.test(e)),
        []
    );
}

module.exports = [
    size,
    firstLook,
    (bench) => opening(bench, SMALL),
    (bench) => opening(bench, { width: 320, height: 568 }),
    sparing,
    plain,
    chat,
    questions,
    waiting,
    stopping,
    faults,
];
