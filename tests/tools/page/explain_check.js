/* explain_check.js - opens the pages of `mizzle explain --output` in $DIR and compares what they
 * draw with the document of --json. */
'use strict';
const fs = require('fs');
const zlib = require('zlib');
const { ALL_ELSE, Bench, CONTRAST, count, harmless, shot, texts } = require('./browser.js');

const DIR = process.env.DIR;
const json = JSON.parse(fs.readFileSync(`${DIR}/page.json`, 'utf8'));
const POSITIONS = [40, json.positions.length - 1];
const EVIL =
    '</script><img src=x onerror=alert(1)>|a\u2028b|\u202eevil|\0\x1b[31m|"&lt;'.split('|');

async function open(bench, options = {}, file = 'page', hash = '') {
    const page = await bench.visit(`file://${DIR}/${file}.html`, options);
    page.on('console', (m) => page.errors.push(m.text()));
    await page.goto(page.home + hash);
    if (options.javaScriptEnabled !== false) await page.waitForSelector('body.on');
    return page;
}

const DATA = /(<script type="text\/plain" id="data">)([^<]*)/;
const unpacked = (text) => JSON.parse(zlib.gunzipSync(Buffer.from(text, 'base64')));
const packed = (data) => zlib.gzipSync(JSON.stringify(data)).toString('base64');

/* Write the page as FILE.html with another document, as the program would. */
function rewrite(file, change) {
    const page = fs.readFileSync(`${DIR}/page.html`, 'utf8').replace(DATA, (_, tag, text) => {
        const data = unpacked(text);
        change(data);
        return tag + packed(data);
    });
    fs.writeFileSync(`${DIR}/${file}.html`, page);
}

const near = (a, b, most) => Math.abs(a - b) <= most;
const numbers = (list) => list.map((s) => Number(s.replace(/[^0-9.e-]/g, '')));
const sum = (list) => list.reduce((s, v) => s + v, 0);

/* Check as many numbers as are wanted, each of which may be so far from its own, or so large a part
 * of it. */
function same(bench, what, found, wanted, most, part = 0) {
    const fine = (v, i) => near(v, wanted[i], most + part * Math.abs(wanted[i]));
    bench.check(what, found.length === wanted.length && wanted.length && found.every(fine), found);
}

/* A row of attention as [position, weight]. */
const entries = (head) => head.weights.map((w, i) => [head.at[i], w]);

/* Layers, lens, guesses and the router of one position. */
async function drawn(bench, page, p) {
    const { layers, top, router } = json.positions[p],
        of = (name) => `position ${p}: ${name}`,
        read = async (selector) => numbers(await texts(page, selector));
    const lengths = layers.flatMap((y, l) => [
        ...(l ? [] : [y.in]),
        ...[y.attention, y.middle, y.mlp, y.out],
    ]);
    same(bench, of('lengths'), await read('#ladder td.n'), lengths, 0, 1e-3);
    const widths = await page.$$eval('#ladder .track', (all) =>
            all.map((e) => e.firstChild.getBoundingClientRect().width)
        ),
        scale = Math.max(...widths) / Math.max(...lengths);
    same(bench, of('bars are to scale'), widths, lengths.map((v) => scale * v), 2);
    const lens = layers.flatMap((y) => y.lens).map((guess) => 100 * guess.p);
    same(bench, of('lens'), await read('#ladder .guess b'), lens, 0.06);
    same(bench, of('guesses'), await read('#top td.n'), top.map((guess) => 100 * guess.p), 2e-3);
    const [score, verdict] = await texts(page, '#router strong');
    same(bench, of('score'), [Number(score)], [router.score], 1e-4);
    await bench.is(of('verdict'), /cloud/.test(verdict), router.verdict === 'cloud');
    const limit = Math.log((1 - router.threshold) / router.threshold),
        parts = [...router.units.map((u) => u.adds), router.others, router.bias, limit],
        shares = parts.sort((a, b) => Math.abs(b) - Math.abs(a)),
        side = router.verdict === 'cloud' ? -1 : 1,
        share = shares.find((v) => side * v > 0);
    const adds = await read('#router td.n');
    same(bench, of('units'), adds.slice(0, shares.length), shares, 1e-3);
    const heads = layers.flatMap((y) => y.heads),
        spans = heads.map((head) => 100 * head.span).sort((a, b) => b - a),
        shown = await read('#span td.n');
    same(bench, of('the span'), shown, spans.slice(0, shown.length), 0.06);
    const say = /largest share for the (cloud|small model) is that of .*: (-?[\d.]+)\./,
        [, whose, much] = say.exec(await page.innerText('#router')) || [];
    same(bench, of('what decided'), [Number(much)], [share], 1e-3);
    await bench.is(of('for whom'), whose, share < 0 ? 'cloud' : 'small model');
}

