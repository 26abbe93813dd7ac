/* mizzle.js - the module (web.c), for node and for the worker of a page: what it imports, and how
 * it is asked. The build puts wasi.js and jansson.js in front. What none of them has, a network
 * above all, throws a sentence. */
'use strict';

const FILES = ['edge-0.5.gguf', 'edge-0.5.router.safetensors', 'cloud.gguf', 'questions.jsonl'];
const PARK = { name: 'park' };
/* What there is nothing to do for. */
const NOTHING = (
    'turn_open turn_give http_wake http_perform http_release ' +
    'server_closing server_drop_body environ_get poll_oneoff answer_file_server answer_file_read ' +
    'answer_file_append answer_file_note setup_print_typed'
).split(' ');

/* What runs as a thread elsewhere (threads.h) is called for each of its turns, and left by an
 * exception where it would wait, or begin another pass. It is called again from its beginning: all
 * that these functions know is in memory. */
function threads(m) {
    const all = [];
    let passes = -1; /* begun in this turn; -1: it is nobody's turn */
    const turn = () => {
        for (const [run, arg] of all) {
            const stack = m.x.__stack_pointer.value;
            passes = 0;
            try {
                m.call(run, arg);
            } catch (e) {
                if (e !== PARK) throw e;
                m.x.__stack_pointer.value = stack;
            }
            passes = -1;
        }
    };
    const park = () => {
        throw PARK;
    };
    m.turn = turn;
    return {
        pthread_create: (thread, how, run, arg) => all.push([run, arg]) && 0,
        pthread_cond_wait: () => (passes < 0 ? turn() || 0 : park()),
        turn_take: () => passes >= 0 && passes++ && park(),
        http_wait: park,
        http_open: (out) => m.set(out, 0),
    };
}

/* net/server's interface without HTTP, and asking through it: ask begins a request, a POST if it
 * has a body, a text. more() returns the next bytes of the reply, or null at its end; end() must be
 * called, at any time. */
function server(m) {
    const requests = new Map();
    let count = 0;
    const of = (r) => requests.get(r);
    /* Take the bytes of a struct buf out of it. */
    const taken = (buf) => {
        const p = m.u32(buf),
            bytes = m.bytes().slice(p, p + m.u32(buf + 4));
        m.free(p);
        m.bytes().fill(0, buf, buf + 16);
        return bytes;
    };
    m.ask = (path, body) => {
        const r = ++count,
            q = { path: m.keep(path)[0], body, status: 0, out: null };
        q.method = m.keep(body ? 'POST' : 'GET')[0];
        requests.set(r, q);
        m.x.web_answer(r);
        const more = () => {
            const buf = m.copy([], 16);
            if (q.more && m.call(q.more, q.arg, buf) !== 0) q.more = null;
            const bytes = q.out || taken(buf);
            q.out = null;
            m.free(buf);
            return bytes.length ? bytes : null;
        };
        const end = () => {
            q.gone = true;
            if (q.onGone) m.call(q.onGone, q.goneArg);
            if (q.drop) m.call(q.drop, q.own);
            [q.path, q.method].forEach(m.free);
            requests.delete(r);
        };
        return { status: q.status, more, end };
    };
    return {
        server_method: (r) => of(r).method,
        server_path: (r) => of(r).path,
        server_is_json: () => 1,
        server_parse: (r, out) => m.set(out, m.put(JSON.parse(of(r).body))),
        server_number: (r) => BigInt(r),
        server_own: (r) => of(r).own || 0,
        server_set_own: (r, own, drop) => Object.assign(of(r), { own, drop }),
        server_reply: (r, status, type, body) => Object.assign(of(r), { status, out: taken(body) }),
        server_stream: (r, status, type, length, headers, more, arg) =>
            Object.assign(of(r), { status, more, arg }),
        server_wait(r, until) {
            const q = of(r),
                ms = Number(BigInt.asUintN(64, until)) / 1e6;
            while (!q.woken && !q.gone && performance.now() < ms) m.turn();
            q.woken = false;
            return q.gone ? 0 : 1;
        },
        server_wake: (r) => Object.assign(of(r), { woken: true }),
        server_gone: (r) => (of(r).gone ? 1 : 0),
        server_doubts: () => 0,
        server_on_gone: (r, onGone, goneArg) => Object.assign(of(r), { onGone, goneArg }),
    };
}

