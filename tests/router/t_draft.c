/* Tests that drafts change nothing but the number of passes: random clouds, networks, policies,
 * samplers, stop strings and limits, written without drafts and then with drafts, in step and
 * ahead. And that each source finds what it should, and no id that ends a text is drafted. */
#include "router/decode/step.h"
#include "tests/router/ahead_help.h"
#include "tests/support/port.h"

enum { DRAFT_CASES = 300, LONGEST = 24 };

static struct { /* what occurred in all cases */
    size_t passes, drafted, accepted, saved, cloud, lookup;
} seen;

/* Compare the text in step and without drafts with that of this window and with drafts, and where
 * the edge's own token is known with this window and without drafts. */
static void compare(bool window)
{
    const struct result *a = &results[0], *b = &results[1];
    for (size_t i = 0; i < TEXTS; i++) {
        const struct text *x = &a->text[i], *y = &b->text[i];
        const struct decode_stats *s = &x->stats, *t = &y->stats;
        compare_text(x, y);
        compare_edges(window ? &results[2].text[i] : x, y);
        CHECK(s->drafted == 0 && s->accepted == 0 && t->accepted <= t->drafted);
        CHECK(window || (t->passes <= s->passes && t->passes + t->accepted >= s->passes));
        CHECK(s->calls == t->calls);
        seen.passes += s->passes;
        seen.saved += window ? 0 : s->passes - t->passes;
        seen.drafted += t->drafted;
        seen.accepted += t->accepted;
    }
    compare_calls(a, b);
}

/* Write the case in step without drafts, and with a window and drafts of one kind. */
static void run_case(struct setup *c, size_t i)
{
    bool window = i % 2;
    c->drafts = DRAFT_OFF;
    c->draft_max = 0;
    c->interrupt_after = !window && pick(10) == 0 ? 1 + pick(30) : 0;
    if (pick(3) == 0) {
        run_window(&results[0], c, 0, i);
        make_stops(c, &results[0].text[0]);
    }
    run_window(&results[0], c, 0, i);
    c->draft_max = 1 + pick(LONGEST);
    c->drafts = (enum draft_kind)(1 + pick(3));
    size_t before = seen.accepted;
    if (window) {
        struct setup without = *c;
        without.drafts = DRAFT_OFF;
        run_window(&results[2], &without, window, rand_u64(i, 2));
    }
    run_window(&results[1], c, window, rand_u64(i, 1));
    compare(window);
    seen.cloud += c->drafts == DRAFT_CLOUD ? seen.accepted - before : 0;
    seen.lookup += c->drafts == DRAFT_LOOKUP ? seen.accepted - before : 0;
}

static void test_cases(void)
{
    static struct setup c;
    for (size_t i = 0; i < DRAFT_CASES; i++) {
        make_case(&c);
        run_case(&c, i);
    }
    CHECK(seen.passes > 5000 && seen.accepted > 1000 && seen.drafted > seen.accepted + 500);
    CHECK(seen.saved > 300 && seen.cloud > 50 && seen.lookup > 50);
}

/* A case can be repeated, however long the rest of a reply was awaited. */
static void test_replay(void)
{
    static struct setup c;
    size_t drafted = 0;
    for (size_t i = 0; i < 24; i++) {
        make_case(&c);
        c.truth.tokens = 4;
        c.policy = POLICY_ALWAYS;
        c.drafts = DRAFT_CLOUD;
        c.draft_max = 8;
        for (size_t k = 0; k < 2; k++) {
            c.step_ns = k * 1000000; /* the longer a pass, the longer the wait */
            run_window(&results[k], &c, i % 2, i);
        }
        const struct sim *a = &results[0].sim, *b = &results[1].sim;
        CHECK(a->clock == b->clock && a->draws == b->draws && a->ndropped == b->ndropped);
        for (size_t k = 0; k < TEXTS; k++) {
            const struct decode_stats *s = &results[0].text[k].stats,
                                      *t = &results[1].text[k].stats;
            CHECK(s->passes == t->passes && s->drafted == t->drafted && s->accepted == t->accepted);
            drafted += s->drafted;
        }
    }
    CHECK(drafted > 20);
}

static size_t make(struct draft *d, const char *text, size_t room, char *out)
{
    uint32_t ids[TINY_CONTEXT + DRAFT_MOST];
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        ids[i] = (unsigned char)text[i];
    size_t made = draft_make(d, ids, n, room);
    for (size_t i = 0; i < made; i++)
        out[i] = (char)ids[n + i];
    out[made] = '\0';
    return made;
}

