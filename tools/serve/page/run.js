/* run.js - one text while it is written: the request, the stream of events and the figures. Nothing
 * here touches the document.
 *
 * What the server sends is described in README.md. A token here has one field more, `kind`: edge,
 * cloud, fallback, memo (the cloud's, remembered) or you (chosen by hand). */
'use strict';

let key = ''; /* the server's API key, if it requires one: kept here and nowhere else */

/* Who answers: a server, or the models of this tab, whose script comes first (tools/lab/web). */
const tab = typeof inTab === 'undefined' ? null : inTab;
const LOST = tab ? 'Load the page again.' : 'Is “mizzle serve” still running?';

/* Ask; a request with a body is a POST. */
function call(path, body, signal) {
    const headers = key ? { Authorization: `Bearer ${key}` } : {},
        ask = tab || fetch;
    if (!body) return ask(path, { headers });
    headers['Content-Type'] = 'application/json';
    return ask(path, { method: 'POST', headers, body: JSON.stringify(body), signal });
}

const SLICE_MS = 8; /* work for at most this long before the browser gets its turn */

/* Yield the data of each server-sent event. However much has arrived, let the browser draw. */
async function* readEvents(stream) {
    const reader = stream.getReader(),
        decoder = new TextDecoder();
    let rest = '',
        data = [],
        slice = performance.now();
    for (;;) {
        const { done, value } = await reader.read();
        rest += done ? decoder.decode() + '\n' : decoder.decode(value, { stream: true });
        const lines = rest.split(/\r?\n/);
        rest = lines.pop();
        for (const line of lines) {
            if (line.startsWith('data:')) {
                data.push(line.slice(5).trimStart());
            } else if (line === '' && data.length) {
                yield data.join('\n');
                data = [];
            }
            if (performance.now() - slice > SLICE_MS) {
                await new Promise((go) => setTimeout(go));
                slice = performance.now();
            }
        }
        if (done) return;
    }
}

/* Return what a server's refusal says, in one sentence. */
async function refusal(reply) {
    let said = '';
    try {
        said = (await reply.json()).error.message;
    } catch {
        said = '';
    }
    return said || `The server answered with status ${reply.status}.`;
}

/* The fields of a run that a recording keeps, besides its state. */
const RECORDED = (
    'model body first promptIds label tokens events ledger ' +
    'finish error usage threshold policy seed'
).split(' ');

/* Return the index of the first token in which two runs differ, or -1 while there is none. */
function firstDifference(a, b) {
    const n = Math.min(a.tokens.length, b.tokens.length);
    for (let i = 0; i < n; i++) if (a.tokens[i].id !== b.tokens[i].id) return i;
    const ended = a.state === 'done' && b.state === 'done';
    return ended && a.tokens.length !== b.tokens.length ? n : -1;
}

class Run {
    /* model: routed, edge or cloud. first: tokens that an earlier run has written. */
    constructor({ model, path, body, first = [], promptIds = null, label = '' }) {
        Object.assign(this, { model, path, body, promptIds, label });
        this.first = first.length;
        this.tokens = [];
        this.events = [];
        this.ledger = this.finish = this.error = this.usage = null;
        this.state = 'ready';
        this.threshold = this.policy = this.seed = null;
        this.abort = new AbortController();
        this.fault = null;
        this.asked = new Set(); /* places of the text for which the cloud has not answered yet */
        this.failing = false; /* the latest call brought nothing */
        first.forEach((t) => this.add(t));
    }

    /* Send the request and read the reply to its end; news() is called after each event. */
    async write(news) {
        this.state = 'writing';
        try {
            const reply = await call(this.path, this.body, this.abort.signal);
            if (!reply.ok) throw new Error(await refusal(reply));
            for await (const data of readEvents(reply.body)) {
                this.take(data);
                news();
            }
            if (!this.complete)
                throw new Error('The server ended the text before it was complete.');
            this.state = 'done';
        } catch (e) {
            this.state = this.abort.signal.aborted ? 'stopped' : 'failed';
            if (this.state === 'failed')
                this.error =
                    e instanceof TypeError
                        ? `The connection to Mizzle is lost. ${LOST}`
                        : e.message;
        }
        news();
    }

