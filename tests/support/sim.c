#include "tests/support/sim.h"

#include "model/sample.h"
#include "tests/support/port.h"

enum {
    IDLE = 5
}; /* looks without progress: of a token, a head, a score and an answer are wanted */

static uint64_t draw(struct sim *s, uint64_t below)
{
    return rand_below(s->trace, s->draws++, below);
}

/* True when this prefix belongs to this share of all prefixes. */
static bool falls(const struct sim *s, uint64_t key, unsigned which, unsigned percent)
{
    return rand_below(rand_u64(s->truth.seed, which), key, 100) < percent;
}

/* Return what the edge itself would pick after this prefix. */
static uint32_t edge_says(struct sim *s, const uint32_t *ids, size_t n)
{
    port_reach(s->edge, ids, n);
    return sampler_pick(s->sampler, session_logits(s->edge, 0), ids, n);
}

/* Return the cloud's answer to a prefix: the edge's, an odd one, or a random id. */
static uint32_t truth(struct sim *s, const uint32_t *ids, size_t n, uint64_t key)
{
    if (falls(s, key, 1, s->truth.agree))
        return edge_says(s, ids, n);
    if (falls(s, key, 2, s->truth.odd))
        return falls(s, key, 3, 30) ? (uint32_t)s->size + 1 : TINY_EOS;
    return (uint32_t)rand_below(s->truth.seed, key, TINY_IM_END);
}

/* Return the slot of this key, or SIM_MEMO. */
static size_t in_memo(const struct sim *s, uint64_t key)
{
    size_t n = s->nmemo < s->truth.room ? s->nmemo : s->truth.room, i = 0;
    while (i < n && s->memo[i].key != key)
        i++;
    return i < n ? i : SIM_MEMO;
}

static void remember(struct sim *s, uint64_t key, uint32_t id, uint64_t due)
{
    if (in_memo(s, key) < SIM_MEMO)
        return;
    s->memo[s->nmemo % s->truth.room].key = key;
    s->memo[s->nmemo % s->truth.room].due = due;
    s->memo[s->nmemo++ % s->truth.room].id = id;
}

static bool in_store(struct sim *s, uint64_t key, const uint32_t *ids, size_t n, uint32_t *id)
{
    if (!falls(s, key, 4, s->truth.store))
        return false;
    *id = truth(s, ids, n, key);
    return *id < s->size;
}

/* Wait for a reply that is on its way; what the store knows is in the memo from then on. */
static enum cloud_sight await(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    struct sim *s = arg;
    uint64_t key = port_key(n, ids, n);
    size_t i = in_memo(s, key);
    s->looked = 0;
    if (i < SIM_MEMO) {
        s->clock = s->clock > s->memo[i].due ? s->clock : s->memo[i].due;
        *id = s->memo[i].id;
        return CLOUD_MEMO;
    }
    if (!in_store(s, key, ids, n, id))
        return CLOUD_UNKNOWN;
    remember(s, key, *id, 0);
    return CLOUD_STORE;
}

/* Look without waiting. The clock moves a little when there was work since the last look, so that
 * it does not depend on how often a draft that is awaited was looked for. */
static enum cloud_sight peek(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    struct sim *s = arg;
    uint64_t key = port_key(n, ids, n);
    size_t i = in_memo(s, key), length = session_length(s->session);
    if (s->looked != length + 1)
        s->clock += draw(s, 3);
    s->looked = length + 1;
    if (i == SIM_MEMO)
        return in_store(s, key, ids, n, id) ? CLOUD_STORE : CLOUD_UNKNOWN;
    if (s->memo[i].due > s->clock) {
        s->comes++;
        return CLOUD_COMING;
    }
    *id = s->memo[i].id;
    return CLOUD_MEMO;
}

static enum cloud_sight known(void *arg, const uint32_t *ids, size_t n, bool used, uint32_t *id)
{
    return used ? await(arg, ids, n, id) : peek(arg, ids, n, id);
}

