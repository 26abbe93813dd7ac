/* explain_check.js - opens the pages of `mizzle explain --output` in $DIR and compares what they draw
 * with the document of --json. */
'use strict';
const fs = require('fs');
const zlib = require('zlib');
const { Bench, texts, LARGE } = require('./browser.js');

const DIR = process.env.DIR;
const json = JSON.parse(fs.readFileSync(`${DIR}/page.json`, 'utf8'));
const POSITIONS = [40, json.positions.length - 1];
const EVIL = [
    '</script><img src=x onerror=alert(1)>',
    'a\u2028b',
    '\u202eevil',
    '\0\x1b[31m',
    '"&lt;',
];

async function open(bench, options = {}, file = 'page', hash = '') {
    const context = await bench.browser.newContext({ viewport: LARGE, ...options });
    const page = await context.newPage();
    page.errors = [];
    page.on('pageerror', (e) => page.errors.push(e.message));
    page.on('console', (m) => page.errors.push(m.text()));
    page.on('dialog', (d) => page.errors.push(`dialog: ${d.message()}`) && d.dismiss());
    page.on('request', (r) => /^file:/.test(r.url()) || page.errors.push(r.url()));
    await page.goto(`file://${DIR}/${file}.html${hash}`);
    if (options.javaScriptEnabled !== false) await page.waitForSelector('body.on');
    return page;
}

async function closed(bench, page, what) {
    bench.same(`${what}: no error, no request, no dialog`, page.errors, []);
    await page.context().close();
}

const DATA = /(<script type="text\/plain" id="data">)([^<]*)/;
const unpacked = (text) => JSON.parse(zlib.gunzipSync(Buffer.from(text, 'base64')));
const packed = (data) => zlib.gzipSync(JSON.stringify(data)).toString('base64');

const near = (a, b, most) => Math.abs(a - b) <= most;
const numbers = (list) => list.map((s) => Number(s.replace(/[^0-9.e-]/g, '')));

/* A row of attention as [position, weight]. */
const entries = (head) => head.weights.map((w, i) => [head.at[i], w]);

/* Layers, lens, guesses and the router of one position. */
async function drawn(bench, page, p) {
    const { layers, top, router } = json.positions[p],
        of = (name) => `position ${p}: ${name}`;
    const lengths = numbers(await texts(page, '#ladder td.n')),
        wanted = layers.flatMap((y, l) => [
            ...(l ? [] : [y.in]),
            y.attention,
            y.middle,
            y.mlp,
            y.out,
        ]);
    bench.check(
        of('lengths'),
        lengths.length === wanted.length &&
            lengths.every((v, i) => near(v, wanted[i], 1e-3 * wanted[i])),
        lengths
    );
    const most = Math.max(...wanted),
        widths = await page.$$eval('#ladder .track', (all) =>
            all.map((e) => e.firstChild.getBoundingClientRect().width)
        );
    const scale = Math.max(...widths) / most;
    bench.check(
        of('bars are to scale'),
        widths.every((w, i) => near(w, scale * wanted[i], 2)),
        widths
    );
    const lens = numbers(await texts(page, '#ladder .guess b'));
    bench.check(
        of('lens'),
        layers.flatMap((y) => y.lens).every(({ p: q }, i) => near(lens[i], 100 * q, 0.06)),
        lens
    );
    const guesses = numbers(await texts(page, '#top td.n'));
    bench.check(
        of('guesses'),
        top.every(({ p: q }, i) => near(guesses[i], 100 * q, 2e-3)),
        guesses
    );
    const [score, verdict] = await texts(page, '#router strong');
    bench.check(
        of('score'),
        near(score, router.score, 1e-4) && /cloud/.test(verdict) === (router.verdict === 'cloud'),
        [score, verdict]
    );
    const limit = Math.log((1 - router.threshold) / router.threshold),
        shares = [...router.units.map((u) => u.adds), router.others, router.bias, limit].sort(
            (a, b) => Math.abs(b) - Math.abs(a)
        ),
        side = router.verdict === 'cloud' ? -1 : 1,
        share = shares.find((v) => side * v > 0);
    const adds = numbers(await texts(page, '#router td.n'));
    bench.check(
        of('units'),
        shares.every((v, i) => near(v, adds[i], 1e-3)),
        adds
    );
    const spans = layers.flatMap((y) => y.heads.map((head) => head.span)).sort((a, b) => b - a);
    bench.check(
        of('the span'),
        numbers(await texts(page, '#span td.n')).every((v, i) => near(v, 100 * spans[i], 0.06)),
        spans
    );
    const other = json.without.positions[p],
        alone = numbers(await texts(page, '#without td.n')),
        both = [router.score, 100 * top[0].p, other.router.score, 100 * other.top[0].p];
    bench.check(
        of('without a head'),
        alone.length === 4 && alone.every((v, i) => near(v, both[i], 6e-4)),
        alone
    );
    const decided = /largest share for the (cloud|small model) is that of .*: (-?[\d.]+)\./.exec(
        await page.innerText('#router')
    );
    bench.check(
        of('what decided'),
        decided && near(decided[2], share, 1e-3) && (decided[1] === 'cloud') === share < 0,
        decided
    );
}

