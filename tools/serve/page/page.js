/* page.js - the page: what the server is, what is asked of it, and which text is looked at. */
'use strict';

const $ = (id) => document.getElementById(id);
const file = recorded();
const TITLES = { edge: 'Small model alone', routed: 'Routed', cloud: 'Cloud alone' };
const PROMPT_SHOWN = 4000; /* characters */
const SETTINGS = {
    mode: null,
    side: false,
    colour: '',
    max: 256,
    temperature: 0,
    ahead: '',
    most: '',
};

let info = null;
let active = null; /* the view whose figures are shown */
let wanted = null; /* the threshold that the slider was moved to */
let following = true; /* the window scrolls with the text */
let lastScroll = 0;
let lastHeight = 0;
let scoresWidth = 300;
let details, timeline, player;
const turns = [];
const settings = { ...SETTINGS };
const views = () => turns.flatMap((t) => t.views);
const writing = () => views().some((v) => v.run.writing);
const main = (turn) => turn.views.find((v) => v.run.model === 'routed') || turn.views[0];

function load() {
    try {
        Object.assign(settings, JSON.parse(localStorage.getItem('mizzle') || '{}'));
    } catch {
        /* Without storage the settings last until the page is closed. */
    }
}

function keep() {
    try {
        localStorage.setItem('mizzle', JSON.stringify(settings));
    } catch {
        /* As above. */
    }
}

const setMode = (name) => {
    document.querySelector(`#mode [value=${name}]`).checked = true;
};

const number = (id) =>
    $(id).value === '' || !$(id).checkValidity() ? undefined : Number($(id).value);

function body(model, prompt) {
    const name = { routed: 0, edge: 1, cloud: 2 }[model];
    return {
        model: info.names[name],
        ...prompt,
        stream: true,
        return_token_ids: true,
        stream_options: { include_usage: true },
        max_tokens: number('max'),
        temperature: number('temperature'),
        seed: number('seed'),
        mizzle: {
            policy: $('policy').value || undefined,
            threshold: wanted ?? undefined,
            ahead: number('ahead'),
            max_cloud_tokens: number('most'),
            trace: { top: 5, events: true },
        },
    };
}

/* Put a turn on the page: what was asked, and a column for each run. */
function addTurn(turn, runs) {
    if (turns.length) document.body.classList.remove('opening');
    const root = make('article', 'turn'),
        said = make('p', 'asked', ''),
        columns = make('div', 'columns');
    const number = turns.length + 1,
        label = turn.label || (turn.messages ? 'You' : 'Prompt'),
        title = make('h2', '', `${label} · text ${number}`);
    said.dir = 'auto';
    for (const [kind, s] of pieces(turn.prompt, undefined, PROMPT_SHOWN))
        said.append(kind === 'ctl' ? make('span', kind, s) : s);
    turn.views = runs.map(
        (run) =>
            new TextView(
                run,
                host,
                TITLES[run.model],
                number,
                run.model === 'routed' || runs.length === 1
            )
    );
    columns.append(...turn.views.map((v) => v.root));
    root.append(title, said, columns);
    root.setAttribute('aria-label', title.textContent);
    /* A prompt that scrolls can be reached by keys. */
    new ResizeObserver(() => {
        if (said.scrollHeight > said.clientHeight) said.setAttribute('tabindex', 0);
        else said.removeAttribute('tabindex');
    }).observe(said);
    turn.root = root;
    turns.push(turn);
    $('thread').append(root);
    if (turns.length === 1) showStarted(true);
    activate(main(turn));
}

/* Show what belongs to texts, and hide what explains the empty page; or the other way round. */
function showStarted(on) {
    document.body.classList.toggle('started', on && !file);
    $('clear').hidden = $('save').hidden = !on || !!file;
    $('replay').hidden = $('time').hidden = $('numbers').hidden = !on;
    if (info?.questions) showQuestions(info.questions);
}

/* Forget all texts. */
function startOver() {
    stopAll();
    details.hide(false);
    document.body.classList.remove('opening');
    turns.length = 0;
    active = wanted = timeline.run = null;
    $('thread').replaceChildren();
    $('whose').hidden = true;
    document.querySelectorAll('[data-count]').forEach((e) => e.replaceChildren());
    showStarted(false);
    busy(false);
    threshold();
    banner();
    scrollTo(0, 0);
    $('prompt').focus();
}

