/* mock.js - texts that no model writes, streamed as `mizzle serve` streams its own. The prompt
 * chooses one: @hostile, @long, @line (without a newline), @burst (in one event), @fail, @error,
 * @ends, @refuse, @slow, @asks (waits for each call); any other word is a text of 60 tokens. */
'use strict';
const http = require('http');

const WORDS = (
    ' the small model writes a word and asks where it is not sure . A large one helps with a' +
    ' single token , so that the answer is right'
).split(/(?= )/);
const HOSTILE = [
    ...['</script>', '<img src=x onerror=alert(1)>', ' \u202eevil', '\u0000', '\u0007', '\ud800'],
    ...['e' + '\u0301'.repeat(10000), '\u2066', 'x'.repeat(5000), '<!--<script>', '&lt;'],
    ...['\u2028', '\ufeff', ' مرحبا', ' 👩‍👩‍👧', '\r\n', '\t', '\u200b'],
    ...['javascript:alert(1)', '\'"`${alert(1)}'],
];
const THRESHOLD = 0.5;

/* A number from 0 to 1 that depends on i alone. */
function chance(i, salt) {
    let x = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(salt + 7, 0x85ebca6b);
    x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
    x = Math.imul(x ^ (x >>> 12), 0x297a2d39);
    return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32;
}

/* Token i of a text. The cloud would write word i; the small model errs where its score is low. */
function token(i, wish) {
    const score = chance(i, 1) < 0.12 ? 0.1 + 0.6 * chance(i, 2) : 0.9 + 0.1 * chance(i, 3);
    const right = i % WORDS.length,
        wrong = (i + 5) % WORDS.length,
        errs = score < 0.4;
    const limit = wish.mizzle?.threshold ?? THRESHOLD,
        routed = !/:/.test(wish.model) && score < limit;
    const cloud = /:cloud$/.test(wish.model) || routed,
        edge = errs ? wrong : right;
    const failed = routed && wish.script === '@fail',
        id = cloud && !failed ? right : edge;
    const logprob = (k) => Math.log(k ? (1 - score) / (k + 3) : score),
        ids = [edge, right === edge ? wrong : right, 1, 2, 3],
        top = ids.map((id, k) => ({ id, text: WORDS[id], logprob: logprob(k) }));
    const memo = cloud && chance(i, 4) < 0.2,
        retries = i % 3 === 0 ? 1 : 0,
        ms = memo || failed ? 0 : 62,
        call = cloud ? { ms, bytes_up: 410 + i, bytes_down: 220, retries, memo } : null;
    return {
        ...{ pos: i, id, score, top, call, ms: 12 + 9 * i + (cloud ? 70 : 0) },
        ...{ edge_id: edge, edge_text: WORDS[edge] },
        text: i % 40 === 39 && wish.script !== '@line' ? '.\n\n' : WORDS[id],
        source: failed ? 'fallback' : cloud ? 'cloud' : 'edge',
        fault: failed ? 'connection refused' : null,
    };
}

function events(t) {
    const list = [{ kind: 'evaluated', at: t.pos, n: 1, ms: 10 + 9 * t.pos, took_ms: 8 }];
    if (t.call && !t.call.memo) {
        list.push({ kind: 'asked', at: t.pos, n: 1, ms: t.ms - 62 });
        list.push({ kind: 'answered', at: t.pos, n: 1, ms: t.ms, took_ms: 62, reason: t.fault });
        if (t.id !== t.edge_id) list.push({ kind: 'rolled-back', at: t.pos, n: 2, ms: t.ms });
    }
    return list;
}

/* All tokens of a request. */
function tokens(wish) {
    const n = /@(long|line|burst)/.test(wish.script) ? 4000 : Math.min(wish.max_tokens || 60, 60);
    const list = Array.from({ length: n }, (_, i) => token(i, wish));
    if (wish.script !== '@hostile') return list;
    HOSTILE.forEach((text, i) => Object.assign(list[i], { text, edge_text: text, fault: text }));
    Object.assign(list[20], { text: '', bytes: [0xf0, 0x9f], id: 4242 });
    return list;
}

/* What is said of a whole text. */
function summary(all, wish) {
    const calls = all.filter((t) => t.call && !t.call.memo).length,
        cloud = all.filter((t) => t.source === 'cloud').length,
        threshold = wish.mizzle?.threshold ?? THRESHOLD;
    const ledger = {
        ...{ tokens: all.length, cloud, fallback: 0, memo: 0, calls, committed: calls, failed: 0 },
        ...{ bytes_up: calls * 420, bytes_down: calls * 220, ttft_ms: 12, total_ms: 700 },
    };
    return { threshold, policy: 'mlp', seed: wish.seed ?? 17, ledger };
}

async function write(req, reply, wish, chat) {
    const all = tokens(wish),
        pause = { '@slow': 150, '@long': 0, '@line': 0, '@burst': 0 }[wish.script] ?? 1,
        size = { '@long': 5, '@line': 5, '@burst': 4000 }[wish.script] || 1;
    const rest = (ms) => new Promise((go) => setTimeout(go, ms)),
        send = (e) => reply.write(`data: ${JSON.stringify(e)}\n\n`);
    const choices = (content, more, role = undefined) => {
        const piece = chat ? { delta: { role, content } } : { text: content };
        return [{ index: 0, ...piece, finish_reason: null, ...more }];
    };
    let gone = false;
    reply.on('close', () => (gone = true));
    reply.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const prompt_token_ids = Array.isArray(wish.prompt) ? wish.prompt : [7, 8, 9];
    send({ choices: choices('', { prompt_token_ids }, 'assistant') });
    for (let i = 0; i < all.length && !gone; i += size) {
        const error = { message: 'the model broke', type: 'server_error' };
        if (wish.script === '@error' && i === 5) send({ error });
        if (/@(error|ends)/.test(wish.script) && i === 5) return reply.end();
        const part = all.slice(i, i + size),
            asked = wish.script === '@asks' && events(part[0]).find((e) => e.kind === 'asked');
        if (asked) {
            send({ choices: [], mizzle: { events: [asked] } });
            await rest(4000);
        }
        const mizzle = { tokens: part, events: part.flatMap(events) };
        send({ choices: choices(part.map((t) => t.text).join('')), mizzle });
        if (pause || i % 50 === 0) await rest(pause);
    }
    send({ choices: choices('', { finish_reason: 'length' }) });
    const usage = { prompt_tokens: 3, completion_tokens: all.length };
    send({ choices: [], usage, mizzle: summary(all, wish) });
    reply.end('data: [DONE]\n\n');
}

function start() {
    const server = http.createServer(async (req, reply) => {
        let text = '';
        for await (const part of req) text += part;
        const wish = JSON.parse(text);
        const said = wish.messages ? wish.messages[wish.messages.length - 1].content : wish.prompt;
        wish.script = /^@\w+/.exec(said)[0];
        if (wish.script !== '@refuse') return write(req, reply, wish, req.url.includes('chat'));
        reply.writeHead(400, { 'Content-Type': 'application/json' });
        reply.end('{"error":{"message":"the prompt has 5000 tokens, 4096 fit","type":"x"}}');
    });
    const close = () => {
        server.closeAllConnections();
        server.close();
    };
    const url = () => `http://127.0.0.1:${server.address().port}`;
    return new Promise((done) =>
        server.listen(0, '127.0.0.1', () => done({ url: url(), close }))
    );
}

module.exports = { start, HOSTILE };
