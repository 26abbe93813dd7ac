/* server.js - what the server says of itself: models, cloud, questions. */
'use strict';

const STATES = {
    working: (c) => (c.local ? `Large model ready (in this ${tab ? 'tab' : 'process'})` : 'Cloud ready'),
    none: () => 'No cloud: the small model writes alone',
    failing: () => 'Cloud failing',
    off: () => 'Cloud off',
    refused: () => 'Cloud refused',
    paused: () => 'Cloud paused',
};

function bannerWords() {
    const cloud = info?.cloud,
        why = cloud?.why ? `: ${spoken(cloud.why)}` : '';
    const later = cloud?.retry_s ? ` It is asked again in ${Math.ceil(cloud.retry_s)} s.` : '';
    const marks =
        ' The small model writes on; where the cloud was wanted, its tokens are marked “!”.';
    if (!info && !file) return `Mizzle does not answer. ${silence} ${LOST}`;
    if (cloud && cloud.state === 'refused') return `The cloud refused${why}.${later}${marks}`;
    if (cloud && cloud.state === 'paused')
        return `The cloud failed several times and is left alone for now${why}.${later}${marks}`;
    if (cloud && cloud.state === 'off') return `The cloud cannot be reached${why}.${later}${marks}`;
    const fault = active?.run.fault,
        n = fault ? active.run.figures().fallback : 0;
    return fault && n
        ? `The cloud could not help with ${plural(n, 'token')} (${spoken(fault)}).${marks}`
        : '';
}

/* The badge says how the cloud does: what the server knows, or what the latest text has met. */
function badge() {
    const cloud = info?.cloud,
        failing = turns.at(-1)?.views.some((v) => v.run.failing);
    const state = !cloud ? 'none' : failing && cloud.state === 'working' ? 'failing' : cloud.state;
    $('cloud').hidden = !info || !!file;
    $('cloud').textContent = (STATES[state] || STATES.working)(cloud);
    $('cloud').dataset.state = state;
}

function banner() {
    const words = bannerWords();
    badge();
    if ($('banner').textContent !== words) $('banner').textContent = words;
}

let asking = 0;
let silence = ''; /* why the models of this tab do not answer */
let opened = false;
let serverLimit = 0.5; /* the server's threshold; it stays known when the server ends */
let locked = false; /* the server has refused the key, or that there is none */

/* Ask for the key, or stop asking for it. */
function lock(on) {
    const asks = on && !locked;
    locked = on;
    document.body.classList.toggle('locked', on);
    $('wrong').textContent = on && key ? 'The server does not accept this key.' : '';
    if (on && (asks || key)) $('secret').select();
}

/* Try a key. One with other characters fits into no header. */
function unlock(e) {
    e.preventDefault();
    key = $('secret').value.trim();
    if (/^[\x21-\x7e]+$/.test(key)) askInfo();
    else lock(true);
}

/* Ask what the server is and how the cloud does; again soon while something is wrong. */
async function askInfo() {
    clearTimeout(asking);
    let loading = false;
    try {
        const reply = await call('/mizzle/info');
        loading = reply.status === 503;
        lock(reply.status === 401);
        if (!reply.ok) throw new Error(await refusal(reply));
        const first = !info;
        info = await reply.json();
        showInfo(first);
    } catch (e) {
        info = null;
        silence = tab ? e.message : '';
        $('model').textContent = loading
            ? 'The model is being loaded …'
            : locked
              ? 'This server requires a key.'
              : '';
    }
    banner();
    if (loading || locked) $('banner').textContent = '';
    if (!locked && (!info || (info.cloud && info.cloud.state !== 'working')))
        asking = setTimeout(askInfo, loading ? 500 : 3000);
}

function showInfo(first) {
    const { names, router, cloud } = info;
    $('model').textContent = spoken(
        [
            names[0],
            router && `router: ${router.name}${router.learnt ? `, learnt ${router.learnt}` : ''}`,
            cloud && cloud.model && `cloud: ${cloud.model}`,
            `version ${info.version}`,
        ]
            .filter((w) => w)
            .join(' · ')
    );
    if (!first) return;
    serverLimit = router?.threshold ?? 0.5;
    $('ahead').max = info.ahead;
    /* What was chosen before the server ended stays. */
    const policies = (info.policies || []).map(spoken),
        known = policies.includes($('policy').value);
    const policy = known ? $('policy').value : router?.policy;
    $('policy').replaceChildren(...policies.map((p) => new Option(p, p, false, p === policy)));
    const questions = info.questions || [];
    document.querySelector('#mode [value=chat]').disabled = $('mode').hidden = !info.chat;
    if (!known || !info.chat)
        setMode(info.chat ? settings.mode || (questions.length ? 'text' : 'chat') : 'text');
    /* Only the demo pair has questions. */
    $('suits').textContent = questions.length
        ? 'This pair was not taught to chat: raw text suits it.'
        : '';
    showQuestions(questions);
    threshold();
    openWithText(questions[2]);
}

/* Begin with a text, once and where it costs nothing, not even of a limit: the demo's question 2,
 * whose answer is wrong from the small model alone, and right with routing. */
function openWithText(prompt) {
    if (opened || turns.length || !prompt || !info.cloud?.local || info.cloud.limited) return;
    opened = true;
    document.body.classList.add('opening');
    write({ prompt, label: 'An example' }, models(), '/v1/completions', { prompt });
}

let firstQuestion = 0;

/* Offer some questions; fewer once there are texts, which need the room. */
function showQuestions(all, from = firstQuestion) {
    const most = turns.length ? 2 : 5;
    firstQuestion = from;
    const button = (text, act) => {
        const b = make('button', 'chip');
        b.type = 'button';
        b.append(make('bdi', '', text));
        b.addEventListener('click', act);
        return b;
    };
    const shown = all.slice(from, from + most).map((q) => {
        const line = q.split('\n').find((l) => l.trim()) || q;
        return button(spoken(line.replace(/^Question: /, '')).slice(0, 80), () => {
            if (writing()) return;
            setMode('text'); /* they are beginnings of texts */
            ask(q);
        });
    });
    const next = from + most < all.length ? from + most : 0;
    if (all.length > most)
        shown.push(
            button('Others …', () => {
                showQuestions(all, next);
                $('questions').lastChild.focus();
            })
        );
    $('questions').hidden = !all.length;
    $('questions').replaceChildren(make('span', 'note', 'It knows an invented world alone. Try:'), ...shown);
}
