/* A first look at the demo pair: what a user sees of texts that the models write. */
'use strict';
const { LARGE, count, ended, json, shot, texts } = require('./browser.js');

/* The text of a column, without the mark of the last token. */
const written = async (page, turn, column = 0) =>
    (await texts(page, `.turn >> nth=${turn} >> .answer >> nth=${column} >> .t`))
        .join('')
        .replace(/end$/, '');

/* Return true when the last token of the active text can be seen, above the form. */
const visible = (page) =>
    page.waitForFunction(() => {
        const all = document.querySelectorAll('.turn:last-child .t'),
            r = all[all.length - 1].getBoundingClientRect();
        const form = document.querySelector('#form').getBoundingClientRect();
        return r.top >= 0 && r.bottom <= form.top;
    }, null, { timeout: 5000 });

async function walk(bench) {
    const page = await bench.page({ viewport: LARGE, opens: true }),
        { questions, names } = await json(`${bench.url}/mizzle/info`),
        [routed, edge, cloud] = names;
    /* What any client gets. */
    const alone = async (wish) => {
        const body = { max_tokens: 256, ...wish };
        return (await json(`${bench.url}/v1/completions`, body)).choices[0].text;
    };
    await bench.is('the demo pair has questions', questions.length, (n) => n >= 5);
    await bench.is('which begin as such', questions[0], /^Question: /);
    await page.locator('.turn .t').first().waitFor();
    await ended(page);
    await page.click('#clear');
    await page.click('#questions button >> nth=4');
    await ended(page);
    const what = 'the text is the one that any client gets';
    await bench.is(what, written(page, 0), await alone({ model: routed, prompt: questions[4] }));
    bench.check('the answer is in sight', await visible(page));
    await bench.is('the cloud wrote some of it', count(page, '.turn .cloud'), (n) => n > 0);
    await page.click('.turn .cloud >> nth=0');
    const parts = /below the threshold of 0\.\d+: the cloud was asked[^]*Call[^]*ms[^]*no bytes/,
        where = 'the page says where the large model is';
    await bench.rows(page, [
        [where, '#cloud', /Large model ready \(in this process\)/],
        ['and that no bytes move', '#numbers', /no bytes/],
        ['its details have score, call and bytes', '#details', parts],
    ]);
    await shot(page, 'real-details');
    await page.check('#side');
    await page.click('#questions button >> nth=1');
    await ended(page);
    const prompt = questions[1];
    for (const [i, model] of [edge, routed, cloud].entries()) {
        const column = `side by side, column ${i + 1} is ${model}`;
        await bench.is(column, written(page, 1, i), await alone({ model, prompt }));
    }
    await page.locator('.diff:not(:empty)').nth(1).waitFor();
    bench.check('two differences are told', true);
    bench.check('three columns are in sight', await visible(page));
    await shot(page, 'real-side');
    await page.uncheck('#side');
    await page.fill('#threshold', '1');
    await page.click('#again');
    await ended(page);
    const all = 'with threshold 1 the cloud writes all';
    await bench.is(all, written(page, 2), await alone({ model: cloud, prompt }));
    await page.locator('.turn >> nth=0 >> .t').nth(3).click();
    const body = page.waitForRequest('**/v1/completions');
    await page.locator('.choice').nth(1).click();
    await ended(page);
    const ids = (await body).postDataJSON().prompt,
        rest = await alone({ prompt: ids, mizzle: { threshold: 1 } }),
        goes = (text) => rest.length > 0 && text.endsWith(rest);
    await bench.is('a text goes on with another token', written(page, 3), goes);
    await shot(page, 'real-continued');
    await page.click('#clear');
    await bench.rows(page, [
        ['starting over leaves an empty page', '.turn', 0],
        ['with its heading', 'h1', true],
        ['no timeline', '#time', false],
        ['no numbers', '#numbers', false],
    ]);
    await bench.is('and no prompt', page.inputValue('#prompt'), '');
}

/* In a page: what comes of markup, a script, a style and a request to elsewhere. */
async function attempts() {
    const threw = (f) => {
        try {
            return f() && 'allowed';
        } catch (e) {
            return e.name;
        }
    };
    const script = document.createElement('script'),
        p = document.createElement('p');
    const html = threw(() => (p.innerHTML = '<b>x</b>')),
        text = threw(() => (script.textContent = 'window.hacked = 1'));
    p.setAttribute('style', 'color: red');
    document.body.append(p);
    const styled = getComputedStyle(p).color === 'rgb(255, 0, 0)';
    p.remove();
    const away = await fetch('https://example.org/').then(() => 'allowed', (e) => e.name);
    return [html, text, window.hacked ?? null, styled, away];
}

/* The browser keeps what the headers promise (t_serve_refusals.c). */
async function headers(bench) {
    const page = Object.assign(await bench.page(), { wild: true }),
        none = ['TypeError', 'TypeError', null, false, 'TypeError'];
    await bench.rows(page, [['the browser keeps to it', attempts, none]]);
    const frame = await page.context().newPage();
    await frame.setContent(`<iframe src="${bench.url}"></iframe>`);
    await frame.waitForFunction(() => window.frames.length === 1);
    const forms = frame.frames().map((f) => f.locator('#form').count());
    await bench.is('no other page can frame it', Promise.all(forms), [0, 0]);
}

module.exports = [walk, headers];
