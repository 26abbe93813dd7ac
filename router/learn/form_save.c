#include "router/learn/form_save.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "kernels/sys/base.h"
#include "router/router.h"
#include "router/learn/safetensors_write.h"
#include "weights/table.h"
#include "weights/weights.h"

enum { META_NUMBER = 32 }; /* bytes of a number as text */

/* The metadata of a file. */
struct router_meta {
    char threshold[META_NUMBER], share[META_NUMBER], model[17];
    const char *pairs[2 * 9 + 1];
};

/* Add an entry to a list of metadata unless its value is empty. */
static void meta_entry(const char **meta, size_t *n, const char *key, const char *value)
{
    if (!*value)
        return;
    meta[(*n)++] = key;
    meta[(*n)++] = value;
}

/* Write a number as router_meta.c reads it; not with printf, which may write a comma. False: out of
 * memory. */
static bool write_number(char out[META_NUMBER], float v)
{
    json_t *number = json_real((double)v);
    size_t n =
        number ? json_dumpb(number, out, META_NUMBER - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9))
               : 0;
    json_decref(number);
    out[n < META_NUMBER ? n : 0] = '\0';
    return n && n < META_NUMBER;
}

/* Write what the file says besides its numbers. False: out of memory. */
static bool write_meta(struct router_meta *m, const struct router_form *f)
{
    size_t n = 0;
    *m = (struct router_meta){ "", "", "", { NULL } };
    if ((f->has_threshold && !write_number(m->threshold, f->threshold)) ||
        (f->about.has_share && !write_number(m->share, f->about.share)))
        return false;
    if (f->about.has_model)
        snprintf(m->model, sizeof(m->model), "%016" PRIx64, f->about.model);
    meta_entry(m->pairs, &n, "tap", f->dim ? "final" : "");
    meta_entry(m->pairs, &n, "high", f->high ? "critical" : "");
    meta_entry(m->pairs, &n, "softmax", f->softmax ? "1" : "");
    meta_entry(m->pairs, &n, "threshold", m->threshold);
    meta_entry(m->pairs, &n, "share", m->share);
    meta_entry(m->pairs, &n, "model", m->model);
    meta_entry(m->pairs, &n, "model_name", f->about.name);
    meta_entry(m->pairs, &n, "weights", f->about.weights);
    meta_entry(m->pairs, &n, "task", f->about.task);
    return true;
}

int form_save(const char *path, const struct router_form *f, struct err *err)
{
    size_t w = f->width, d = f->dim, size = sizeof(float), outs = f->gain ? 2 : 1;
    size_t rows = f->members * outs, units = d ? w / f->members : 0;
    const struct tensor tensors[] = {
        { "router.w1", W_F32, 2, { w, d }, f->w1, w * d * size },
        { "router.b1", W_F32, 1, { w }, f->b1, w * size },
        { "router.w2", W_F32, 2, { rows, units }, f->w2, rows * units * size },
        { "router.b2", W_F32, 1, { rows }, f->b2, rows * size },
        { "context.table", W_F32, 2, { f->ncontexts, 3 }, f->contexts, f->ncontexts * 3 * size },
    };
    struct router_meta m;
    if (!write_meta(&m, f))
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (f->deep)
        return safetensors_write(path, weights_tensor(f->deep, 0), weights_ntensors(f->deep),
                                 m.pairs, err);
    size_t ntensors = sizeof(tensors) / sizeof(tensors[0]), first = d ? 0 : ntensors - 1;
    ntensors -= first + !f->ncontexts;
    return safetensors_write(path, tensors + first, ntensors, m.pairs, err);
}
