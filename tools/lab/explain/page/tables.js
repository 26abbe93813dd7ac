/* tables.js - what belongs to the whole text: what was asked of which model, where the time went, and
 * a row for each token. */
'use strict';

function drawFacts() {
    const { model, routing, machine } = doc,
        answer = doc.reference === null ? '' : ` The right answer: ${spoken(doc.reference)}`,
        router = `, router ${routing.scorer}, learnt ${spoken(routing.learnt || '')}`;
    $('facts').textContent =
        `${spoken(model.name)}: ${model.layers} layers of ${model.heads} heads, ${model.hidden} ` +
        `hidden values, ${model.vocab} tokens in the vocabulary, weights of type ${model.type}. ` +
        `Policy ${routing.policy}${routing.learnt ? router : ''}. ` +
        `${spoken(machine.cpu)}, kernels ${machine.isa}, ` +
        `${machine.threads} thread${machine.threads === 1 ? '' : 's'}.${answer}${doc.cut === null ? '' : ` ${doc.cut}.`}`;
}

/* A number with so many digits, or nothing where there is none. */
const digits = (v, n) => (v > 0 ? v.toFixed(n) : '');

function operationRow(body, { op, calls, ms, bytes, ops, gb_s, gop_s, limit, of_limit }, all) {
    row(body, [
        op,
        String(calls),
        digits(ms, 3),
        digits((100 * ms) / all, 1),
        digits(bytes / 1e6, 3),
        digits(ops / 1e6, 3),
        digits(gb_s, 2),
        digits(gop_s, 2),
        limit,
        digits(100 * of_limit, 1) + (of_limit > 1 ? '?' : ''),
    ]);
}

/* The rows of one part of the text: the prompt, or what came after the first token. */
function timesBody(what, n, times) {
    const body = make('tbody'),
        name = row(body, [`${what}: ${n} token${n === 1 ? '' : 's'}, ${times.ms.toFixed(3)} ms`]),
        other = (part, ms) =>
            row(body, [part, '', digits(ms, 3), digits((100 * ms) / times.ms, 1), ...Array(6).fill('')]);
    name.firstChild.scope = 'rowgroup';
    name.firstChild.colSpan = 10;
    let rest = times.ms - times.router_ms - times.cloud_ms;
    times.operations.forEach((operation) => {
        if (operation.calls) operationRow(body, operation, times.ms);
        rest -= operation.ms;
    });
    other('router', times.router_ms);
    if (times.cloud_ms > 0) other('cloud, waiting', times.cloud_ms);
    other('all else', rest);
    return body;
}

function drawTimes() {
    const { reading, writing, prompt_tokens: prompt } = doc;
    $('times').append(
        timesBody('Reading the prompt, up to the first token written', prompt, reading)
    );
    if (writing.passes || writing.tokens)
        $('times').append(timesBody('Writing the rest', writing.tokens, writing));
    if (doc.machine.doubtful)
        $('times').before(
            make('p', 'note', `All of these times are doubtful: ${doc.machine.doubtful}.`)
        );
}

/* What is known of each token in a line. */
function drawRows() {
    const text = (s) => fill(make('span'), s, false);
    doc.tokens.forEach((token, i) => {
        const { top, router } = doc.positions[i - 1] ?? { top: [{ p: null }], router: {} },
            written = token.source !== 'prompt',
            tr = row($('rows'), [
                String(i),
                String(token.id),
                text(token.piece),
                token.source,
                i ? text(top[0].piece) : '',
                top[0].p === null ? '' : percent(top[0].p),
                router.score?.toFixed(4) ?? '',
                written ? token.ms.toFixed(3) : '',
                written ? spoken(token.why) : '',
            ]);
        tr.children[2].className = tr.children[4].className = 'p';
        tr.children[8].className = 'why';
    });
}
