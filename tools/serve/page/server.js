/* server.js - what the server says of itself: models, cloud, questions, the stand-in's network. */
'use strict';

const STATES = {
    open: (c) => (c.stand_in ? 'Cloud ready (stand-in)' : 'Cloud ready'),
    off: () => 'Cloud off',
    refused: () => 'Cloud refused',
    breaker: () => 'Cloud paused',
};

function bannerWords() {
    const cloud = info?.cloud,
        why = cloud?.why ? `: ${spoken(cloud.why)}` : '';
    const later = cloud?.retry_s ? ` It is asked again in ${Math.ceil(cloud.retry_s)} s.` : '';
    const marks =
        ' The small model writes on; where the cloud was wanted, its tokens are marked “!”.';
    if (!info && !file) return 'Mizzle does not answer. Is “mizzle serve” still running?';
    if (cloud && cloud.state === 'refused') return `The cloud refused${why}.${later}${marks}`;
    if (cloud && cloud.state === 'breaker')
        return `The cloud failed several times and is left alone for now${why}.${later}${marks}`;
    if (cloud && cloud.state === 'off') return `The cloud cannot be reached${why}.${later}${marks}`;
    const fault = active?.run.fault,
        n = fault ? active.run.figures().fallback : 0;
    return fault && n
        ? `The cloud could not help with ${plural(n, 'token')} (${spoken(fault)}).${marks}`
        : '';
}

function banner() {
    const words = bannerWords();
    if ($('banner').textContent !== words) $('banner').textContent = words;
}

let asking = 0;

/* Ask what the server is and how the cloud does; again soon while something is wrong. */
async function askInfo() {
    clearTimeout(asking);
    let loading = false;
    try {
        const reply = await fetch('/mizzle/info');
        loading = reply.status === 503;
        if (!reply.ok) throw new Error(await refusal(reply));
        const first = !info;
        info = await reply.json();
        showInfo(first);
    } catch {
        info = null;
        $('model').textContent = loading ? 'The model is being loaded …' : '';
    }
    if (loading) $('banner').textContent = '';
    else banner();
    if (!info || (info.cloud && info.cloud.state !== 'open'))
        asking = setTimeout(askInfo, loading ? 500 : 3000);
}

function showInfo(first) {
    const { model, router, cloud } = info;
    $('model').textContent = spoken(
        [
            model.name,
            router && `router ${router.name || router.policy}`,
            cloud && `cloud ${cloud.model || ''}`.trim(),
            `version ${info.version}`,
        ]
            .filter((w) => w)
            .join(' · ')
    );
    $('cloud').hidden = false;
    $('cloud').textContent = cloud
        ? (STATES[cloud.state] || STATES.open)(cloud)
        : 'No cloud: the small model writes alone';
    $('cloud').dataset.state = cloud ? cloud.state : 'none';
    if (!first) return;
    $('policy').replaceChildren(
        ...(info.policies || [])
            .map(spoken)
            .map((p) => new Option(p, p, false, p === router?.policy))
    );
    const chat = document.querySelector('#mode [value=chat]');
    chat.disabled = !info.chat;
    $('mode').hidden = !info.chat;
    settings.mode = info.chat && settings.mode !== 'text' ? 'chat' : 'text';
    document.querySelector(`#mode [value=${settings.mode}]`).checked = true;
    showQuestions(info.questions || []);
    if (cloud && cloud.stand_in && cloud.network) showNetwork(cloud.network);
    threshold();
}

const QUESTIONS_SHOWN = 5;

function showQuestions(all, from = 0) {
    const button = (text, act) => {
        const b = make('button', 'chip');
        b.type = 'button';
        b.append(make('bdi', '', text));
        b.addEventListener('click', act);
        return b;
    };
    const shown = all.slice(from, from + QUESTIONS_SHOWN).map((q) => {
        const line = q.split('\n').find((l) => l.trim()) || q;
        return button(spoken(line.replace(/^Question: /, '')).slice(0, 80), () => {
            $('prompt').value = q;
            ask(q);
        });
    });
    const next = from + QUESTIONS_SHOWN < all.length ? from + QUESTIONS_SHOWN : 0;
    if (all.length > QUESTIONS_SHOWN)
        shown.push(
            button('Others …', () => {
                showQuestions(all, next);
                $('questions').lastChild.focus();
            })
        );
    $('questions').hidden = !all.length;
    $('questions').replaceChildren(make('span', 'note', 'Try a question:'), ...shown);
}

function showNetwork(network) {
    $('network').hidden = false;
    for (const [id, unit] of [
        ['latency_ms', 'ms'],
        ['jitter_ms', 'ms'],
        ['loss', '%'],
    ]) {
        const input = $(id),
            say = () => {
                input.previousElementSibling.textContent =
                    unit === '%' ? `${Math.round(100 * input.value)} %` : `${input.value} ms`;
            };
        input.value = network[id];
        say();
        input.addEventListener('input', say);
        input.addEventListener('change', sendNetwork);
    }
}

async function sendNetwork() {
    const value = (id) => Number($(id).value);
    try {
        const reply = await fetch('/mizzle/network', {
            method: 'POST',
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify({
                latency_ms: value('latency_ms'),
                jitter_ms: value('jitter_ms'),
                loss: value('loss'),
            }),
        });
        $('network-said').textContent = reply.ok
            ? 'This holds for the next call.'
            : await refusal(reply);
    } catch {
        $('network-said').textContent = 'Mizzle does not answer.';
    }
}