/* Arcs, matrix and numbers of a head. */
async function looked(bench, page, p, l, h) {
    const head = json.positions[p].layers[l].heads[h],
        of = (name) => `position ${p}, layer ${l}, head ${h}: ${name}`,
        weights = (at) => entries(at).map(([, w]) => w),
        above = (list, least) => list.filter((w) => w >= least).length;
    const row = weights(head),
        shown = row.filter((w) => w >= 0.00505),
        arcs = await count(page, '#arcs :is(.arc, .self)'),
        some = (n) => n >= shown.length && n <= above(row, 0.00495);
    await bench.is(of('arcs'), arcs, some);
    const said = numbers(await texts(page, '#arcs .weight'));
    same(bench, of('their weights'), [sum(said)], [100 * sum(shown)], 0.5 * arcs + 1);
    const largest = 100 * Math.max(...head.weights),
        cell = await page.$eval('#looks .now td', (e) => parseFloat(e.textContent)),
        [, words] = /: (?:at most )?([\d.]+) %/.exec(await page.innerText('#readout'));
    same(bench, of('the largest'), [cell], [largest], 0.06);
    same(bench, of('in words'), [Number(words)], [largest], 0.02);
    /* A square of the matrix has the weight as its area. */
    const path = await page.getAttribute('#matrix .squares', 'd'),
        sides = path.split('M').slice(1).map((s) => Number(/h([\d.]+)/.exec(s)[1])),
        all = json.positions.flatMap((at) => weights(at.layers[l].heads[h]));
    const most = (n) => n <= all.length && n >= above(all, 0.0011);
    await bench.is(of('squares'), sides.length, most);
    const area = Math.max(...sides) ** 2;
    same(bench, of('the largest square'), [area], [Math.max(...all) * 7 ** 2], 1.5);
}

/* The bars of time, in shares of their box, and the limit of memory. */
async function timed(bench, page, p) {
    const pass = json.passes.find(({ at, rows }) => p >= at && p < at + rows),
        limit = json.model.pass_bytes / json.machine.levels.at(-1).gb_s,
        wanted = sum(Object.values(pass.ns)) / limit;
    const found = await page.$eval('#time .lines', (e) => {
        const stack = e.firstChild.getBoundingClientRect().width / e.clientWidth;
        return stack / (parseFloat(e.lastChild.style.left) / 100);
    });
    same(bench, `position ${p}: time and limit are to one scale`, [found], [wanted], 0.02, 0.02);
    const said = await page.getAttribute('#time .stack', 'aria-label'),
        missed = Object.keys(pass.ns).filter((op) => !said.includes(`${op} `));
    await bench.is(`position ${p}: each operation has its time`, missed, []);
}

/* The text, and the tables of the whole. */
async function whole(bench, page) {
    const said = (await texts(page, '#text .t > span')).join('').replace(/↵/g, '\n');
    await bench.is('the text is there', said, json.tokens.map((t) => t.piece).join(''));
    const writers = json.tokens.map((t) => t.source),
        of = 'and a row for each token, with its writer';
    await bench.is(of, texts(page, '#rows td:nth-child(4)'), writers);
    const calls = [json.reading, json.writing].flatMap((t) => t.operations.map((o) => o.calls)),
        times = numbers(await texts(page, '#times td:nth-child(2)')),
        some = (list) => list.filter((n) => n > 0);
    await bench.is('and the times', some(times), some(calls));
    const name = json.model.name;
    await bench.is('and which model it is', page.innerText('#facts'), (s) => s.startsWith(name));
}

