/* A text is asked for, written, stopped and refused. */
'use strict';
const { gzipSync } = require('zlib');
const browser = require('./browser.js');
const { SMALL, json, mode, write, begin, ended, count, texts, shot } = browser;

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
    const page = await bench.page(),
        { names } = await json(`${bench.url}/mizzle/info`),
        model = () => document.querySelector('#model').textContent.split(' · ')[0];
    await bench.rows(page, [
        ['one heading says what this is', 'h1:visible', 1],
        ['the model is named as in the API', model, names[0]],
        ['the key shows four marks', '.marks li', 4],
        ['nothing that was not written is shown', ':is(#numbers, #time, #save):visible', 0],
    ]);
    await shot(page, 'first');
}

/* Only what any server can do. */
async function plain(bench) {
    const page = await bench.page(),
        prompt = 'Question: Where might you spot the lisuge?\nAnswer:';
    await mode(page, 'text');
    await page.fill('#prompt', prompt);
    await page.click('#settings summary');
    await page.fill('#max', '12');
    await page.press('#prompt', 'Enter');
    await ended(page);
    const few = (n) => n > 0 && n <= 12;
    await bench.is('tokens are written, as many as wanted', count(page, '.turn .t'), few);
    const { path, max_tokens, stream, return_token_ids, ...body } = page.bodies[0],
        sent = [path, max_tokens, stream, return_token_ids, body.prompt.trimEnd()];
    const raw = ['/v1/completions', 12, true, true, prompt];
    await bench.is('raw text goes to /v1/completions', sent, raw);
    await bench.is('a trace is asked for', body.mizzle.trace, { top: 5, events: true });
    const open = () => [...document.querySelectorAll('#numbers dd')].filter((e) => !e.textContent);
    const typed = () => {
        const e = document.querySelector('#prompt');
        return e.selectionEnd - e.selectionStart - e.value.length;
    };
    const stored = () => [
        Object.keys(localStorage),
        Object.keys(sessionStorage),
        document.cookie,
        Object.keys(JSON.parse(localStorage.mizzle)).sort(),
    ];
    const settings = ['ahead', 'colour', 'max', 'mode', 'most', 'side', 'temperature'];
    await bench.rows(page, [
        ['the numbers are there', open, []],
        ['screen readers hear that it is finished', '#status', /^Finished: \d+ tokens/],
        ['what is typed next replaces the prompt', typed, 0],
        ['only settings are stored', stored, [['mizzle'], [], '', settings]],
    ]);
}

async function chat(bench) {
    const page = await bench.page({ info: (i) => ({ ...i, chat: true }) });
    await bench.rows(page, [['raw text goes without a word', '#suits', false]]);
    await mode(page, 'chat');
    await bench.says(page, '#suits', 'the demo pair was not taught to chat', /not taught/);
    await write(page, '@chat first');
    await write(page, '@chat second');
    const { path, messages } = page.bodies[1],
        said = (await texts(page, '.turn >> nth=0 >> .t')).join(''),
        roles = messages.map((m) => m.role);
    await bench.is('chat goes to /v1/chat/completions', path, '/v1/chat/completions');
    await bench.is('a conversation goes on', roles, ['user', 'assistant', 'user']);
    await bench.is('the answer is sent back as it was written', messages[1].content, said);
    await bench.is('the prompt is empty again', page.inputValue('#prompt'), '');
    const able = await bench.page({ info: (i) => ({ ...i, chat: true, questions: [] }) });
    await bench.rows(able, [
        ['another pair may have been', '#mode [value=chat]:checked', 1],
        ['and nothing is said', '#suits', ''],
    ]);
    const other = await bench.page({ info: (i) => ({ ...i, chat: false }) });
    await bench.rows(other, [
        ['without a chat format there is no choice', '#mode', false],
        ['but raw text', '#mode [value=text]:checked', 1],
    ]);
}