static struct cloud_info info(void *arg)
{
    const struct sim *s = arg;
    return (struct cloud_info){ .tokens = s->truth.tokens };
}

static void send(struct sim *s, uint64_t number, uint64_t after)
{
    CHECK(s->npackets < SIM_PACKETS);
    s->packets[s->npackets].due = s->clock + after;
    s->packets[s->npackets++].number = number;
}

/* True when an earlier request has asked for the token after this prefix, too. */
static bool covered(const struct sim *s, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < s->nasked; i++) {
        size_t from = s->reaches[i].n;
        if (from < n && n - from < s->reaches[i].tokens &&
            s->reaches[i].key == port_key(from, ids, from))
            return true;
    }
    return false;
}

/* Take a free slot for a request, and check that it is allowed. */
static struct sim_call *begin(struct sim *s, const uint32_t *ids, size_t n, size_t want)
{
    size_t at = 0;
    while (at < SIM_CALLS && s->calls[at].number)
        at++;
    CHECK(at < SIM_CALLS && n && n <= TINY_CONTEXT);
    for (size_t i = 0; s->secret && i < n; i++)
        CHECK(ids[i] != s->secret);
    CHECK(++s->live == 1);
    struct sim_call *c = &s->calls[at];
    *c = (struct sim_call){
        .number = ++s->number, .key = port_key(n, ids, n), .n = n, .tokens = want, .sim = s
    };
    memcpy(c->ids, ids, n * sizeof(*ids));
    s->idle = 0;
    return c;
}

/* Schedule the reply: late, lost and sent again, or twice. */
static void schedule(struct sim *s, const struct sim_call *c, struct cloud_tally *tally)
{
    uint64_t after = draw(s, s->delay + 1);
    for (; draw(s, 4) == 0; s->retries++, tally->traffic.retries++) /* lost, then sent again */
        after += s->delay + draw(s, s->delay + 1);
    send(s, c->number, after);
    if (draw(s, 4) == 0) /* arrives twice */
        send(s, c->number, after + draw(s, s->delay + 1));
}

/* Decide what becomes of a request, and send the reply on its way. */
static void answer(struct sim *s, struct sim_call *c, struct cloud_tally *tally)
{
    c->rc = falls(s, c->key, 5, s->truth.refused) ? ERR_REMOTE
            : falls(s, c->key, 7, s->truth.unfit) ? ERR_TEXT
            : falls(s, c->key, 6, s->truth.fault) ? ERR_NET
                                                  : OK;
    c->id = truth(s, c->ids, c->n, c->key);
    schedule(s, c, tally);
    s->longest = c->n > s->longest ? c->n : s->longest;
    CHECK(s->nasked < SIM_LOG);
    s->reaches[s->nasked].key = c->key;
    s->reaches[s->nasked].n = c->n;
    s->reaches[s->nasked].tokens = c->tokens;
    s->asked[s->nasked++] = rand_u64(c->key, c->tokens);
}

static int ask(void *arg, const uint32_t *ids, size_t n, size_t want, struct cloud_tally *tally,
               void **call, struct err *err)
{
    struct sim *s = arg;
    (void)err;
    struct sim_call *c = begin(s, ids, n, want);
    /* A token that an earlier call was to bring may have been guessed meanwhile. */
    bool newest = session_length(s->session) == n &&
                  !memcmp(session_ids(s->session), ids, n * sizeof(*ids)) &&
                  s->session->batch->pass != s->begun;
    if (s->late_head && newest && !covered(s, ids, n)) {
        CHECK(!has_logits(s->session));
        s->unread++;
    }
    CHECK(want && want <= s->truth.tokens);
    for (size_t i = 0; i < SIM_CALLS; i++) {
        const struct sim_call *b = &s->calls[i];
        if (!b->number || b == c)
            continue;
        CHECK(b->key != c->key);                    /* no prefix is requested twice */
        CHECK(!b->told || b->heard);                /* answers that are there are read first */
        CHECK(b->n >= n || n - b->n >= b->tokens || /* no call covers this one's prefix */
              memcmp(b->ids, ids, b->n * sizeof(*ids)) != 0);
    }
    answer(s, c, tally);
    tally->traffic.asked_tokens += want;
    *call = c;
    return OK;
}

