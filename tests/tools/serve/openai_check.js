/* What OpenAI's own client makes of `mizzle serve`: node openai_check.js URL STRICT_URL FULL_URL.
 * STRICT_URL wants the key "sesame" and known models; FULL_URL has one place for texts. */
'use strict';

const { OpenAI } = require('openai');
const assert = require('node:assert/strict');

const [open, strict, full] = process.argv
    .slice(2)
    .map((url) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 }));
const messages = [{ role: 'user', content: 'hi' }];
const chats = open.chat.completions;
let model;

async function busy() {
    const text = await (await fetch(`${process.argv[4]}/metrics`)).text();
    return /^mizzle_slots_busy 1$/m.test(text);
}

async function until(what, f) {
    for (let i = 0; i < 500; i++) {
        if (await f()) return;
        await new Promise((go) => setTimeout(go, 10));
    }
    assert.fail(what);
}

const CHECKS = {
    async models() {
        const list = (await open.models.list()).data.map((m) => m.id);
        model = list[0];
        assert.deepEqual(list, [model, `${model}:edge`, `${model}:cloud`]);
        assert.equal((await open.models.retrieve(`${model}:edge`)).id, `${model}:edge`);
    },
    async 'a chat, whole and streamed'() {
        const body = { model: 'gpt-4o', messages, logprobs: true, top_logprobs: 2 },
            whole = await chats.create({ ...body, max_completion_tokens: 12 }),
            { usage } = whole,
            { message, logprobs, finish_reason } = whole.choices[0];
        assert.deepEqual([whole.model, whole.object], [model, 'chat.completion']);
        assert.match(whole._request_id, /^req-/);
        assert.equal(message.role, 'assistant');
        assert.equal(logprobs.content.map((t) => t.token).join(''), message.content);
        assert.ok(logprobs.content.every((t) => t.top_logprobs.length === 2 && t.logprob <= 0));
        assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
        const chunks = [],
            more = { max_tokens: 12, stream: true, stream_options: { include_usage: true } };
        for await (const chunk of await chats.create({ ...body, ...more })) chunks.push(chunk);
        const parts = chunks.flatMap((c) => c.choices);
        assert.equal(parts.map((c) => c.delta.content || '').join(''), message.content);
        assert.deepEqual(parts.flatMap((c) => c.finish_reason || []), [finish_reason]);
        assert.equal(chunks.at(-1).usage.completion_tokens, usage.completion_tokens);
    },
    async 'the helper for streams, with three choices'() {
        const body = { model, messages, max_tokens: 8, n: 3, temperature: 1, seed: 5 },
            texts = (reply) => reply.choices.map((c) => c.message.content),
            said = (reply) => [reply.system_fingerprint, ...texts(reply)];
        const streamed = await chats.stream(body).finalChatCompletion();
        assert.deepEqual(said(streamed), said(await chats.create(body)));
    },
    async 'completions, whole and streamed'() {
        const body = { model, prompt: ['Once upon', 'Once'], max_tokens: 10, logprobs: 1 };
        const { choices } = await open.completions.create(body),
            texts = ['', ''];
        for await (const chunk of await open.completions.create({ ...body, stream: true }))
            for (const c of chunk.choices) texts[c.index] += c.text;
        assert.deepEqual(choices.map((c) => c.text), texts);
        const { tokens, text_offset } = choices[0].logprobs;
        assert.equal(tokens.length, text_offset.length);
    },
    async 'extra fields'() {
        const mizzle = { policy: 'always', trace: { top: 2 } },
            body = { model, prompt: 'Once upon', max_tokens: 4, return_token_ids: true, mizzle };
        const all = await open.completions.create(body);
        assert.deepEqual([all.mizzle.ledger.cloud, all.choices[0].token_ids.length], [4, 4]);
        assert.ok(all.mizzle.tokens.every((t) => t.source === 'cloud' && t.top.length === 2));
    },
    async errors() {
        strict.apiKey = 'sesame';
        const other = strict.withOptions({ apiKey: 'other' });
        for (const [ask, type, fields] of [
            [
                () => chats.create({ model, messages, temperature: -1 }),
                'BadRequest',
                { param: 'temperature' },
            ],
            [
                () => open.completions.create({ model, prompt: 'a '.repeat(3000) }),
                'BadRequest',
                { status: 400, code: 'context_length_exceeded' },
            ],
            [() => strict.models.retrieve('gpt-4o'), 'NotFound', { status: 404 }],
            [() => other.models.list(), 'Authentication', { status: 401 }],
        ]) {
            const e = await ask().then(assert.fail, (e) => e);
            assert.ok(e instanceof OpenAI[`${type}Error`] && /^req-/.test(e.requestID), e);
            for (const name in fields) assert.equal(e[name], fields[name]);
        }
    },
    async places() {
        const mizzle = { policy: 'always' },
            endless = { model, prompt: 'Once', max_tokens: 1e5, ignore_eos: true, mizzle },
            asks = { model, prompt: 'a', max_tokens: 1, mizzle: { cloud: 'off' } };
        const stream = await full.completions.create({ ...endless, stream: true });
        await until('a text begins', busy);
        await assert.rejects(full.completions.create(asks), { status: 503 });
        const later = full.completions.create(asks, { maxRetries: 5 });
        setTimeout(() => stream.controller.abort(), 300);
        assert.equal((await later).usage.completion_tokens, 1);
        await until('the slot of a client that left is free', async () => !(await busy()));
    },
};

(async () => {
    for (const [name, check] of Object.entries(CHECKS))
        await check().catch((e) => {
            console.error(`FAILED: ${name}`, e);
            process.exit(1);
        });
    console.log(`${Object.keys(CHECKS).length} checks`);
})();
