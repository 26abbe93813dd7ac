/* web_check.js DIR Q... - build/web in the browser $CHROMIUM, or in node where it is not set,
 * beside what run wrote of question Q into DIR/run.Q. SHOTS=DIR keeps a picture. */
'use strict';
const fs = require('fs');
const http = require('http');
const { FILES, openMizzle } = require(`${process.cwd()}/build/web/mizzle.js`);

const [dir, ...numbers] = process.argv.slice(2);
const TYPES = { html: 'text/html', css: 'text/css', js: 'text/javascript' };
const file = (name) => fs.readFileSync(`build/web/${name}`);
const lines = (s) => s.trim().split('\n').map((line) => JSON.parse(line));
/* A token as run and page tell of it, with the bits of its score. */
const token = (t) => `${t.id} ${t.source} ${Math.fround(t.score)}`;
const wanted = (q) =>
    lines(fs.readFileSync(`${dir}/run.${q}`, 'utf8'))
        .filter((e) => e.event === 'token')
        .map(token)
        .join('\n');

function same(what, found, expected) {
    if (found !== expected) throw new Error(`${what}: expected\n${expected}\nfound\n${found}`);
}

async function inNode(prompts) {
    const files = Object.fromEntries(FILES.map((name) => [name, file(name)])),
        m = await openMizzle(file('mizzle.wasm'), files);
    const whole = (path, body) => {
        const reply = m.ask(path, body && JSON.stringify(body));
        let text = '';
        for (let part; (part = reply.more()); ) text += Buffer.from(part);
        reply.end();
        return { status: reply.status, json: JSON.parse(text) };
    };
    for (const q of numbers) {
        const { json } = whole('/v1/completions', {
            prompt: prompts[q],
            max_tokens: 256,
            mizzle: { trace: { top: 0 } },
        });
        same(`node: question ${q}`, json.mizzle.tokens.map(token).join('\n'), wanted(q));
    }
    const refused = whole('/v1/completions', { prompt: 'The', max_tokens: -2 });
    same('node: a wrong field', `${refused.status} ${refused.json.error.param}`, '400 max_tokens');
    same('node: no such path', String(whole('/v1/nothing').status), '404');
}

/* Serve the folder as any web server does; what else is asked for is kept. */
function serveFiles(missed) {
    const server = http.createServer((request, reply) => {
        const name = request.url.slice(1) || 'index.html',
            there = request.method === 'GET' && fs.existsSync(`build/web/${name}`);
        if (!there) missed.push(`${request.method} ${request.url}`);
        const type = TYPES[name.split('.').pop()] || 'application/octet-stream';
        reply.writeHead(there ? 200 : 404, { 'Content-Type': type });
        reply.end(there ? file(name) : '');
    });
    return new Promise((go) => server.listen(0, '127.0.0.1', () => go(server)));
}

async function inBrowser(prompts) {
    const { chromium } = require('playwright-core'),
        { heard, shot } = require('./browser.js'),
        missed = [],
        server = await serveFiles(missed),
        args = ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
        browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });
    const page = heard(await browser.newPage()),
        fine = { polling: 100, timeout: 30000 },
        until = (what, expression) =>
            page.waitForFunction(expression, null, fine).catch(async () => {
                throw new Error(`${what}: ${page.errors} ${await page.innerText('body')}`);
            });
    const tokens = async (turn, view) =>
        (await page.evaluate(`turns[${turn}].views[${view}].run.tokens`)).map(token).join('\n');
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await until('page: its first text', 'turns[0] && main(turns[0]).run.state === "done"');
    same('page: its first text', await tokens(0, 0), wanted(2));
    const said = await page.innerText('body');
    for (const words of ['Large model ready (in this tab)', 'nothing leaves it'])
        if (!said.includes(words)) throw new Error(`page: expected ${words}, found\n${said}`);
    /* Three texts at a time, of which one is that of run. */
    const ask = (q, then = '') => page.evaluate(`void ask(${JSON.stringify(prompts[q])})${then}`);
    await page.evaluate("$('side').click()");
    await ask(7);
    await until('page: side by side', 'turns[1]?.views.every((v) => v.run.state === "done")');
    same('page: side by side', await tokens(1, 1), wanted(7));
    await page.evaluate("$('side').click()");
    await ask(4, ', void stopAll()');
    await until('page: a stop', 'turns[2]?.views[0].run.state === "stopped"');
    await ask(4);
    await until('page: after a stop', 'turns[3] && main(turns[3]).run.state === "done"');
    same('page: after a stop', await tokens(3, 0), wanted(4));
    const saved = await page.evaluate('recording({ info: {}, turns: [] })');
    same('page: a recording', String(saved.includes('</html>')), 'true');
    same('page: errors', page.errors.join('\n'), '');
    same('page: requests for what is not there', missed.join('\n'), '');
    await shot(page, 'web');
    await browser.close();
    server.close();
}

(async () => {
    const prompts = lines(String(file('questions.jsonl'))).map((q) => q.prompt);
    await (process.env.CHROMIUM ? inBrowser : inNode)(prompts);
    process.exit(0);
})().catch((e) => {
    console.error(e.message);
    process.exit(1);
});
