/* serve_info.c - what the server is: health, models, /mizzle/info, /metrics. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/text/chat.h"
#include "router/mizzle.h"
#include "router/router.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_exchange.h"

void serve_info_name(char out[SERVE_NAME + 8], const struct serve *s, enum text_model m)
{
    static const char *const ends[] = {
        [TEXT_ROUTED] = "", [TEXT_EDGE] = ":edge", [TEXT_CLOUD] = ":cloud"
    };
    snprintf(out, SERVE_NAME + 8, "%s%s", s->name, ends[m]);
}

void serve_info_health(struct serve_exchange *x)
{
    struct serve_error e;
    if (atomic_load(&x->s->ready) && !server_closing(x->r)) {
        bool lost = texts_count(x->s->texts).lost;
        serve_routes_json(x, 200, json_pack("{s:s}", "status", lost ? "degraded" : "ok"));
        return;
    }
    bool stops = server_closing(x->r);
    serve_error_set(&e, 503, stops ? "stopping" : "loading", NULL,
                    stops ? "the server is stopping" : "the model is being loaded");
    serve_routes_refuse(x, &e);
}

/* Return an entry of the list of models. */
static json_t *serve_info_entry(const struct serve *s, enum text_model m)
{
    char name[SERVE_NAME + 8];
    serve_info_name(name, s, m);
    return json_pack("{s:s,s:s,s:I,s:s,s:s,s:n,s:I,s:s,s:s}", "id", name, "object", "model",
                     "created", (json_int_t)s->created, "owned_by", "mizzle", "root", s->name,
                     "parent", "max_model_len", (json_int_t)s->context, "fingerprint",
                     s->fingerprint, "kv", kvcache_name(s->kv));
}

/* True if this one can be asked for. */
static bool serve_info_has(const struct serve *s, enum text_model m)
{
    return m != TEXT_CLOUD || routing_port(&s->routing);
}

void serve_info_models(struct serve_exchange *x)
{
    json_t *list = json_array();
    for (int m = TEXT_ROUTED; m <= TEXT_CLOUD; m++)
        if (serve_info_has(x->s, (enum text_model)m))
            json_report_add(&list, serve_info_entry(x->s, (enum text_model)m));
    serve_routes_json(x, 200, json_pack("{s:s,s:o}", "object", "list", "data", list));
}

void serve_info_model(struct serve_exchange *x)
{
    char name[SERVE_NAME + 8];
    struct serve_error e;
    for (int m = TEXT_ROUTED; m <= TEXT_CLOUD; m++) {
        serve_info_name(name, x->s, (enum text_model)m);
        if (strcmp(x->rest, name) == 0 && serve_info_has(x->s, (enum text_model)m)) {
            serve_routes_json(x, 200, serve_info_entry(x->s, (enum text_model)m));
            return;
        }
    }
    serve_error_set(&e, 404, "model_not_found", "model", "model %s: not served here", x->rest);
    serve_routes_refuse(x, &e);
}

/* Return what is known of the cloud, or null. */
static json_t *serve_info_cloud(const struct serve *s, const struct texts_counts *count)
{
    bool there = routing_port(&s->routing) != NULL;
    if (!there && !s->cloud_off.msg[0])
        return json_null();
    const char *state = !there                            ? "off"
                        : !count->lost                    ? "working"
                        : count->paused                   ? "paused"
                        : s->unreached && !count->refused ? "off"
                                                          : "refused";
    const char *why = !there ? s->cloud_off.msg : count->lost ? count->why.msg : NULL;
    uint64_t now = os_now_ns();
    json_t *later = count->refused
                        ? json_real(count->again > now ? (double)(count->again - now) / 1e9 : 0)
                        : json_null();
    return json_pack("{s:s?,s:s?,s:s?,s:s,s:s?,s:o,s:b,s:b}", "url", s->cloud_url, "api",
                     s->cloud_api, "model", s->cloud_model[0] ? s->cloud_model : NULL, "state",
                     state, "why", why, "retry_s", later, "local", s->routing.local != NULL,
                     "limited", quota_limits(&s->routing.quota));
}

