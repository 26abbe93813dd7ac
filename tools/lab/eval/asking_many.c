/* asking_many.c - several answers at once: each is a text of router/texts, and they are taken in
 * the order in which they were sent. */
#include <math.h>
#include <stdlib.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "router/texts/texts.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/asking_internal.h"

/* Nobody reads along, so prompts are read in the largest pieces. */
enum { ASKING_PIECE_MS = 60000 };

const char *asking_alone(const struct asking *a)
{
    const struct {
        const char *name;
        bool given;
    } rows[] = {
        /* One call at a time passes through it. */
        { "--lose", a->rate > 0 },
        /* What an answer uses up is not there for those after it. */
        { "a limit on what the cloud may cost", a->routing.gate.quota != NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].given)
            return rows[i].name;
    return NULL;
}

int asking_many_open(struct asking *a, struct err *err)
{
    const struct texts_options o = { .engine = &a->engine,
                                     .routing = &a->routing,
                                     .slots = a->parallel,
                                     .queue = a->window,
                                     .context = a->context,
                                     .kv = a->kv,
                                     .piece_ms = ASKING_PIECE_MS,
                                     .stop = &interrupted };
    a->busy_ns = 0;
    return texts_open(&a->texts, &o, err);
}

void asking_many_close(struct asking *a)
{
    for (; a->flying; a->flying--) {
        struct asking_sent *s = &a->sent[a->oldest];
        text_drop(s->text);
        free(s->ids);
        a->oldest = (a->oldest + 1) % a->window;
    }
    texts_close(a->texts);
    free(a->sent);
    a->texts = NULL;
    a->sent = NULL;
}

void asking_stop(struct asking *a)
{
    if (a->texts)
        texts_stop(a->texts);
}

int asking_many_score(struct asking_sent *s, struct err *err)
{
    const struct text_routing how = { .policy = s->how.policy,
                                      .router = s->how.router,
                                      .max_cloud_tokens = UINT64_MAX };
    const struct text_wish wish = { .prompt = s->ids,
                                    .n = s->prompt,
                                    .max = 1,
                                    .sample = { .top_p = 1, .repeat_penalty = 1 },
                                    .apart = true,
                                    .routing = &how,
                                    .slot = -1 };
    struct text *t;
    int rc = texts_ask(s->a->texts, &t, &wish, err);
    if (rc != OK)
        return rc;
    const struct text_view view = text_wait(t, 0);
    if (view.n)
        s->score = view.tokens[0].t.score;
    else
        rc = err_set(err, view.rc, "%s", view.why);
    text_drop(t);
    return rc;
}

int asking_many_send(struct asking_sent *s, struct err *err)
{
    const struct asking *a = s->a;
    const struct text_routing how = { .policy = s->how.policy,
                                      .router = s->how.router,
                                      .threshold =
                                          isnan(s->how.threshold) ? 0.5f : s->how.threshold,
                                      .tie = s->how.tie,
                                      .ahead = asking_ahead(s),
                                      .max_cloud_tokens = UINT64_MAX };
    const struct text_wish wish = {
        .prompt = s->ids,
        .n = s->prompt,
        .max = s->how.slot ? 1 : a->max_tokens,
        .sample = { .top_p = 1, .repeat_penalty = 1, .seed = rand_u64(a->seed, s->item) },
        .stops = task_stops(s->task),
        .apart = true,
        .routing = &how,
        .slot = -1
    };
    return texts_ask(a->texts, &s->text, &wish, err);
}

int asking_many_take(struct decode_stats *stats, struct asking_sent *s, struct err *err)
{
    struct asking *a = s->a;
    struct text_view view = text_wait(s->text, 0);
    while (!view.finished)
        view = text_wait(s->text, view.n);
    *stats = view.stats;
    bool goes_on = view.rc == OK;
    for (size_t i = 0; goes_on && i < view.n; i++)
        goes_on = asking_take_token(s, &view.tokens[i].t);
    int rc = view.rc == OK ? OK : err_set(err, view.rc, "%s", view.why);
    text_drop(s->text);
    s->text = NULL;
    if (rc != OK) /* the time goes to the next one that is complete */
        return rc;
    uint64_t now = os_now_ns(), busy = texts_count(a->texts).busy_ns;
    stats->total_ms = (double)(now - a->taken_ns) / 1e6;
    stats->edge_ms = (double)(busy - a->busy_ns) / 1e6;
    stats->router_ms = 0;
    a->taken_ns = now;
    a->busy_ns = busy;
    return OK;
}
