/* eval_settings.c - all that the answers of a run depend on, for the first line of its journal. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/cpu.h"
#include "kernels/sys/text.h"
#include "model/fingerprint.h"
#include "model/text/chat.h"
#include "router/mizzle.h"
#include "tools/cli/json_report.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/eval_plan.h"
#include "tools/lab/eval/routed.h"

static json_t *settings_hex(uint64_t v)
{
    return json_sprintf("%016" PRIx64, v);
}

static json_t *settings_text(const char *text)
{
    return escaped_json(text ? text : "", text ? strlen(text) : 0);
}

/* Return where the process runs and since when, on which answers do not depend. */
static json_t *settings_machine(const struct asking *a)
{
    char date[24] = "", processor[64];
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm))
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(processor, sizeof(processor), "%s", cpu_name());
    text_line(processor);
    return json_pack("{s:I, s:s, s:s, s:s}", "parallel", (json_int_t)a->parallel, "date", date,
                     "processor", processor, "isa", a->engine.kernels.isa);
}

/* Return what writes the answers. */
static json_t *settings_writers(const struct asking *a, const struct task *t)
{
    const struct engine *e = &a->engine;
    bool chats = task_form(t) == TASK_CHAT;
    struct cloud_identity cloud;
    routed_identity(&cloud, &a->routing, e);
    return json_pack(
        "{s:o, s:o, s:o, s:s, s:o, s:s, s:o, s:s, s:s, s:o, s:s, s:o, s:o, s:s}", "edge_model",
        settings_text(e->name), "edge_fingerprint",
        settings_hex(model_fingerprint(e->model, e->tokenizer)), "weights",
        settings_text(e->weights), "kv", kvcache_name(a->kv), "cloud_model",
        settings_text(cloud.name), "cloud_url", cloud.url, "cloud_says", settings_text(cloud.says),
        "form", task_form_name(t), "version", MIZZLE_VERSION, "edge_bits",
        settings_hex(model_exact_fingerprint(e->model, e->pool)), "cloud_vocabulary",
        cloud.vocabulary, "template", settings_text(chats ? chat_form(e->chat) : NULL), "think",
        settings_text(chats ? shared_options.engine.think : NULL), "kernels", routed_exactness(e));
}

json_t *eval_settings(const struct eval_plan *p, const struct eval_options *o,
                      const struct eval_list *l, const struct asking *a)
{
    char threshold[32];
    snprintf(threshold, sizeof(threshold), "%.9g", shared_options.threshold);
    /* Words of options that left, at what did nothing: their hash stands in published answers
     * (tools/lab/study/answers.py). */
    static const char price[] = "worth 0, call 1, up 0, cached 0, down 0, wait 0";
    json_t *clock = json_pack("{s:s, s:f, s:i, s:s, s:f}", "kind", "real", "edge_ms", 0.0,
                              "latency_ms", 0, "bandwidth", "0", "loss", 0.0);
    json_t *targets = isnan(p->target) ? json_array() : json_pack("[f]", p->target);
    json_t
        *all = settings_writers(a, p->asked.task),
        *rest = json_pack(
            "{s:o, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:s, "
            "s:s, s:s, s:s, s:s, s:b, s:f, s:f, s:s, s:[i, i, i], s:b}",
            "on", settings_machine(a), "task", o->task.name, "data", task_digest(p->asked.task),
            "calibration", p->calibration.task ? task_digest(p->calibration.task) : "",
            "cloud_tokens", (json_int_t)shared_options.cloud_tokens, "questions",
            (json_int_t)p->whole, "first", (json_int_t)p->first, "count", (json_int_t)p->asked.n,
            "max_tokens", (json_int_t)a->max_tokens, "seed", json_sprintf("%" PRIu64, o->task.seed),
            "world", json_sprintf("%" PRIu64, o->task.world), "policies", eval_list_json(l),
            "targets", targets, "threshold", p->paper ? "paper" : threshold, "share", "nan",
            "clock", clock, "kind", o->task.kind ? o->task.kind : "all", "wording",
            o->task.wording ? o->task.wording : "all", "place",
            shared_options.place ? shared_options.place : "", "span", "0", "price", price,
            "by_cost", false, "audit", 0.0, "max_routed", 0.0, "limits", "none", "prices", 0, 0, 0,
            "baselines", false);
    bool fine = json_object_update(all, rest) == 0; /* false if one is NULL */
    json_decref(rest);
    if (fine)
        return all;
    json_decref(all);
    return NULL;
}