/* Arcs, matrix and numbers of a head. */
async function looked(bench, page, p, l, h) {
    const head = json.positions[p].layers[l].heads[h],
        of = (name) => `position ${p}, layer ${l}, head ${h}: ${name}`;
    const shown = entries(head).filter(([, w]) => w >= 0.00505),
        hidden = entries(head).filter(([, w]) => w < 0.00495);
    const arcs = await page.locator('#arcs :is(.arc, .self)').count();
    bench.check(
        of('arcs'),
        arcs >= shown.length && arcs <= entries(head).length - hidden.length,
        arcs
    );
    const weights = numbers(await texts(page, '#arcs .weight'));
    bench.check(
        of('their weights'),
        near(
            weights.reduce((s, w) => s + w, 0),
            100 * shown.reduce((s, [, w]) => s + w, 0),
            0.5 * arcs + 1
        ),
        weights
    );
    const cell = await page.$eval('#looks .now td', (e) => parseFloat(e.textContent));
    const largest = Math.max(...head.weights);
    bench.check(of('the largest'), near(cell, 100 * largest, 0.06), cell);
    const [, said] = /: (?:at most )?([\d.]+) %/.exec(await page.innerText('#readout'));
    bench.check(of('in words'), near(said, 100 * largest, 0.02), said);
    /* A square of the matrix has the weight as its area. */
    const areas = await page.$eval('#matrix .squares', (e) =>
        e
            .getAttribute('d')
            .split('M')
            .slice(1)
            .map((s) => Number(/h([\d.]+)/.exec(s)[1]))
    );
    const squares = json.positions.flatMap((at) => entries(at.layers[l].heads[h]));
    bench.check(
        of('squares'),
        areas.length <= squares.length &&
            areas.length >= squares.filter(([, w]) => w >= 0.0011).length,
        areas.length
    );
    bench.check(
        of('the largest square'),
        near(Math.max(...areas) ** 2, Math.max(...squares.map(([, w]) => w)) * 7 ** 2, 1.5),
        Math.max(...areas)
    );
}

/* The bars of time, in shares of their box, and the limit of memory. */
async function timed(bench, page, p) {
    const pass = json.passes.find(({ at, rows }) => p >= at && p < at + rows),
        ns = Object.values(pass.ns),
        limit = json.model.pass_bytes / json.machine.levels.at(-1).gb_s,
        sum = ns.reduce((s, v) => s + v, 0);
    const found = await page.$eval('#time .lines', (e) => ({
        whole: e.clientWidth,
        stack: e.firstChild.getBoundingClientRect().width,
        limit: parseFloat(e.lastChild.style.left) / 100,
    }));
    bench.check(
        `position ${p}: time and limit are to one scale`,
        near(found.stack / found.whole / found.limit, sum / limit, 0.02 * (sum / limit) + 0.02),
        found
    );
    const said = await page.getAttribute('#time .stack', 'aria-label');
    bench.check(
        `position ${p}: each operation has its time`,
        Object.keys(pass.ns).every((op) => said.includes(`${op} `)),
        said
    );
}