    stop() {
        this.abort.abort();
    }

    take(data) {
        if (data === '[DONE]') {
            this.complete = true;
            return;
        }
        const e = JSON.parse(data),
            choice = (e.choices || [])[0] || {},
            own = e.mizzle || {};
        if (e.error) throw new Error(e.error.message || 'The server reported an error.');
        this.promptIds ||= choice.prompt_token_ids || e.prompt_token_ids || null;
        this.finish = choice.finish_reason || this.finish;
        this.usage = e.usage || this.usage;
        for (const key of ['ledger', 'threshold', 'policy', 'seed'])
            this[key] = own[key] ?? this[key];
        (own.tokens || []).forEach((t) => this.add(t));
        for (const event of own.events || []) {
            this.events.push(event);
            if (event.kind === 'asked') this.asked.add(event.at);
            if (event.kind === 'answered') this.asked.delete(event.at);
        }
    }

    add(token) {
        const call = token.call;
        token.kind ||= token.source === 'cloud' && call && call.memo ? 'memo' : token.source;
        /* Private text and limits hold a token back without a failure of the cloud. */
        if (token.kind === 'fallback' && !/^(private|capped|no-cloud)$/.test(token.reason || '')) {
            this.fault = token.fault || 'no answer';
            this.failing = true;
        } else if (token.kind === 'cloud') {
            this.failing = false;
        }
        this.tokens.push(token);
    }

    get writing() {
        return this.state === 'writing';
    }

    /* What the next token waits for. */
    get doing() {
        const next = this.tokens.length - this.first;
        if (this.asked.has(next)) return 'asking the cloud';
        return next ? 'writing' : 'reading the prompt';
    }

    get text() {
        return this.tokens.map((t) => t.text).join('');
    }

    /* The threshold of this text: the server's word, or what was asked for. */
    get limit() {
        return this.threshold ?? this.body.mizzle?.threshold ?? null;
    }

    /* The figures of the first `upTo` tokens; of the whole text from the ledger, once it has come. */
    figures(upTo = this.tokens.length) {
        const f = {
            n: 0,
            edge: 0,
            cloud: 0,
            fallback: 0,
            memo: 0,
            you: 0,
            up: 0,
            down: 0,
            calls: 0,
        };
        let begin = null,
            end = 0;
        for (let i = this.first; i < upTo; i++) {
            const t = this.tokens[i],
                call = t.call;
            f.n++;
            f[t.kind]++;
            begin ??= t.ms;
            end = t.ms;
            if (!call || call.memo) continue;
            f.calls++;
            f.up += call.bytes_up || 0;
            f.down += call.bytes_down || 0;
        }
        f.share = f.n ? (f.cloud + f.memo) / f.n : null;
        f.speed = f.n > 1 && end > begin ? (1000 * (f.n - 1)) / (end - begin) : null;
        f.ttft = begin;
        const l = upTo === this.tokens.length && this.ledger;
        if (l)
            Object.assign(f, {
                ttft: l.ttft_ms ?? begin,
                up: l.bytes_up,
                down: l.bytes_down,
                calls: l.calls,
            });
        return f;
    }

    /* How many scores there are, and how many of them are below the threshold. */
    below(threshold) {
        const scores = this.tokens.filter((t) => typeof t.score === 'number');
        return { all: scores.length, n: scores.filter((t) => t.score < threshold).length };
    }

    /* What a recording keeps, and a run from it. */
    record() {
        const kept = { state: this.writing ? 'stopped' : this.state };
        for (const name of RECORDED) kept[name] = this[name];
        return kept;
    }

    static from(record) {
        const { tokens, first, ...rest } = record,
            run = new Run({ ...rest, path: '' });
        Object.assign(run, rest, { first });
        tokens.forEach((t) => run.add(t));
        return run;
    }
}
