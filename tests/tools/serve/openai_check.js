/* What OpenAI's own client makes of `mizzle serve`: node openai_check.js URL STRICT_URL FULL_URL.
 * STRICT_URL wants the key "sesame" and known models; FULL_URL has one place for texts. */
'use strict';

const { OpenAI } = require('openai');
const assert = require('node:assert/strict');

const [url, closedUrl, fullUrl] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
const messages = [{ role: 'user', content: 'hi' }];
let checks = 0;

async function check(name, f) {
    try {
        await f();
        checks++;
    } catch (e) {
        console.error(`FAILED: ${name}`);
        throw e;
    }
}

async function metric(base, name) {
    const text = await (await fetch(`${base}/metrics`)).text();
    return Number(new RegExp(`^mizzle_${name} (\\d+)$`, 'm').exec(text)[1]);
}

async function until(what, f) {
    for (let i = 0; i < 500; i++) {
        if (await f()) return;
        await new Promise((go) => setTimeout(go, 10));
    }
    assert.fail(what);
}

async function answers() {
    let model, whole;
    await check('models', async () => {
        const list = await client.models.list();
        model = list.data[0].id;
        assert.deepEqual(
            list.data.map((m) => m.id),
            [model, `${model}:edge`, `${model}:cloud`]
        );
        assert.equal((await client.models.retrieve(`${model}:edge`)).id, `${model}:edge`);
    });
    await check('chat', async () => {
        whole = await client.chat.completions.create({
            model: 'gpt-4o',
            messages,
            max_completion_tokens: 12,
            logprobs: true,
            top_logprobs: 2,
        });
        assert.equal(whole.model, model);
        assert.match(whole._request_id, /^req-/);
        assert.equal(whole.object, 'chat.completion');
        assert.equal(whole.choices[0].message.role, 'assistant');
        const { content } = whole.choices[0].logprobs;
        assert.equal(content.map((t) => t.token).join(''), whole.choices[0].message.content);
        assert.ok(content.every((t) => t.top_logprobs.length === 2 && t.logprob <= 0));
        assert.equal(
            whole.usage.total_tokens,
            whole.usage.prompt_tokens + whole.usage.completion_tokens
        );
    });
    await check('chat, streamed', async () => {
        const stream = await client.chat.completions.create({
            model,
            messages,
            max_tokens: 12,
            logprobs: true,
            stream: true,
            stream_options: { include_usage: true },
        });
        let text = '',
            usage = null,
            reasons = [];
        for await (const chunk of stream) {
            for (const c of chunk.choices) {
                text += c.delta.content || '';
                if (c.finish_reason) reasons.push(c.finish_reason);
            }
            usage = chunk.usage || usage;
        }
        assert.equal(text, whole.choices[0].message.content);
        assert.deepEqual(reasons, [whole.choices[0].finish_reason]);
        assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
    });
    await check('the helper for streams, with three choices', async () => {
        const stream = client.chat.completions.stream({
            model,
            messages,
            max_tokens: 8,
            n: 3,
            temperature: 1,
            seed: 5,
        });
        const all = await stream.finalChatCompletion();
        const same = await client.chat.completions.create({
            model,
            messages,
            max_tokens: 8,
            n: 3,
            temperature: 1,
            seed: 5,
        });
        assert.deepEqual(
            all.choices.map((c) => c.message.content),
            same.choices.map((c) => c.message.content)
        );
        assert.equal(all.system_fingerprint, same.system_fingerprint);
    });
    await check('completions, whole and streamed', async () => {
        const body = { model, prompt: ['Once upon', 'Once'], max_tokens: 10, logprobs: 1 };
        const all = await client.completions.create(body);
        const texts = ['', ''];
        for await (const chunk of await client.completions.create({ ...body, stream: true }))
            for (const c of chunk.choices) texts[c.index] += c.text;
        assert.deepEqual(
            all.choices.map((c) => c.text),
            texts
        );
        assert.equal(all.choices[0].logprobs.tokens.length, all.choices[0].logprobs.text_offset.length);
    });
    await check('extra fields', async () => {
        const all = await client.completions.create({
            model,
            prompt: 'Once upon',
            max_tokens: 4,
            return_token_ids: true,
            mizzle: { policy: 'always', trace: { top: 2 } },
        });
        assert.equal(all.mizzle.ledger.cloud, 4);
        assert.equal(all.choices[0].token_ids.length, 4);
        assert.ok(all.mizzle.tokens.every((t) => t.source === 'cloud' && t.top.length === 2));
    });
}

async function errors() {
    const body = { model: 'any', messages };
    await check('a bad request', () =>
        assert.rejects(client.chat.completions.create({ ...body, temperature: -1 }), (e) => {
            assert.ok(e instanceof OpenAI.BadRequestError);
            assert.equal(e.param, 'temperature');
            assert.match(e.message, /temperature: expected/);
            return /^req-/.test(e.requestID);
        })
    );
    await check('a prompt that does not fit', () =>
        assert.rejects(
            client.completions.create({ model: 'any', prompt: 'a '.repeat(3000) }),
            (e) => e.status === 400 && e.code === 'context_length_exceeded'
        )
    );
    const closed = new OpenAI({ baseURL: `${closedUrl}/v1`, apiKey: 'sesame', maxRetries: 0 });
    await check('an unknown model', () =>
        assert.rejects(closed.models.retrieve('gpt-4o'), OpenAI.NotFoundError)
    );
    closed.apiKey = 'other';
    await check('a wrong key', () =>
        assert.rejects(closed.models.list(), OpenAI.AuthenticationError)
    );
}

async function places() {
    const endless = {
        model: 'any',
        prompt: 'Once upon',
        max_tokens: 100000,
        stream: true,
        ignore_eos: true,
        mizzle: { policy: 'always' },
    };
    const full = new OpenAI({ baseURL: `${fullUrl}/v1`, apiKey: 'any', maxRetries: 0 });
    const stream = await full.completions.create(endless);
    await until('a text begins', async () => (await metric(fullUrl, 'slots_busy')) === 1);
    const asks = { model: 'any', prompt: 'a', max_tokens: 1, mizzle: { cloud: 'off' } };
    await check('no place', () =>
        assert.rejects(
            full.completions.create(asks),
            (e) => e instanceof OpenAI.InternalServerError && e.status === 503
        )
    );
    await check('a place after a while', async () => {
        const later = full.completions.create(asks, { maxRetries: 5 });
        setTimeout(() => stream.controller.abort(), 300);
        assert.equal((await later).usage.completion_tokens, 1);
    });
    await check('a client that left', () =>
        until('its slot is free', async () => (await metric(fullUrl, 'slots_busy')) === 0)
    );
}

answers()
    .then(errors)
    .then(places)
    .then(() => console.log(`${checks} checks`))
    .catch((e) => {
        console.error(e);
        process.exit(1);
    });
