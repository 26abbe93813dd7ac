/* text.js - the tokens of a run on the page. */
'use strict';

const SENTENCES = /^[^]*(?:[.!?…]["”’)\]]*\s|[。！？\n])/u;
const TOKENS_A_FRAME = 60,
    TOKENS_A_BLOCK = 60,
    TOKENS_A_LINE = 500;
const DRESSED_A_FRAME = 300; /* tokens whose look is changed */
const SENTENCE_MAX = 600; /* characters that a live region waits for the end of a sentence */

const dirty = new Set();
let framePending = false;

/* Call each function once before the next frame is drawn, however often it is asked for. */
function beforeFrame(f) {
    dirty.add(f);
    if (framePending) return;
    framePending = true;
    requestAnimationFrame(() => {
        const all = [...dirty];
        dirty.clear();
        framePending = false;
        all.forEach((g) => g());
    });
}

/* Return a function that calls f before the next frame, but at most every `ms`. */
function nowAndThen(f, ms) {
    let last = -Infinity,
        timer = null;
    return () => {
        timer ??= setTimeout(
            () => {
                timer = null;
                last = performance.now();
                beforeFrame(f);
            },
            Math.max(0, last + ms - performance.now())
        );
    };
}

/* The text of a token in one line, with spaces at its ends visible. */
function visible(token) {
    if (token.text === '')
        return token.bytes
            ? token.bytes.map((b) => `\\x${b.toString(16).padStart(2, '0')}`).join('')
            : 'end of text';
    return spoken(token.text).replace(/^ +| +$/g, (s) => '␣'.repeat(s.length));
}

const KIND = {
    edge: 'written by the small model',
    cloud: 'written by the cloud',
    fallback: 'written by the small model, because the cloud could not help',
    memo: 'written by the cloud earlier, and remembered',
    you: 'chosen by you',
};

/* The probability that the small model gave to the token; null where it is not known. */
function probability(token) {
    const entry = (token.top || []).find((t) => t.id === token.id);
    if (entry) return Math.exp(entry.logprob);
    return token.top && token.top.length ? 0 : null;
}

/* What the tints behind tokens show: score, probability or nothing. */
const look = { shade: '' };

/* A digit from 0 to 9, the surer the higher; empty where nothing is known. */
function tenth(token) {
    const x = look.shade === 'score' ? token.score : look.shade ? probability(token) : null;
    return typeof x === 'number' ? String(Math.min(9, Math.max(0, Math.floor(x * 10)))) : '';
}

class TextView {
    /* host gets choose(view, i, pinned) when a token is pointed at, and leave() afterwards. */
    constructor(run, host, title, number, live) {
        Object.assign(this, { run, host, title, number });
        this.root = make('div', 'answer');
        this.head = make('h3', '', title);
        this.note = make('p', 'note');
        this.text = make('div', 'text');
        const slider = {
            role: 'slider',
            tabindex: 0,
            'aria-orientation': 'horizontal',
            'aria-label': `Tokens of text ${number}, ${title}`,
            'aria-valuemin': 1,
            'aria-valuemax': 1,
            'aria-valuenow': 1,
            'aria-valuetext': 'no token yet',
        };
        Object.entries(slider).forEach(([name, value]) => this.text.setAttribute(name, value));
        /* Screen readers get sentences from here, and single tokens from the slider. */
        this.speech = make('div', 'unseen');
        if (live) {
            this.speech.setAttribute('aria-live', 'polite');
            this.speech.setAttribute('aria-relevant', 'additions');
        }
        this.diff = make('p', 'diff');
        this.fail = make('p', 'fail');
        this.fail.setAttribute('role', 'alert');
        this.root.append(this.head, this.note, this.text, this.speech, this.diff, this.fail);
        this.draw = this.draw.bind(this);
        this.dressSome = this.dressSome.bind(this);
        this.preview = null;
        this.dressed = 0;
        this.listen();
        this.reset();
    }

    reset(upTo = Infinity) {
        this.spans = [];
        this.marks = { marks: 0 };
        this.block = null;
        this.current = -1;
        this.unsaid = '';
        this.differs = -1;
        this.upTo = upTo; /* tokens to show; fewer while a recording is played */
        this.text.replaceChildren();
        this.speech.replaceChildren();
        this.news();
    }

    news() {
        beforeFrame(this.draw);
    }

    /* Show what was written until this time; false once that is all. */
    play(ms) {
        const { tokens, first } = this.run;
        let n = Math.max(this.spans.length, first);
        while (n < tokens.length && (tokens[n].ms || 0) <= ms) n++;
        this.upTo = n;
        this.news();
        return n < tokens.length;
    }

    draw() {
        const { tokens } = this.run,
            end = performance.now() + SLICE_MS / 2;
        const until = Math.min(tokens.length, this.upTo);
        for (let n = 0; n < TOKENS_A_FRAME && this.spans.length < until; n++) {
            this.append(tokens[this.spans.length]);
            if (performance.now() > end) break;
        }
        this.text.setAttribute('aria-valuemax', Math.max(1, this.spans.length));
        if (this.current < 0 && this.spans.length) this.point(0);
        if (this.spans.length < until) this.news();
        else if (!this.run.writing && this.spans.length === tokens.length) this.say(true);
        this.root.classList.toggle(
            'writing',
            this.run.writing || this.spans.length < tokens.length
        );
        const failed = spoken(this.run.error || '');
        if (this.fail.textContent !== failed) this.fail.textContent = failed;
        this.host.drawn(this);
    }

    append(token) {
        const span = make('span', 't ' + token.kind),
            i = this.spans.length;
        if (token.kind !== 'edge') document.body.classList.add(`has-${token.kind}`);
        if (i < this.run.first) span.classList.add('kept');
        if (token.text.endsWith('\n'))
            span.classList.add('eol'); /* its mark stands before the line ends */
        const parts =
            token.text === ''
                ? [['ctl', token.bytes ? '·' : 'end']]
                : pieces(token.text, this.marks);
        const gap = parts[0][0] === 'text' ? /^ */.exec(parts[0][1])[0] : '',
            word = token.kind === 'edge' ? span : make('span', 'w'); /* what is underlined */
        span.append(gap);
        if (word !== span) span.append(word);
        for (const [n, [kind, s]] of parts.entries()) {
            if (kind === 'text') word.append(n ? s : s.slice(gap.length));
            else
                word.append(
                    make('span', kind === 'nl' && !span.querySelector('.nl') ? 'nl first' : kind, s)
                );
        }
        if (!this.block || this.full(token)) {
            this.block = make('div', 'block');
            this.text.append(this.block);
        }
        span.index = i;
        this.block.append(span);
        this.spans.push(span);
        this.dressOne(i);
        if (token.text !== '') this.unsaid += parts.map(([, s]) => s).join('');
        if (/[.!?…\s。！？]/.test(token.text) || this.unsaid.length > SENTENCE_MAX)
            this.say(this.unsaid.length > SENTENCE_MAX);
    }

    /* A block ends where a line does. A text without lines is broken before a word, because
     * browsers paint a whole block at a time; the model's own newlines are shown as arrows. */
    full(token) {
        const n = this.block.childElementCount,
            before = this.run.tokens[this.spans.length - 1].text;
        return (
            (n >= TOKENS_A_BLOCK && before.endsWith('\n')) ||
            (n >= TOKENS_A_LINE && /^ /.test(token.text)) ||
            n >= 2 * TOKENS_A_LINE
        );
    }

    /* Hand complete sentences to the live region; at the end, what is left. */
    say(all) {
        const at = all ? this.unsaid.length : (SENTENCES.exec(this.unsaid) || [''])[0].length;
        const sentence = this.unsaid.slice(0, at).trim();
        this.unsaid = this.unsaid.slice(at);
        if (sentence) this.speech.append(make('p', '', sentence));
    }

    /* Frame a token. */
    point(i) {
        if (i < 0 || i >= this.spans.length) return;
        this.spans[this.current]?.classList.remove('at');
        this.current = i;
        this.spans[i].classList.add('at');
        const t = this.run.tokens[i];
        const name = t.text === '' ? visible(t) : `“${spoken(t.text).trim() || 'space'}”`;
        const score = typeof t.score === 'number' ? `, score ${decimal(t.score)}` : '';
        this.text.setAttribute('aria-valuenow', i + 1);
        this.text.setAttribute(
            'aria-valuetext',
            `${name}, ${KIND[t.kind]}${score}, token ${i + 1} of ${this.spans.length}`
        );
    }

    listen() {
        const token = (e) => e.target.closest?.('.t');
        this.text.addEventListener('pointerover', (e) => {
            if (e.pointerType !== 'touch' && token(e))
                this.host.choose(this, token(e).index, false);
        });
        this.text.addEventListener('pointerleave', () => this.host.leave());
        this.text.addEventListener('click', (e) => {
            if (token(e) && getSelection().isCollapsed) {
                this.point(token(e).index);
                this.host.choose(this, token(e).index, true);
            }
        });
        this.text.addEventListener('focus', () => {
            if (this.current >= 0 && this.text.matches(':focus-visible'))
                this.host.choose(this, this.current, true);
        });
        this.text.addEventListener('keydown', (e) => this.key(e));
    }

    key(e) {
        const to = e.altKey || e.ctrlKey || e.metaKey ? undefined : this.target(e.key);
        if (e.key === 'Enter' && this.current >= 0) {
            this.host.choose(this, this.current, true, true);
            e.preventDefault();
        } else if (to !== undefined && this.spans.length) {
            this.point(Math.min(this.spans.length - 1, Math.max(0, to)));
            this.spans[this.current].scrollIntoView({ block: 'nearest' });
            this.host.choose(this, this.current, true);
            e.preventDefault();
        }
    }

    /* Return the token to which a key leads: lines for up and down, marked tokens for pages. */
    target(key) {
        const i = this.current;
        switch (key) {
            case 'ArrowLeft':
                return i - 1;
            case 'ArrowRight':
                return i + 1;
            case 'Home':
                return 0;
            case 'End':
                return this.spans.length - 1;
            case 'PageDown':
                return this.marked(i, 1);
            case 'PageUp':
                return this.marked(i, -1);
            case 'ArrowDown':
                return this.line(i, 1);
            case 'ArrowUp':
                return this.line(i, -1);
            default:
                return undefined;
        }
    }

    marked(i, step) {
        for (let k = i + step; this.run.tokens[k]; k += step)
            if (this.run.tokens[k].kind !== 'edge') return k;
        return i;
    }

    /* Return the token nearest below (1) or above (-1). */
    line(i, step) {
        const here = this.spans[i].getClientRects()[0];
        let best = i,
            least = Infinity,
            top = null;
        for (let k = i + step; this.spans[k]; k += step) {
            const r = this.spans[k].getClientRects()[0];
            if (Math.abs(r.top - here.top) < here.height / 2) continue;
            top ??= r.top;
            if (Math.abs(r.top - top) > here.height / 2) break;
            if (Math.abs(r.left - here.left) < least) {
                least = Math.abs(r.left - here.left);
                best = k;
            }
        }
        return best;
    }

    /* Mark the first token that is not the other run's. */
    differ(i) {
        if (i === this.differs) return;
        this.spans[this.differs]?.classList.remove('differs');
        this.differs = this.spans[i] ? i : -1;
        this.spans[this.differs]?.classList.add('differs');
    }

    /* Change the looks of all tokens, some in each frame. */
    dress(preview = this.preview) {
        this.preview = preview; /* the threshold that is tried, or null */
        this.dressed = 0;
        beforeFrame(this.dressSome);
    }

    dressSome() {
        const end = Math.min(this.spans.length, this.dressed + DRESSED_A_FRAME);
        while (this.dressed < end) this.dressOne(this.dressed++);
        if (end < this.spans.length) beforeFrame(this.dressSome);
    }

    /* Shade a token, and frame it if its side would change with the threshold that is tried. */
    dressOne(i) {
        const t = this.run.tokens[i],
            span = this.spans[i],
            h = tenth(t);
        if ((span.dataset.h || '') !== h) {
            if (h) span.dataset.h = h;
            else delete span.dataset.h;
        }
        const scored = typeof t.score === 'number' && t.kind !== 'you' && this.preview !== null;
        span.classList.toggle('flips', scored && (t.kind !== 'edge') !== t.score < this.preview);
    }
}
