/* browser.js - what the checks of pages share: the browser, the servers, and a list of checks. */
'use strict';
const fs = require('fs');
const { chromium } = require('playwright-core');
const mock = require('./mock.js');

const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/* axe-core's options. Most of its time goes to the contrast of colours, which alone differs in the
 * dark and does not depend on the width of the window. */
const CONTRAST = { runOnly: ['color-contrast'] };
const ALL_ELSE = { rules: { 'color-contrast': { enabled: false } } };

const LARGE = { width: 1280, height: 860 };
const SMALL = { width: 1000, height: 660 }; /* the same layout, and less to paint */

/* What a page tells about itself while it runs: breaches of its policy. */
function observe() {
    window.seen = { breaches: [] };
    document.addEventListener('securitypolicyviolation', (e) =>
        window.seen.breaches.push(`${e.violatedDirective} ${e.blockedURI}`)
    );
}

/* Answer with what the server says, changed by f. The page may be closed by then. */
async function patched(route, f) {
    try {
        const reply = await route.fetch({ timeout: 120000, maxRetries: 3 });
        if (!reply.ok()) return await route.fulfill({ response: reply });
        const changed = f(await reply.json());
        await route.fulfill(changed.status ? changed : { json: changed });
    } catch (e) {
        if (!/disposed|closed/.test(e.message)) throw e;
    }
}

/* Keep errors of a page, what it says on the console as such, dialogs, and what it asks for. */
function heard(page) {
    Object.assign(page, { errors: [], requests: [] });
    page.on('pageerror', (e) => page.errors.push(e.message));
    page.on('console', (m) => {
        const own = m.type() === 'error' && !/status of|ERR_FAILED/.test(m.text());
        if (own) page.errors.push(m.text());
    });
    page.on('request', (r) => page.requests.push(r.url()));
    page.on('dialog', (d) => page.errors.push(`dialog: ${d.message()}`) && d.dismiss());
    return page;
}

class Bench {
    static async open() {
        const b = new Bench();
        b.mock = await mock.start();
        b.url = process.env.PAGE_URL;
        b.locked = process.env.LOCKED_URL;
        const executablePath = process.env.CHROMIUM;
        b.browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
        b.passed = [];
        b.failed = [];
        return b;
    }

    /* Do a part of the checks. The pages that it opened, which are closed, had no error and no
     * dialog, breached no policy and asked nobody but their own server, unless they are wild. */
    async part(f) {
        const own = Object.assign(Object.create(this), { pages: [] });
        await f(own).catch((e) => this.check(e.message.split('\n')[0], false, e.stack));
        for (const page of own.pages) {
            const away = (u) => !u.startsWith(page.home) && !/^(data|blob):/.test(u),
                breaches = await page.evaluate(() => window.seen?.breaches ?? []).catch(() => []),
                found = [...page.errors, ...breaches, ...page.requests.filter(away)];
            const what = `${f.name || 'a part'}: nothing is wrong with its pages`;
            if (!page.wild) await this.is(what, found, []);
            await page.context().close();
        }
    }

    /* Open a page in a fresh profile. */
    async visit(home, options = {}) {
        const context = await this.browser.newContext({ viewport: LARGE, ...options });
        const page = Object.assign(heard(await context.newPage()), { home });
        this.pages.push(page);
        await page.addInitScript(observe);
        return page;
    }

    /* Say how it went, and end the program. */
    async close() {
        await this.browser.close();
        this.mock.close();
        console.log(`${this.passed.length} checks passed, ${this.failed.length} failed`);
        process.exit(this.failed.length || !this.passed.length ? 1 : 0);
    }

    /* Open the page of a server. */
    async page(options = {}, url = this.url) {
        const { info = (i) => i, opens = false, ...rest } = options;
        const page = await this.visit(url, { viewport: SMALL, ...rest });
        /* Ask seldom, because asking before each frame would make the browser draw them all. */
        const wait = page.waitForFunction.bind(page);
        page.waitForFunction = (f, arg, o) => wait(f, arg, { polling: 50, ...o });
        /* Scripts are the mock's; all else is the server's. */
        const path = (r) => new URL(r.url()).pathname;
        await page.route('**/v1/**', (r) => {
            const scripted = /"@\w+/.test(r.request().postData() || '');
            r.continue(scripted ? { url: this.mock.url + path(r.request()) } : {});
        });
        page.bodies = [];
        page.on('request', (r) => {
            if (r.method() === 'POST')
                page.bodies.push({ path: path(r), ...JSON.parse(r.postData()) });
        });
        /* The page writes a text of its own only where the large model costs nothing. */
        const costs = (i) => (opens ? i : { ...i, cloud: i.cloud && { ...i.cloud, local: false } });
        await page.route('**/mizzle/info', (r) => patched(r, (i) => info(costs(i))));
        await page.goto(url);
        await page.waitForFunction(() => document.querySelector('#model').textContent !== '');
        return page;
    }

    check(what, ok, found = '') {
        (ok ? this.passed : this.failed).push(what);
        const why = ok || found === '' ? '' : `: ${JSON.stringify(found)}`;
        console.log((ok ? 'ok   ' : 'FAIL ') + what + why);
    }