static void learn(struct draft *d, size_t made, size_t stood)
{
    d->made = made;
    d->stood = stood;
    draft_learn(d);
}

/* The latest place of the longest match, and what follows there. */
static void test_lookup(void)
{
    struct draft d;
    char out[DRAFT_MOST + 1];
    draft_open(&d, DRAFT_BOTH, 8, NULL);
    CHECK(make(&d, "abcdefghi abc", 9, out) == 4 && !strcmp(out, "defg"));
    learn(&d, 4, 4);
    CHECK(make(&d, "abcdefghi abc", 9, out) == 8 && !strcmp(out, "defghi a"));
    CHECK(make(&d, "abcdefghi abc", 3, out) == 3 && !strcmp(out, "def"));
    CHECK(make(&d, "xab1 yab2 cxab", 1, out) == 1 && !strcmp(out, "1")); /* longer */
    CHECK(make(&d, "xab1 yab2 czab", 1, out) == 1 && !strcmp(out, "2")); /* later */
    CHECK(make(&d, "xyxyxy", 8, out) == 8 && !strcmp(out, "xyxyxyxy"));
    CHECK(make(&d, "abcdefghijklmn", 8, out) == 0 && make(&d, "ab", 8, out) == 0);
}

/* Drafts get shorter and rarer where they do not stand, and longer where they do. */
static void test_pace(void)
{
    static const char text[] = "ab1 ab";
    struct draft d;
    char out[DRAFT_MOST + 1];
    size_t tried = 0;
    draft_open(&d, DRAFT_LOOKUP, DRAFT_MOST, NULL);
    for (size_t i = 0; i < 500; i++) {
        size_t made = make(&d, text, DRAFT_MOST, out);
        tried += made;
        learn(&d, made, 0);
    }
    CHECK(tried > 4 && tried < 30);
    while (!make(&d, text, DRAFT_MOST, out))
        continue;
    for (size_t length = 2, made; length < DRAFT_MOST; length = made) {
        learn(&d, length, length);
        made = make(&d, text, DRAFT_MOST, out);
        CHECK(made == 2 * length);
    }
    learn(&d, DRAFT_MOST, 5);
    CHECK(make(&d, text, DRAFT_MOST, out) == 6);
    /* A long match is worth a try in spite of misses. */
    learn(&d, 6, 0);
    CHECK(make(&d, text, DRAFT_MOST, out) == 0);
    CHECK(make(&d, "abcdefgh abcdefgh", DRAFT_MOST, out) == 4);
}

/* A cloud that has sent any number of ids. */
static enum cloud_sight all_here(void *arg, const uint32_t *ids, size_t n, bool used, uint32_t *id)
{
    (void)arg, (void)ids, (void)used;
    *id = (uint32_t)('a' + n % 26);
    return CLOUD_MEMO;
}

/* A draft of the cloud is as long as its last id stands with a chance of an eighth; the share that
 * stood says so, at first 4 of 5. It never ends for good. */
static void test_pace_cloud(void)
{
    static const struct cloud_port port = { .known = all_here };
    struct draft d;
    char out[DRAFT_MOST + 1];
    size_t made, tried = 0;
    draft_open(&d, DRAFT_CLOUD, DRAFT_MOST, &port);
    CHECK(make(&d, "xy", DRAFT_MOST, out) == 9); /* 0.8 ^ 9 is 0.134 */
    CHECK(!strcmp(out, "cdefghijk") && make(&d, "xy", 5, out) == 5);
    for (size_t i = 0; i < 20; i++) /* all stood */
        learn(&d, 9, 9);
    CHECK(make(&d, "xy", DRAFT_MOST, out) > 30);
    for (size_t i = 0; i < 200; i++) /* half of them stood */
        learn(&d, 2, 1);
    CHECK(make(&d, "xy", DRAFT_MOST, out) == 3);
    for (size_t i = 0; i < 500; i++) {
        made = make(&d, "xy", DRAFT_MOST, out);
        tried += made;
        learn(&d, made, 0);
    }
    CHECK(tried > 4 && tried < 30); /* in between are pauses */
    for (size_t i = 0; i < 200; i++) {
        made = make(&d, "xy", DRAFT_MOST, out);
        learn(&d, made, made);
    }
    CHECK(make(&d, "xy", DRAFT_MOST, out) > 30); /* it has recovered */
}