/* The rows of the document. */
function rowsAddUp(bench) {
    const rows = json.positions.flatMap((at) => at.layers.flatMap((y) => y.heads));
    bench.check(
        'every row of attention adds up to 1',
        rows.every((h) => near(h.weights.reduce((s, w) => s + w, h.rest), 1, 1e-9))
    );
}

/* The text, and the tables of the whole. */
async function whole(bench, page) {
    const said = (await texts(page, '#text .t > span')).join('').replace(/↵/g, '\n');
    bench.same('the text is there', said, json.tokens.map((t) => t.piece).join(''));
    bench.same(
        'and a row for each token, with its writer',
        await texts(page, '#rows td:nth-child(4)'),
        json.tokens.map((t) => t.source)
    );
    const calls = [json.reading, json.writing].flatMap((t) => t.operations.map((o) => o.calls));
    bench.same(
        'and the times',
        numbers(await texts(page, '#times td:nth-child(2)')).filter((n) => n > 0),
        calls.filter((n) => n > 0)
    );
    bench.check(
        'and what was asked of which model',
        (await page.innerText('#facts')).startsWith(json.model.name)
    );
}

async function numbersOf(bench) {
    const held = unpacked(DATA.exec(fs.readFileSync(`${DIR}/page.html`, 'utf8'))[2]);
    bench.check('the page holds what --json prints', JSON.stringify(held) === JSON.stringify(json));
    rowsAddUp(bench);
    const page = await open(bench);
    await whole(bench, page);
    const marks = await page.$$eval('#text .t', (all) =>
        all.map((e) => /"c"|"f"/.test(getComputedStyle(e, '::after').content))
    );
    bench.same(
        'only what is not the small model’s is marked',
        marks,
        json.tokens.map((t) => /cloud|fallback/.test(t.source))
    );
    bench.check('it says that arcs scroll', await page.isVisible('#arcs-scroll'));
    bench.same(
        'the cloud was asked at the position shown first',
        json.tokens[Number(/p=(\d+)/.exec(page.url())[1]) + 1].source,
        'cloud'
    );
    for (const p of POSITIONS) {
        await page.click(`#text .t >> nth=${p}`);
        await drawn(bench, page, p);
        await timed(bench, page, p);
        for (const [l, h] of [
            [2, 3],
            [0, 1],
        ]) {
            await page.locator(`#layers input >> nth=${l}`).check();
            await page.locator(`#heads input >> nth=${h}`).check();
            await looked(bench, page, p, l, h);
        }
    }
    const cells = numbers(await texts(page, '#lens small')),
        wanted = [0, 1, 2].flatMap((l) => json.positions.map((at) => 100 * at.layers[l].lens[0].p));
    bench.check(
        'the heat map is the lens',
        cells.length === wanted.length && cells.every((v, i) => near(v, wanted[i], 0.51))
    );
    await closed(bench, page, 'numbers');
}

