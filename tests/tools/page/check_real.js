/* A first look at the demo pair: what a user sees of texts that the models write. */
'use strict';
const { LARGE, ended, json, texts } = require('./browser.js');

const DEMO = /^Question: /;
const written = async (page, turn, column = 0) =>
    (await texts(page, `.turn >> nth=${turn} >> .answer >> nth=${column} >> .t`)).join('');
const ENDS = /end$/; /* the mark of the last token */

/* Return true when the last token of the active text can be seen, above the form. */
const visible = (page) =>
    page.waitForFunction(() => {
        const all = document.querySelectorAll('.turn:last-child .t'),
            r = all[all.length - 1].getBoundingClientRect();
        return r.top >= 0 && r.bottom <= document.querySelector('#form').getBoundingClientRect().top;
    }, null, { timeout: 5000 });

async function walk(bench) {
    const page = await bench.page({ viewport: LARGE, opens: true }),
        { questions, names } = await json(`${bench.url}/mizzle/info`);
    bench.check('the demo pair has questions', questions.length >= 5 && DEMO.test(questions[0]));
    await page.locator('.turn .t').first().waitFor();
    await ended(page);
    await page.click('#clear');
    await page.click('#questions button >> nth=4');
    await ended(page);
    const alone = async (model, prompt) =>
        (await json(`${bench.url}/v1/completions`, { model, prompt, max_tokens: 256 })).choices[0]
            .text;
    bench.same(
        'the text is the one that any client gets',
        (await written(page, 0)).replace(ENDS, ''),
        await alone(names[0], questions[4])
    );
    bench.check(
        'the page says where the large model is',
        /Large model ready \(in this process\)/.test(await page.innerText('#cloud'))
    );
    await bench.says(page, '#numbers', 'and that no bytes move', /no bytes/);
    bench.check('the answer is in sight', await visible(page));
    bench.check('the cloud wrote some of it', (await page.locator('.turn .cloud').count()) > 0);
    await page.click('.turn .cloud >> nth=0');
    bench.check(
        'its details have score, call and bytes',
        /below the threshold of 0\.\d+: the cloud was asked[^]*Call[^]*ms[^]*Sent\s+no bytes/.test(
            await page.innerText('#details')
        ),
        await page.innerText('#details')
    );
    await bench.shot(page, 'real-details');
    await page.check('#side');
    await page.click('#questions button >> nth=1');
    await ended(page);
    for (const [i, name] of [names[1], names[0], names[2]].entries())
        bench.same(
            `side by side, column ${i + 1} is ${name}`,
            (await written(page, 1, i)).replace(ENDS, ''),
            await alone(name, questions[1])
        );
    await page.locator('.diff:not(:empty)').nth(1).waitFor();
    bench.check('two differences are told', true);
    bench.check('three columns are in sight', await visible(page));
    await bench.shot(page, 'real-side');
    await page.uncheck('#side');
    await page.fill('#threshold', '1');
    await page.click('#again');
    await ended(page);
    bench.same(
        'with threshold 1 the cloud writes all',
        (await written(page, 2)).replace(ENDS, ''),
        await alone(names[2], questions[1])
    );
    await page.locator('.turn >> nth=0 >> .t').nth(3).click();
    const body = page.waitForRequest('**/v1/completions');
    await page.locator('.choice').nth(1).click();
    await ended(page);
    const { prompt } = (await body).postDataJSON(),
        { choices } = await json(`${bench.url}/v1/completions`, {
            prompt,
            max_tokens: 256,
            mizzle: { threshold: 1 },
        });
    bench.check(
        'a text goes on with another token',
        (await written(page, 3)).replace(ENDS, '').endsWith(choices[0].text),
        choices[0].text
    );
    await bench.shot(page, 'real-continued');
    bench.same('no error', page.errors, []);
    await page.click('#clear');
    bench.same(
        'starting over leaves an empty page',
        [
            await page.locator('.turn').count(),
            await page.isVisible('h1'),
            await page.isHidden('#time'),
            await page.isHidden('#numbers'),
            await page.inputValue('#prompt'),
        ],
        [0, true, true, true, '']
    );
}

/* The browser keeps what the headers promise (t_serve_refusals.c). */
async function headers(bench) {
    const page = await bench.page();
    const tried = await page.evaluate(async () => {
        const threw = (f) => {
            try {
                f();
                return 'allowed';
            } catch (e) {
                return e.name;
            }
        };
        const script = document.createElement('script');
        const html = threw(() => {
            document.createElement('p').innerHTML = '<b>x</b>';
        });
        const text = threw(() => {
            script.textContent = 'window.hacked = 1';
        });
        const handler = document.createElement('p');
        handler.setAttribute('style', 'color: red');
        document.body.append(handler);
        const style = getComputedStyle(handler).color;
        handler.remove();
        const away = await fetch('https://example.org/').then(
            () => 'allowed',
            (e) => e.name
        );
        return [html, text, window.hacked, style !== 'rgb(255, 0, 0)', away];
    });
    bench.same('the browser keeps to it', tried, ['TypeError', 'TypeError', null, true, 'TypeError']);
    const frame = await page.context().newPage();
    await frame.setContent(`<iframe src="${bench.url}"></iframe>`);
    await frame.waitForFunction(() => window.frames.length === 1);
    const shown = await Promise.all(
        frame.frames().map((f) => f.evaluate(() => document.querySelectorAll('#form').length))
    );
    bench.same('no other page can frame it', shown, [0, 0]);
}

module.exports = [walk, headers];
