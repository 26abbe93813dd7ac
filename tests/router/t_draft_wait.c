/* t_draft_wait.c - tests that the rest of a reply is awaited as a draft: that this happens, that
 * each wait ends, and that there are no more after three that brought nothing in time. */
#include "router/decode/step.h"

#include "model/text/tokenizer.h"
#include "net/answers/answers.h"
#include "tests/router/loop_help.h"
#include "tests/support/port.h"

enum { LENGTH = 40, REPLY = 8, PROMPT = 3, LOOKS = 1000 };

static struct engine engine;
static struct session *session;
static struct sampler *sampler;

/* What becomes of the rest of a reply while it is awaited. */
enum course {
    NEVER, /* it stays on its way */
    SOON,  /* it is there at the second look */
    FAILS, /* the call fails */
    PART   /* one id is there at the first look, and no more come */
};

static struct stream { /* a cloud whose replies have REPLY tokens, of which the first comes at once
                        */
    const enum course *course; /* [n], of each wait; the last one stands for all that follow */
    size_t n;
    size_t from, want; /* the latest reply: the prefix that was asked, and its tokens */
    size_t waits;      /* that have begun */
    bool waiting;      /* the latest look was for a draft, and there was no pass since */
    bool again;        /* not the first look of this wait */
} stream;

/* Return the only token that may follow a prefix of this length. */
static uint32_t says(size_t n)
{
    return (uint32_t)('a' + n % 26);
}

static bool in_reply(const struct stream *s, size_t n)
{
    return n > s->from && n < s->from + s->want;
}

static enum course course(const struct stream *s)
{
    size_t i = s->waits - 1;
    return s->course[i < s->n ? i : s->n - 1];
}

/* A look for a draft goes beyond what the session holds. */
static enum cloud_sight stream_known(void *arg, const uint32_t *ids, size_t n, bool used,
                                     uint32_t *id)
{
    struct stream *s = arg;
    size_t length = session_length(session);
    (void)ids;
    *id = says(n);
    if (!in_reply(s, n))
        return CLOUD_UNKNOWN;
    if (used)
        return CLOUD_MEMO;
    if (n > length && !s->waiting) {
        s->waiting = true;
        s->again = false;
        s->waits++;
    }
    if (!s->waits || course(s) == NEVER)
        return CLOUD_COMING;
    if (course(s) == PART)
        return n == length + 1 ? CLOUD_MEMO : CLOUD_COMING;
    if (!s->again)
        return CLOUD_COMING;
    if (course(s) == SOON)
        return CLOUD_MEMO;
    s->want = 0;
    return CLOUD_UNKNOWN;
}

static struct cloud_info stream_info(void *arg)
{
    (void)arg;
    return (struct cloud_info){ .tokens = REPLY };
}

static int stream_ask(void *arg, const uint32_t *ids, size_t n, size_t tokens,
                      struct cloud_tally *tally, void **call, struct err *err)
{
    struct stream *s = arg;
    (void)ids, (void)tally, (void)err;
    s->from = n;
    s->want = tokens;
    *call = s;
    return OK;
}

static bool stream_done(const void *call, size_t at)
{
    (void)call, (void)at;
    return true;
}

static int stream_take(void *call, size_t at, uint32_t *id, struct err *err)
{
    const struct stream *s = call;
    (void)err;
    *id = says(s->from + at);
    return OK;
}

static void stream_end(void *call, enum cloud_end how)
{
    (void)call, (void)how;
}

static bool on_token(void *arg, const struct decode_token *t)
{
    (void)arg;
    CHECK(t->id == says(PROMPT + t->pos));
    return true;
}

/* Write a text in which every token is the cloud's. Returns how often a draft was awaited. */
static size_t write_text(const enum course *list, size_t n, struct decode_stats *stats)
{
    static const uint32_t prompt[PROMPT] = { 'x', 'y', 'z' };
    const struct cloud_port port = { .arg = &stream,
                                     .known = stream_known,
                                     .info = stream_info,
                                     .ask = stream_ask,
                                     .done = stream_done,
                                     .take = stream_take,
                                     .end = stream_end,
                                     .traffic = port_traffic };
    const struct step_text text = { .session = session,
                                    .tok = engine.tokenizer,
                                    .sampler = sampler,
                                    .cloud = &port,
                                    .prompt = prompt,
                                    .n = PROMPT };
    const struct decode_options o = { .policy = POLICY_MAX_PROB,
                                      .threshold = 2,
                                      .max_tokens = LENGTH,
                                      .drafts = DRAFT_CLOUD,
                                      .draft_max = REPLY,
                                      .emit = on_token };
    struct step *step;
    size_t row, looks = 0, waits = 0;
    stream = (struct stream){ .course = list, .n = n };
    CHECK(step_open(&step, &text, &o, stats, NULL) == OK);
    for (const struct step_need *need; (need = step_next(step))->want != STEP_DONE;) {
        if (need->want == STEP_ROWS) {
            CHECK(session_eval(session, need->ids, need->n, NULL, NULL) == OK);
            step_give_rows(step, need->n);
            stream.waiting = false;
            continue;
        }
        if (need->want == STEP_HEAD) {
            CHECK(session_row(&row, session, need->at[0]));
            CHECK(batch_logits(engine.batch, &row, 1, NULL) == OK);
            step_give_head(step, need->at[0], batch_logits_at(engine.batch, row));
            continue;
        }
        CHECK(need->want == (stream.waiting ? STEP_MOMENT : STEP_CLOUD));
        looks = stream.waiting && stream.again ? looks + 1 : 0;
        CHECK(looks < LOOKS); /* it ends */
        waits += stream.waiting && !stream.again;
        stream.again = stream.waiting;
        step_wait(step);
    }
    CHECK(step_close(step, NULL) == OK && stats->cloud == LENGTH);
    return waits;
}

int main(void)
{
    static const enum course never = NEVER, soon = SOON, part = PART;
    static const enum course fails[] = { NEVER, NEVER, FAILS, NEVER };
    struct decode_stats stats;
    tiny_engine(&engine);
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    CHECK(sampler_open(&sampler, &greedy, tokenizer_size(engine.tokenizer), &engine.kernels,
                       NULL) == OK);
    CHECK(session_open(&session, engine.batch, TINY_CONTEXT, KVCACHE_F32, NULL) == OK);
    CHECK(write_text(&never, 1, &stats) == 3 && stats.drafted == 0);
    CHECK(stats.passes == LENGTH - 1 && stats.memo == LENGTH / REPLY * (REPLY - 1));
    CHECK(write_text(&soon, 1, &stats) > 0 && stats.accepted > 0 &&
          stats.accepted == stats.drafted);
    CHECK(stats.passes + stats.accepted == LENGTH - 1);
    /* What is there is used, although the wait for more was in vain. */
    CHECK(write_text(&part, 1, &stats) == 3 && stats.accepted > 3);
    /* A call that fails says nothing about how long its rest would have taken. */
    CHECK(write_text(fails, 4, &stats) == 4 && stats.drafted == 0);
    sampler_close(sampler);
    session_close(session);
    engine_close(&engine);
    return 0;
}
