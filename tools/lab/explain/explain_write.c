/* explain_write.c - writes the text as `mizzle run` would, and keeps who wrote it and what it
 * took. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/explain/explain.h"

struct writing {
    struct explain *x;
    struct explain_pass *pass; /* the latest, or NULL */
    double router_ms, edge_ms; /* of the tokens so far */
    double cloud_ms;           /* of the next token */
    struct progress_count progress;
    bool full; /* an allocation failed */
};

/* Count an operation for its pass, and among those of the prompt or of the answer. */
static void writing_op(void *arg, enum batch_op op, size_t layer, size_t n, bool ends)
{
    struct writing *w = arg;
    struct explain *x = w->x;
    if (op == OP_EMBED && !ends) {
        size_t at = w->pass ? w->pass->at + w->pass->rows : 0;
        w->pass = &x->passes[x->npasses++];
        *w->pass = (struct explain_pass){ .at = at, .rows = n };
        x->reading.at = x->writing.at = at;
    }
    struct op_times *t = w->pass->at < x->prompt ? &x->reading : &x->writing;
    uint64_t before = t->of[op].ns;
    op_times_see(t, op, layer, n, ends);
    w->pass->ns[op] += t->of[op].ns - before;
}

static void writing_reading(void *arg, size_t done, size_t all)
{
    struct writing *w = arg;
    progress_counted(&w->progress, done, all);
    if (done == all)
        progress_wipe(&w->progress);
}

/* Callback of decode_run: keep how long the cloud took for the next token. */
static void writing_event(void *arg, const struct decode_event *e)
{
    struct writing *w = arg;
    if (e->kind == DECODE_ANSWERED)
        w->cloud_ms = (double)e->took_ns / 1e6;
}

/* Callback of decode_run: keep a token. What its parts took is what the stats have grown by. */
static bool writing_token(void *arg, const struct decode_token *t)
{
    struct writing *w = arg;
    struct explain *x = w->x;
    const struct decode_stats *s = &x->stats;
    x->ids[x->n] = t->id;
    x->tokens[x->n] = (struct explain_token){
        .id = t->id,
        .source = (enum explain_source)t->source,
        .score = t->score,
        .reason = t->fault ? gate_name(t->reason) : NULL,
        .fault = t->fault ? strdup(t->fault) : NULL,
        .ms = t->ms,
        .router_ms = s->router_ms - w->router_ms,
        .edge_ms = s->edge_ms - w->edge_ms,
        .cloud_ms = w->cloud_ms,
    };
    w->full = t->fault && !x->tokens[x->n].fault;
    w->router_ms = s->router_ms;
    w->edge_ms = s->edge_ms;
    w->cloud_ms = 0;
    x->n++;
    w->progress.what = "writing, tokens";
    progress_counted(&w->progress, x->n - x->prompt, x->o.max_tokens);
    return !w->full;
}

/* Write a text as `mizzle run` does. */
static int writing_decode(struct explain *x, struct decode_options *o, struct err *err)
{
    static const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    const struct routing *r = &x->routing;
    const struct engine *e = &x->engine;
    struct sampler *sampler;
    int rc = sampler_open(&sampler, &greedy, tokenizer_size(e->tokenizer), &e->kernels, err);
    if (rc == OK)
        rc = decode_run(&x->stats, x->session, e->tokenizer, sampler, r->router, routing_port(r),
                        x->ids, x->prompt, o, err);
    sampler_close(sampler);
    return rc;
}

int explain_write(struct explain *x, struct err *err)
{
    struct writing w = {
        .x = x, .progress = { .what = "reading the prompt, tokens", .since = os_now_ns() }
    };
    const struct batch_watch watch = { .op = writing_op, .arg = &w };
    struct decode_options o = x->routing.how;
    o.ahead = 0;
    o.drafts = DRAFT_OFF;
    o.max_tokens = x->o.max_tokens;
    o.seed = x->o.seed;
    o.stop = &interrupted;
    o.reading = writing_reading;
    o.emit = writing_token;
    o.event = writing_event;
    o.arg = &w;
    x->reading = x->writing = (struct op_times){ .model = x->engine.model, .kv = x->kv };
    batch_watch(x->engine.batch, &watch);
    int rc = writing_decode(x, &o, err);
    batch_watch(x->engine.batch, NULL);
    progress_wipe(&w.progress);
    x->positions = x->n > x->prompt ? x->n - 1 : x->n;
    return rc == OK && w.full ? err_set(err, ERR_NOMEM, "out of memory") : rc;
}
