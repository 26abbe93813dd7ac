#include "router/learn/sample_shard.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "weights/safetensors_write.h"
#include "weights/weights.h"

enum { NUMBER = 24 }; /* characters of a decimal number and a terminator */

const struct sample_count_name sample_count_names[] = {
    { "texts", offsetof(struct sample_counts, texts) },
    { "too_long", offsetof(struct sample_counts, too_long) },
    { "refused", offsetof(struct sample_counts, refused) },
    { "written", offsetof(struct sample_counts, written) },
    { "samples", offsetof(struct sample_counts, samples) },
    { "right", offsetof(struct sample_counts, right) },
    { "rollouts", offsetof(struct sample_counts, rollouts) },
    { "left_out", offsetof(struct sample_counts, left_out) },
    { NULL, 0 },
};
enum { COUNTS = sizeof(sample_count_names) / sizeof(*sample_count_names) - 1 };

/* The tensors that hold the fields of a row. */
static const struct column {
    const char *name;
    int type;
    size_t cols, at, bytes; /* cols 0: one dimension */
} columns[] = {
    { "label", W_U8, 0, offsetof(struct sample_row, label), 1 },
    { "way", W_U8, 0, offsetof(struct sample_row, way), 1 },
    { "edge", W_I32, 0, offsetof(struct sample_row, edge), 4 },
    { "cloud", W_I32, 0, offsetof(struct sample_row, cloud), 4 },
    { "gold", W_I32, 0, offsetof(struct sample_row, gold), 4 },
    { "before", W_I32, 2, offsetof(struct sample_row, before), 8 },
    { "text", W_I32, 0, offsetof(struct sample_row, text), 4 },
    { "subject", W_U32, 0, offsetof(struct sample_row, subject), 4 },
    { "features", W_F32, FEATURE_CONTEXT, offsetof(struct sample_row, features),
      FEATURE_CONTEXT * sizeof(float) },
};
enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

static uint64_t *sample_count_of(struct sample_counts *c, size_t i)
{
    return (uint64_t *)(void *)((char *)c + sample_count_names[i].at);
}

void sample_counts_add(struct sample_counts *a, const struct sample_counts *b)
{
    struct sample_counts more = *b;
    for (size_t i = 0; i < COUNTS; i++)
        *sample_count_of(a, i) += *sample_count_of(&more, i);
}

/* Make room for n rows in all. */
static int sample_shard_reserve(struct sample_shard *s, size_t n, struct err *err)
{
    size_t room = s->room ? s->room : 256, bytes, rows;
    while (room < n)
        room *= 2;
    if (room == s->room)
        return OK;
    if (!size_mul(&bytes, room, s->dim * sizeof(float)) || !size_mul(&rows, room, sizeof(*s->rows)))
        return err_set(err, ERR_NOMEM, "samples: out of memory");
    float *hidden = realloc(s->hidden, bytes);
    s->hidden = hidden ? hidden : s->hidden;
    struct sample_row *more = realloc(s->rows, rows);
    s->rows = more ? more : s->rows;
    if (!hidden || !more)
        return err_set(err, ERR_NOMEM, "samples: out of memory");
    s->room = room;
    return OK;
}

int sample_shard_add(struct sample_shard *s, const float *hidden, const struct sample_row *row,
                     struct err *err)
{
    int rc = sample_shard_reserve(s, s->n + 1, err);
    if (rc != OK)
        return rc;
    memcpy(s->hidden + s->n * s->dim, hidden, s->dim * sizeof(*hidden));
    s->rows[s->n++] = *row;
    return OK;
}

void sample_shard_close(struct sample_shard *s)
{
    free(s->hidden);
    free(s->rows);
    *s = (struct sample_shard){ 0 };
}

/* Describe the tensors; columns are gathered into data, which has room for all rows. */
static void sample_shard_tensors(struct tensor t[COLUMNS + 1], unsigned char *data,
                                 const struct sample_shard *s)
{
    t[0] = (struct tensor){ .name = "hidden",
                            .type = W_F32,
                            .ndim = 2,
                            .shape = { s->n, s->dim },
                            .data = s->hidden,
                            .bytes = s->n * s->dim * sizeof(float) };
    for (size_t c = 0; c < COLUMNS; c++) {
        const struct column *at = &columns[c];
        t[c + 1] = (struct tensor){ .name = at->name,
                                    .type = at->type,
                                    .ndim = at->cols ? 2 : 1,
                                    .shape = { s->n, at->cols },
                                    .data = data,
                                    .bytes = s->n * at->bytes };
        for (size_t i = 0; i < s->n; i++, data += at->bytes)
            memcpy(data, (const char *)&s->rows[i] + at->at, at->bytes);
    }
}

