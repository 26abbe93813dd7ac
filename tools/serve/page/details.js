/* details.js - why a token is what it is: score, choices, call; and another text from here on. */
'use strict';

const decimal = (x) =>
    x > 0 && x < 0.0005 ? '< 0.001' : x > 0.9995 && x < 1 ? '> 0.999' : x.toFixed(3);
const percent = (x) =>
    x > 0 && x < 0.001 ? '< 0.1\u00a0%' : (100 * x).toFixed(x > 0 && x < 0.1 ? 1 : 0) + '\u00a0%';

function duration(ms) {
    if (ms === null || ms === undefined) return '–';
    return ms < 1
        ? '< 1 ms'
        : ms < 1000
          ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms`
          : `${(ms / 1000).toFixed(2)} s`;
}

function bytes(n) {
    return n < 1000
        ? `${n} B`
        : n < 1e6
          ? `${(n / 1000).toFixed(1)} kB`
          : `${(n / 1e6).toFixed(1)} MB`;
}

/* Replace a list of terms and values. */
function facts(list, rows) {
    list.replaceChildren(
        ...rows.map(([term, value]) => {
            const row = make('div');
            row.append(make('dt', '', term), make('dd', '', value));
            return row;
        })
    );
    return list;
}

/* What followed from a score. */
function outcome(run, t, low) {
    if (run.model !== 'routed')
        return low
            ? 'with routing, the cloud would be asked.'
            : 'with routing, the small model’s token would stand.';
    return (
        {
            cloud: 'the cloud was asked.',
            memo: 'the cloud’s earlier answer was used.',
            fallback: 'the cloud was wanted.',
            you: 'you chose a token instead.',
        }[t.kind] || 'the small model’s token stands.'
    );
}

class Details {
    /* goOn(run, i, choice): write on from token i with {id, text}; null in a recording. */
    constructor(panel, goOn) {
        Object.assign(this, { panel, goOn, view: null, i: -1, pin: null });
        this.body = panel.querySelector('.body');
        this.hint = [...this.body.childNodes];
        panel.querySelector('.close').addEventListener('click', () => this.hide(true));
        panel.addEventListener('keydown', (e) => {
            if (e.key !== 'Escape' || !this.pin) return;
            this.hide(true);
            e.stopPropagation();
        });
    }

    /* A token that was clicked or reached by keys stays; others are shown while pointed at. */
    show(view, i, pinned, enter) {
        const changed = this.view !== view || this.i !== i;
        Object.assign(this, { view, i });
        if (pinned) {
            this.pin?.view.root.classList.remove('pinned');
            this.pin = { view, i };
            view.root.classList.add('pinned');
        }
        this.panel.classList.toggle('open', !!this.pin);
        if (changed) this.fill(view.run, view.run.tokens[i]);
        if (enter)
            (this.body.querySelector('button') || this.panel.querySelector('.close')).focus();
    }

    /* Go back to the hint; back: the keyboard returns to the text. */
    hide(back) {
        const { view } = this,
            inside = this.panel.contains(document.activeElement);
        this.pin?.view.root.classList.remove('pinned');
        Object.assign(this, { view: null, i: -1, pin: null });
        this.panel.classList.remove('open');
        this.body.replaceChildren(...this.hint);
        if (back && view && inside) view.text.focus();
    }

    leave() {
        if (this.pin) this.show(this.pin.view, this.pin.i, true);
        else this.hide(false);
    }

    fill(run, t) {
        const big = make('bdi', 'chip ' + t.kind, visible(t)),
            where = make('p', 'where');
        where.append(big, ` ${KIND[t.kind]}`);
        const out = [where];
        if (typeof t.score === 'number') out.push(...this.score(run, t));
        else if (t.kind === 'you')
            out.push(make('p', '', 'The text was continued from here with this token.'));
        if (t.fault) out.push(make('p', 'fault', `The cloud could not help: ${spoken(t.fault)}`));
        const own = (t.top || []).find((c) => c.id === t.edge_id);
        if (
            t.kind !== 'edge' &&
            t.edge_id !== null &&
            t.edge_id !== undefined &&
            t.edge_id !== t.id
        )
            out.push(
                make(
                    'p',
                    '',
                    `The small model would have written “${spoken(
                        own ? own.text : t.edge_text || `token ${t.edge_id}`
                    ).trim()}”.`
                )
            );
        out.push(...this.choices(run, t));
        out.push(facts(make('dl', 'facts'), this.facts(run, t)));
        this.body.replaceChildren(...out);
    }

    score(run, t) {
        const limit = run.limit,
            bar = make('div', 'meter'),
            fill = make('i'),
            tick = make('b');
        bar.setAttribute('aria-hidden', 'true');
        fill.style.width = `${100 * t.score}%`;
        bar.append(fill);
        let words = `Score ${decimal(t.score)}`;
        if (limit !== null) {
            tick.style.left = `${100 * Math.min(1, limit)}%`;
            bar.append(tick);
            const low = t.score < limit;
            words += `, ${low ? 'below' : 'not below'} the threshold of ${decimal(limit)}: `;
            words += outcome(run, t, low);
        }
        return [bar, make('p', '', words)];
    }

    /* The small model's choices and, if it is none of them, the token that was written. */
    choices(run, t) {
        const list = [...(t.top || [])].map((c) => ({ ...c, p: Math.exp(c.logprob) }));
        if (!list.some((c) => c.id === t.id))
            list.unshift({ id: t.id, text: t.text, bytes: t.bytes, p: null });
        const can = this.goOn && run.promptIds;
        const title = make(
            'p',
            'label',
            list.length > 1 || t.top ? 'The small model’s choices' : 'Token'
        );
        const rows = make('ol', 'choices');
        for (const c of list) {
            const row = make('li'),
                button = make(can ? 'button' : 'div', 'choice');
            if (can) {
                button.type = 'button';
                button.append(make('span', 'unseen', 'Continue from here with '));
                button.addEventListener('click', () => this.goOn(run, this.i, c));
            }
            const bar = make('i');
            bar.style.width = `${100 * (c.p ?? 0)}%`;
            button.append(
                make('bdi', 'chip' + (c.id === t.id ? ' ' + t.kind : ''), visible(c)),
                make('span', 'value', c.p === null ? 'not among its five' : percent(c.p)),
                bar
            );
            row.append(button);
            rows.append(row);
        }
        return can
            ? [title, make('p', 'note', 'Select one to continue from here with this token.'), rows]
            : [title, rows];
    }

    facts(run, t) {
        const rows = [['Token', `${this.i + 1} of ${run.tokens.length}, id ${t.id}`]],
            call = t.call;
        if (typeof t.ms === 'number') rows.push(['Written after', duration(t.ms)]);
        if (call && call.memo) rows.push(['Call', 'none: the answer was remembered']);
        else if (call)
            rows.push(
                ['Call', duration(call.ms)],
                ['Sent', call.bytes_up ? bytes(call.bytes_up) : 'no bytes'],
                ['Received', call.bytes_down ? bytes(call.bytes_down) : 'no bytes'],
                ['Retries', String(call.retries || 0)]
            );
        return rows;
    }
}
