#include "tools/lab/eval/items.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/eval/eval_origin.h"

static const char HEADER[] = "task,form,pair,id,group,policy,share,run,right_citer,right_answer,"
                             "tokens,cloud,calls,read,hash,settings\n";

/* What of a journal's settings does not change an answer. */
static const char *const NO_SETTINGS[] = { "on",          "first",     "count",   "questions",
                                           "policies",    "baselines", "version", "edge_model",
                                           "cloud_model", "cloud_url" };

/* Copy a text into a field, which a comma would end. */
static const char *items_field(char out[ITEMS_WORD], size_t most, const char *text)
{
    size_t n = 0;
    for (; *text && n < most && n + 1 < ITEMS_WORD; text++)
        out[n++] = strchr(",\"\r\n", *text) ? '_' : *text;
    out[n] = 0;
    return out;
}

/* Hash the settings. */
static int items_settings(struct items_file *f, const json_t *settings, struct err *err)
{
    json_t *some = json_copy((json_t *)(size_t)settings);
    for (size_t i = 0; i < sizeof(NO_SETTINGS) / sizeof(NO_SETTINGS[0]); i++)
        json_object_del(some, NO_SETTINGS[i]);
    char *text = json_dumps(some, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(9));
    if (text)
        sha256_hex(f->settings, text, strlen(text));
    free(text);
    json_decref(some);
    return text ? OK : err_set(err, ERR_NOMEM, "eval: out of memory");
}

int items_open(struct items_file *f, const char *path, const json_t *settings,
               const struct eval_origin *origin, const struct eval_list *list, struct err *err)
{
    const char *task = json_string_value(json_object_get(settings, "task"));
    char form[ITEMS_WORD], pair[ITEMS_WORD];
    json_t *says = json_loads(origin->cloud_says, 0, NULL);
    const char *large = json_string_value(json_object_get(says, "fingerprint"));
    *f = (struct items_file){ .list = list };
    snprintf(f->of, sizeof(f->of), "%.15s,%s,%s+%s", task ? task : "",
             items_field(form, 24, origin->form), origin->edge_fingerprint,
             items_field(pair, 40, large ? large : origin->cloud_model));
    json_decref(says);
    int rc = items_settings(f, settings, err);
    if (rc == OK)
        rc = output_file_open(&f->out, path, err);
    if (rc == OK)
        fputs(HEADER, f->out.f);
    return rc;
}

/* Write which policy it is; if the list has one without a file, others keep theirs. */
static const char *items_policy(char out[ITEMS_WORD], const struct eval_list *l, const char *label)
{
    const char *file = strchr(label, '='), *end = file ? strstr(file, ".safetensors") : NULL;
    size_t own = file ? (size_t)(file - label) : 0, n = end ? (size_t)(end - label) : strlen(label);
    snprintf(out, ITEMS_WORD, "%.*s", (int)own, label);
    if (end && n == 2 * own + 1 && !memcmp(label, file + 1, own) && !eval_list_has(l, out))
        n = own;
    snprintf(out, ITEMS_WORD, "%.*s%s", (int)n, label, end ? end + 12 : "");
    return items_field(out, ITEMS_WORD, out);
}

void items_write(struct items_file *f, const struct eval_result *r, size_t item, uint64_t subject,
                 const struct asked *one)
{
    char policy[ITEMS_WORD], id[ITEMS_WORD], share[32] = "", hash[17] = "";
    char both[2 * SHA256_HEX], settings[SHA256_HEX];
    int n = snprintf(both, sizeof(both), "%s %s", f->settings, r->entry->known.router_sha256);
    sha256_hex(settings, both, (size_t)n);
    if (!*items_field(id, ITEMS_WORD, one->id))
        snprintf(id, sizeof(id), "%zu", item);
    if (!isnan(r->target))
        snprintf(share, sizeof(share), "%.6g", r->target);
    if (one->hash)
        snprintf(hash, sizeof(hash), "%016" PRIx64, one->hash);
    fprintf(f->out.f, "%s,%s,%016" PRIx64 ",%s,%s,%zu,%d,%d,%zu,%zu,%zu,%zu,%s,%.16s\n", f->of, id,
            subject, items_policy(policy, f->list, r->entry->label), share, r->trainings + 1,
            one->citer, one->right, one->stats.tokens, one->stats.cloud, one->work.calls,
            one->work.prefilled, hash, settings);
}