async function questions(bench) {
    const all = Array.from({ length: 7 }, (_, i) => `Question: @question ${i}?\nAnswer:`);
    const page = await bench.page({ info: (i) => ({ ...i, chat: false, questions: all }) });
    const offered = (await texts(page, '#questions button')).slice(0, 5),
        first = all.slice(0, 5).map((q) => q.split('\n')[0].slice(10));
    await bench.is('five questions are offered', offered, first);
    await page.click('#questions button >> nth=5');
    await page.click('#questions button >> nth=1');
    await page.locator('.turn .t').first().waitFor();
    await bench.is('a click on one of the others asks it', page.bodies[0].prompt, all[6]);
    await page.keyboard.press('Escape');
}

/* Where it costs nothing, the page begins with a text, which the first screen shows. */
async function opening(bench, viewport) {
    const page = await bench.page({ opens: true, viewport }),
        asked = (await json(`${bench.url}/mizzle/info`)).questions[2],
        size = `${viewport.width} x ${viewport.height}`,
        marked = page.locator('.turn :is(.cloud, .memo)');
    await page.locator('.turn .t').nth(20).waitFor();
    await ended(page);
    await bench.is(`${size}: the page begins with a question`, page.bodies[0].prompt, asked);
    const box = await marked.first().boundingBox(),
        form = await page.locator('#form').boundingBox(),
        seen = box.y + box.height <= Math.min(viewport.height, form.y);
    bench.check(`${size}: what the cloud wrote is in the first screen`, seen, [box, form]);
    await bench.rows(page, [[`${size}: above it stands what this is`, '#intro p', true]]);
    await shot(page, `opening-${viewport.width}`);
    /* README's picture. */
    await page.setViewportSize({ width: 1000, height: 560 });
    await marked.last().click();
    await shot(page, `picture-${viewport.width}`);
    await page.click('#clear');
    await page.waitForTimeout(200);
    await bench.rows(page, [[`${size}: it does so once`, '.turn', 0]]);
}

/* A text that nobody asked for takes nothing from a limit. */
async function sparing(bench) {
    const info = (i) => ({ ...i, cloud: { ...i.cloud, limited: true } }),
        page = await bench.page({ opens: true, info });
    await page.waitForTimeout(200);
    await bench.is('with a limit, the page begins without a text', page.bodies, []);
}

/* It says what it waits for. */
async function waiting(bench) {
    const page = await bench.page();
    await begin(page, '@asks');
    const note = 'it says when it waits for the cloud';
    await bench.says(page, '.answer .note', note, /asking the cloud …/);
    await page.keyboard.press('Escape');
    await ended(page);
}

async function stopping(bench) {
    const page = await bench.page();
    await begin(page, '@slow');
    await page.locator('.turn .t').nth(3).waitFor();
    await bench.rows(page, [
        ['the button says Stop', '#stop', true],
        ['and not Go', '#go', false],
    ]);
    await shot(page, 'writing');
    await page.keyboard.press('Escape');
    await ended(page);
    await bench.is('Esc stops', count(page, '.turn .t'), (n) => n >= 4 && n < 60);
    await bench.says(page, '.answer .note', 'what was stopped says so', /stopped/);
    await begin(page, '@slow');
    await page.locator('.turn >> nth=1 >> .t').nth(2).waitFor();
    await page.click('#stop');
    await ended(page);
    await bench.is('the button stops', count(page, '.turn >> nth=1 >> .t'), (n) => n < 60);
}

async function faults(bench) {
    const page = await bench.page();
    for (const [script, what, wanted] of [
        ['@refuse', 'a refusal is as it was said', /^the prompt has 5000 tokens, 4096 fit$/],
        ['@error', 'an error after the start is shown', /^the model broke$/],
        ['@ends', 'a text that is cut is not taken for complete', /before it was complete/],
        ['@gone', 'a lost connection is explained', /connection to Mizzle is lost/],
    ]) {
        if (script === '@gone') await page.route('**/v1/**', (r) => r.abort());
        await write(page, script);
        await bench.is(what, (await texts(page, '.answer .fail')).pop(), wanted);
    }
    await bench.rows(page, [['what was written before it stays', '.turn >> nth=1 >> .t', 5]]);
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