async function keys(bench) {
    const page = await open(bench, {}, 'page', '#p=7&l=1&h=5&x=9'),
        key = (k) => page.keyboard.press(k),
        hash = () => page.evaluate(() => location.hash);
    bench.same(
        'the hash chooses',
        await page.innerText('#row-name').then((s) => s.slice(0, 15)),
        'Layer 1, head 5'
    );
    await key('Tab');
    await key('Tab');
    bench.same(
        'Tab leads to the chosen token',
        await page.evaluate(() => document.activeElement.getAttribute('aria-selected')),
        'true'
    );
    const outline = await page.evaluate(
        () => getComputedStyle(document.activeElement).outlineWidth
    );
    bench.same('whose frame is visible', outline, '4px');
    await key('ArrowRight');
    bench.same('arrows move', await hash(), '#p=8&l=1&h=5');
    await key('ArrowDown');
    bench.check('by line, too', Number(/p=(\d+)/.exec(await hash())[1]) > 15, await hash());
    await key('End');
    bench.check(
        'the last token has no inside',
        (await page.isHidden('#ladder')) && /nothing to see/.test(await page.innerText('#then'))
    );
    await key('Home');
    bench.same('Home leads to the first', await hash(), '#p=0&l=1&h=5');
    const stops = new Set();
    for (let i = 0; i < 20; i++) {
        await key('Tab');
        stops.add(
            await page.evaluate(() => document.activeElement.id || document.activeElement.name)
        );
    }
    const wanted = ['after', 'ladder', 'lens', 'layers', 'heads', 'arcs', 'matrix'];
    bench.same(
        'Tab reaches everything',
        wanted.filter((w) => !stops.has(w)),
        []
    );
    await page.click('#text .t >> nth=30');
    const told = async () => /^Position (\d+) .* looks at (\d+) /.exec(await readout()).slice(1),
        readout = () => page.innerText('#readout'),
        [, most] = (await told()).map(Number);
    bench.check('the largest weight of this row is neither first nor last', most > 0 && most < 30);
    await page.focus('#matrix');
    await key('ArrowRight');
    bench.same('keys of the matrix begin where it is said', await told(), ['30', `${most + 1}`]);
    await key('ArrowLeft');
    await key('ArrowDown');
    bench.same('and keep their column', await told(), ['31', `${most}`]);
    await page.evaluate(() => (location.hash = '#p=99999&l=99'));
    await page.waitForFunction(() => location.hash === `#p=56&l=2&h=5`);
    await closed(bench, page, 'keys');
}

/* axe-core's options. Most of its time goes to the contrast of colours, which alone differs in the
 * dark and does not depend on the width of the window. */
const EVERYTHING = {},
    CONTRAST = { runOnly: ['color-contrast'] },
    ALL_ELSE = { rules: { 'color-contrast': { enabled: false } } };

/* Ask axe-core, if it has options for this look, and compare the width of the window. */
async function look(bench, page, name, axe) {
    if (axe) await bench.axe(page, `explain, ${name}`, axe);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    bench.check(`${name}: nothing is wider than the window`, wide <= 0, wide);
    const cut = await page.$$eval('#ladder, #looks, .guess', (all) =>
        all
            .filter(
                (e) =>
                    e.scrollWidth > e.clientWidth + 1 ||
                    e.getBoundingClientRect().right > innerWidth
            )
            .map((e) => e.id || e.className)
    );
    bench.same(`${name}: nothing of ladder and heads is out of sight`, cut, []);
    const stray = await page.$$eval('.numbers thead th:not([colspan])', (heads) =>
        heads
            .filter((th) => {
                const cells = th.closest('table').querySelectorAll('tbody tr:last-child > *');
                return getComputedStyle(cells[th.cellIndex]).textAlign !==
                    getComputedStyle(th).textAlign;
            })
            .map((th) => th.textContent)
    );
    bench.same(`${name}: headings stand as what is below them`, stray, []);
    if (process.env.SHOTS) {
        fs.mkdirSync(process.env.SHOTS, { recursive: true });
        await page.screenshot({ path: `${process.env.SHOTS}/explain-${name}.png`, fullPage: true });
    }
}

/* All looks of one page. */
async function looks(bench) {
    const page = await open(bench, { bypassCSP: true, colorScheme: 'light' }, 'page', '#p=52');
    await look(bench, page, 'light', EVERYTHING);
    await page.emulateMedia({ colorScheme: 'dark' });
    await look(bench, page, 'dark', CONTRAST);
    await page.setViewportSize({ width: 760, height: 1000 });
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await look(bench, page, 'print', null);
    if (process.env.SHOTS)
        await page.pdf({ path: `${process.env.SHOTS}/explain.pdf`, format: 'A4' });
    await page.setViewportSize({ width: 340, height: 640 });
    await page.emulateMedia({ media: null, colorScheme: 'light' });
    await look(bench, page, 'narrow', ALL_ELSE);
    await closed(bench, page, 'looks');
}