/* Deliver the packets that are due. A packet of a call that no longer exists is stale. */
static void deliver(struct sim *s)
{
    for (size_t i = 0; i < s->npackets;) {
        size_t at = 0;
        if (s->packets[i].due > s->clock) {
            i++;
            continue;
        }
        while (at < SIM_CALLS && s->calls[at].number != s->packets[i].number)
            at++;
        if (at < SIM_CALLS)
            s->calls[at].arrived = true;
        else
            s->nstale++;
        s->packets[i] = s->packets[--s->npackets];
    }
}

static bool done(const void *call, size_t at)
{
    (void)at;
    const struct sim_call *c = call;
    struct sim *s = c->sim;
    size_t length = session_length(s->session);
    int logits = has_logits(s->session);
    s->looked = 0;
    s->idle = length == s->seen_length && logits == s->seen_logits ? s->idle + 1 : 0;
    CHECK(s->drafts || s->idle <= IDLE); /* waiting is the job of take */
    s->seen_length = length;
    s->seen_logits = logits;
    s->clock += draw(s, 3);
    deliver(s);
    s->calls[c - s->calls].told = c->arrived;
    return c->arrived;
}

static int take(void *call, size_t at, uint32_t *id, struct err *err)
{
    struct sim_call *c = call;
    struct sim *s = c->sim;
    CHECK(at == 0);
    for (size_t i = 0; i < SIM_CALLS; i++) /* the oldest call must be taken first */
        CHECK(!s->calls[i].number || s->calls[i].n >= c->n);
    while (!c->arrived) {
        uint64_t next = UINT64_MAX;
        if (s->stop && *s->stop)
            return err_set(err, ERR_STOP, "interrupted");
        for (size_t i = 0; i < s->npackets; i++)
            next = s->packets[i].due < next ? s->packets[i].due : next;
        s->clock = next;
        deliver(s);
    }
    c->heard = true;
    s->idle = 0;
    if (c->rc != OK)
        return err_set(err, c->rc, "fault %u", (unsigned)(c->key % 1000));
    *id = c->id;
    return OK;
}

/* Charge the call, and put each token of its reply into the memo. */
static void use(struct sim_call *c)
{
    struct sim *s = c->sim;
    CHECK(c->number && c->heard && c->n > s->last_commit && s->ncommitted < SIM_LOG);
    s->last_commit = c->n;
    s->reach = s->longest;
    s->longest = 0;
    s->charged += c->tokens;
    s->committed[s->ncommitted++] = rand_u64(c->key, c->tokens);
    uint32_t id = c->id;
    uint64_t key = c->key, due = s->clock;
    for (size_t i = 0; c->rc == OK && i < c->tokens; i++) {
        remember(s, key, id, due);
        due += draw(s, s->delay / 4 + 1);
        if (id >= TINY_IM_END || c->n == TINY_CONTEXT || i + 1 == c->tokens)
            break;
        c->ids[c->n++] = id;
        key = port_key(c->n, c->ids, c->n);
        id = truth(s, c->ids, c->n, key);
        if (id >= s->size)
            break;
    }
}

static void end(void *call, enum cloud_end how)
{
    struct sim_call *c = call;
    CHECK(c->number);
    if (how == CLOUD_USE) {
        use(c);
    } else {
        c->sim->charged += c->heard ? c->tokens : 0; /* its answer was of no use */
        c->sim->ndropped++;
    }
    c->number = 0;
    c->sim->live--;
}

void sim_port(struct cloud_port *out, struct sim *s)
{
    *out = (struct cloud_port){ .arg = s,
                                .known = known,
                                .info = info,
                                .ask = ask,
                                .done = done,
                                .take = take,
                                .end = end,
                                .traffic = port_traffic };
}

void sim_text(struct sim *s)
{
    s->last_commit = 0;
    s->idle = 0;
    s->begun = s->session->batch->pass;
}