async function write(turn, models, path, prompt, more = {}) {
    const runs = models.map(
        (model) => new Run({ model, path, body: body(model, prompt), ...more })
    );
    player.stop();
    details.hide(false);
    addTurn(turn, runs);
    following = !document.body.classList.contains('opening');
    if (following) turn.root.scrollIntoView({ block: 'nearest' });
    busy(true);
    $('status').textContent = 'Writing.';
    await Promise.all(turn.views.map((v) => v.run.write(() => host.news(v))));
    busy(writing());
    const { run } = main(turn),
        f = run.figures();
    $('status').textContent = run.error
        ? ''
        : `${run.state === 'stopped' ? 'Stopped' : 'Finished'}: ${
              f.n
          } tokens, ${f.cloud + f.memo} of them from the cloud.`;
    askInfo();
}

const models = () =>
    ($('side').checked ? ['edge', 'routed', 'cloud'] : ['routed']).filter(
        (m) => m !== 'cloud' || info.cloud
    );

function ask(prompt) {
    if (!info || writing() || prompt === '') return;
    if (document.querySelector('#mode [value=chat]').checked) {
        const last = turns.findLast((t) => t.messages);
        const messages = last
            ? [...last.messages, { role: 'assistant', content: main(last).run.text }]
            : [];
        messages.push({ role: 'user', content: prompt });
        $('prompt').value = '';
        write({ prompt, messages }, models(), '/v1/chat/completions', { messages });
    } else {
        write({ prompt }, models(), '/v1/completions', { prompt });
        if ($('prompt').value === prompt) $('prompt').select(); /* for the next one */
    }
}

/* Write the latest prompt again, with what is set now. */
function again() {
    const { prompt, messages, ids, first } = turns[turns.length - 1],
        label = 'Written again';
    if (ids)
        write(
            { prompt, messages, ids, first, label },
            [main(turns[turns.length - 1]).run.model],
            '/v1/completions',
            { prompt: ids },
            {
                first: first.map((t) => ({ ...t })),
                promptIds: ids.slice(0, ids.length - first.length),
            }
        );
    else if (messages)
        write({ prompt, messages, label }, models(), '/v1/chat/completions', { messages });
    else write({ prompt, label }, models(), '/v1/completions', { prompt });
}

/* Keep a run's tokens before i, put the chosen one there, and let the model go on. */
function goOn(run, i, choice) {
    if (writing()) return;
    const old = turns.find((t) => t.views.some((v) => v.run === run));
    const first = run.tokens.slice(0, i).map((t) => ({ ...t }));
    first.push({
        ...run.tokens[i],
        id: choice.id,
        text: choice.text,
        bytes: choice.bytes,
        kind: 'you',
        source: 'you',
        call: null,
        fault: null,
    });
    const ids = [...run.promptIds, ...first.map((t) => t.id)];
    write(
        {
            prompt: old.prompt,
            messages: old.messages,
            ids,
            first,
            label: `Continued from token ${i + 1} with “${spoken(choice.text).trim()}”`,
        },
        [run.model],
        '/v1/completions',
        { prompt: ids },
        { first, promptIds: run.promptIds }
    );
    host.active.text.focus({ preventScroll: true });
}

function stopAll() {
    player.stop();
    views().forEach((v) => v.run.writing && v.run.stop());
}

function busy(on) {
    const had = document.activeElement;
    $('go').hidden = on;
    $('stop').hidden = !on;
    $('again').disabled = on || !turns.length;
    if (had === $('go') || had === $('stop')) (on ? $('stop') : $('go')).focus();
}

function shade(by) {
    look.shade = by;
    views().forEach((v) => v.dress());
    $('shade').hidden = !by;
    /* Where colours are forced, a digit stands in for the tint. */
    const digits = matchMedia('(forced-colors: active)').matches;
    const sign = digits ? 'smaller the digit at' : 'stronger the tint behind';
    $('shade').textContent =
        (digits ? `The digit at a token is its ${by} in tenths. ` : '') +
        `The ${sign} a token, the ` +
        (by === 'score'
            ? 'likelier that the router asks.'
            : 'less probable the small model found it.');
}