/* What policies say, some of which have no score: the page's own document, changed. */
async function policies(bench) {
    const page = fs.readFileSync(`${DIR}/page.html`, 'utf8');
    const said = async (policy, change) => {
        fs.writeFileSync(
            `${DIR}/policy.html`,
            page.replace(DATA, (_, tag, text) => {
                const data = unpacked(text);
                data.routing.policy = policy;
                change(data);
                return tag + packed(data);
            })
        );
        const p = await open(bench, {}, 'policy'),
            found = [await p.innerText('#router'), await p.isVisible('#router-say')],
            kept = await p.innerText('#kept');
        await closed(bench, p, policy);
        return [...found, kept];
    };
    const [units, shown] = await said('mlp', () => {});
    bench.check(
        'the unit table says for whom, and how the threshold is drawn',
        shown &&
            /For the cloud\s+for the small model/.test(units) &&
            /sigmoid\(sum\), 0\.\d+\. The threshold is drawn/.test(units),
        units
    );
    const [whole] = await said('mlp', (data) =>
        data.positions.forEach((at) => Object.assign(at.router, { threshold: 1, decided: null }))
    );
    bench.check(
        'a threshold that decides alone has no row',
        /all others/.test(whole) && !/Infinity|∞|is drawn/.test(whole),
        whole
    );
    const none = await said('always', (data) => {
        data.positions.forEach((at) => (at.router.score = null));
        data.whole.layers = [2, 2];
    });
    bench.same('without a score there is none', none.slice(0, 2), [
        'No score: the policy is “always”.',
        false,
    ]);
    bench.check('one layer is one layer', / layer 2, heads 0 to \d+;/.test(none[2]), none[2]);
}

async function withoutScripts(bench) {
    const page = await open(bench, { javaScriptEnabled: false });
    bench.check('without scripts it says so', /scripts/.test(await page.innerText('header')));
    bench.check('and shows nothing that needs them', await page.isHidden('main'));
    await closed(bench, page, 'without scripts');
}

/* Whatever pieces say, they are text. They are put into the document as the program would. */
async function hostile(bench) {
    const page = fs.readFileSync(`${DIR}/page.html`, 'utf8');
    const evil = page.replace(DATA, (_, tag, text) => {
        const data = unpacked(text);
        data.tokens.forEach((t, i) => (t.piece = EVIL[i % EVIL.length]));
        data.positions
            .flatMap(({ top, layers }) => [...top, ...layers.flatMap((y) => y.lens)])
            .forEach((guess, i) => (guess.piece = EVIL[i % EVIL.length]));
        data.tokens.forEach((t) => (t.why = EVIL.join(' ')));
        return tag + packed(data);
    });
    fs.writeFileSync(`${DIR}/evil.html`, evil);
    for (const file of ['evil', 'hostile']) {
        const p = await open(bench, {}, file);
        await p.click('#text .t >> nth=3');
        bench.same(
            `${file}: no element was made`,
            await p.locator('main :is(img, script, b[onclick])').count(),
            0
        );
        const text = await p.evaluate(
            () =>
                document.querySelector('main').textContent +
                [...document.querySelectorAll('main *')]
                    .map((e) => [...e.attributes].map((a) => a.value).join(' '))
                    .join(' ')
        );
        const found = /[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/.exec(text);
        bench.check(
            `${file}: no control character`,
            !found,
            found && text.slice(found.index - 40, found.index + 9)
        );
        await closed(bench, p, file);
    }
}

(async () => {
    const bench = await Bench.open();
    await Promise.all([
        numbersOf(bench),
        keys(bench)
            .then(() => hostile(bench))
            .then(() => policies(bench))
            .then(() => withoutScripts(bench)),
        looks(bench),
    ]);
    await bench.close();
})();
