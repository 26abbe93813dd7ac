/* router_meta.c - what a router's file says besides its numbers: tap, threshold, share, model. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "router/features.h"
#include "router/router_internal.h"
#include "weights/weights.h"

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

/* Refuse another hidden state than the final one, which is the default, if f reads one. */
static int check_tap(const struct router_form *f, const struct weights *w, const char *path,
                     struct err *err)
{
    struct str s;
    bool reads = f->deep || (f->width && f->dim != (f->ncontexts ? (size_t)FEATURES : 0));
    if (!reads || !weights_str(w, "tap", &s) || (s.n == 5 && !memcmp(s.p, "final", 5)))
        return OK;
    return err_set(err, ERR_FORMAT, "%s: metadata tap: expected final, found \"%.*s\"", path,
                   s.n < 64 ? (int)s.n : 64, s.p);
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

bool router_meta_says(const struct weights *w, const char *key, const char *text)
{
    struct str s;
    return weights_str(w, key, &s) && s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

/* Read which values are high, which a deep form must say. */
static int read_high(struct router_form *f, const struct weights *w, const char *path,
                     struct err *err)
{
    struct str high = { "none", 4 };
    f->high = router_meta_says(w, "high", "critical");
    if (f->high || (!weights_str(w, "high", &high) && !f->deep))
        return OK;
    return err_set(err, ERR_FORMAT, "%s: metadata high: expected critical, found %.*s", path,
                   high.n < 64 ? (int)high.n : 64, high.p);
}

int router_meta_read(struct router_form *f, const struct weights *w, const char *path,
                     struct err *err)
{
    struct router_about *a = &f->about;
    int rc = read_high(f, w, path, err);
    if (rc == OK)
        rc = check_tap(f, w, path, err);
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
