/* timeline.js - what happened when: steps of the small model, calls to the cloud, guesses that were
 * discarded. Times are milliseconds since the text began; an event happened at its `ms` and took
 * `took_ms` before that. */
'use strict';

const LANE = 26,
    LANES_OF_CALLS = 4,
    TICKS = 8;

/* Sum the lengths of the union of intervals [begin, end], which are sorted here. */
function union(list) {
    const out = [];
    for (const [a, b] of list.filter(([x, y]) => y > x).sort((x, y) => x[0] - y[0])) {
        const last = out[out.length - 1];
        if (last && a <= last[1]) last[1] = Math.max(last[1], b);
        else out.push([a, b]);
    }
    return out;
}

const total = (list) => list.reduce((sum, [a, b]) => sum + b - a, 0);

function intersection(a, b) {
    const out = [];
    for (let i = 0, k = 0; i < a.length && k < b.length;) {
        const begin = Math.max(a[i][0], b[k][0]),
            end = Math.min(a[i][1], b[k][1]);
        if (end > begin) out.push([begin, end]);
        if (a[i][1] < b[k][1]) i++;
        else k++;
    }
    return out;
}

/* Sort the events of a run into steps, calls and guesses that were discarded, up to a time. */
function lanesOf(run, until = Infinity) {
    const steps = [],
        standing = [],
        calls = [],
        undone = [],
        open = new Map();
    for (const e of run.events) {
        const begin = e.ms - (e.took_ms || 0);
        if (begin > until) continue;
        if (e.kind === 'evaluated') {
            const step = { begin, end: Math.min(e.ms, until), at: e.at };
            steps.push(step);
            standing.push(step);
        } else if (e.kind === 'asked') {
            const call = { begin: e.ms, end: null, at: e.at };
            open.set(e.at, call);
            calls.push(call);
        } else if (e.kind === 'answered') {
            const call = open.get(e.at);
            if (call && e.ms <= until) {
                call.end = e.ms;
                call.failed = e.reason || null;
                open.delete(e.at);
            }
        } else if (e.kind === 'rolled-back' && e.ms <= until) {
            undone.push({ ms: e.ms, begin: rollBack(standing, e.at, e.ms), n: e.n || 1 });
        }
    }
    if (!run.events.length)
        run.tokens
            .slice(run.first)
            .filter((t) => t.call && !t.call.memo && t.ms <= until)
            .forEach((t) =>
                calls.push({ begin: t.ms - t.call.ms, end: t.ms, at: t.pos, failed: t.fault })
            );
    let last = 0;
    for (const x of [...steps, ...calls]) last = Math.max(last, x.end || x.begin);
    for (const t of run.tokens.slice(run.first)) last = Math.max(last, t.ms || 0);
    const end = Math.min(until, last);
    calls.forEach((c) => {
        c.end ??= end;
    });
    return { steps, calls, undone, end };
}

/* Mark the steps of positions from `at` on, which did not stand, and return when they began. */
function rollBack(standing, at, ms) {
    let begin = ms;
    while (standing.length && standing[standing.length - 1].at >= at) {
        const step = standing.pop();
        step.undone = true;
        begin = step.begin;
    }
    return begin;
}

/* How long the calls took together, and how long the small model wrote on meanwhile. */
function hiddenLatency(lanes) {
    const calls = union(lanes.calls.map((c) => [c.begin, c.end]));
    const kept = union(lanes.steps.filter((s) => !s.undone).map((s) => [s.begin, s.end]));
    return { calls: total(calls), hidden: total(intersection(calls, kept)) };
}

const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;

function timelineWords(lanes) {
    const { calls, hidden } = hiddenLatency(lanes);
    const n = lanes.calls.length;
    const undone = lanes.undone.reduce((sum, u) => sum + u.n, 0);
    if (!lanes.end) return 'Nothing has been written yet.';
    const words = [
        `${plural(lanes.steps.length, 'step')} of the small model and ${plural(n, 'call')}`,
        `to the cloud in ${duration(lanes.end)}.`,
    ];
    if (n)
        words.push(
            `A call was in flight for ${duration(calls)}; ${duration(hidden)} of that was hidden,`,
            'because the small model wrote on meanwhile.'
        );
    words.push(
        undone
            ? `${plural(undone, 'token')} guessed ahead ${undone === 1 ? 'was' : 'were'} discarded.`
            : 'No guess was discarded.'
    );
    return words.join(' ');
}