int sample_shard_write(const char *path, const struct sample_shard *s, uint32_t collection,
                       struct err *err)
{
    char numbers[COUNTS + 2][NUMBER], checksum[NUMBER];
    const char *meta[2 * COUNTS + 7];
    struct sample_counts counts = s->counts;
    size_t n = 0;
    snprintf(checksum, sizeof(checksum), "%08" PRIx32, collection);
    snprintf(numbers[COUNTS], NUMBER, "%zu", s->first);
    snprintf(numbers[COUNTS + 1], NUMBER, "%zu", s->ntexts);
    meta[n++] = "collection", meta[n++] = checksum;
    meta[n++] = "first", meta[n++] = numbers[COUNTS];
    meta[n++] = "range", meta[n++] = numbers[COUNTS + 1];
    for (size_t i = 0; i < COUNTS; i++) {
        snprintf(numbers[i], NUMBER, "%" PRIu64, *sample_count_of(&counts, i));
        meta[n++] = sample_count_names[i].name, meta[n++] = numbers[i];
    }
    meta[n] = NULL;
    struct tensor t[COLUMNS + 1];
    unsigned char *data = malloc(s->n * sizeof(struct sample_row) + 1);
    if (!data)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    sample_shard_tensors(t, data, s);
    int rc = safetensors_write(path, t, COLUMNS + 1, meta, err);
    free(data);
    return rc;
}

/* Read a number of the metadata. */
static int sample_shard_number(uint64_t *out, const struct weights *w, const char *name, int base,
                               struct err *err)
{
    struct str s;
    char *end = NULL;
    bool found = weights_str(w, name, &s);
    *out = found ? strtoull(s.p, &end, base) : 0;
    char again[NUMBER] = "";
    snprintf(again, sizeof(again), base == 16 ? "%08" PRIx64 : "%" PRIu64, *out);
    if (found && s.n == strlen(again) && !memcmp(s.p, again, s.n))
        return OK;
    return err_set(err, ERR_FORMAT, "%s: metadata %s: expected a number, found %s%.40s",
                   weights_path(w), name, found ? "" : "nothing", found ? s.p : "");
}

/* Read the metadata, and compare it with what it must be. */
static int sample_shard_meta(struct sample_shard *s, const struct weights *w,
                             const struct sample_shard_want *want, struct err *err)
{
    const struct {
        const char *name;
        int base;
        uint64_t want;
    } fixed[] = { { "collection", 16, want->collection },
                  { "first", 10, want->first },
                  { "range", 10, want->ntexts } };
    uint64_t found;
    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
        int rc = sample_shard_number(&found, w, fixed[i].name, fixed[i].base, err);
        if (rc != OK)
            return rc;
        if (found != fixed[i].want)
            return err_set(err, ERR_FORMAT,
                           fixed[i].base == 16
                               ? "%s: metadata %s: expected %08" PRIx64 ", found %08" PRIx64
                               : "%s: metadata %s: expected %" PRIu64 ", found %" PRIu64,
                           weights_path(w), fixed[i].name, fixed[i].want, found);
    }
    s->first = want->first;
    s->ntexts = want->ntexts;
    for (size_t i = 0; i < COUNTS; i++) {
        int rc = sample_shard_number(sample_count_of(&s->counts, i), w, sample_count_names[i].name,
                                     10, err);
        if (rc != OK)
            return rc;
    }
    return OK;
}

/* Return a tensor of this type and shape, or NULL with err set. */
static const struct tensor *sample_shard_want(const struct weights *w, const char *name, int type,
                                              size_t n, size_t cols, struct err *err)
{
    const struct tensor *t = weights_want(w, name, n, cols, err);
    if (!t || t->type == type)
        return t;
    err_set(err, ERR_FORMAT, "%s: tensor %s: expected %s, found %s", weights_path(w), name,
            wtype_name(type), wtype_name(t->type));
    return NULL;
}

/* Copy the tensors into rows. */
static int sample_shard_load(struct sample_shard *s, const struct weights *w, struct err *err)
{
    size_t n = (size_t)s->counts.samples;
    const struct tensor *t = sample_shard_want(w, "hidden", W_F32, n, s->dim, err);
    if (!t)
        return ERR_FORMAT;
    if (weights_ntensors(w) != COLUMNS + 1)
        return err_set(err, ERR_FORMAT, "%s: expected %d tensors, found %zu", weights_path(w),
                       COLUMNS + 1, weights_ntensors(w));
    int rc = sample_shard_reserve(s, n, err);
    if (rc != OK || !n)
        return rc;
    memcpy(s->hidden, t->data, t->bytes);
    for (size_t c = 0; c < COLUMNS; c++) {
        const struct column *at = &columns[c];
        t = sample_shard_want(w, at->name, at->type, n, at->cols, err);
        if (!t)
            return ERR_FORMAT;
        for (size_t i = 0; i < n; i++)
            memcpy((char *)&s->rows[i] + at->at, (const char *)t->data + i * at->bytes, at->bytes);
    }
    s->n = n;
    return OK;
}

