#include "tools/eval/eval_origin.h"

#include <inttypes.h>
#include <time.h>

#include "kernels/sys/cpu.h"
#include "kernels/sys/text.h"
#include "router/engine.h"
#include "router/mizzle.h"

void eval_origin_begin(struct eval_origin *o, const struct engine *e, enum kvcache kv)
{
    time_t now = time(NULL);
    struct tm tm;
    *o = (struct eval_origin){ .version = MIZZLE_VERSION };
    snprintf(o->edge_model, sizeof(o->edge_model), "%s", e->name);
    snprintf(o->edge_fingerprint, sizeof(o->edge_fingerprint), "%016" PRIx64,
             model_fingerprint(e->model, e->tokenizer));
    snprintf(o->weights, sizeof(o->weights), "%s", e->weights ? e->weights : "");
    snprintf(o->kv, sizeof(o->kv), "%s", kvcache_name(kv));
    if (gmtime_r(&now, &tm))
        strftime(o->date, sizeof(o->date), "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(o->processor, sizeof(o->processor), "%s", cpu_name());
    text_line(o->processor);
}

json_t *eval_origin_json(const struct eval_origin *o)
{
    json_t *out = json_object();
#define X(column) json_object_set_new(out, #column, json_string(o->column));
    EVAL_ORIGIN(X)
#undef X
    return out;
}

void eval_origin_read(struct eval_origin *o, const json_t *from)
{
    const char *text;
    *o = (struct eval_origin){ 0 };
#define X(column)                                             \
    text = json_string_value(json_object_get(from, #column)); \
    snprintf(o->column, sizeof(o->column), "%s", text ? text : "");
    EVAL_ORIGIN(X)
#undef X
}

void eval_origin_string(FILE *to, const char *text)
{
    json_t *s = json_string(text);
    if (!s || json_dumpf(s, to, JSON_ENCODE_ANY) != 0)
        fputs("\"?\"", to);
    json_decref(s);
}

void eval_origin_end(const struct engine *e, enum kvcache kv, const struct engine *cloud,
                     const char *form)
{
    struct eval_origin o;
    eval_origin_begin(&o, e, kv);
    snprintf(o.cloud_model, sizeof(o.cloud_model), "%s", cloud ? cloud->name : "");
    snprintf(o.form, sizeof(o.form), "%s", form ? form : "");
#define X(column)                             \
    fputs(",\"" #column "\":", stdout);       \
    if (o.column[0])                          \
        eval_origin_string(stdout, o.column); \
    else                                      \
        fputs("null", stdout);
    EVAL_ORIGIN(X)
#undef X
    puts("}");
}
