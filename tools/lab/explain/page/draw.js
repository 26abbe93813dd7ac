/* draw.js - draws what belongs to the chosen position: guesses, router, layers, lens and time. */
'use strict';

const LENS_MOST = 64; /* columns of the lens: the page stays quick whatever the text's length */

const percent = (p, digits = 1) => (p === null ? '?' : (100 * p).toFixed(digits));
const number = (v, digits = 4) => (v === null ? '?' : Number(v.toPrecision(digits)).toString());

/* A time in ns with a unit that suits it. */
function time(ns) {
    if (ns >= 1e9) return `${number(ns / 1e9, 3)} s`;
    return ns >= 1e6 ? `${number(ns / 1e6, 3)} ms` : `${number(ns / 1e3, 3)} µs`;
}

function emptied(id) {
    const e = $(id);
    e.textContent = '';
    return e;
}

/* The text of a token in one line, with the spaces at its ends visible. */
function plain(text) {
    return text === ''
        ? '(no text)'
        : spoken(text).replace(/^ +| +$/g, (s) => '␣'.repeat(s.length));
}

/* Show a token in e; spaces at its ends become visible on demand. */
function fill(e, text, gaps = true) {
    e.textContent = '';
    if (text === '') e.append(make('span', 'ctl', 'no text'));
    pieces(text).forEach(([kind, s]) => {
        if (kind === 'nl') return e.append(make('span', 'gap', '↵'));
        if (kind === 'ctl') return e.append(make('span', 'ctl', s));
        const [, before, word, after] = /^( *)([^]*?)( *)$/.exec(s);
        if (!gaps) return e.append(s);
        if (before) e.append(make('span', 'gap', '␣'.repeat(before.length)));
        e.append(word);
        if (after) e.append(make('span', 'gap', '␣'.repeat(after.length)));
    });
    return e;
}

const chip = (text) => fill(make('bdi'), text);

function bar(className, share) {
    const e = make('span', `bar ${className}`);
    e.style.width = `${100 * Math.min(Math.max(share || 0, 0), 1)}%`;
    return e;
}

/* Append a row; a cell is text, a node, or a list of nodes. The first one names the row. */
function row(table, cells, className = '') {
    const tr = make('tr', className);
    cells.forEach((content, i) => {
        const cell = make(i ? 'td' : 'th');
        if (!i) cell.scope = 'row';
        cell.append(...(Array.isArray(content) ? content : [content]));
        tr.append(cell);
    });
    table.append(tr);
    return tr;
}

/* Make a table with names of columns; a name after '>' is that of numbers. */
function tableOf(className, names) {
    const table = make('table', className),
        tr = make('tr');
    names.forEach((name) => {
        const th = make('th', name[0] === '>' ? 'n' : '', name.replace('>', ''));
        th.scope = 'col';
        tr.append(th);
    });
    table.append(make('thead'));
    table.firstChild.append(tr);
    return table;
}

function drawTop() {
    const table = tableOf('wide', ['Token', '>Probability %', 'As a bar']),
        next = doc.tokens[chosen.p + 1];
    doc.positions[chosen.p].top.forEach(({ id, piece, p }) => {
        const tr = row(
            table,
            [chip(piece), percent(p, 3), bar('stream', p)],
            next && next.id === id ? 'now' : ''
        );
        tr.children[1].className = 'n';
        tr.lastChild.className = 'track';
    });
    const note = make('p', 'note'),
        known = next && doc.positions[chosen.p].top.some(({ id }) => id === next.id);
    note.textContent = !next
        ? ''
        : known
          ? 'The marked one is what comes next in the text.'
          : 'What comes next in the text is none of these five.';
    emptied('top').append(table, note);
}

