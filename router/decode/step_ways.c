/* step_ways.c - what each policy reads and asks that does more than hold the score of a token's own
 * row against a threshold. Each has its functions here, and step_way lists them; a policy that is
 * not in that list needs none. */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/cloud_port.h"
#include "router/decode/step_internal.h"
#include "router/policy.h"
#include "router/router.h"

/* context, random, position: a score of ids alone. */

static bool context_score(const struct step *s, size_t at, float *score)
{
    *score = router_score_ids(s->text.router, session_ids(s->text.session), at);
    return true;
}

static bool random_score(const struct step *s, size_t at, float *score)
{
    *score = policy_score_random(s->o->seed, at);
    return true;
}

static int position_open(struct step *s)
{
    return s->o->place ? OK : err_set(&s->err, ERR_ARG, "policy position needs a place");
}

static bool position_score(const struct step *s, size_t at, float *score)
{
    const uint32_t *written = session_ids(s->text.session) + s->text.n;
    *score = policy_score_position(s->o->place, s->text.tok, written, at - s->text.n);
    return true;
}

/* always; what verify shows is the cloud's, too. */

static bool always_writes(const struct step *s, size_t at)
{
    (void)s, (void)at;
    return true;
}

/* query: the first score decides for the answer; step: that of a step's first token for the step.
 */

static int lead_open(struct step *s)
{
    s->its_way.lead.at = s->its_way.lead.decided = s->text.n;
    return OK;
}

static size_t query_leader(const struct step *s, size_t at)
{
    (void)at;
    return s->text.n;
}

static size_t step_policy_leader(const struct step *s, size_t at)
{
    const uint32_t *written = session_ids(s->text.session) + s->text.n;
    size_t decided = s->its_way.lead.decided;
    while (at > decided && !policy_ends_step(s->text.tok, written, at - s->text.n))
        at--;
    return at > decided ? at : s->its_way.lead.at; /* what is decided stays */
}

static void lead_judged(struct step *s, const struct ahead_token *e, const struct decode_token *t)
{
    s->its_way.lead.at = s->way->leader(s, e->at);
    s->its_way.lead.decided = e->at;
    if (s->its_way.lead.at == e->at)
        s->its_way.lead.score = t->score;
}

/* takeover: once the cloud has written a token, it writes the rest. */

static bool takeover_writes(const struct step *s, size_t at)
{
    bool taken = s->stats->cloud > 0;
    for (size_t i = 0; i < s->ahead.n && !taken; i++) {
        const struct ahead_token *b = ahead_at(&s->ahead, i);
        taken = b->routed && b->at < at; /* given that its call is answered */
    }
    return taken;
}

static bool takeover_score(const struct step *s, size_t at, float *score)
{
    *score = 0;
    return takeover_writes(s, at);
}

/* The call was not answered after which it was taken for the cloud's: its own row has its score. */
static bool takeover_takes_back(struct step *s, const struct ahead_token *e)
{
    return e->by_ids && !e->met && !takeover_writes(s, e->at);
}

/* call: the local model itself asks, as it was trained to, by writing <call>N</call>. The tokens of
 * that are taken out of the text, with blanks before it and what else its first and last token say,
 * and the next N tokens are the cloud's. */

enum {
    TAG_BYTES = 64, /* of the longest <call>N</call>, with what stands before it */
    TAG_DIGITS = 4
};

/* What text[n] is of a tag: not the beginning of one, a part of it, or one with *count tokens. */
enum tag { TAG_NOT, TAG_PART, TAG_WHOLE };

/* Move *at over `word`, as far as text[n] has it. */
static enum tag tag_word(const char *text, size_t n, size_t *at, const char *word)
{
    size_t length = strlen(word), left = n - *at, both = left < length ? left : length;
    if (memcmp(text + *at, word, both) != 0)
        return TAG_NOT;
    *at += both;
    return both < length ? TAG_PART : TAG_WHOLE;
}

