#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "router/learn/samples.h"

static int samples_no_memory(struct err *err)
{
    return err_set(err, ERR_NOMEM, "samples: out of memory");
}

int samples_reserve(struct samples *s, size_t n, struct err *err)
{
    size_t room, floats, bytes, row_bytes;
    if (n <= s->room - s->n)
        return OK;
    if (!size_add(&room, s->n, n) || !size_mul(&floats, room, s->dim) ||
        !size_mul(&bytes, floats, sizeof(*s->x)) || !size_mul(&row_bytes, room, sizeof(*s->rows)))
        return samples_no_memory(err);
    float *x = realloc(s->x, bytes);
    s->x = x ? x : s->x;
    struct sample_row *rows = realloc(s->rows, row_bytes);
    s->rows = rows ? rows : s->rows;
    if (!x || !rows)
        return samples_no_memory(err);
    s->room = room;
    return OK;
}

/* Refuse values of a row that are not finite. */
static int samples_finite(const char *name, const char *tensor, size_t row, const float *x,
                          size_t n, struct err *err)
{
    for (size_t k = 0; k < n; k++)
        if (!isfinite(x[k]))
            return err_set(err, ERR_FORMAT,
                           "%s: tensor %s: row %zu: expected finite values, found %g at %zu", name,
                           tensor, row, (double)x[k], k);
    return OK;
}

int samples_add(struct samples *s, const float *x, const struct sample_row *row, struct err *err)
{
    int rc = samples_finite("the model", "hidden", s->n, x, s->dim, err);
    if (rc == OK && s->n == s->room)
        rc = samples_reserve(s, s->room ? s->room : 256, err);
    if (rc != OK)
        return rc;
    memcpy(s->x + s->n * s->dim, x, s->dim * sizeof(*x));
    s->rows[s->n++] = *row;
    return OK;
}

int samples_append(struct samples *s, const struct samples *more, uint32_t base, struct err *err)
{
    int rc = samples_reserve(s, more->n, err);
    if (rc != OK || !more->n)
        return rc;
    memcpy(s->x + s->n * s->dim, more->x, more->n * s->dim * sizeof(*s->x));
    for (size_t i = 0; i < more->n; i++) {
        s->rows[s->n] = more->rows[i];
        s->rows[s->n++].text += base;
    }
    return OK;
}

void samples_close(struct samples *s)
{
    free(s->x);
    free(s->rows);
    *s = (struct samples){ 0 };
}

int samples_check(const struct samples *s, size_t vocab, uint32_t first, uint32_t end,
                  const char *name, struct err *err)
{
    const int64_t most = (int64_t)vocab - 1;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < s->n; i++) {
        const struct sample_row *r = &s->rows[i];
        const struct {
            const char *tensor;
            int64_t low, high, found;
        } checks[] = {
            { "label", 0, 1, r->label },
            { "way", 0, SAMPLE_WAYS - 1, r->way },
            { "gain", -1, !r->label, r->gain },
            { "right", 0, 1, r->right },
            { "edge", 0, most, r->edge },
            { "cloud", SAMPLE_NOT_ASKED, most, r->cloud },
            { "gold", 0, most, r->gold },
            { "before", -1, most, (int32_t)r->before[0] },
            { "before", 0, most, (int32_t)r->before[1] },
            { "text", i ? r[-1].text : first, (int64_t)end - 1, r->text },
        };
        for (size_t c = 0; c < sizeof(checks) / sizeof(*checks); c++)
            if (checks[c].found < checks[c].low || checks[c].found > checks[c].high)
                return err_set(
                    err, ERR_FORMAT,
                    "%s: tensor %s: row %zu: expected %" PRId64 " to %" PRId64 ", found %" PRId64,
                    name, checks[c].tensor, i, checks[c].low, checks[c].high, checks[c].found);
        rc = samples_finite(name, "hidden", i, s->x + i * s->dim, s->dim, err);
        if (rc == OK)
            rc = samples_finite(name, "features", i, r->features, FEATURE_CONTEXT, err);
    }
    return rc;
}

int samples_of_texts(struct samples *out, const struct samples *s, struct err *err)
{
    bool whole = false; /* the text's first token is there */
    out->dim = s->dim;
    for (size_t i = 0; i < s->n; i++) {
        const struct sample_row *row = &s->rows[i];
        bool first = !i || row->text != row[-1].text;
        whole = first ? !(row->features[FEATURE_POSITION] > 0) : whole;
        if (first && whole && samples_add(out, s->x + i * s->dim, row, err) != OK)
            return ERR_NOMEM;
        if (whole)
            out->rows[out->n - 1].label &= row->label;
    }
    return OK;
}
