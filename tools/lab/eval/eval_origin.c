#include "tools/lab/eval/eval_origin.h"

#include <inttypes.h>
#include <time.h>

#include "kernels/sys/cpu.h"
#include "kernels/sys/text.h"
#include "model/text/chat.h"
#include "router/mizzle.h"
#include "tools/lab/bench/row.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/asking.h"
#include "tools/lab/eval/routed.h"

#define SET(member, text) origin_set(o->member, sizeof(o->member), text)

/* Copy a text, which may be NULL. */
static void origin_set(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

void eval_origin_edge(struct eval_origin *o, const struct engine *e, enum kvcache kv)
{
    time_t now = time(NULL);
    struct tm tm;
    *o = (struct eval_origin){ .version = MIZZLE_VERSION };
    SET(edge_model, e->name);
    snprintf(o->edge_fingerprint, sizeof(o->edge_fingerprint), "%016" PRIx64,
             model_fingerprint(e->model, e->tokenizer));
    SET(weights, e->weights);
    SET(kv, kvcache_name(kv));
    if (gmtime_r(&now, &tm))
        strftime(o->date, sizeof(o->date), "%Y-%m-%dT%H:%M:%SZ", &tm);
    SET(processor, cpu_name());
    text_line(o->processor);
    SET(isa, e->kernels.isa);
}

void eval_origin_begin(struct eval_origin *o, const struct asking *a, const struct task *t)
{
    const struct engine *e = &a->engine;
    struct cloud_identity cloud;
    routed_identity(&cloud, &a->routing, e);
    eval_origin_edge(o, e, a->kv);
    SET(cloud_model, cloud.name);
    SET(cloud_url, cloud.url);
    SET(cloud_says, cloud.says);
    SET(cloud_vocabulary, cloud.vocabulary);
    SET(form, task_form_name(t));
    SET(kernels, routed_exactness(e));
    snprintf(o->edge_bits, sizeof(o->edge_bits), "%016" PRIx64,
             model_exact_fingerprint(e->model, e->pool));
    if (task_form(t) != TASK_CHAT)
        return;
    SET(template, chat_form(e->chat));
    SET(think, shared_options.engine.think);
}

void eval_origin_json(json_t *writers, json_t *machine, const struct eval_origin *o)
{
#define X(name, bytes) json_object_set_new(writers, #name, json_string(o->name));
    EVAL_WRITERS(X)
    EVAL_BITS(X)
#undef X
#define X(name, bytes) json_object_set_new(machine, #name, json_string(o->name));
    EVAL_MACHINE(X)
#undef X
    json_object_set_new(machine, "isa", json_string(o->isa));
}

void eval_origin_put(struct row *to, const struct eval_origin *o)
{
#define X(name, bytes) row_text(to, #name, NULL, *o->name ? o->name : NULL);
    EVAL_WRITERS(X)
    EVAL_MACHINE(X)
#undef X
}
