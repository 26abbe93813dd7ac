/* explain_json.c - writes what was kept as JSON, a position at a time: the whole would take many
 * times the memory as a tree. The HTML page holds the same document. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/router.h"
#include "tools/cli/json_report.h"
#include "tools/cli/setup.h"
#include "tools/lab/explain/explain.h"

enum { DUMP = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(8) };
static const float LEAST = 0.001f; /* smaller weights are not written */
static const double UNIT = 1e-5;   /* those that are written are multiples of this */

/* The document that is written. */
struct writer {
    FILE *to;
    const struct explain *x;
    bool failed;
};

static json_t *json_count(size_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *json_text(const char *s)
{
    return s ? escaped_json(s, strlen(s)) : json_null();
}

/* Write `before`, then the value, which is consumed; NULL: there was no memory for it. */
static void writer_put(struct writer *w, const char *before, json_t *value)
{
    fputs(before, w->to);
    if (!value || json_report_dump(value, w->to, DUMP) != 0)
        w->failed = true;
    json_decref(value);
}

/* Return the text of a token. */
static json_t *json_piece(const struct explain *x, uint32_t id)
{
    size_t n;
    const char *piece = tokenizer_bytes(x->engine.tokenizer, id, &n);
    return escaped_json(piece ? piece : "", n);
}

static json_t *json_guesses(const struct explain *x, const struct likeliest *g, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_report_add(&list,
                        json_pack("{s:I,s:o,s:o}", "id", (json_int_t)g[i].id, "piece",
                                  json_piece(x, g[i].id), "p", json_report_real((double)g[i].p)));
    return list;
}

/* Return a weight of a row whose weights so far add up to *sum. Sums are what is rounded, so the
 * row adds up to 1 and no weight is off by more than UNIT. */
static json_t *json_weight(double *sum, double weight)
{
    double before = rint(*sum / UNIT);
    *sum += weight;
    return json_report_real(UNIT * (rint(*sum / UNIT) - before));
}

/* Return the row of a head. A whole row is cut where its weights become invisible: the longer the
 * text, the more of them there are. */
static json_t *json_head(const struct explain *x, size_t pos, size_t layer, size_t head)
{
    const struct explain_head *h = explain_head(x, pos, layer, head);
    const float *row = explain_row(x, pos, layer, head), *weight = row ? row : h->weight;
    json_t *o = json_object(), *weights = json_array(), *at = json_array();
    double sum = 0, rest = row ? 0 : (double)h->rest;
    for (size_t i = 0; i < (row ? pos + 1 : h->n); i++) {
        if (row && weight[i] < LEAST) {
            rest += (double)weight[i];
            continue;
        }
        json_report_add(&weights, json_weight(&sum, (double)weight[i]));
        json_report_add(&at, json_count(row ? i : h->pos[i]));
    }
    json_report_set(&o, "at", at);
    json_report_set(&o, "weights", weights);
    json_report_set(&o, "rest", json_weight(&sum, rest));
    if (x->o.span_of)
        json_report_set(&o, "span", json_report_real((double)h->span));
    return o;
}

static json_t *json_layer(const struct explain *x, size_t pos, size_t layer)
{
    const struct explain_layer *l = explain_layer(x, pos, layer);
    json_t *heads = json_array();
    for (size_t h = 0; h < x->engine.model->config.heads; h++)
        json_report_add(&heads, json_head(x, pos, layer, h));
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "in", json_report_real((double)l->in),
                     "attention", json_report_real((double)l->attention), "middle",
                     json_report_real((double)l->middle), "mlp", json_report_real((double)l->mlp),
                     "out", json_report_real((double)l->out), "lens",
                     json_guesses(x, l->lens, EXPLAIN_LENS), "heads", heads);
}

static void json_units(json_t **list, const struct explain_unit *u, size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_report_add(list, json_pack("{s:I,s:o}", "unit", (json_int_t)u[i].unit, "adds",
                                        json_report_real((double)u[i].adds)));
}

static json_t *json_router(const struct explain *x, size_t pos)
{
    const struct explain_position *at = &x->at[pos];
    char decided[EXPLAIN_WHY];
    bool network = policy_reads_network(x->routing.how.policy);
    bool sums = explain_decided(decided, x, pos);
    json_t *o = json_pack("{s:o,s:s,s:o}", "score", json_report_real((double)at->score), "verdict",
                          at->routed ? "cloud" : "edge", "threshold",
                          json_report_real(isnan(at->score) ? (double)NAN : (double)at->threshold));
    json_t *units = json_array();
    json_units(&units, at->up, at->nup);
    json_units(&units, at->down, at->ndown);
    json_report_set(&o, "decided", sums ? json_text(decided) : json_null());
    json_report_set(&o, "units", units);
    json_report_set(&o, "others", network ? json_report_real((double)at->others) : json_null());
    json_report_set(&o, "bias", network ? json_report_real((double)x->bias) : json_null());
    return o;
}

