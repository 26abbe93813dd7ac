/* page.js - which position, layer and head are chosen; the list of tokens; the keys. What is chosen
 * is in the URL's hash, as p, l and h, so that a view can be kept or sent. */
'use strict';

const $ = (id) => document.getElementById(id);
const chosen = { p: 0, l: 0, h: 0 };
const items = []; /* of the list, one for each token */

const WRITERS = {
    prompt: 'given in the prompt',
    edge: 'written by the small model',
    cloud: 'written by the cloud',
    fallback: 'written by the small model, as the cloud failed or a limit held',
};

let doc; /* what --json prints, once it is unpacked */
const MOST = {}; /* the limits of p, l and h */

/* The document as an object: in the page it is compressed and in base64. */
function unpacked() {
    const bytes = Uint8Array.from(atob($('data').textContent), (c) => c.charCodeAt(0)),
        stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Response(stream).json();
}

function sayToken(e, token) {
    e.append(chip(token.piece), ` (position ${token.pos}, id ${token.id})`);
}

/* What the chosen token is, and which one followed. */
function drawToken() {
    const token = doc.tokens[chosen.p],
        next = doc.tokens[chosen.p + 1],
        who = emptied('who'),
        then = emptied('then');
    sayToken(who, token);
    who.append(`, ${WRITERS[token.source]}.`);
    if (chosen.p === doc.telling.pos) who.append(` It is shown first: ${doc.telling.why}.`);
    if (chosen.p >= doc.positions.length) {
        then.append('It is the last one, and no pass has read it: there is nothing to see inside.');
    } else if (next) {
        then.append('Then comes ');
        sayToken(then, next);
        then.append(`, ${WRITERS[next.source]}: ${spoken(next.why)}.`);
    } else {
        then.append('Nothing was written after it.');
    }
}

function draw() {
    const inside = chosen.p < doc.positions.length;
    items.forEach((item, i) => {
        item.setAttribute('aria-selected', i === chosen.p);
        item.tabIndex = i === chosen.p ? 0 : -1;
    });
    for (const [box, n] of [
        ['layers', chosen.l],
        ['heads', chosen.h],
    ])
        $(box).querySelectorAll('input')[n].checked = true;
    $('before').disabled = chosen.p === 0;
    $('after').disabled = chosen.p === MOST.p;
    for (const part of document.querySelectorAll('#chosen > :not(:first-child)'))
        part.hidden = !inside;
    drawToken();
    if (inside) {
        drawTop();
        drawRouter();
        drawLadder();
        drawLens();
        drawAttention();
        drawTime();
    }
}

/* Choose something and draw it; what is out of range becomes the nearest that is not. */
function choose(change) {
    for (const [name, most] of Object.entries(MOST))
        if (Number.isInteger(change[name]))
            chosen[name] = Math.min(Math.max(change[name], 0), most);
    location.replace(`#p=${chosen.p}&l=${chosen.l}&h=${chosen.h}`);
    draw();
}

function fromHash() {
    const values = new URLSearchParams(location.hash.slice(1)),
        change = {};
    for (const name of Object.keys(MOST))
        if (/^\d{1,7}$/.test(values.get(name) || '')) change[name] = Number(values.get(name));
    return change;
}

/* Where a key leads in a row of tokens, or undefined. */
function moved(key) {
    return {
        ArrowLeft: chosen.p - 1,
        ArrowRight: chosen.p + 1,
        ArrowUp: lineAway(-1),
        ArrowDown: lineAway(1),
        Home: 0,
        End: MOST.p,
    }[key];
}

/* The token above or below the chosen one. */
function lineAway(step) {
    const from = items[chosen.p].getBoundingClientRect(),
        middle = (from.left + from.right) / 2;
    for (let i = chosen.p + step; i >= 0 && i < items.length; i += step) {
        const at = items[i].getBoundingClientRect(),
            other = step > 0 ? at.top > from.top + 4 : at.top < from.top - 4;
        if (other && (step > 0 ? at.right >= middle : at.left <= middle)) return i;
    }
    return chosen.p;
}

function listen() {
    const list = $('text');
    list.addEventListener('keydown', (e) => {
        const to = e.ctrlKey || e.altKey || e.metaKey ? undefined : moved(e.key);
        if (to === undefined) return;
        e.preventDefault();
        choose({ p: to });
        items[chosen.p].focus();
    });
    items.forEach((item, i) =>
        item.addEventListener('click', () => {
            choose({ p: i });
            item.focus();
        })
    );
    $('before').addEventListener('click', () => choose({ p: chosen.p - 1 }));
    $('after').addEventListener('click', () => choose({ p: chosen.p + 1 }));
    addEventListener('hashchange', () => {
        const change = fromHash();
        if (Object.entries(change).some(([name, v]) => chosen[name] !== v)) choose(change);
    });
    listenLens();
    listenAttention();
}

/* One radio button for each layer or head. */
function choices(box, name, count) {
    for (let i = 0; i < count; i++) {
        const label = make('label'),
            input = make('input');
        input.type = 'radio';
        input.name = box;
        input.addEventListener('change', () => choose({ [name]: i }));
        label.append(input, make('span', '', String(i)));
        $(box).append(label);
    }
}

function start(found) {
    doc = found;
    MOST.p = doc.tokens.length - 1;
    MOST.l = doc.model.layers - 1;
    MOST.h = doc.model.heads - 1;
    document.body.classList.add('on');
    drawFacts();
    drawTimes();
    drawRows();
    const list = $('text');
    list.setAttribute('role', 'listbox');
    list.setAttribute('aria-label', 'Tokens of the text');
    list.setAttribute('aria-orientation', 'horizontal');
    doc.tokens.forEach((token, i) => {
        const item = make('li', `t ${token.source}`);
        item.append(fill(make('span'), token.piece, false));
        item.setAttribute('role', 'option');
        item.setAttribute('aria-label', `${plain(token.piece)}, ${i}, ${WRITERS[token.source]}`);
        items.push(item);
    });
    list.append(...items);
    choices('layers', 'l', doc.model.layers);
    choices('heads', 'h', doc.model.heads);
    listen();
    choose({
        p: doc.telling.pos,
        l: doc.whole.layers[1],
        h: doc.whole.heads[0],
        ...fromHash(),
    });
}

unpacked().then(start);