class Timeline {
    /* choose(ms): somebody pointed at this time. */
    constructor(panel, choose) {
        this.scroll = panel.querySelector('.scroll');
        this.room = panel.querySelector('.room');
        this.canvas = panel.querySelector('canvas');
        this.words = panel.querySelector('.words');
        this.run = null;
        this.zoom = 1;
        this.until = Infinity;
        this.draw = this.draw.bind(this);
        this.soon = nowAndThen(this.draw, 200);
        this.scroll.addEventListener('scroll', () => beforeFrame(this.draw));
        new ResizeObserver(() => this.news(true)).observe(this.scroll);
        for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)'])
            matchMedia(query).addEventListener('change', () => this.news(true));
        this.canvas.addEventListener('click', (e) => choose(this.timeAt(e.offsetX)));
        panel.querySelectorAll('[data-zoom]').forEach((b) =>
            b.addEventListener('click', () => {
                this.zoom = Math.min(64, Math.max(1, this.zoom * Number(b.dataset.zoom)));
                this.news(true);
            })
        );
    }

    show(run) {
        this.run = run;
        this.zoom = 1;
        this.until = Infinity;
        this.news(true);
    }

    /* Draw before the next frame, or at most five times a second. */
    news(now) {
        if (now) beforeFrame(this.draw);
        else this.soon();
    }

    timeAt(x) {
        return (this.scroll.scrollLeft + x) / this.scale;
    }

    draw() {
        if (!this.run) return;
        const lanes = lanesOf(this.run, this.until),
            rows = placeCalls(lanes.calls);
        const width = this.scroll.clientWidth,
            height = 34 + LANE * (2 + rows),
            ratio = devicePixelRatio || 1;
        this.room.style.width = `${width * this.zoom}px`;
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${height}px`;
        this.canvas.width = width * ratio;
        this.canvas.height = height * ratio;
        this.scale = (width * this.zoom) / Math.max(1, lanes.end);
        const g = this.canvas.getContext('2d');
        g.scale(ratio, ratio);
        this.paint(g, lanes, width, height, rows);
        const words = timelineWords(lanes);
        this.words.textContent = words;
        this.canvas.setAttribute('aria-label', `Timeline. ${words}`);
    }

    paint(g, lanes, width, height, rows) {
        const css = getComputedStyle(this.canvas),
            colour = (name) => css.getPropertyValue(name).trim();
        const from = this.scroll.scrollLeft,
            x = (ms) => ms * this.scale - from,
            covered = new Map();
        const bar = (a, b, y, fill) => {
            const left = x(a),
                right = Math.max(left + 1.5, x(b)),
                key = fill + y;
            /* Thousands of steps may share a pixel. */
            if (left > width || right < 0 || right < (covered.get(key) ?? -1) + 0.7) return;
            covered.set(key, right);
            g.fillStyle = fill;
            g.fillRect(left, y, right - left, LANE - 10);
        };
        const edge = colour('--edge'),
            cloud = colour('--cloud'),
            lost = hatch(g, colour('--edge'));
        this.axis(g, x, lanes.end, width, height, colour('--soft'), colour('--line'));
        for (const s of lanes.steps) bar(s.begin, s.end, 4, s.undone ? lost : edge);
        for (const u of lanes.undone) bar(u.begin, u.ms, 4 + LANE, lost);
        for (const c of lanes.calls.filter((call) => !call.failed))
            bar(c.begin, c.end, 4 + LANE * (2 + c.row), cloud);
        for (const c of lanes.calls.filter((call) => call.failed)) {
            const y = 4 + LANE * (2 + c.row),
                left = x(c.begin);
            g.strokeStyle = g.fillStyle = colour('--fall');
            g.lineWidth = 2;
            g.strokeRect(left + 1, y + 1, Math.max(1, x(c.end) - left - 2), LANE - 12);
            g.fillText('!', left + 5, y + 12);
        }
        if (this.at !== undefined) {
            g.fillStyle = colour('--ink');
            g.fillRect(x(this.at) - 1, 0, 2, 4 + LANE * (2 + rows));
        }
    }

    axis(g, x, end, width, height, ink, line) {
        const step = niceStep(end / this.zoom / Math.max(2, Math.min(TICKS, width / 90)));
        g.font = `12px ${getComputedStyle(this.canvas).fontFamily}`;
        for (
            let i = Math.max(0, Math.floor(this.timeAt(0) / step));
            i * step <= end && x(i * step) < width;
            i++
        ) {
            const at = Math.round(x(i * step)),
                text =
                    i * step < 1000 && step < 1000 && end < 1000
                        ? `${+(i * step).toPrecision(6)} ms`
                        : `${+((i * step) / 1000).toPrecision(6)} s`;
            g.fillStyle = line;
            g.fillRect(at, 0, 1, height - 20);
            g.fillStyle = ink;
            if (at + g.measureText(text).width < width) g.fillText(text, at + 2, height - 6);
        }
    }
}

/* Give calls that overlap rows of their own; return how many there are. */
function placeCalls(calls) {
    const ends = [];
    for (const c of calls) {
        let row = ends.findIndex((end) => end <= c.begin);
        if (row < 0) row = Math.min(ends.length, LANES_OF_CALLS - 1);
        c.row = row;
        ends[row] = Math.max(c.end, ends[row] || 0);
    }
    return Math.max(1, ends.length);
}

/* 1, 2 or 5 times a power of ten. */
function niceStep(x) {
    const ten = 10 ** Math.floor(Math.log10(Math.max(x, 0.1)));
    return ten * [1, 2, 5, 10].find((k) => k * ten >= x);
}

const hatches = new Map();

/* Stripes, so that colour is not the only mark. */
function hatch(g, colour) {
    if (!hatches.has(colour)) {
        const tile = document.createElement('canvas'),
            t = tile.getContext('2d');
        tile.width = tile.height = 6;
        t.strokeStyle = colour;
        t.lineWidth = 1;
        for (const d of [-6, 0, 6]) {
            t.moveTo(d - 1, 7);
            t.lineTo(d + 7, -1);
        }
        t.stroke();
        hatches.set(colour, g.createPattern(tile, 'repeat'));
    }
    return hatches.get(colour);
}