/* Refuse a number of a row that is not from low to high. */
static int sample_shard_range(const char *path, const char *tensor, size_t row, int64_t low,
                              int64_t high, int64_t found, struct err *err)
{
    if (found >= low && found <= high)
        return OK;
    return err_set(err, ERR_FORMAT,
                   "%s: tensor %s: row %zu: expected %" PRId64 " to %" PRId64 ", found %" PRId64,
                   path, tensor, row, low, high, found);
}

/* Refuse values of a row that are not finite. */
static int sample_shard_finite(const char *path, const char *tensor, size_t row, const float *x,
                               size_t n, struct err *err)
{
    for (size_t k = 0; k < n; k++)
        if (!isfinite(x[k]))
            return err_set(err, ERR_FORMAT,
                           "%s: tensor %s: row %zu: expected finite values, found %g at %zu", path,
                           tensor, row, (double)x[k], k);
    return OK;
}

/* Check each number of a row. */
static int sample_shard_check_row(const struct sample_shard *s, size_t i, const char *path,
                                  size_t vocab, struct err *err)
{
    const struct sample_row *r = &s->rows[i];
    int64_t most = (int64_t)vocab - 1, none = SAMPLE_NOT_ASKED;
    int64_t text = i ? s->rows[i - 1].text : (int64_t)s->first;
    const struct {
        const char *tensor;
        int64_t low, high, found;
    } checks[] = {
        { "label", 0, 1, r->label },
        { "way", 0, SAMPLE_WAYS - 1, r->way },
        { "edge", 0, most, r->edge },
        { "cloud", none, most, r->cloud },
        { "gold", 0, most, r->gold },
        { "before", none, most, r->before[0] },
        { "before", 0, most, r->before[1] },
        { "text", text, (int64_t)(s->first + s->ntexts) - 1, r->text },
    };
    int rc = OK;
    for (size_t c = 0; rc == OK && c < sizeof(checks) / sizeof(*checks); c++)
        rc = sample_shard_range(path, checks[c].tensor, i, checks[c].low, checks[c].high,
                                checks[c].found, err);
    if (rc == OK)
        rc = sample_shard_finite(path, "hidden", i, s->hidden + i * s->dim, s->dim, err);
    if (rc == OK)
        rc = sample_shard_finite(path, "features", i, r->features, FEATURE_CONTEXT, err);
    return rc;
}

/* Check the rows, and count again what the metadata counts. */
static int sample_shard_check(struct sample_shard *s, const char *path, size_t vocab,
                              struct err *err)
{
    struct sample_counts again = s->counts;
    again.texts = again.right = again.rollouts = 0;
    for (size_t i = 0; i < s->n; i++) {
        int rc = sample_shard_check_row(s, i, path, vocab, err);
        if (rc != OK)
            return rc;
        again.texts += !i || s->rows[i].text != s->rows[i - 1].text;
        again.right += s->rows[i].label;
        again.rollouts += s->rows[i].way == SAMPLE_ROLLOUT;
    }
    for (size_t i = 0; i < COUNTS; i++)
        if (*sample_count_of(&again, i) != *sample_count_of(&s->counts, i))
            return err_set(err, ERR_FORMAT,
                           "%s: metadata %s: expected %" PRIu64
                           ", as the rows have, found %" PRIu64,
                           path, sample_count_names[i].name, *sample_count_of(&again, i),
                           *sample_count_of(&s->counts, i));
    return OK;
}

int sample_shard_read(struct sample_shard *out, const char *path,
                      const struct sample_shard_want *want, struct err *err)
{
    struct weights *w;
    *out = (struct sample_shard){ .dim = want->dim };
    int rc = weights_open(&w, path, err);
    if (rc != OK)
        return rc;
    if (strcmp(weights_format(w), "safetensors") != 0)
        rc =
            err_set(err, ERR_FORMAT, "%s: expected safetensors, found %s", path, weights_format(w));
    if (rc == OK)
        rc = sample_shard_meta(out, w, want, err);
    if (rc == OK)
        rc = sample_shard_load(out, w, err);
    weights_close(w);
    if (rc == OK)
        rc = sample_shard_check(out, path, want->vocab, err);
    if (rc != OK)
        sample_shard_close(out);
    return rc;
}