    /* Check a value, or the promise of one, by a pattern, a function or what is the same JSON. */
    async is(what, found, wanted) {
        const value = await found;
        const by = { RegExp: () => wanted.test(value), Function: () => wanted(value) },
            same = () => JSON.stringify(value) === JSON.stringify(wanted);
        this.check(what, (by[wanted?.constructor.name] || same)(), value);
    }

    /* Check rows of [what, where, wanted]. Where is a selector: how many there are, whether it is
     * visible, or the text that it has soon, by the type of what is wanted. Or it is a function,
     * which is called in the page. */
    async rows(page, rows) {
        for (const [what, where, wanted] of rows) {
            const find = { number: () => count(page, where), boolean: () => page.isVisible(where) },
                text = () => page.textContent(where);
            if (typeof where === 'function') await this.is(what, page.evaluate(where), wanted);
            else if (wanted instanceof RegExp) await this.says(page, where, what, wanted);
            else await this.is(what, (find[typeof wanted] || text)(), wanted);
        }
    }

    async says(page, selector, what, pattern) {
        let said = await page.innerText(selector);
        /* Figures are drawn a little later. */
        for (let n = 0; n < 40 && !pattern.test(said); n++) {
            await page.waitForTimeout(50);
            said = await page.innerText(selector);
        }
        this.check(what, pattern.test(said), said);
    }

    /* Ask axe-core, with other options than all rules if some are given. Its script needs a page
     * with bypassCSP, or that of a debugger. */
    async axe(page, what, options = {}) {
        if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
        const found = await page.evaluate(async (more) => {
            const standards = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
                runOnly = [...standards, 'best-practice'],
                options = { resultTypes: ['violations'], runOnly, ...more };
            const { violations } = await window.axe.run(document, options),
                nodes = (v) => v.nodes.map((n) => n.target).join(', ');
            return violations.map((v) => `${v.id}: ${nodes(v)}`.slice(0, 300));
        }, options);
        await this.is(`axe, ${what}`, found, []);
    }
}

/* Write a prompt and wait for the end. */
async function write(page, prompt) {
    await begin(page, prompt);
    await ended(page);
}

async function begin(page, prompt) {
    const before = await page.locator('.turn').count();
    await page.fill('#prompt', prompt);
    await page.press('#prompt', 'Enter');
    await page.locator('.turn').nth(before).waitFor();
    /* It is drawn for the first time, so it is being written; not if it has no token. */
    const drawn = page.locator('.turn').nth(before).locator('.answer .t').first();
    await drawn.waitFor({ state: 'attached', timeout: 2000 }).catch(() => {});
}

/* Wait until nothing is written and all of it is drawn. */
async function ended(page) {
    await page.waitForFunction(
        () => document.querySelector('#stop').hidden && !document.querySelector('.answer.writing'),
        null,
        { timeout: 60000 }
    );
}

/* Keep the texts of the page as a file in $DIR and return where it lies. */
async function save(page, name) {
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
    const at = `${process.env.DIR}/${name}.html`;
    await file.saveAs(at);
    return at;
}

/* Choose raw text or chat, where there is a choice. */
async function mode(page, name) {
    if (await page.isVisible('#mode')) await page.check(`#mode [value=${name}]`);
}

/* Ask a server as any other client; with a body, by POST. */
async function json(url, body) {
    const headers = { 'Content-Type': 'application/json' };
    const how = body && { method: 'POST', headers, body: JSON.stringify(body) };
    return (await fetch(url, how)).json();
}

/* Take a picture for people, if they want one. */
async function shot(page, name, options = {}) {
    if (!process.env.SHOTS) return;
    fs.mkdirSync(process.env.SHOTS, { recursive: true });
    await page.screenshot({ path: `${process.env.SHOTS}/${name}.png`, ...options });
}

const count = (page, selector) => page.locator(selector).count();
const texts = (page, selector) => page.locator(selector).allTextContents();

/* All text and all attributes of an element, as they reached the document. */
const everything = (page, selector) =>
    page.$eval(selector, (root) => {
        const all = [root, ...root.querySelectorAll('*')].flatMap((e) => [...e.attributes]);
        return root.textContent + all.map((a) => a.value).join(' ');
    });

/* Characters that must not reach the document: controls and those that reorder text. */
const FORBIDDEN = new RegExp(
    '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f' +
        '\\u2028-\\u202e\\u2060-\\u2069\\ufeff]'
);

/* Nothing that a text said was made an element, or stands in the document as such a character. */
async function harmless(bench, page, what, made, root) {
    await bench.rows(page, [[`${what}: no element was made`, made, 0]]);
    const text = (await everything(page, root)).replace(/\r/g, ''),
        at = text.search(FORBIDDEN);
    const near = text.slice(Math.max(at - 80, 0), at + 40);
    bench.check(`${what}: no control character is in the document`, at < 0, near);
}

const { HOSTILE } = mock;
module.exports = { LARGE, SMALL, HOSTILE, Bench, json, mode, count, texts, harmless };
Object.assign(module.exports, { CONTRAST, ALL_ELSE, heard, shot, write, begin, ended, save });
