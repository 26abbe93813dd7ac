/* attention.js - where heads look, as arcs, as a matrix and in numbers. The weights of a row add up
 * to 1 with `rest`. Of the layers and heads in doc.whole, all weights of 0.1 % or more are there; of
 * the others, the three largest. */
'use strict';

const MATRIX_MOST = 128,
    ARC_LEAST = 0.005 /* what is drawn as an arc */,
    STEP = 22 /* from token to token */,
    ARC_HIGH = 130,
    LABEL_HIGH = 92;

const told = { p: 0, q: 0 }; /* the cell of the matrix that the readout says, and keys move from */

function svg(name, attributes, ...children) {
    const e = document.createElementNS('http://www.w3.org/2000/svg', name);
    Object.entries(attributes).forEach(([k, v]) => e.setAttribute(k, v));
    e.append(...children);
    return e;
}

const headOf = (p, l = chosen.l, h = chosen.h) => doc.positions[p].layers[l].heads[h];

const isWhole = (l, h) =>
    [l, h].every((n, i) => {
        const [from, to] = [doc.whole.layers, doc.whole.heads][i];
        return n >= from && n <= to;
    });

/* What is known of a head's weights: [position, weight]. */
const weights = (head) => head.weights.map((w, i) => [head.at[i], w || 0]);

/* The three positions that it looks at most. */
const most = (head) =>
    weights(head)
        .sort(([, a], [, b]) => b - a)
        .slice(0, 3);

const short = (text, n) => (text.length > n ? text.slice(0, n - 1) + '…' : text);

/* An arc from the chosen position to another; to itself, a ring above it. */
function arc(q, w, high) {
    const x = (i) => (i + 0.5) * STEP,
        from = x(chosen.p),
        to = x(q),
        width = Math.max(12 * w, 0.7);
    if (q === chosen.p)
        return svg('circle', { class: 'self', cx: to, cy: high - 4 - width / 2, r: 2 + width / 2 });
    const rx = Math.abs(from - to) / 2,
        ry = Math.min(rx, high - 12);
    return svg('path', {
        class: 'arc',
        d: `M${from} ${high}A${rx} ${ry} 0 0 0 ${to} ${high}`,
        'stroke-width': width.toFixed(2),
    });
}

/* A token below the arcs, written upwards, with its weight in percent above it. */
function arcLabel(q, w, high) {
    const x = (q + 0.5) * STEP,
        g = svg('g', { class: q === chosen.p ? 'chosen' : w < ARC_LEAST ? 'soft' : '' });
    if (w >= ARC_LEAST)
        g.append(
            svg(
                'text',
                { class: 'weight', x, y: high + 13, 'text-anchor': 'middle' },
                percent(w, 0)
            )
        );
    g.append(
        svg(
            'text',
            {
                transform: `translate(${x + 4} ${high + 20}) rotate(-90)`,
                'text-anchor': 'end',
            },
            short(plain(doc.tokens[q].piece), 11)
        )
    );
    return g;
}

function drawArcs(head) {
    const list = weights(head),
        all = new Map(list),
        last = doc.positions.length - 1,
        far = Math.max(0, ...list.filter(([, w]) => w >= ARC_LEAST).map(([q]) => chosen.p - q)),
        high = Math.min(ARC_HIGH, Math.max(40, (far * STEP) / 2 + 14)),
        picture = svg('svg', {
            width: (last + 1) * STEP,
            height: high + LABEL_HIGH + 20,
            role: 'img',
            viewBox: `0 0 ${(last + 1) * STEP} ${high + LABEL_HIGH + 20}`,
            'aria-label': most(head)
                .map(
                    ([q, w]) =>
                        `${percent(w)} % of position ${q}, ` + plain(doc.tokens[q].piece)
                )
                .join('; '),
        });
    picture.append(
        svg('rect', {
            class: 'rowmark',
            x: chosen.p * STEP,
            y: high,
            width: STEP,
            height: LABEL_HIGH + 20,
        })
    );
    list.filter(([, w]) => w >= ARC_LEAST).forEach(([q, w]) => picture.append(arc(q, w, high)));
    for (let q = 0; q <= last; q++) picture.append(arcLabel(q, all.get(q) || 0, high));
    const box = emptied('arcs');
    box.append(picture);
    box.scrollLeft = chosen.p * STEP - box.clientWidth * 0.7;
    $('arcs-scroll').hidden = box.scrollWidth <= box.clientWidth;
}

/* The size of the matrix: which positions, and how large a cell is. */
function frame() {
    const [from, to] = windowAround(chosen.p, doc.positions.length, MATRIX_MOST),
        n = to - from + 1;
    return { from, to, n, cell: Math.max(5, Math.min(18, Math.floor(440 / n))), edge: 24 };
}

/* All squares as one path: the area is the weight. */
function squares({ from, to, cell, edge }) {
    let d = '';
    for (let p = from; p <= to; p++)
        for (const [q, w] of weights(headOf(p))) {
            const side = cell * Math.sqrt(w),
                x = edge + (q - from + 0.5) * cell - side / 2,
                y = edge + (p - from + 0.5) * cell - side / 2;
            if (q >= from && w >= 0.001)
                d +=
                    `M${x.toFixed(1)} ${y.toFixed(1)}h${side.toFixed(1)}v${side.toFixed(1)}` +
                    `h${(-side).toFixed(1)}z`;
        }
    return svg('path', { class: 'squares', d });
}