static json_t *json_position(const struct explain *x, size_t pos)
{
    json_t *layers = json_array();
    for (size_t l = 0; l < x->engine.model->config.layers; l++)
        json_report_add(&layers, json_layer(x, pos, l));
    return json_pack("{s:I,s:o,s:o,s:o}", "pos", (json_int_t)pos, "layers", layers, "top",
                     json_guesses(x, x->at[pos].top, EXPLAIN_TOP), "router", json_router(x, pos));
}

/* Return which heads look at the span from the telling position. */
static json_t *json_span(const struct explain *x)
{
    const char *why;
    const struct model_config *c = &x->engine.model->config;
    size_t pos = explain_telling(x, &why);
    struct explain_share *list = explain_shares(x, pos);
    json_t *at = json_array(), *heads = list ? json_array() : NULL;
    for (size_t p = 0; p < x->positions; p++)
        if (x->tokens[p].in_span)
            json_report_add(&at, json_count(p));
    for (size_t i = 0; list && i < c->layers * c->heads; i++)
        json_report_add(&heads, json_pack("{s:I,s:I,s:o}", "layer", (json_int_t)list[i].layer,
                                          "head", (json_int_t)list[i].head, "share",
                                          json_report_real((double)list[i].share)));
    free(list);
    return json_pack("{s:o,s:o,s:I,s:f,s:o}", "text", json_text(x->o.span_of), "at", at, "pos",
                     (json_int_t)pos, "even", explain_even(x, pos), "heads", heads);
}

static json_t *json_token(const struct explain *x, size_t pos)
{
    const struct explain_token *t = &x->tokens[pos];
    char why[EXPLAIN_WHY];
    explain_why(why, x, pos);
    json_t *o = json_pack("{s:I,s:I,s:o,s:s,s:o}", "pos", (json_int_t)pos, "id", (json_int_t)t->id,
                          "piece", json_piece(x, t->id), "source", explain_source_name(t->source),
                          "why", json_text(why));
    if (!o || t->source == EXPLAIN_PROMPT)
        return o;
    json_report_set(&o, "reason", json_text(t->reason));
    json_report_set(&o, "end", json_boolean(tokenizer_is_eog(x->engine.tokenizer, t->id)));
    json_report_set(&o, "ms", json_report_real(t->ms));
    json_report_set(&o, "router_ms", json_report_real(t->router_ms));
    json_report_set(&o, "edge_ms", json_report_real(t->edge_ms));
    json_report_set(&o, "cloud_ms", json_report_real(t->cloud_ms));
    return o;
}

static json_t *json_model(const struct explain *x)
{
    const struct model *m = x->engine.model;
    const struct model_config *c = &m->config;
    return json_pack("{s:o,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b}", "name",
                     json_text(x->engine.name), "type", model_type_name(m), "layers",
                     (json_int_t)c->layers, "hidden", (json_int_t)c->hidden, "heads",
                     (json_int_t)c->heads, "kv_heads", (json_int_t)c->kv_heads, "head_dim",
                     (json_int_t)c->head_dim, "ffn", (json_int_t)c->ffn, "vocab",
                     (json_int_t)c->vocab, "bytes", (json_int_t)m->bytes, "pass_bytes",
                     (json_int_t)op_pass_bytes(m), "tied", c->tied);
}

static json_t *json_machine(const struct explain *x)
{
    char doubtful[DOUBT_TEXT] = "";
    bool busy = doubt_busy(doubtful, 1, x->others.took);
    json_t *levels = json_array();
    for (size_t i = 0; i < READ_LEVELS; i++) {
        const struct read_level *l = &x->limits.levels[i];
        json_report_add(&levels, json_pack("{s:s,s:o,s:o}", "name", l->name, "bytes",
                                           l->bytes ? json_count(l->bytes) : json_null(), "gb_s",
                                           json_report_real(l->gb_s)));
    }
    return json_pack("{s:s,s:s,s:I,s:s,s:o,s:s,s:o,s:o,s:o}", "cpu", cpu_name(), "isa",
                     x->engine.kernels.isa, "threads", (json_int_t)pool_threads(x->engine.pool),
                     "kv", kvcache_name(x->kv), "levels", levels, "weights_in",
                     x->limits.level->name, "int8_gop_s", json_report_real(x->limits.int8),
                     "f32_gop_s", json_report_real(x->limits.f32), "doubtful",
                     busy ? json_text(doubtful) : json_null());
}