function remember(id, value) {
    settings[id] = value;
    keep();
}

function listen() {
    for (const id of ['max', 'temperature', 'ahead', 'most']) {
        $(id).value = settings[id];
        $(id).addEventListener('change', () => remember(id, $(id).value));
    }
    $('side').checked = settings.side;
    $('side').addEventListener('change', () => remember('side', $('side').checked));
    $('mode').addEventListener('change', (e) => remember('mode', e.target.value));
    $('form').addEventListener('submit', (e) => {
        e.preventDefault();
        ask($('prompt').value);
    });
    $('prompt').addEventListener('keydown', (e) => {
        if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
            e.preventDefault();
            ask($('prompt').value);
        }
    });
    $('stop').addEventListener('click', stopAll);
    $('again').addEventListener('click', again);
    $('save').addEventListener('click', save);
    $('clear').addEventListener('click', startOver);
    $('lock').addEventListener('submit', unlock);
    new ResizeObserver(() => {
        const { style } = document.documentElement;
        style.setProperty('--form', `${$('form').offsetHeight}px`);
    }).observe($('form'));
}

function listenEverywhere() {
    document.querySelector(`#colour [value="${settings.colour}"]`).checked = true;
    shade(settings.colour);
    $('colour').addEventListener('change', (e) => {
        remember('colour', e.target.value);
        shade(e.target.value);
    });
    $('threshold').addEventListener('input', () => {
        wanted = Number($('threshold').value);
        beforeFrame(threshold);
        beforeFrame(preview);
    });
    $('replay').addEventListener('click', () => {
        if (player.on) player.stop();
        else if (!writing()) player.play(turns[turns.length - 1].views);
    });
    document.addEventListener('keydown', (e) => {
        if (e.key !== 'Escape') return;
        if (writing() || player.on) stopAll();
        else if (details.pin) details.hide(true);
    });
    addEventListener(
        'scroll',
        () => {
            /* The window moves up by itself when the page becomes shorter. */
            const { scrollHeight } = document.documentElement;
            if (scrollY < lastScroll && scrollHeight >= lastHeight) following = false;
            lastScroll = scrollY;
            lastHeight = scrollHeight;
        },
        { passive: true }
    );
    new ResizeObserver(([e]) => {
        scoresWidth = e.contentRect.width;
        beforeFrame(threshold);
    }).observe($('scores'));
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)'])
        matchMedia(query).addEventListener('change', () => beforeFrame(threshold));
}

async function save() {
    const { model, router, version } = info || {};
    const data = {
        info: { model, router, version },
        turns: turns.map(({ prompt, label, messages, views: all }) => ({
            prompt,
            label,
            messages: messages && [],
            runs: all.map((v) => v.run.record()),
        })),
    };
    try {
        const at = new Date().toISOString().slice(0, 16).replace(/[T:]/g, '-');
        download(`mizzle-${at}.html`, await recording(data));
        $('status').textContent = 'The texts were saved as a file.';
    } catch (e) {
        $('banner').textContent = `The file could not be made: ${e.message}`;
    }
}

/* Show the texts of this file; nothing here can be asked. */
function openRecording(data) {
    info = { ...data.info, cloud: null };
    document.body.classList.add('recording');
    ['form', 'lock', 'settings', 'again'].forEach((id) => $(id).remove());
    document.querySelector('.skip').remove();
    $('model').textContent = `A recording of ${info.model?.name || 'Mizzle'}: it needs no server.`;
    data.turns.forEach(({ runs, ...turn }) =>
        addTurn(
            turn,
            runs.map((r) => Run.from(r))
        )
    );
}

/* All scripts are one by now (README.md), so whatever they declare is there. */
function start() {
    details = new Details($('details'), file ? null : goOn);
    timeline = new Timeline($('time'), chooseTime);
    player = new Player((ms) => {
        timeline.until = ms;
        timeline.news(!player.on);
        $('replay').textContent = player.on ? 'Stop' : 'Replay';
    });
    load();
    listenEverywhere();
    if (file) {
        openRecording(file);
    } else {
        listen();
        askInfo();
    }
}

addEventListener('DOMContentLoaded', start);