/* A cloud that has sent 'x' behind the first `from` of a text, and four ids more. */
struct rest {
    const uint32_t *ids;
    size_t from;
};

static enum cloud_sight rest_here(void *arg, const uint32_t *ids, size_t n, bool used, uint32_t *id)
{
    const struct rest *r = arg;
    (void)ids, (void)used;
    CHECK(n >= r->from);
    if (n > r->from + 4)
        return CLOUD_UNKNOWN;
    *id = n == r->from ? 'x' : r->ids[n - r->from - 1];
    return CLOUD_MEMO;
}

/* Return how many of four ids that the cloud has sent behind n ids of a text, and the one that was
 * just written, go into the next pass. */
static size_t cut(struct decode_options *o, const uint32_t *ids, size_t n, const uint32_t sent[4])
{
    struct err err;
    struct rest rest = { .ids = sent, .from = n };
    const struct cloud_port port = { .arg = &rest, .known = rest_here, .traffic = port_traffic };
    const struct step_text text = {
        .session = session, .tok = engine.tokenizer, .cloud = &port, .prompt = ids, .n = n
    };
    struct decode_stats stats;
    struct step *s;
    session_rewind(session, 0);
    CHECK(step_open(&s, &text, o, &stats, &err) == OK);
    const struct step_need *need = step_next(s);
    CHECK(need->want == STEP_ROWS && stats.tokens == 1 && need->ids[n] == 'x');
    size_t made = need->n - n - 1;
    CHECK(made <= 4 && !memcmp(need->ids + n + 1, sent, made * sizeof(*sent)));
    CHECK(step_close(s, &err) == ERR_STOP);
    return made;
}

/* A draft ends before an id that ends the text or that the model lacks, wherever it is, and keeps
 * to the context and to the tokens that are left. The last token of a text is not evaluated. */
static void test_cut(void)
{
    uint32_t size = (uint32_t)tokenizer_size(engine.tokenizer), ids[TINY_CONTEXT];
    struct decode_options o = { .policy = POLICY_POSITION,
                                .place = "0",
                                .threshold = 0.5f,
                                .drafts = DRAFT_CLOUD,
                                .max_tokens = 100,
                                .draft_max = 8 };
    for (size_t i = 0; i < TINY_CONTEXT; i++)
        ids[i] = 'a';
    CHECK(cut(&o, ids, 5, (const uint32_t[]){ 'a', 'b', 'c', 'd' }) == 4);
    for (size_t i = 0; i < 4; i++) {
        const uint32_t bad[] = { size, size + 1, UINT32_MAX, TINY_EOS, TINY_IM_END };
        for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
            uint32_t sent[] = { 'a', 'b', 'c', 'd' };
            sent[i] = bad[k];
            o.ignore_eos = false;
            CHECK(cut(&o, ids, 5, sent) == i);
            o.ignore_eos = true;
            CHECK(cut(&o, ids, 5, sent) == (bad[k] < size ? 4 : i));
        }
    }
    for (size_t left = 0; left < 4; left++) {
        const uint32_t sent[] = { 'a', 'b', 'c', 'd' };
        CHECK(cut(&o, ids, TINY_CONTEXT - 1 - left, sent) == left);
        o.max_tokens = 2 + left; /* one was counted, and one is the last */
        CHECK(cut(&o, ids, 5, sent) == left);
        o.max_tokens = 100;
        o.draft_max = left;
        CHECK(cut(&o, ids, 5, sent) == left);
        o.draft_max = 8;
    }
    o.stops = (const char *const[]){ "bc", NULL };
    CHECK(cut(&o, ids, 5, (const uint32_t[]){ 'a', 'b', 'c', 'd' }) == 2);
}

int main(void)
{
    enum draft_kind kind;
    CHECK(draft_parse(&kind, "both") && kind == (DRAFT_LOOKUP | DRAFT_CLOUD));
    CHECK(draft_parse(&kind, "off") && kind == DRAFT_OFF && !draft_parse(&kind, "none"));
    routers_open(true);
    look_at_scores();
    test_lookup();
    test_pace();
    test_pace_cloud();
    test_cut();
    test_cases();
    test_replay();
    routers_close();
    return 0;
}
