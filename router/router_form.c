#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "router/deep.h"
#include "router/import.h"
#include "router/router.h"
#include "weights/find.h"
#include "weights/pth.h"
#include "weights/quant.h"
#include "weights/safetensors.h"
#include "weights/weights.h"

_Static_assert(sizeof(struct router_context) == 3 * sizeof(float), "a row of the tensor");

static const char *const tap_names[] = { [TAP_FINAL] = "final", [TAP_POST_ATTN] = "post_attn" };

const char *router_tap_name(enum tap tap)
{
    return tap_names[tap];
}

bool router_tap_parse(enum tap *out, const char *name)
{
    *out = strcmp(name, tap_names[TAP_POST_ATTN]) ? TAP_FINAL : TAP_POST_ATTN;
    return !strcmp(name, tap_names[*out]);
}

int router_form_open(struct router_form *out, size_t dim, size_t width, struct err *err)
{
    *out = (struct router_form){ .dim = dim, .width = width };
    if (dim < 1 || dim > ROUTER_MAX || width < 1 || width > ROUTER_MAX)
        return err_set(err, ERR_ARG, "router: expected sizes of 1 to %d, found [%zu,%zu]",
                       ROUTER_MAX, width, dim);
    out->w1 = calloc(width * dim, sizeof(*out->w1));
    out->b1 = calloc(width, sizeof(*out->b1));
    out->w2 = calloc(width, sizeof(*out->w2));
    if (out->w1 && out->b1 && out->w2)
        return OK;
    router_form_close(out);
    return err_set(err, ERR_NOMEM, "router: out of memory");
}

/* Allocate a table of n rows. */
static int contexts_open(struct router_form *f, size_t n, struct err *err)
{
    if (n < 1 || n > ROUTER_MAX_CONTEXTS)
        return err_set(err, ERR_ARG, "router: expected a table of 1 to %d rows, found %zu",
                       ROUTER_MAX_CONTEXTS, n);
    f->contexts = calloc(n, sizeof(*f->contexts));
    f->ncontexts = f->contexts ? n : 0;
    return f->contexts ? OK : err_set(err, ERR_NOMEM, "router: out of memory");
}

int router_form_open_contexts(struct router_form *out, size_t n, struct err *err)
{
    *out = (struct router_form){ 0 };
    return contexts_open(out, n, err);
}

void router_form_close(struct router_form *f)
{
    free(f->w1);
    free(f->b1);
    free(f->w2);
    free(f->contexts);
    weights_close(f->deep);
    *f = (struct router_form){ 0 };
}

size_t router_size(size_t dim, size_t width)
{
    size_t panel, w1 = 0, w2 = 0;
    panels_bytes(&panel, &w1, P_F32, width, dim);
    panels_bytes(&panel, &w2, P_F32, 1, width);
    return w1 + w2 + width * sizeof(float);
}

/* Add an entry to a list of metadata unless its value is empty. */
static void router_form_entry(const char **meta, size_t *n, const char *key, const char *value)
{
    if (!*value)
        return;
    meta[(*n)++] = key;
    meta[(*n)++] = value;
}

enum { NUMBER = 32 }; /* bytes of a number as text */

/* Write a number as read_number reads it; not with printf, which may write a comma. False: out of
 * memory. */