/* The score on a scale from 0 to 1, with the threshold. */
function scoreMeter(score, threshold) {
    const meter = make('div', 'meter'),
        mark = make('i'),
        label = make('span', '', `threshold ${number(threshold)}`),
        at = Math.min(Math.max(threshold, 0), 1);
    meter.setAttribute('role', 'img');
    meter.setAttribute('aria-label', `score ${number(score)}, threshold ${number(threshold)}`);
    mark.style.left = `${100 * at}%`;
    label.style[at > 0.6 ? 'right' : 'left'] = `${100 * (at > 0.6 ? 1 - at : at)}%`;
    meter.append(bar('stream', score), mark, label);
    return meter;
}

/* Two cells with the line of zero between them. */
function signedPair(left, right) {
    const pair = make('div', 'signed');
    pair.append(make('div'), make('div'));
    pair.firstChild.append(left);
    pair.lastChild.append(right);
    return pair;
}

/* What adds to the sum under the sigmoid, and the threshold, drawn to both sides of zero: a negative share speaks for
 * the cloud, a positive one for the small model's token. */
function unitTable(router) {
    const table = tableOf('wide', ['Hidden unit', '>Adds', '']),
        limit = Math.log((1 - router.threshold) / router.threshold),
        rows = [
            ...router.units.map((u) => [`unit ${u.unit}`, u.adds]),
            ['all others', router.others],
            ['bias', router.bias],
            ...(router.decided ? [['threshold', limit]] : []),
        ].sort(([, a], [, b]) => Math.abs(b) - Math.abs(a)),
        most = Math.max(Math.abs(rows[0][1]), 1e-9),
        sum = router.others + router.bias + router.units.reduce((s, u) => s + u.adds, 0);
    table
        .querySelector('th:last-child')
        .append(signedPair('For the cloud', 'for the small model'));
    rows.forEach(([name, v]) => {
        const signed = signedPair(
                v < 0 ? bar('mlp', -v / most) : '',
                v > 0 ? bar('attention', v / most) : ''
            ),
            tr = row(table, [name, (v > 0 ? '+' : '') + v.toFixed(3), signed]);
        tr.children[1].className = 'n';
        tr.lastChild.className = 'track';
    });
    return [
        make('p', '', router.decided || ''),
        table,
        make(
            'p',
            'note',
            doc.routing.sums
                ? `Together that is ${sum.toFixed(3)}: ${doc.routing.sums}. Below 0 speaks for the cloud.`
                : `The sum is ${sum.toFixed(3)}, and the router’s output, sigmoid(sum), ` +
                  (1 / (1 + Math.exp(-sum))).toFixed(4) +
                  (router.decided
                      ? '. The threshold is drawn as what it adds: below 0 in all is for the cloud.'
                      : '.')
        ),
    ];
}

function drawRouter() {
    const router = doc.positions[chosen.p].router,
        { policy, scorer } = doc.routing,
        { threshold } = router,
        box = emptied('router'),
        says = make('p');
    box.append(says);
    $('router-say').hidden = router.score === null;
    if (router.score === null) {
        says.textContent = `No score: the policy is “${policy}”.`;
        return;
    }
    const verdict =
        router.verdict === 'cloud' ? 'ask the cloud' : 'the small model’s token may stand';
    says.append(
        `${scorer} scores `,
        make('strong', '', router.score.toFixed(4)),
        `, the threshold is ${threshold.toFixed(4)}: `,
        make('strong', '', verdict),
        '.'
    );
    if (chosen.p < doc.prompt_tokens - 1)
        says.append(' The router was not asked here, because the next token was given.');
    box.append(scoreMeter(router.score, threshold));
    if (router.bias !== null) box.append(...unitTable(router));
}

/* By how many degrees adding turns a vector: its length before, what is added, its length after. */
function turned(before, added, after) {
    const cosine = (before ** 2 + after ** 2 - added ** 2) / (2 * before * after);
    return Number.isFinite(cosine)
        ? `${Math.round((Math.acos(Math.min(Math.max(cosine, -1), 1)) * 180) / Math.PI)}°`
        : '?';
}

function guesses(lens) {
    return lens.map(({ piece, p }) => {
        const e = make('span', 'guess');
        e.append(make('b', '', `${percent(p)} %`), ' ', chip(piece));
        return e;
    });
}