async function numbersOf(bench) {
    const held = unpacked(DATA.exec(fs.readFileSync(`${DIR}/page.html`, 'utf8'))[2]);
    bench.check('the page holds what --json prints', JSON.stringify(held) === JSON.stringify(json));
    const heads = json.positions.flatMap((at) => at.layers.flatMap((y) => y.heads)),
        off = heads.filter((h) => !near(sum(h.weights) + h.rest, 1, 1e-9));
    bench.check('every row of attention adds up to 1', heads.length && !off.length, off.length);
    const page = await open(bench);
    await whole(bench, page);
    const marks = await page.$$eval('#text .t', (all) =>
            all.map((e) => /"c"|"f"/.test(getComputedStyle(e, '::after').content))
        ),
        others = json.tokens.map((t) => /cloud|fallback/.test(t.source)),
        first = json.tokens[Number(/p=(\d+)/.exec(page.url())[1]) + 1].source;
    await bench.is('only what is not the small model’s is marked', marks, others);
    await bench.rows(page, [['it says that arcs scroll', '#arcs-scroll', true]]);
    await bench.is('the cloud was asked at the position shown first', first, 'cloud');
    for (const p of POSITIONS) {
        await page.click(`#text .t >> nth=${p}`);
        await drawn(bench, page, p);
        await timed(bench, page, p);
        for (const [l, h] of [[2, 3], [0, 1]]) {
            await page.locator(`#layers input >> nth=${l}`).check();
            await page.locator(`#heads input >> nth=${h}`).check();
            await looked(bench, page, p, l, h);
        }
    }
    const cells = numbers(await texts(page, '#lens small')),
        lens = [0, 1, 2].flatMap((l) => json.positions.map((at) => 100 * at.layers[l].lens[0].p));
    same(bench, 'the heat map is the lens', cells, lens, 0.51);
}

async function keys(bench) {
    const page = await open(bench, {}, 'page', '#p=7&l=1&h=5&x=9'),
        hash = () => page.evaluate(() => location.hash),
        told = async () =>
            /^Position (\d+) .* looks at (\d+) /.exec(await page.innerText('#readout')).slice(1);
    const key = async (...names) => {
        for (const name of names) await page.keyboard.press(name);
    };
    await bench.rows(page, [['the hash chooses', '#row-name', /^Layer 1, head 5/]]);
    await key('Tab', 'Tab');
    const width = () => getComputedStyle(document.activeElement).outlineWidth,
        chosen = () => document.activeElement.getAttribute('aria-selected');
    await bench.rows(page, [
        ['Tab leads to the chosen token', chosen, 'true'],
        ['whose frame is visible', width, '4px'],
    ]);
    await key('ArrowRight');
    await bench.is('arrows move', hash(), '#p=8&l=1&h=5');
    await key('ArrowDown');
    await bench.is('by line, too', hash(), (s) => Number(/p=(\d+)/.exec(s)[1]) > 15);
    await key('End');
    await bench.rows(page, [
        ['the last token has no inside', '#ladder', false],
        ['which is said', '#then', /nothing to see/],
    ]);
    await key('Home');
    await bench.is('Home leads to the first', hash(), '#p=0&l=1&h=5');
    const stops = new Set(),
        wanted = ['after', 'ladder', 'lens', 'layers', 'heads', 'arcs', 'matrix'];
    const on = () => document.activeElement.id || document.activeElement.name;
    for (let i = 0; i < 20; i++) {
        await key('Tab');
        stops.add(await page.evaluate(on));
    }
    await bench.is('Tab reaches everything', wanted.filter((w) => !stops.has(w)), []);
    await page.click('#text .t >> nth=30');
    const most = Number((await told())[1]);
    bench.check('the largest weight of this row is neither first nor last', most > 0 && most < 30);
    await page.focus('#matrix');
    await key('ArrowRight');
    await bench.is('keys of the matrix begin where it is said', told(), ['30', `${most + 1}`]);
    await key('ArrowLeft', 'ArrowDown');
    await bench.is('and keep their column', told(), ['31', `${most}`]);
    await page.evaluate(() => (location.hash = '#p=99999&l=99'));
    await page.waitForFunction(() => location.hash === `#p=56&l=2&h=5`);
}