/* Return the router, or null. */
static json_t *serve_info_router(const struct serve *s)
{
    const struct routing *r = &s->routing;
    if (!r->router && r->how.policy == POLICY_NEVER)
        return json_null();
    return json_pack(
        "{s:s,s:s?,s:s,s:o,s:i,s:f,s:s?}", "name", routing_scorer(r), "learnt",
        r->router && router_about(r->router)->task[0] ? router_about(r->router)->task : NULL,
        "policy", policy_name(r->how.policy), "threshold",
        policy_scores(r->how.policy) ? json_real((double)r->how.threshold) : json_null(),
        "cloud_tokens", (int)r->how.call_tokens, "max_routed", (double)r->how.max_routed, "tap",
        r->router && !router_is_table(r->router) ? "final" : NULL);
}

/* Return the policies that a request may choose. */
static json_t *serve_info_policies(const struct serve *s)
{
    json_t *list = json_array();
    for (int p = 0; p < POLICY_COUNT; p++)
        if (p != POLICY_POSITION && policy_check((enum policy)p, s->routing.router, NULL) == OK)
            json_report_add(&list, json_string(policy_name((enum policy)p)));
    return list;
}

void serve_info_all(struct serve_exchange *x)
{
    const struct serve *s = x->s;
    const struct engine *e = &s->engine;
    const struct model_config *c = &e->model->config;
    struct texts_counts count = texts_count(s->texts);
    json_t *names = json_array();
    char name[SERVE_NAME + 8];
    for (int m = TEXT_ROUTED; m <= TEXT_CLOUD; m++) {
        serve_info_name(name, s, (enum text_model)m);
        json_report_add(&names, json_string(name));
    }
    json_t *model = json_pack("{s:s,s:s?,s:I,s:I,s:I,s:I,s:I}", "name", e->name, "weights",
                              e->weights, "layers", (json_int_t)c->layers, "hidden",
                              (json_int_t)c->hidden, "vocab", (json_int_t)c->vocab, "context",
                              (json_int_t)s->context, "trained", (json_int_t)c->context);
    json_t *out = json_pack("{s:s,s:o,s:o,s:b,s:s,s:o,s:o,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:o,s:O}",
                            "version", MIZZLE_VERSION, "model", model, "names", names, "chat",
                            chat_check(e->chat, NULL) == OK, "fingerprint", s->fingerprint,
                            "router", serve_info_router(s), "policies", serve_info_policies(s),
                            "kv", kvcache_name(s->kv), "isa", e->kernels.isa, "threads",
                            (json_int_t)(e->pool ? pool_threads(e->pool) : 1), "slots",
                            (json_int_t)s->o.parallel, "context", (json_int_t)s->context, "queue",
                            (json_int_t)s->o.queue, "ahead", (json_int_t)s->routing.how.ahead,
                            "cloud", serve_info_cloud(s, &count), "questions", s->questions);
    serve_routes_json(x, 200, out);
}

/* Counts, in Prometheus' text format 0.0.4, untyped. */
void serve_metrics(struct serve_exchange *x)
{
    const struct texts_counts c = texts_count(x->s->texts);
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        { "connections", server_connections(x->s->server) },
        { "streams_total", atomic_load(&x->s->streams) }, /* begun */
        { "slots", c.slots }, /* texts that can be written at a time; of these, in progress */
        { "slots_busy", c.busy },
        { "queue", c.waiting }, /* texts that wait for a slot */
        { "texts_total", c.asked },
        { "texts_finished_total", c.finished },
        { "texts_stopped_total", c.stopped },
        { "texts_failed_total", c.failed },
        { "passes_total", c.passes }, /* of the small model, and their rows */
        { "rows_total", c.rows },
        { "prompt_tokens_total", c.prompt_tokens }, /* read; those below were known */
        { "cached_tokens_total", c.cached_tokens },
        { "tokens_total", c.tokens },
        { "cloud_tokens_total", c.cloud_tokens },
        { "fallback_tokens_total", c.fallback_tokens },
        { "cloud_calls_total", c.calls },
        { "cloud_refused", c.refused }, /* 1 while the cloud refuses all calls */
        { "cloud_lost", c.lost }, /* 1 when it refuses or fails, until it has answered again */
    };
    struct buf out = { 0 };
    bool fine = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && fine; i++) {
        char line[100];
        snprintf(line, sizeof(line), "mizzle_%s %" PRIu64 "\n", rows[i].name, rows[i].value);
        fine = buf_str(&out, line);
    }
    if (fine)
        serve_routes_send(x, 200, "text/plain; version=0.0.4; charset=utf-8", &out, NULL);
    buf_free(&out);
}
