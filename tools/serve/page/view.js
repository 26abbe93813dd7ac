/* view.js - which text is looked at, and what is told about it beside its tokens. */
'use strict';

const host = {
    get active() {
        return active;
    },
    choose(view, i, pinned, enter) {
        if (pinned && active !== view) activate(view);
        details.show(view, i, pinned, enter);
        if (view === active) {
            timeline.at = view.run.tokens[i].ms;
            timeline.news(true);
        }
    },
    leave() {
        details.leave();
        timeline.at =
            details.pin?.view === active ? active.run.tokens[details.pin.i].ms : undefined;
        timeline.news(true);
    },
    news(view) {
        view.news();
        if (view === active) timeline.news();
    },
    drawn(view) {
        const turn = turns.find((t) => t.views.includes(view));
        if (!turn) return;
        changed.add(view);
        survey();
        if (view.spans.length !== view.followed) follow(view);
        view.followed = view.spans.length;
        if (view === active) timeline.news();
    },
};

/* Keep the end of the active text in sight, and the ends of those beside it. */
function follow(view) {
    if (!following || !active) return;
    if (view === active || view.root.offsetTop === active.root.offsetTop)
        view.fail.scrollIntoView({ block: 'nearest' });
}

/* What is told about the whole text follows a little later than its tokens. */
const changed = new Set();
const survey = nowAndThen(() => {
    changed.forEach(note);
    turns.filter((t) => t.views.some((v) => changed.has(v))).forEach(compare);
    changed.forEach(follow);
    changed.clear();
    if (active) figures(active);
    threshold();
    banner();
}, 120);

/* Show the token that was written at a time. */
function chooseTime(ms) {
    const { tokens, first } = active.run;
    let best = first;
    tokens.forEach((t, i) => {
        if (i >= first && Math.abs(t.ms - ms) < Math.abs(tokens[best].ms - ms)) best = i;
    });
    if (!active.spans[best]) return;
    active.point(best);
    active.spans[best].scrollIntoView({ block: 'nearest' });
    host.choose(active, best, true);
}

function activate(view) {
    active = view;
    timeline.at = undefined;
    timeline.show(view.run);
    figures(view);
    threshold();
    preview();
}

const ENDS = { length: 'at the limit of tokens', stop: 'complete' };

function note(view) {
    const { run } = view,
        f = run.figures(Math.min(run.tokens.length, view.upTo)),
        words = [];
    /* A text of one author needs no mark on every token. */
    const all = run.tokens.every((t) => /cloud|memo/.test(t.kind)),
        one = all && (run.model === 'cloud' || !run.writing);
    view.root.classList.toggle('one', one);
    if (f.n) words.push(`${f.n} token${f.n === 1 ? '' : 's'}`);
    if (f.n && one) words.push('all by the cloud');
    else if (f.n && run.model === 'routed') words.push(`${percent(f.share)} cloud`);
    if (run.seed !== null && run.body.temperature > 0) words.push(`seed ${run.seed}`);
    words.push(
        run.writing
            ? `${run.doing} …`
            : run.state === 'stopped'
              ? 'stopped'
              : run.error
                ? 'failed'
                : ENDS[run.finish] || ''
    );
    view.note.textContent = words.filter((w) => w).join(' · ');
}

/* Mark where the columns beside the routed text leave it. */
function compare(turn) {
    const routed = turn.views.find((v) => v.run.model === 'routed');
    for (const view of routed ? turn.views.filter((v) => v !== routed) : []) {
        const i = firstDifference(view.run, routed.run),
            word = (r) =>
                r.tokens[i]
                    ? `“${spoken(r.tokens[i].text).trim() || visible(r.tokens[i])}”`
                    : 'the end';
        const shown =
            i >= 0 && (view.spans.length > i || view.spans.length === view.run.tokens.length);
        view.differ(shown ? i : -1);
        view.diff.textContent = shown
            ? `≠ First difference from the routed text: token ${i + 1}, ${word(view.run)} instead ` +
              `of ${word(routed.run)}.`
            : view.run.state === 'done' &&
                routed.run.state === 'done' &&
                view.spans.length === view.run.tokens.length
              ? '= The same text as the routed one.'
              : '';
    }
}

const speed = (x) =>
    x === null ? '–' : x < 10 ? x.toFixed(1) : Math.round(x).toLocaleString('en');

function figures(view) {
    const f = view.run.figures(Math.min(view.run.tokens.length, view.upTo)),
        n = f.n;
    const here = f.calls && !f.up;
    const moved = here ? 'no bytes' : `${bytes(f.up)}, ${bytes(f.down)}`;
    facts(document.querySelector('#numbers dl'), [
        ['Tokens per second', speed(f.speed)],
        ['First token after', duration(f.ttft)],
        ['From the cloud', n ? `${f.cloud + f.memo} of ${n} (${percent(f.share)})` : '–'],
        ['Calls', String(f.calls)],
        ['Sent, received', moved],
    ]);
    document.querySelectorAll('[data-count]').forEach((e) => {
        e.textContent = n ? f[e.dataset.count] : '';
    });
    const whose = `${view.title.toLowerCase()}, text ${view.number}`;
    $('numbers-name').textContent = `In numbers: ${whose}`;
    $('whose').textContent = `Counted: ${whose}`;
    $('whose').hidden = views().length < 2;
}

const limitNow = () => wanted ?? active?.run.limit ?? serverLimit;

function threshold() {
    const at = limitNow(),
        { all, n } = active ? active.run.below(at) : { all: 0, n: 0 };
    $('threshold').value = at;
    $('threshold-is').textContent = decimal(at);
    $('below').textContent = all
        ? `Of these ${all} scores, ${n} ${n === 1 ? 'is' : 'are'} below ${decimal(at)}` +
          (n ? ` (${percent(n / all)}).` : '.') +
          ' This is only an estimate (open loop): each token that changes would change those ' +
          'after it, and their scores.'
        : 'There are no scores yet.';
    histogram(at);
}

/* How many tokens have which score; those below the threshold stand in the cloud's colour. */
function histogram(at) {
    const canvas = $('scores'),
        width = scoresWidth,
        height = 44,
        bins = new Array(40).fill(0);
    (active ? active.run.tokens : []).forEach((t) => {
        if (typeof t.score === 'number') bins[Math.min(39, Math.floor(t.score * 40))]++;
    });
    const css = getComputedStyle(canvas),
        ratio = devicePixelRatio || 1,
        g = canvas.getContext('2d');
    const most = Math.sqrt(Math.max(1, ...bins)),
        room = 18,
        w = (width - room) / 40;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    g.scale(ratio, ratio);
    bins.forEach((n, i) => {
        const h = (Math.sqrt(n) / most) * (height - 2);
        g.fillStyle = css.getPropertyValue(i / 40 < at ? '--cloud' : '--edge');
        g.fillRect(room / 2 + i * w, height - h, Math.max(1, w - 1), h);
    });
    g.fillStyle = css.getPropertyValue('--ink');
    g.fillRect(room / 2 + at * (width - room) - 1, 0, 2, height);
}

function preview() {
    const turn = turns[turns.length - 1];
    turn?.views.forEach((v) => v.dress(v.run.model === 'routed' ? wanted : null));
}