/* In the page: what of ladder and heads is out of sight, and headings that stand otherwise than
 * what is below them. */
function cut() {
    const beyond = (e) =>
        e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth;
    return [...document.querySelectorAll('#ladder, #looks, .guess')]
        .filter(beyond)
        .map((e) => e.id || e.className);
}

function stray() {
    const align = (e) => getComputedStyle(e).textAlign,
        below = (th) => th.closest('table').querySelectorAll('tbody tr:last-child > *');
    return [...document.querySelectorAll('.numbers thead th:not([colspan])')]
        .filter((th) => align(below(th)[th.cellIndex]) !== align(th))
        .map((th) => th.textContent);
}

/* Ask axe-core, if it has options for this look, and compare the width of the window. */
async function look(bench, page, name, axe) {
    if (axe) await bench.axe(page, `explain, ${name}`, axe);
    const beyond = () => document.documentElement.scrollWidth - innerWidth;
    await bench.rows(page, [
        [`${name}: nothing is wider than the window`, beyond, (n) => n <= 0],
        [`${name}: nothing of ladder and heads is out of sight`, cut, []],
        [`${name}: headings stand as what is below them`, stray, []],
    ]);
    await shot(page, `explain-${name}`, { fullPage: true });
}

/* All looks of one page. */
async function looks(bench) {
    const page = await open(bench, { bypassCSP: true, colorScheme: 'light' }, 'page', '#p=52');
    await look(bench, page, 'light', {});
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
}

/* What policies say, some of which have no score: the page's own document, changed. */
async function policies(bench) {
    const said = async (policy, change) => {
        rewrite('policy', (data) => {
            data.routing.policy = policy;
            change(data);
        });
        const p = await open(bench, {}, 'policy'),
            found = [await p.innerText('#router'), await p.isVisible('#router-say')],
            kept = await p.innerText('#kept');
        return [...found, kept];
    };
    const [units, shown] = await said('mlp', () => {}),
        table = /For the cloud\s+for the small model/,
        drawn = /sigmoid\(sum\), 0\.\d+\. The threshold is drawn/;
    await bench.is('the unit table says for whom', units, table);
    await bench.is('and how the threshold is drawn', shown && units, drawn);
    const sure = { threshold: 1, decided: null },
        alone = (s) => /all others/.test(s) && !/Infinity|∞|is drawn/.test(s);
    const [only] = await said('mlp', (data) =>
        data.positions.forEach((at) => Object.assign(at.router, sure))
    );
    await bench.is('a threshold that decides alone has no row', only, alone);
    const none = await said('always', (data) => {
        data.positions.forEach((at) => (at.router.score = null));
        data.whole.layers = [2, 2];
    });
    const no = ['No score: the policy is “always”.', false];
    await bench.is('without a score there is none', none.slice(0, 2), no);
    await bench.is('one layer is one layer', none[2], / layer 2, heads 0 to \d+;/);
}

async function withoutScripts(bench) {
    const page = await open(bench, { javaScriptEnabled: false });
    await bench.rows(page, [
        ['without scripts it says so', 'header', /scripts/],
        ['and shows nothing that needs them', 'main', false],
    ]);
}

/* Whatever pieces say, they are text. */
async function hostile(bench) {
    rewrite('evil', (data) => {
        const guesses = ({ top, layers }) => [...top, ...layers.flatMap((y) => y.lens)];
        for (const list of [data.tokens, data.positions.flatMap(guesses)])
            list.forEach((of, i) => (of.piece = EVIL[i % EVIL.length]));
        data.tokens.forEach((t) => (t.why = EVIL.join(' ')));
    });
    for (const file of ['evil', 'hostile']) {
        const page = await open(bench, {}, file);
        await page.click('#text .t >> nth=3');
        await harmless(bench, page, file, 'main :is(img, script, b[onclick])', 'main');
    }
}

(async () => {
    const bench = await Bench.open();
    const lanes = [[numbersOf], [keys, hostile, policies, withoutScripts], [looks]].map(
        async (lane) => {
            for (const part of lane) await bench.part(part);
        }
    );
    await Promise.all(lanes);
    await bench.close();
})();