function drawLadder() {
    const { layers } = doc.positions[chosen.p],
        most = Math.max(...layers.flatMap((y) => [y.in, y.attention, y.middle, y.mlp, y.out])),
        table = tableOf('ladder wide', [
            'Layer',
            'Step',
            '>Length',
            'As a bar',
            'Turns it by',
        ]);
    layers.forEach((y, l) => {
        const body = make('tbody'),
            steps = [
                [l ? 'in' : 'in: the token itself', y.in, 'stream', ''],
                ['+ attention', y.attention, 'attention', turned(y.in, y.attention, y.middle)],
                ['= between', y.middle, 'stream', ''],
                ['+ MLP', y.mlp, 'mlp', turned(y.middle, y.mlp, y.out)],
                ['= out', y.out, 'stream', ''],
            ].slice(l ? 1 : 0);
        steps.forEach(([name, v, kind, turn], i) => {
            const tr = row(body, [i ? '' : String(l), name, number(v), bar(kind, v / most), turn]);
            tr.children[2].className = 'n';
            tr.children[3].className = 'track';
            if (i) tr.firstChild.remove();
            else tr.firstChild.rowSpan = steps.length + 1;
        });
        const tr = row(body, ['', 'would write', guesses(y.lens)], 'lenses');
        tr.firstChild.remove();
        tr.lastChild.colSpan = 3;
        table.append(body);
    });
    emptied('ladder').append(table);
}

/* The part [from, to] of n positions that is shown around the chosen one. */
function windowAround(p, n, most) {
    const from = n <= most ? 0 : Math.min(Math.max(p - (most >> 1), 0), n - most);
    return [from, Math.min(from + most, n) - 1];
}

function lensCell(p, l) {
    const best = doc.positions[p].layers[l].lens[0],
        td = make('td'),
        cell = make('div', 'cell');
    cell.style.setProperty('--a', (best.p || 0).toFixed(3));
    cell.append(fill(make('span', 'p'), best.piece), make('small', '', percent(best.p, 0)));
    td.dataset.p = p;
    td.append(cell);
    return td;
}

/* A row for each layer, a column for each position, and at the end the text itself. */
function lensTable(from, to) {
    const table = tableOf('lens', ['Layer']),
        body = make('tbody');
    for (let p = from; p <= to; p++) {
        const th = make('th', '', String(p));
        th.scope = 'col';
        th.dataset.p = p;
        th.append(fill(make('span', 'p'), doc.tokens[p].piece));
        table.querySelector('tr').append(th);
    }
    for (let l = 0; l < doc.model.layers; l++) {
        const tr = row(body, [String(l)]);
        for (let p = from; p <= to; p++) tr.append(lensCell(p, l));
    }
    const tr = row(body, ['Text']);
    for (let p = from; p <= to; p++) {
        const td = make('td');
        td.dataset.p = p;
        if (doc.tokens[p + 1]) td.append(fill(make('span', 'p'), doc.tokens[p + 1].piece));
        tr.append(td);
    }
    table.append(body);
    return table;
}

function drawLens() {
    const box = $('lens'),
        [from, to] = windowAround(chosen.p, doc.positions.length, LENS_MOST);
    if (box.dataset.from !== String(from)) {
        emptied('lens').append(lensTable(from, to));
        box.dataset.from = from;
    }
    box.querySelectorAll('[data-p]').forEach((e) => {
        const away = Math.abs(e.dataset.p - chosen.p);
        e.classList.toggle('here', away === 0);
        e.classList.toggle('far', e.dataset.p - chosen.p > 2 || chosen.p - e.dataset.p > 5);
    });
    const here = box.querySelector('th.here');
    box.scrollLeft = here.offsetLeft - (box.clientWidth - here.offsetWidth) / 2;
}

function listenLens() {
    $('lens').addEventListener('click', (e) => {
        const cell = e.target.closest('[data-p]');
        if (cell) choose({ p: Number(cell.dataset.p) });
    });
    $('lens').addEventListener('keydown', (e) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
        if (!step) return;
        e.preventDefault();
        choose({ p: Math.min(chosen.p + step, doc.positions.length - 1) });
    });
}