static enum tag tag_of(const char *text, size_t n, size_t *count)
{
    size_t at = 0, digits = 0;
    while (at < n && (text[at] == ' ' || text[at] == '\n'))
        at++;
    enum tag tag = tag_word(text, n, &at, "<call>");
    if (tag != TAG_WHOLE)
        return tag;
    for (*count = 0; at < n && text[at] >= '0' && text[at] <= '9'; at++, digits++)
        *count = 10 * *count + (size_t)(text[at] - '0');
    if (digits > TAG_DIGITS || (at < n && !*count))
        return TAG_NOT;
    return at == n ? TAG_PART : tag_word(text, n, &at, "</call>");
}

/* See what the tokens from the oldest on are of a tag, which may begin inside the first. */
static enum tag call_read(const struct step *s, size_t *count)
{
    char text[TAG_BYTES];
    size_t n = 0, size = 0, first = 0;
    enum tag tag = TAG_PART;
    for (size_t i = 0; i < s->ahead.n && tag == TAG_PART; i++) {
        uint32_t id = ahead_at(&s->ahead, i)->t.id;
        const char *bytes = tokenizer_bytes(s->text.tok, id, &size);
        size = size < sizeof(text) - n ? size : sizeof(text) - n;
        if (!bytes || !size || tokenizer_is_control(s->text.tok, id))
            return TAG_NOT;
        memcpy(text + n, bytes, size);
        n += size;
        first = i ? first : size;
        tag = tag_of(text, n, count);
        for (size_t at = 1; at < first && tag == TAG_NOT; at++)
            tag = text[at] == '<' ? tag_of(text + at, n - at, count) : TAG_NOT;
    }
    return tag;
}

static size_t call_most_held(const struct step *s)
{
    (void)s;
    return TAG_BYTES + 1;
}

static bool call_takes_back(struct step *s, const struct ahead_token *e)
{
    size_t count;
    if (e->routed || call_read(s, &count) != TAG_WHOLE)
        return false;
    s->its_way.call.from = e->at;
    s->its_way.call.n = count;
    return true;
}

static bool call_holds(const struct step *s, const struct ahead_token *e)
{
    size_t count;
    return !e->routed && call_read(s, &count) == TAG_PART;
}

static bool call_writes(const struct step *s, size_t at)
{
    return at - s->its_way.call.from < s->its_way.call.n;
}

/* verify: the local model writes a draft, one call shows it to the cloud, and what comes back is as
 * much of it as the cloud would write, and one token more: the text of policy always, with a call
 * for several tokens. A draft begins behind the latest token that was not the local model's; what
 * follows a whole one is the cloud's, even if both agree. */

enum { DRAFT_USUAL = 7 }; /* ids of a draft, unless calls are for several tokens */

size_t decode_draft_length(size_t tokens)
{
    tokens = tokens < CLOUD_MAX_TOKENS ? tokens : CLOUD_MAX_TOKENS;
    return tokens > 1 ? tokens - 1 : DRAFT_USUAL;
}

static size_t verify_length(const struct step *s)
{
    return decode_draft_length(s->o->call_tokens);
}

static int verify_open(struct step *s)
{
    size_t bytes, n = session_context(s->text.session) + CLOUD_MAX_TOKENS;
    s->its_way.verify.from = s->text.n;
    if (s->cloud && !s->cloud->verify)
        return err_set(&s->err, ERR_ARG, "policy verify: this cloud cannot check a draft");
    uint32_t *ids = size_mul(&bytes, n, sizeof(*ids)) ? malloc(bytes) : NULL;
    s->its_way.verify.ids = s->kept = ids;
    return ids ? OK : err_set(&s->err, ERR_NOMEM, "decode: out of memory");
}

static bool verify_holds(const struct step *s, const struct ahead_token *e)
{
    uint32_t id;
    const struct cloud_port *c = s->cloud;
    return !e->met && s->ahead.n < verify_length(s) &&
           !(c && c->peek(c->arg, step_text_ids(s), e->at, &id) == CLOUD_HERE);
}

static bool verify_confirms(const struct step *s, const struct ahead_token *e)
{
    return e->answered && e->answer == e->t.edge_id &&
           e->at - s->its_way.verify.from < verify_length(s);
}