static json_t *json_routing(const struct explain *x)
{
    const struct routing *r = &x->routing;
    bool scores = policy_scores(r->how.policy);
    bool network = policy_reads_network(r->how.policy);
    const char *task = network ? router_about(r->router)->task : "";
    return json_pack("{s:s,s:s,s:s?,s:o,s:o,s:o,s:s?,s:b}", "policy", policy_name(r->how.policy),
                     "scorer", routing_scorer(r), "learnt", *task ? task : NULL, "threshold",
                     scores ? json_report_real((double)r->how.threshold) : json_null(), "tap",
                     network ? json_text("final") : json_null(), "units",
                     network ? json_count(router_net(r->router).width) : json_null(), "sums",
                     network ? explain_sums(x) : NULL, "cloud", routing_port(r) != NULL);
}

static json_t *json_operation(const struct explain *x, const struct op_times *t, enum batch_op op)
{
    const struct op_sum *s = &t->of[op];
    double ns = (double)s->ns;
    struct op_speed speed = op_speed(&x->limits, x->engine.model, op, ns, s->bytes, s->ops);
    return json_pack("{s:s,s:I,s:I,s:f,s:f,s:f,s:o,s:o,s:s,s:f,s:o}", "op", op_name(op), "calls",
                     (json_int_t)s->calls, "rows", (json_int_t)s->rows, "ms", ns / 1e6, "bytes",
                     s->bytes, "ops", s->ops, "gb_s", json_report_real(speed.gb_s), "gop_s",
                     json_report_real(speed.gop_s), "limit", speed.limit, "limit_ms",
                     speed.least / 1e6, "of_limit", json_report_real(speed.reached));
}

static json_t *json_times(const struct explain *x, bool reading)
{
    const struct explain_times t = explain_times(x, reading);
    json_t *list = json_array();
    for (size_t op = 0; op < BATCH_OPS; op++)
        json_report_add(&list, json_operation(x, t.operations, (enum batch_op)op));
    return json_pack("{s:I,s:I,s:I,s:f,s:f,s:f,s:o}", "passes", (json_int_t)t.passes, "rows",
                     (json_int_t)t.rows, "tokens", (json_int_t)t.tokens, "ms", t.ms, "router_ms",
                     t.router_ms, "cloud_ms", t.cloud_ms, "operations", list);
}

static json_t *json_pass(const struct explain_pass *p)
{
    json_t *ns = json_object();
    for (size_t op = 0; op < BATCH_OPS; op++)
        json_report_set(&ns, op_name((enum batch_op)op), json_count(p->ns[op]));
    return json_pack("{s:I,s:I,s:o}", "at", (json_int_t)p->at, "rows", (json_int_t)p->rows, "ns",
                     ns);
}

/* Write the members of the document. */
static void write_document(struct writer *w)
{
    const struct explain *x = w->x;
    char cut[EXPLAIN_WHY];
    const char *why;
    size_t telling = explain_telling(x, &why);
    writer_put(w, "{\"format\":\"mizzle explain 4\",\n\"model\":", json_model(x));
    writer_put(w, ",\n\"machine\":", json_machine(x));
    writer_put(w, ",\n\"routing\":", json_routing(x));
    writer_put(w, ",\n\"reference\":", json_text(x->o.reference));
    writer_put(w, ",\n\"prompt_tokens\":", json_count(x->prompt));
    writer_put(w, ",\n\"finish\":", json_text(finish_name(x->stats.finish)));
    writer_put(w, ",\n\"cut\":", explain_cut(cut, x) ? json_text(cut) : json_null());
    writer_put(w,
               ",\n\"telling\":", json_pack("{s:I,s:s}", "pos", (json_int_t)telling, "why", why));
    writer_put(w, ",\n\"whole\":",
               json_pack("{s:[I,I],s:[I,I]}", "layers", (json_int_t)x->layers.from,
                         (json_int_t)x->layers.to, "heads", (json_int_t)0,
                         (json_int_t)x->engine.model->config.heads - 1));
    writer_put(w, ",\n\"span\":", x->o.span_of ? json_span(x) : json_null());
    fputs(",\n\"tokens\":[", w->to);
    for (size_t i = 0; i < x->n; i++)
        writer_put(w, i ? ",\n" : "\n", json_token(x, i));
    fputs("],\n\"positions\":[", w->to);
    for (size_t i = 0; i < x->positions && !interrupted; i++)
        writer_put(w, i ? ",\n" : "\n", json_position(x, i));
    fputs("]", w->to);
    writer_put(w, ",\n\"reading\":", json_times(x, true));
    writer_put(w, ",\n\"writing\":", json_times(x, false));
    fputs(",\n\"passes\":[", w->to);
    for (size_t i = 0; i < x->npasses; i++)
        writer_put(w, i ? ",\n" : "\n", json_pass(&x->passes[i]));
    fputs("]}\n", w->to);
}

bool explain_json(FILE *to, const struct explain *x)
{
    struct writer w = { .to = to, .x = x };
    write_document(&w);
    return fflush(to) == 0 && !ferror(to) && !w.failed && !interrupted;
}
