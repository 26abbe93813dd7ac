#include "tools/lab/eval/eval_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/text.h"
#include "model/fingerprint.h"
#include "model/text/chat.h"
#include "router/mizzle.h"
#include "router/router.h"
#include "tools/cli/json_report.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/routed.h"

enum { MILLI_QUESTIONS = 1000, SPLIT = 5, LEAST_CALIBRATION = 48 };

float eval_plan_threshold(const struct eval_plan *p, const struct eval_entry *e, size_t i)
{
    float own = 0.5f;
    if (!isnan(p->target))
        return NAN;
    if (p->points)
        return p->thresholds[i];
    if (!policy_reads_router(e->policy))
        return NAN;
    return e->router && router_threshold(e->router, &own) ? own : 0.5f;
}

/* Check that each policy of the list has a threshold, or a share for which one can be found. */
static int plan_check_list(struct eval_plan *p, const struct eval_list *l, bool part,
                           struct err *err)
{
    bool share = !isnan(p->target);
    for (size_t i = 0; i < l->n; i++) {
        const struct eval_entry *e = &l->at[i];
        bool finds = eval_entry_scores(e) && isnan(eval_plan_threshold(p, e, 0));
        p->calibrates = p->calibrates || (finds && e->policy != POLICY_RANDOM);
        if (finds && !share)
            return err_set(err, ERR_ARG,
                           "policy %s: give --threshold, --target-routed or a policy before it "
                           "whose share it takes",
                           e->label);
        if (finds && part && isnan(p->target))
            return err_set(err, ERR_ARG,
                           "--first: policy %s: expected --target-routed with it, as the share "
                           "that another policy routes of all questions is not known in a part",
                           e->label);
        share = share || (eval_entry_scores(e) && !finds);
    }
    return OK;
}

int eval_plan_check(struct eval_plan *p, const struct eval_list *l, const struct eval_options *o,
                    float threshold, struct err *err)
{
    /* Of the paper's Table 1; its demo compares scores with half of it. */
    static const float paper[EVAL_POINTS] = { 0.4f, 0.5f, 0.6f, 0.7f, 0.72f, 0.76f, 0.8f, 0.9f };
    char *end;
    p->target = o->target ? strtod(o->target, &end) : (double)NAN;
    p->target = round(p->target * 1e9) / 1e9; /* as a journal holds it */
    if (o->target && !isnan(threshold))
        return err_set(err, ERR_ARG, "--target-routed, --threshold: expected one of them");
    if (o->target && (!*o->target || *end || !(p->target >= 0 && p->target <= 1)))
        return err_set(err, ERR_ARG, "--target-routed: expected 0 to 1, found %s", o->target);
    memcpy(p->thresholds, paper, sizeof(paper));
    p->points = o->as_paper && !o->target ? EVAL_POINTS : 0;
    if (!isnan(threshold)) {
        p->thresholds[0] = threshold;
        p->points = 1;
    }
    return plan_check_list(p, l, o->first || o->count, err);
}

/* Open the task and choose up to `most` items. split -1: of all; else those that are calibrated on
 * (1) or not (0). */
static int plan_choose(struct eval_items *out, const struct task_options *o, size_t most, int split,
                       struct err *err)
{
    size_t size;
    int rc = task_open(&out->task, o, err);
    if (rc != OK)
        return rc;
    size = task_size(out->task);
    most = most < size ? most : size;
    out->at = calloc(most, sizeof(*out->at));
    if (!out->at)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    for (size_t i = 0; rc == OK && out->n < most && i < size; i++) {
        struct task_item item;
        rc = task_item(&item, out->task, i, err);
        out->at[out->n] = i;
        out->n += rc == OK && (split < 0 || (asking_subject(&item) % SPLIT == 0) == split);
    }
    if (rc == OK && !out->n)
        rc = err_set(err, ERR_ARG, "--data %s: no item is left to %s", o->data,
                     split == 1 ? "calibrate on: give --calibration FILE or --threshold"
                                : "ask: give --calibration FILE");
    return rc;
}

int eval_plan_open(struct eval_plan *p, const struct eval_options *o, struct err *err)
{
    struct task_options t = o->task;
    struct eval_items *a = &p->asked;
    bool milli = !strcmp(t.name, "milli"), splits = p->calibrates && !milli && !o->calibrate;
    if (milli && o->calibrate)
        return err_set(err, ERR_ARG, "--calibration: milli makes its own questions");
    t.stream = TASK_TEST;
    int rc = task_form_parse(&t, t.prompt, err);
    if (rc == OK)
        rc = plan_choose(a, &t,
                         o->questions ? o->questions
                         : milli      ? MILLI_QUESTIONS
                                      : SIZE_MAX,
                         splits ? 0 : -1, err);
    t.stream = TASK_CALIBRATE;
    t.data = o->calibrate ? o->calibrate : t.data;
    /* Four times the questions: the error in the share is then nearly that of the measurement, as
     * sqrt(1 + 1/4) is 1.12. */
    size_t n = a->n < EVAL_CALIBRATION / 4 ? 4 * a->n : EVAL_CALIBRATION;
    if (rc == OK && p->calibrates)
        rc = plan_choose(&p->calibration, &t, n < LEAST_CALIBRATION ? LEAST_CALIBRATION : n,
                         splits ? 1 : -1, err);
    p->whole = a->n;
    p->first = o->first;
    if (rc == OK && o->first >= a->n)
        rc = err_set(err, ERR_ARG, "--first: expected less than the %zu questions, found %zu", a->n,
                     o->first);
    if (rc != OK)
        return rc;
    a->n -= o->first;
    a->n = o->count && o->count < a->n ? o->count : a->n;
    memmove(a->at, a->at + o->first, a->n * sizeof(*a->at));
    return OK;
}

void eval_plan_close(struct eval_plan *p)
{
    task_close(p->asked.task);
    task_close(p->calibration.task);
    free(p->asked.at);
    free(p->calibration.at);
    *p = (struct eval_plan){ 0 };
}

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
            "targets", targets, "threshold", p->points == EVAL_POINTS ? "paper" : threshold,
            "share", "nan", "clock", clock, "kind", o->task.kind ? o->task.kind : "all", "wording",
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
