/* browser.js - what the checks of the page share: the browser, the servers, and a list of checks. */
'use strict';
const fs = require('fs');
const { chromium } = require('playwright-core');
const mock = require('./mock.js');

const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

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
        const reply = await route.fetch({ timeout: 120000 });
        if (!reply.ok()) return await route.fulfill({ response: reply });
        const changed = f(await reply.json());
        await route.fulfill(changed.status ? changed : { json: changed });
    } catch (e) {
        if (!/disposed|closed/.test(e.message)) throw e;
    }
}

class Bench {
    static async open() {
        const b = new Bench();
        b.mock = await mock.start();
        b.url = process.env.PAGE_URL;
        b.locked = process.env.LOCKED_URL;
        b.browser = await chromium.launch({
            executablePath: process.env.CHROMIUM,
            args: ['--no-sandbox'],
        });
        b.passed = [];
        b.failed = [];
        return b;
    }

    /* Do a part of the checks, and close the pages that it opened. */
    async part(f) {
        const own = Object.assign(Object.create(this), { contexts: [] });
        await f(own).catch((e) => this.check(e.message.split('\n')[0], false, e.stack));
        for (const context of own.contexts) await context.close();
    }

    /* Say how it went, and end the program. */
    async close() {
        await this.browser.close();
        this.mock.close();
        console.log(`${this.passed.length} checks passed, ${this.failed.length} failed`);
        process.exit(this.failed.length || !this.passed.length ? 1 : 0);
    }

    /* Open the page in a fresh profile; errors and requests to elsewhere are kept. */
    async page(options = {}, url = this.url) {
        const { info = (i) => i, opens = false, ...rest } = options;
        const context = await this.browser.newContext({
            viewport: SMALL,
            ...rest,
        });
        this.contexts.push(context);
        const page = await context.newPage();
        /* Ask seldom, because asking before each frame would make the browser draw them all. */
        const wait = page.waitForFunction.bind(page);
        page.waitForFunction = (f, arg, o) => wait(f, arg, { polling: 50, ...o });
        page.errors = [];
        page.requests = [];
        page.on('pageerror', (e) => page.errors.push(e.message));
        page.on(
            'console',
            (m) => m.type() === 'error' && !/status of/.test(m.text()) && page.errors.push(m.text())
        );
        page.on('request', (r) => page.requests.push(r.url()));
        page.on('dialog', (d) => page.errors.push(`dialog: ${d.message()}`) && d.dismiss());
        await page.addInitScript(observe);
        /* Scripts are the mock's; all else is the server's. */
        await page.route('**/v1/**', (r) =>
            /"@\w+/.test(r.request().postData() || '')
                ? r.continue({ url: this.mock.url + new URL(r.request().url()).pathname })
                : r.continue()
        );
        page.bodies = [];
        page.on(
            'request',
            (r) =>
                r.method() === 'POST' &&
                page.bodies.push({
                    path: new URL(r.url()).pathname,
                    ...JSON.parse(r.postData()),
                })
        );
        /* The page writes a text of its own only where the large model costs nothing. */
        const costs = (i) => (opens ? i : { ...i, cloud: i.cloud && { ...i.cloud, local: false } });
        await page.route('**/mizzle/info', (r) => patched(r, (i) => info(costs(i))));
        await page.goto(url);
        await page.waitForFunction(() => document.querySelector('#model').textContent !== '');
        return page;
    }

    check(what, ok, found = '') {
        (ok ? this.passed : this.failed).push(what);
        console.log(
            (ok ? 'ok   ' : 'FAIL ') +
                what +
                (ok || found === '' ? '' : `: ${JSON.stringify(found)}`)
        );
    }

    same(what, found, expected) {
        this.check(what, JSON.stringify(found) === JSON.stringify(expected), found);
    }

    async says(page, selector, what, pattern) {
        let said = await page.innerText(selector);
        for (let n = 0; n < 40 && !pattern.test(said); n++) { /* figures are drawn a little later */
            await page.waitForTimeout(50);
            said = await page.innerText(selector);
        }
        this.check(what, pattern.test(said), said);
    }

    /* Ask axe-core, with other options than all rules if some are given. Its script needs a page with
     * bypassCSP, or that of a debugger. */
    async axe(page, what, options = {}) {
        if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
        const found = await page.evaluate(
            async (options) =>
                (
                    await window.axe.run(document, {
                        resultTypes: ['violations'],
                        runOnly: [
                            'wcag2a',
                            'wcag2aa',
                            'wcag21a',
                            'wcag21aa',
                            'wcag22aa',
                            'best-practice',
                        ],
                        ...options,
                    })
                ).violations.map((v) =>
                    `${v.id}: ${v.nodes.map((n) => n.target).join(', ')}`.slice(0, 300)
                ),
            options
        );
        this.same(`axe, ${what}`, found, []);
    }

    async shot(page, name) {
        if (process.env.SHOTS) {
            fs.mkdirSync(process.env.SHOTS, { recursive: true });
            await page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
        }
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
    /* It is drawn for the first time, which says that it is being written; not if it has no token. */
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

/* Keep the texts of the page as a file and return where it lies. */
async function save(page, at) {
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
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

const texts = (page, selector) => page.locator(selector).allTextContents();

const { HOSTILE } = mock;
module.exports = { LARGE, SMALL, Bench, json, mode, texts, write, begin, ended, save, HOSTILE };