static bool write_number(char out[NUMBER], float v)
{
    json_t *number = json_real((double)v);
    size_t n =
        number ? json_dumpb(number, out, NUMBER - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : 0;
    json_decref(number);
    out[n < NUMBER ? n : 0] = '\0';
    return n && n < NUMBER;
}

/* The metadata of a file. */
struct router_meta {
    char threshold[NUMBER], share[NUMBER], model[17];
    const char *pairs[2 * 9 + 1];
};

/* Write them. False: out of memory. */
static bool router_form_meta(struct router_meta *m, const struct router_form *f)
{
    size_t n = 0;
    *m = (struct router_meta){ "", "", "", { NULL } };
    if ((f->has_threshold && !write_number(m->threshold, f->threshold)) ||
        (f->about.has_share && !write_number(m->share, f->about.share)))
        return false;
    if (f->about.has_model)
        snprintf(m->model, sizeof(m->model), "%016" PRIx64, f->about.model);
    router_form_entry(m->pairs, &n, "tap", !f->dim ? "" : tap_names[f->tap]);
    router_form_entry(m->pairs, &n, "high", f->high ? "critical" : "");
    router_form_entry(m->pairs, &n, "softmax", f->softmax ? "1" : "");
    router_form_entry(m->pairs, &n, "threshold", m->threshold);
    router_form_entry(m->pairs, &n, "share", m->share);
    router_form_entry(m->pairs, &n, "model", m->model);
    router_form_entry(m->pairs, &n, "model_name", f->about.name);
    router_form_entry(m->pairs, &n, "weights", f->about.weights);
    router_form_entry(m->pairs, &n, "task", f->about.task);
    return true;
}

int router_form_save(const char *path, const struct router_form *f, struct err *err)
{
    size_t w = f->width, d = f->dim, size = sizeof(float);
    const struct tensor tensors[] = {
        { "router.w1", W_F32, 2, { w, d }, f->w1, w * d * size },
        { "router.b1", W_F32, 1, { w }, f->b1, w * size },
        { "router.w2", W_F32, 2, { 1, w }, f->w2, w * size },
        { "router.b2", W_F32, 1, { 1 }, &f->b2, size },
        { "context.table", W_F32, 2, { f->ncontexts, 3 }, f->contexts, f->ncontexts * 3 * size },
    };
    struct router_meta m;
    if (!router_form_meta(&m, f))
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (f->deep)
        return deep_save(path, f->deep, f->type, m.pairs, err);
    size_t ntensors = sizeof(tensors) / sizeof(tensors[0]), first = d ? 0 : ntensors - 1;
    ntensors -= first + !f->ncontexts;
    return safetensors_write(path, tensors + first, ntensors, m.pairs, err);
}

/* Read the tap from the metadata; final is the default. */
static int read_tap(struct router_form *f, const struct weights *w, const char *path,
                    struct err *err)
{
    struct str s;
    if (!weights_str(w, "tap", &s))
        return OK;
    for (size_t i = 0; i < sizeof(tap_names) / sizeof(tap_names[0]); i++)
        if (s.n == strlen(tap_names[i]) && !memcmp(s.p, tap_names[i], s.n)) {
            f->tap = (enum tap)i;
            return OK;
        }
    return err_set(err, ERR_FORMAT, "%s: metadata tap: expected final or post_attn, found %.*s",
                   path, s.n < 64 ? (int)s.n : 64, s.p);
}

/* Read a number of 0 to 1 from the metadata, if there is one. */
static int read_number(bool *has, float *out, const char *key, const struct weights *w,
                       const char *path, struct err *err)
{
    struct str s;
    if (!weights_str(w, key, &s))
        return OK;
    /* Not strtof, which expects a comma if the program's locale has one. */
    json_t *number = s.n < 32 ? json_loadb(s.p, s.n, JSON_DECODE_ANY, NULL) : NULL;
    *out = json_is_number(number) ? (float)json_number_value(number) : -1;
    json_decref(number);
    if (!(*out >= 0 && *out <= 1))
        return err_set(err, ERR_FORMAT,
                       "%s: metadata %s: expected a number of 0 to 1, found \"%.*s\"", path, key,
                       s.n < 64 ? (int)s.n : 64, s.p);
    *has = true;
    return OK;
}

/* Read a text from the metadata, if there is one. */
static int read_text(char *out, size_t room, const char *key, const struct weights *w,
                     const char *path, struct err *err)
{
    struct str s;
    if (!weights_str(w, key, &s))
        return OK;
    if (s.n >= room)
        return err_set(err, ERR_FORMAT, "%s: metadata %s: expected at most %zu bytes, found %zu",
                       path, key, room - 1, s.n);
    memcpy(out, s.p, s.n);
    out[s.n] = 0;
    return OK;
}

/* Read 16 hexadecimal digits from the metadata, if they are there. */
static int read_hex(bool *has, uint64_t *out, const char *key, const struct weights *w,
                    const char *path, struct err *err)
{
    struct str s;
    if (!weights_str(w, key, &s))
        return OK;
    char text[17] = "";
    memcpy(text, s.p, s.n == 16 ? 16 : 0);
    if (strspn(text, "0123456789abcdef") != 16)
        return err_set(err, ERR_FORMAT,
                       "%s: metadata %s: expected 16 hexadecimal digits, found \"%.*s\"", path, key,
                       s.n < 64 ? (int)s.n : 64, s.p);
    *out = strtoull(text, NULL, 16);
    *has = true;
    return OK;
}

/* True if the metadata has this text. */
static bool router_form_says(const struct weights *w, const char *key, const char *text)
{
    struct str s;
    return weights_str(w, key, &s) && s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

/* Read which values are high, which a deep form must say. */
static int read_high(struct router_form *f, const struct weights *w, const char *path,
                     struct err *err)
{
    struct str high = { "none", 4 };
    f->high = router_form_says(w, "high", "critical");
    if (f->high || (!weights_str(w, "high", &high) && !f->deep))
        return OK;
    return err_set(err, ERR_FORMAT, "%s: metadata high: expected critical, found %.*s", path,
                   high.n < 64 ? (int)high.n : 64, high.p);
}

/* Read all metadata. */
static int read_about(struct router_form *f, const struct weights *w, const char *path,
                      struct err *err)
{
    struct router_about *a = &f->about;
    int rc = read_high(f, w, path, err);
    if (rc == OK)
        rc = read_tap(f, w, path, err);
    if (rc == OK)
        rc = read_number(&f->has_threshold, &f->threshold, "threshold", w, path, err);
    if (rc == OK)
        rc = read_number(&a->has_share, &a->share, "share", w, path, err);
    if (rc == OK)
        rc = read_hex(&a->has_model, &a->model, "model", w, path, err);
    if (rc == OK)
        rc = read_text(a->name, sizeof(a->name), "model_name", w, path, err);
    if (rc == OK)
        rc = read_text(a->weights, sizeof(a->weights), "weights", w, path, err);
    return rc == OK ? read_text(a->task, sizeof(a->task), "task", w, path, err) : rc;
}

/* Read a tensor of this shape as f32. */
static int read_tensor(float *to, const struct weights *w, const char *name, size_t rows,
                       size_t cols, struct err *err)
{
    const struct tensor *t = weights_want(w, name, rows, cols, err);
    return t ? weights_floats(to, t, 0, cols ? rows * cols : rows, weights_path(w), err)
             : ERR_FORMAT;
}

/* Read the tensors of a network. */
static int read_network(struct router_form *f, const struct weights *w, struct err *err)
{
    size_t rows, cols;
    int rc = import_shape(&rows, &cols, w, "router.w1", err);
    if (rc == OK)
        rc = router_form_open(f, cols, rows, err);
    if (rc == OK)
        rc = read_tensor(f->w1, w, "router.w1", f->width, f->dim, err);
    if (rc == OK)
        rc = read_tensor(f->b1, w, "router.b1", f->width, 0, err);
    if (rc == OK)
        rc = read_tensor(f->w2, w, "router.w2", 1, f->width, err);
    if (rc == OK)
        rc = read_tensor(&f->b2, w, "router.b2", 1, 0, err);
    return rc;
}

/* Read the tensor of a table. */
static int read_table(struct router_form *f, const struct weights *w, const struct tensor *t,
                      const char *path, struct err *err)
{
    if (t->ndim != 2 || t->shape[0] < 1 || t->shape[0] > ROUTER_MAX_CONTEXTS || t->shape[1] != 3)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor context.table: expected a matrix of at most [%d,3], found %u "
                       "dimensions [%zu,%zu]",
                       path, ROUTER_MAX_CONTEXTS, t->ndim, t->shape[0],
                       t->ndim > 1 ? t->shape[1] : 0);
    int rc = contexts_open(f, t->shape[0], err);
    return rc == OK ? read_tensor(&f->contexts->before, w, "context.table", f->ncontexts, 3, err)
                    : rc;
}

/* Read a form from the tensors of a safetensors file. */
static int read_safetensors(struct router_form *f, const struct weights *w, const char *path,
                            struct err *err)
{
    int rc = OK;
    bool network = weights_find(w, "router.w1") != NULL;
    const struct tensor *table = weights_find(w, "context.table");
    if (network)
        rc = read_network(f, w, err);
    if (rc == OK && table)
        rc = read_table(f, w, table, path, err);
    if (!network && !table)
        rc = err_set(err, ERR_FORMAT, "%s: tensor router.w1: expected in a router, found none",
                     path);
    return rc == OK ? read_about(f, w, path, err) : rc;
}

/* Read whether the inputs of a deep one are normalised. If they are, all but the logits have layer
 * norms, and these a softmax. */
static int read_softmax(struct router_form *f, const char *path, struct err *err)
{
    const struct weights *w = f->deep;
    bool pth = strcmp(weights_format(w), "pth") == 0, says = router_form_says(w, "softmax", "1");
    const char *key = pth ? "init_args.normalize_input" : "softmax";
    bool norms = weights_find(w, "layer_norm.weight") != NULL ||
                 weights_find(w, "layer_norm_hidden_states.weight") != NULL;
    bool logits = !weights_find(w, "hidden_states_projection.weight") &&
                  !weights_find(w, "combined_projection.weight"); /* alone */
    bool given = weights_key(w, key) != NULL;
    double number;
    if (!weights_bool(w, key, &says) && pth) /* Python takes any text as true */
        says = weights_f64(w, key, &number) ? number != 0 : given;
    f->softmax = logits ? says : norms;
    if (given ? says == f->softmax : !pth || !logits || weights_key(w, "model_type"))
        return OK;
    static const char *const want[] = { "False without layer norms", "True with layer norms" };
    return err_set(err, ERR_FORMAT, "%s: %s: expected %s, found %s", path, key,
                   given ? want[norms] : "True or False",
                   given ? (says ? "True" : "False") : "none");
}

/* Read what R2R says of a deep one: its class, its own threshold, at which values that are as high
 * or higher go to the cloud. */
static int read_deep_pth(struct router_form *f, const char *path, struct err *err)
{
    static const char *const classes[] = { "HiddenStatesTokenLMHeadLogitsClassifier",
                                           "HiddenStatesTokenLMHeadClassifier",
                                           "HiddenStatesLogitsClassifier", "HiddenStatesClassifier",
                                           "LogitsClassifier" };
    struct str class = { "", 0 };
    double threshold = (double)NAN;
    bool known = !weights_str(f->deep, "model_type", &class);
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
        known = known || router_form_says(f->deep, "model_type", classes[i]);
    if (!known)
        return err_set(err, ERR_FORMAT,
                       "%s: model_type: expected a classifier of one hidden state, token and "
                       "logits, or of some of these, found %.*s",
                       path, class.n < 64 ? (int)class.n : 64, class.p);
    weights_f64(f->deep, "common_args.threshold", &threshold);
    f->has_threshold = weights_key(f->deep, "common_args.threshold") != NULL;
    if (f->has_threshold && !(threshold >= 0 && threshold <= 1))
        return err_set(err, ERR_FORMAT,
                       "%s: common_args.threshold: expected a number of 0 to 1, found %g", path,
                       threshold);
    if (f->has_threshold)
        f->threshold = fminf(nextafterf((float)(1 - threshold), 2), 1);
    return OK;
}

/* Read a deep form, which keeps the tensors. */
static int read_deep(struct router_form *f, struct weights *w, const char *path, struct err *err)
{
    f->deep = w;
    f->high = true;
    int rc = read_softmax(f, path, err);
    if (rc != OK)
        return rc;
    return strcmp(weights_format(w), "pth") == 0 ? read_deep_pth(f, path, err)
                                                 : read_about(f, w, path, err);
}

/* True unless a regular file has a form that a router never has. */
static bool may_be_router(const char *path)
{
    char begin[64] = ""; /* a safetensors header follows its length */
    struct stat st;
    FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rbe") : NULL;
    if (!f)
        return true;
    size_t n = fread(begin, 1, sizeof(begin), f);
    fclose(f);
    return find_ends(path, ".safetensors") || begin[8] == '{' ||
           find_no_pointer(path, begin, n, NULL) != OK;
}

int router_form_read(struct router_form *out, const char *path, struct err *err)
{
    struct weights *w;
    bool read, pth = pth_is(path);
    int rc = import_rmlp(out, &read, path, err);
    if (read)
        goto done;
    rc = pth ? pth_open(&w, path, err) : weights_open(&w, path, err);
    if (rc != OK && !pth && (rc == ERR_FORMAT ? !may_be_router(path) : find_is_folder(path)))
        return err_set(err, rc,
                       "%s: expected a router: safetensors, .pt, .pth or .rmlp, found none", path);
    if (rc != OK)
        return rc;
    if (deep_is(w)) {
        rc = read_deep(out, w, path, err);
    } else {
        rc = pth ? import_pth(out, w, err) : read_safetensors(out, w, path, err);
        weights_close(w);
    }
done:
    if (rc == OK)
        rc = router_form_check(out, path, err);
    if (rc != OK)
        router_form_close(out);
    return rc;
}

int router_finite(const float *v, size_t n, const char *file, const char *tensor, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return err_set(err, ERR_FORMAT,
                           "%s: tensor %s: expected finite values, found %g at %zu", file, tensor,
                           (double)v[i], i);
    return OK;
}

/* True for -1 and for whole numbers that an id may be. */
static bool is_id(float v)
{
    return v >= -1 && v < (1 << 24) && rintf(v) == v;
}

/* Refuse a table that a search would not find its way in. */
static int check_table(const struct router_form *f, const char *file, struct err *err)
{
    const struct router_context *c = f->contexts;
    if (c->before != -1 || c->last != -1)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor context.table: expected the mean (-1, -1) first, found "
                       "(%.9g, %.9g)",
                       file, (double)c->before, (double)c->last);
    for (size_t i = 0; i < f->ncontexts; i++, c++) {
        bool ascends = i == 0 || c->before > c[-1].before ||
                       (c->before == c[-1].before && c->last > c[-1].last);
        if (!is_id(c->before) || !is_id(c->last) || !ascends || !(c->score >= 0 && c->score <= 1))
            return err_set(err, ERR_FORMAT,
                           "%s: tensor context.table: expected rows of two ids, ascending, and a "
                           "score of 0 to 1, found (%.9g, %.9g, %g) at %zu",
                           file, (double)c->before, (double)c->last, (double)c->score, i);
    }
    return OK;
}

int router_form_check(const struct router_form *f, const char *file, struct err *err)
{
    int rc = f->ncontexts ? check_table(f, file, err) : OK;
    if (rc == OK && f->dim && f->ncontexts && f->dim < FEATURES)
        rc =
            err_set(err, ERR_FORMAT,
                    "%s: tensor router.w1: expected at least %d inputs beside a table of contexts, "
                    "found %zu",
                    file, FEATURES, f->dim);
    if (rc != OK || !f->dim)
        return rc;
    rc = router_finite(f->w1, f->width * f->dim, file, "router.w1", err);
    if (rc == OK)
        rc = router_finite(f->b1, f->width, file, "router.b1", err);
    if (rc == OK)
        rc = router_finite(f->w2, f->width, file, "router.w2", err);
    return rc == OK ? router_finite(&f->b2, 1, file, "router.b2", err) : rc;
}