function drawMatrix() {
    const f = frame(),
        { from, to, n, cell, edge } = f,
        size = edge + n * cell + 2,
        picture = svg('svg', {
            width: size,
            height: size,
            viewBox: `0 0 ${size} ${size}`,
            role: 'img',
            'aria-label': `Attention of layer ${chosen.l}, head ${chosen.h}`,
        });
    picture.append(
        svg('rect', {
            class: 'rowmark',
            x: edge,
            y: edge + (chosen.p - from) * cell,
            width: (chosen.p - from + 1) * cell,
            height: cell,
        })
    );
    picture.append(svg('path', { class: 'grid', d: `M${edge} ${edge}V${size - 2}H${size - 2}Z` }));
    const every = n > 60 ? 10 : 5;
    for (let p = Math.ceil(from / every) * every; p <= to; p += every) {
        const at = edge + (p - from + 0.5) * cell;
        picture.append(
            svg('text', { class: 'soft', x: edge - 4, y: at + 4, 'text-anchor': 'end' }, String(p)),
            svg('text', { class: 'soft', x: at, y: edge - 6, 'text-anchor': 'middle' }, String(p))
        );
    }
    picture.append(squares(f));
    emptied('matrix').append(picture);
}

/* Say in words what a cell of the matrix is. */
function readout(p, q) {
    const head = headOf(p),
        known = weights(head).find(([at]) => at === q),
        box = emptied('readout');
    Object.assign(told, { p, q });
    box.append(
        `Position ${p} `,
        chip(doc.tokens[p].piece),
        ` looks at ${q} `,
        chip(doc.tokens[q].piece),
        known
            ? `: ${percent(known[1], 2)} %`
            : isWhole(chosen.l, chosen.h)
              ? ': less than 0.1 %'
              : `: at most ${percent(head.rest, 2)} %, as only its three largest were kept`
    );
}

function drawLooks() {
    const table = tableOf('looks', ['Head', '1st', '2nd', '3rd', '>All others %']);
    for (let h = 0; h < doc.model.heads; h++) {
        const head = headOf(chosen.p, chosen.l, h),
            three = most(head),
            left = 1 - three.reduce((s, [, w]) => s + w, 0);
        const cells = [0, 1, 2].map((i) =>
            three[i]
                ? [
                      `${percent(three[i][1])} % `,
                      chip(doc.tokens[three[i][0]].piece),
                      make('span', 'gap', ` at ${three[i][0]}`),
                  ]
                : ''
        );
        const tr = row(
            table,
            [String(h), ...cells, percent(left)],
            h === chosen.h ? 'now' : ''
        );
        tr.lastChild.className = 'n';
    }
    emptied('looks').append(table);
}

/* Which heads look at doc.span, the part of the text that was asked for. */
function drawSpan() {
    const box = emptied('span');
    if (!doc.span) return;
    const table = tableOf('wide', ['Layer', 'Head', '>Share %', 'As a bar']),
        before = doc.span.at.filter((q) => q <= chosen.p).length,
        heads = doc.positions[chosen.p].layers.flatMap(({ heads }, l) =>
            heads.map(({ span }, h) => ({ span, l, h }))
        );
    heads
        .sort((a, b) => b.span - a.span)
        .slice(0, 8)
        .forEach(({ span, l, h }) => {
            const now = l === chosen.l && h === chosen.h,
                tr = row(
                    table,
                    [String(l), String(h), percent(span), bar('attention', span)],
                    now ? 'now' : ''
                );
            tr.children[2].className = 'n';
            tr.lastChild.className = 'track';
        });
    box.append(
        make('h3', '', `Which heads look at “${plain(doc.span.text)}”`),
        make(
            'p',
            'say',
            'Attention to its tokens, summed; a head that looks everywhere alike would have ' +
                `${percent(before / (chosen.p + 1))} %.`
        ),
        table
    );
}

/* Which of `name` have whole rows, in words. */
const kept = (name, [from, to]) =>
    from === to ? `${name} ${from}` : `${name}s ${from} to ${to}`;

function drawAttention() {
    const head = headOf(chosen.p),
        { layers, heads } = doc.whole;
    $('row-name').textContent =
        `Layer ${chosen.l}, head ${chosen.h}: what position ${chosen.p} ` +
        'looks at, in percent; the thicker the arc, the more';
    drawArcs(head);
    drawMatrix();
    drawLooks();
    drawSpan();
    readout(chosen.p, most(head)[0][0]);
    $('kept').textContent =
        `Whole rows were kept of ${kept('layer', layers)}, ${kept('head', heads)}; of the ` +
        'others, the three largest weights. --layers chooses. What is under 0.5 % ' +
        'has no arc.';
}

/* The cell of the matrix under the pointer, or null. */
function cellAt(e) {
    const box = $('matrix').firstChild.getBoundingClientRect(),
        { from, to, n, cell, edge } = frame(),
        scale = (edge + n * cell + 2) / box.width,
        p = from + Math.floor(((e.clientY - box.top) * scale - edge) / cell),
        q = from + Math.floor(((e.clientX - box.left) * scale - edge) / cell);
    return p >= from && p <= to && q >= from && q <= p ? [p, q] : null;
}

function listenAttention() {
    const box = $('matrix');
    box.addEventListener('pointermove', (e) => {
        const at = cellAt(e);
        if (at) readout(...at);
    });
    box.addEventListener('click', (e) => {
        const at = cellAt(e);
        if (!at) return;
        choose({ p: at[0] });
        readout(...at);
    });
    box.addEventListener('keydown', (e) => {
        const step = {
            ArrowUp: [-1, 0],
            ArrowDown: [1, 0],
            ArrowLeft: [0, -1],
            ArrowRight: [0, 1],
        }[e.key];
        if (!step) return;
        e.preventDefault();
        const p = Math.min(told.p + step[0], doc.positions.length - 1),
            q = told.q + step[1];
        if (p !== chosen.p) choose({ p });
        readout(chosen.p, Math.min(Math.max(q, 0), chosen.p));
    });
}