/* Write the text and the draft that begins with the oldest token to s->its_way.verify.ids, and
 * return how many ids of it may be sent: not more than fit into a server's context with a token
 * after them, and none where limits count the tokens of this text, as a call is charged for all
 * that it asks for.
 */
static size_t verify_write(struct step *s, struct ahead_token *e)
{
    uint32_t *ids = s->its_way.verify.ids;
    size_t room = session_context(s->text.session) - e->at, most = verify_length(s), n = 0;
    most = most < s->ahead.n ? most : s->ahead.n;
    most = most < room ? most : room ? room - 1 : 0;
    memcpy(ids, step_text_ids(s), e->at * sizeof(*ids));
    for (size_t i = 0; i < most; i++)
        ids[e->at + i] = ahead_at(&s->ahead, i)->t.id;
    e->held = step_keeps(s, ids, e->at, &e->own);
    while (n < most && !s->o->cloud_limit && !step_keeps(s, ids, e->at + n + 1, NULL))
        n++;
    return n;
}

static void verify_show(struct step *s, struct ahead_token *e)
{
    const struct cloud_port *c = s->cloud;
    size_t draft = verify_write(s, e);
    e->ways[0] = (struct caps_call){ .n = e->at, .draft = draft, .tokens = draft + 1 };
    e->ways[1] = (struct caps_call){ .n = e->at, .tokens = 1 };
    if (gate_counts_bytes(s->gate)) {
        e->ways[1].bytes = c->bytes(c->arg, s->its_way.verify.ids, e->at, 1);
        e->ways[0].bytes = c->bytes(c->arg, s->its_way.verify.ids, e->at + draft, 1);
        e->ways[0].bytes += draft ? CLOUD_DRAFT_BYTES : 0;
    }
}

static int verify_ask(struct step *s, struct ahead_token *e, struct err *err)
{
    const struct cloud_port *c = s->cloud;
    return c->verify(c->arg, s->its_way.verify.ids, e->at, e->ways[e->way].draft, &s->tally,
                     &e->call, err);
}

static void verify_judged(struct step *s, const struct ahead_token *e, const struct decode_token *t)
{
    if (t->source != SOURCE_EDGE)
        s->its_way.verify.from = e->at + 1;
}

const struct way *step_way(enum policy p)
{
    static const struct way ways[POLICY_CALL + 1] = {
        [POLICY_CONTEXT] = { .score = context_score },
        [POLICY_RANDOM] = { .score = random_score },
        [POLICY_POSITION] = { .open = position_open, .score = position_score },
        [POLICY_ALWAYS] = { .writes = always_writes },
        [POLICY_QUERY] = { .open = lead_open, .leader = query_leader, .judged = lead_judged },
        [POLICY_STEP] = { .open = lead_open, .leader = step_policy_leader, .judged = lead_judged },
        [POLICY_TAKEOVER] = { .score = takeover_score,
                              .writes = takeover_writes,
                              .takes_back = takeover_takes_back },
        [POLICY_CALL] = { .writes = call_writes,
                          .takes_back = call_takes_back,
                          .holds = call_holds,
                          .most_held = call_most_held },
        [POLICY_VERIFY] = { .open = verify_open,
                            .writes = always_writes,
                            .holds = verify_holds,
                            .most_held = verify_length,
                            .show = verify_show,
                            .ask = verify_ask,
                            .confirms = verify_confirms,
                            .judged = verify_judged },
    };
    return &ways[p];
}

bool step_is_full(const struct step *s)
{
    const struct ahead_token *last = ahead_last(&s->ahead);
    if (!last)
        return false;
    bool enough = s->stats->tokens + s->ahead.n >= s->o->max_tokens || s->halted;
    if (enough && s->way->takes_back && s->way->holds) /* what is held may come to nothing */
        enough = !s->way->holds(s, ahead_at(&s->ahead, 0));
    return enough || !last->written || s->ahead.n == s->ahead.cap ||
           last->at == session_context(s->text.session);
}
