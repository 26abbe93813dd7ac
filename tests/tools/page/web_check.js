/* web_check.js DIR Q... - build/web in node, and in the browser $CHROMIUM if it is set, beside what
 * run wrote of question Q into DIR/run.Q. Chromium is driven through a pipe, by its own protocol;
 * $SHOT is a file for a picture. */
'use strict';
const fs = require('fs');
const http = require('http');
const { spawn } = require('child_process');
const { FILES, openMizzle } = require(`${process.cwd()}/build/web/mizzle.js`);

const [dir, ...numbers] = process.argv.slice(2);
const ALL = 'document.body.innerText';
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

/* Start the browser; send(method, params) returns what it answers. */
function browse(heard) {
    const flags = [
        '--no-sandbox',
        '--remote-debugging-pipe',
        `--user-data-dir=${dir}/profile`,
        '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ];
    const child = spawn(process.env.CHROMIUM, flags, {
        stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    const waiting = new Map();
    let rest = '',
        count = 0;
    child.stdio[4].on('data', (data) => {
        const all = (rest + data).split('\0');
        rest = all.pop();
        for (const message of all.map((s) => JSON.parse(s))) {
            if (message.id) waiting.get(message.id)(message.result || message);
            else heard(message);
        }
    });
    const send = (method, params = {}, sessionId = undefined) =>
        new Promise((go) => {
            waiting.set(++count, go);
            child.stdio[3].write(`${JSON.stringify({ id: count, method, params, sessionId })}\0`);
        });
    return { child, send };
}

async function inBrowser(prompts) {
    const missed = [],
        errors = [],
        server = await serveFiles(missed),
        url = `http://127.0.0.1:${server.address().port}/`;
    const { child, send } = browse(({ method, params }) => {
        if (method === 'Runtime.exceptionThrown')
            errors.push(params.exceptionDetails.exception?.description || 'an exception');
    });
    const { targetId } = await send('Target.createTarget', { url: 'about:blank' }),
        { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
    await send('Runtime.enable', {}, sessionId);
    await send('Page.navigate', { url }, sessionId);
    const evaluate = async (expression) => {
        const what = { expression, returnByValue: true },
            reply = await send('Runtime.evaluate', what, sessionId);
        return reply.result?.value;
    };
    const until = async (what, expression) => {
        for (let tries = 0; !(await evaluate(expression)); tries++) {
            if (tries > 300)
                throw new Error(`${what}: not in 30 s: ${errors} ${await evaluate(ALL)}`);
            await new Promise((go) => setTimeout(go, 100));
        }
    };
    const tokens = async (turn, view) =>
        JSON.parse(await evaluate(`JSON.stringify(turns[${turn}].views[${view}].run.tokens)`))
            .map(token)
            .join('\n');
    await until('page: its first text', 'turns[0] && main(turns[0]).run.state === "done"');
    same('page: its first text', await tokens(0, 0), wanted(2));
    const said = await evaluate(ALL);
    for (const words of ['Large model ready (in this tab)', 'nothing leaves it'])
        if (!said.includes(words)) throw new Error(`page: expected ${words}, found\n${said}`);
    /* Three texts at a time, of which one is that of run. */
    await evaluate(`$('side').click(); ask(${JSON.stringify(prompts[7])})`);
    await until('page: side by side', 'turns[1]?.views.every((v) => v.run.state === "done")');
    same('page: side by side', await tokens(1, 1), wanted(7));
    await evaluate(`$('side').click(); ask(${JSON.stringify(prompts[4])}); stopAll()`);
    await until('page: a stop', 'turns[2]?.views[0].run.state === "stopped"');
    await evaluate(`ask(${JSON.stringify(prompts[4])})`);
    await until('page: after a stop', 'turns[3] && main(turns[3]).run.state === "done"');
    same('page: after a stop', await tokens(3, 0), wanted(4));
    await evaluate('recording({ info: {}, turns: [] }).then((s) => (window.saved = s))');
    await until('page: a recording', 'window.saved?.includes("</html>")');
    same('page: errors', errors.join('\n'), '');
    same('page: requests for what is not there', missed.join('\n'), '');
    if (process.env.SHOT) {
        const { data } = await send('Page.captureScreenshot', {}, sessionId);
        fs.writeFileSync(process.env.SHOT, Buffer.from(data, 'base64'));
    }
    child.kill();
    server.close();
}

(async () => {
    const prompts = lines(String(file('questions.jsonl'))).map((q) => q.prompt);
    await inNode(prompts);
    if (process.env.CHROMIUM) await inBrowser(prompts);
    process.exit(0);
})().catch((e) => {
    console.error(e.message);
    process.exit(1);
});
