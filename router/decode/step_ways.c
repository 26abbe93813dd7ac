/* step_ways.c - policies that look at several of the local model's tokens before the first of them
 * is decided.
 *
 * verify: the local model writes a draft, one call shows it to the cloud, and what comes back is as
 * much of it as the cloud would write, and one token more: the text of policy always, with a call
 * for several tokens. A draft begins behind the latest token that was not the local model's; what
 * follows a whole one is the cloud's, even if both agree.
 *
 * call: the local model itself asks, as it was trained to, by writing <call>N</call>. The tokens of
 * that are taken out of the text, with blanks before it and what else its last token says, and the
 * next N tokens are the cloud's. One that begins inside a token, as behind a full stop, is none. */
#include <string.h>

#include "model/text/tokenizer.h"
#include "router/cloud_port.h"
#include "router/decode/step_internal.h"

enum {
    DRAFT_USUAL = 7, /* ids of a draft of verify, unless calls are for several tokens */
    TAG_BYTES = 32,  /* of the longest <call>N</call>, with blanks before it */
    TAG_DIGITS = 4
};

size_t decode_draft_length(size_t tokens)
{
    tokens = tokens < CLOUD_MAX_TOKENS ? tokens : CLOUD_MAX_TOKENS;
    return tokens > 1 ? tokens - 1 : DRAFT_USUAL;
}

static size_t step_draft_length(const struct step *s)
{
    return decode_draft_length(s->o->span.tokens);
}

size_t step_most_held(const struct step *s)
{
    return s->o->policy == POLICY_VERIFY ? step_draft_length(s)
           : s->o->policy == POLICY_CALL ? TAG_BYTES + 1
                                         : 1;
}

/* What text[n] is of a tag: not the beginning of one, a part of it, or one with *count tokens. */
enum tag { TAG_NOT, TAG_PART, TAG_WHOLE };

/* Move *at over `word`, as far as text[n] has it. */
static enum tag step_tag_word(const char *text, size_t n, size_t *at, const char *word)
{
    size_t length = strlen(word), left = n - *at, both = left < length ? left : length;
    if (memcmp(text + *at, word, both) != 0)
        return TAG_NOT;
    *at += both;
    return both < length ? TAG_PART : TAG_WHOLE;
}

static enum tag step_tag(const char *text, size_t n, size_t *count)
{
    size_t at = 0, digits = 0;
    while (at < n && (text[at] == ' ' || text[at] == '\n'))
        at++;
    enum tag tag = step_tag_word(text, n, &at, "<call>");
    if (tag != TAG_WHOLE)
        return tag;
    for (*count = 0; at < n && text[at] >= '0' && text[at] <= '9'; at++, digits++)
        *count = 10 * *count + (size_t)(text[at] - '0');
    if (digits > TAG_DIGITS || (at < n && !*count))
        return TAG_NOT;
    return at == n ? TAG_PART : step_tag_word(text, n, &at, "</call>");
}

/* See what the tokens from the oldest on are of a tag. */
static enum tag step_read_tag(const struct step *s, size_t *count)
{
    char text[TAG_BYTES];
    size_t n = 0, size = 0;
    enum tag tag = TAG_PART;
    for (size_t i = 0; i < s->ahead.n && tag == TAG_PART; i++) {
        uint32_t id = ahead_at(&s->ahead, i)->t.id;
        const char *bytes = tokenizer_bytes(s->text.tok, id, &size);
        if (!bytes || !size || n + size > sizeof(text) || tokenizer_is_control(s->text.tok, id))
            return TAG_NOT;
        memcpy(text + n, bytes, size);
        tag = step_tag(text, n += size, count);
    }
    return tag;
}

bool step_take_call(struct step *s, const struct ahead_token *e)
{
    size_t count;
    if (s->o->policy != POLICY_CALL || e->routed || step_read_tag(s, &count) != TAG_WHOLE)
        return false;
    s->way.from = e->at;
    s->way.n = count;
    return true;
}

bool step_is_full(const struct step *s)
{
    const struct ahead_token *last = ahead_last(&s->ahead);
    return last && (!last->written || s->halted || s->ahead.n == s->ahead.cap ||
                    s->stats->tokens + s->ahead.n >= s->o->max_tokens ||
                    last->at == session_context(s->text.session));
}

bool step_holds(const struct step *s, const struct ahead_token *e)
{
    size_t count;
    uint32_t id;
    const struct cloud_port *c = s->cloud;
    if (s->o->policy == POLICY_CALL)
        return !e->routed && step_read_tag(s, &count) == TAG_PART;
    return s->o->policy == POLICY_VERIFY && !e->met && s->ahead.n < step_draft_length(s) &&
           !(c && c->peek(c->arg, step_text_ids(s), e->at, &id) == CLOUD_HERE);
}

bool step_writes_cloud(const struct step *s, size_t at)
{
    enum policy p = s->o->policy;
    return p == POLICY_ALWAYS || p == POLICY_VERIFY ||
           (p == POLICY_CALL && at - s->way.from < s->way.n);
}

bool step_confirms(const struct step *s, const struct ahead_token *e)
{
    return s->o->policy == POLICY_VERIFY && e->answered && e->answer == e->t.edge_id &&
           e->at - s->way.from < step_draft_length(s);
}

/* Write the text and the draft that begins with the oldest token to s->way.ids, and return how many
 * ids of it may be sent: not more than fit into a server's context with a token after them, and
 * none where limits count the tokens of this text, as a call is charged for all that it asks for.
 */
static size_t step_show_draft(struct step *s, struct ahead_token *e)
{
    uint32_t *ids = s->way.ids;
    size_t room = session_context(s->text.session) - e->at, most = step_draft_length(s), n = 0;
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

void step_find_draft(struct step *s, struct ahead_token *e)
{
    const struct cloud_port *c = s->cloud;
    size_t draft = step_show_draft(s, e);
    e->ways[0] = (struct caps_call){ .n = e->at, .draft = draft, .tokens = draft + 1 };
    e->ways[1] = (struct caps_call){ .n = e->at, .tokens = 1 };
    if (gate_counts_bytes(s->gate)) {
        e->ways[1].bytes = c->bytes(c->arg, s->way.ids, e->at, 1);
        e->ways[0].bytes = c->bytes(c->arg, s->way.ids, e->at + draft, 1);
        e->ways[0].bytes += draft ? CLOUD_DRAFT_BYTES : 0;
    }
}

void step_way_judged(struct step *s, const struct ahead_token *e, const struct decode_token *t)
{
    if (s->o->policy == POLICY_VERIFY && t->source != SOURCE_EDGE)
        s->way.from = e->at + 1;
}