/* The check sum of a GGUF file, as zlib has it. */
function crc32(bytes, crc) {
    let c = ~crc;
    for (const b of bytes) {
        c ^= b;
        for (let k = 0; k < 8; k++) c = (c >>> 1) ^ (0xedb88320 & -(c & 1));
    }
    return ~c;
}

/* Open the module, given its bytes, with the demo pair: { name: bytes } for each of FILES. */
async function openMizzle(wasm, files) {
    const m = {
        bytes: () => new Uint8Array(m.x.memory.buffer),
        view: () => new DataView(m.x.memory.buffer),
        u32: (at) => m.view().getUint32(at, true),
        set: (at, v) => m.view().setUint32(at, v, true) || 0,
        set64: (at, v) => m.view().setBigUint64(at, BigInt(v), true) || 0,
        text: (p, n = m.bytes().indexOf(0, p) - p) =>
            new TextDecoder().decode(m.bytes().subarray(p, p + n)),
        /* Return new memory with these bytes, and zeros behind them. */
        copy(bytes, zeros = 0) {
            const n = bytes.length,
                p = m.x.malloc(n + zeros);
            if (!p) throw new Error('The models in this tab are out of memory.');
            m.bytes().set(bytes, p);
            m.bytes().fill(0, p + n, p + n + zeros);
            return p;
        },
        /* Return a text in new memory, with a zero behind it, and its length. */
        keep(text) {
            const bytes = new TextEncoder().encode(text);
            return [m.copy(bytes, 1), bytes.length];
        },
        free: (p) => m.x.free(p),
        call: (f, ...args) => m.x.__indirect_function_table.get(f)(...args),
    };
    const module = await WebAssembly.compile(wasm),
        has = { ...wasi(m, files), ...jansson(m), ...threads(m), ...server(m) },
        imports = { env: {}, wasi_snapshot_preview1: {} };
    has.crc32_z = (crc, p, n) => crc32(m.bytes().subarray(p, p + n), crc);
    for (const name of NOTHING) has[name] = () => 0;
    const lacks = (name) => () => {
        throw new Error(`${name}: there is none in a browser`);
    };
    for (const i of WebAssembly.Module.imports(module))
        imports[i.module][i.name] = has[i.name] || lacks(i.name);
    m.x = (await WebAssembly.instantiate(module, imports)).exports;
    m.x._initialize();
    const wrong = m.x.web_open();
    if (wrong) throw new Error(m.text(wrong));
    return m;
}

async function load() {
    const get = async (name) => {
        const reply = await fetch(name);
        if (!reply.ok) throw new Error(`${name}: status ${reply.status}`);
        return new Uint8Array(await reply.arrayBuffer());
    };
    const [wasm, ...data] = await Promise.all(['mizzle.wasm', ...FILES].map(get));
    return openMizzle(wasm, Object.fromEntries(FILES.map((name, i) => [name, data[i]])));
}

/* In a worker: answer what tab.js asks. Between two parts of a reply others have their turn. */
function work() {
    let m = null,
        why = null;
    const breathe = () =>
        new Promise((go) => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = go;
            port2.postMessage(null);
        });
    const answer = async ({ path, body }, port) => {
        let stop = false;
        port.onmessage = () => (stop = true);
        if (why) throw why;
        const reply = m ? m.ask(path, body) : { status: 503, more: () => null, end() {} };
        port.postMessage({ status: reply.status });
        for (let part; !stop && (part = reply.more()); await breathe()) port.postMessage({ part });
        reply.end();
        port.postMessage({});
    };
    onmessage = ({ data, ports: [port] }) =>
        answer(data, port).catch((e) => port.postMessage({ failed: e }));
    load().then(
        (opened) => (m = opened),
        (e) => (why = e)
    );
}

if (typeof module === 'object') module.exports = { FILES, openMizzle };
else work();