/* The sum of parts, [name, ns, pattern]. */
const total = (parts) => parts.reduce((sum, [, ns]) => sum + ns, 0);

/* A bar of parts, to a scale of `whole` ns, beside memory's limit. */
function timeBar(title, parts, whole, limit) {
    const box = make('div', 'lines'),
        stack = make('div', 'stack'),
        line = make('div', 'limit'),
        sum = total(parts);
    parts.forEach(([name, ns, pattern]) => {
        const part = make('span', pattern);
        part.title = `${name}: ${time(ns)}`;
        part.style.width = `${(100 * ns) / sum}%`;
        if (ns / whole > 0.09) part.append(make('b', '', name));
        if (ns > 0) stack.append(part);
    });
    stack.style.width = `${(100 * sum) / whole}%`;
    stack.setAttribute('role', 'img');
    stack.setAttribute('aria-label', parts.map(([name, ns]) => `${name} ${time(ns)}`).join(', '));
    line.style.left = `${(100 * limit) / whole}%`;
    line.classList.toggle('left', limit > whole / 2);
    line.append(make('span', '', `memory’s limit: ${time(limit)}`));
    box.append(stack, line);
    return [make('p', 'label', `${title}: ${time(sum)}`), box];
}

function partTable(parts) {
    const table = tableOf('', ['Part', '>Time', '>Share %', 'Key']),
        sum = total(parts);
    parts.forEach(([name, ns, pattern]) => {
        const tr = row(table, [
            name,
            time(ns),
            percent(ns / sum),
            make('span', `swatch ${pattern}`),
        ]);
        tr.children[1].className = tr.children[2].className = 'n';
    });
    return table;
}

/* What a written token took, in the parts that were measured. */
function tokenParts(token) {
    const parts = [
        ['small model', token.edge_ms * 1e6, 'f7'],
        ['router', token.router_ms * 1e6, 'f2'],
        ['waiting for the cloud', token.cloud_ms * 1e6, 'f9'],
    ];
    const rest = token.ms * 1e6 - total(parts);
    return [...parts, ['all else', Math.max(rest, 0), 'f8']].filter(([, ns]) => ns > 0);
}

function drawTime() {
    const pass = doc.passes.find(({ at, rows }) => chosen.p >= at && chosen.p < at + rows),
        token = doc.tokens[chosen.p + 1],
        memory = doc.machine.levels.at(-1),
        cache = doc.machine.levels.find((y) => y.name === doc.machine.weights_in),
        limit = doc.model.pass_bytes / memory.gb_s,
        box = emptied('time');
    if (!pass) return;
    const parts = Object.entries(pass.ns).map(([name, ns], i) => [name, ns, `f${i}`]),
        whole = 1.03 * Math.max(limit, total(parts));
    const many = pass.rows > 1 ? `, which read ${pass.rows} positions at once` : '';
    const tables = make('div', 'pair');
    box.append(...timeBar(`The pass of this position${many}`, parts, whole, limit));
    tables.append(partTable(parts));
    if (token && token.ms !== undefined) {
        const all = tokenParts(token),
            wide = 1.03 * Math.max(limit, total(all));
        box.append(...timeBar('All of the next token, since the one before', all, wide, limit));
        tables.append(partTable(all));
    }
    box.append(tables);
    box.append(
        make(
            'p',
            'note',
            `A pass reads ${number(doc.model.pass_bytes / 1e6)} MB of weights. Memory gives ` +
                `${number(memory.gb_s, 3)} GB/s; these weights lie in ${cache.name}, which gives ` +
                `${number(cache.gb_s, 3)} GB/s and needs ` +
                `${time(doc.model.pass_bytes / cache.gb_s)}.` +
                (doc.machine.doubtful ? ` All of it is doubtful: ${doc.machine.doubtful}.` : '')
        )
    );
}
