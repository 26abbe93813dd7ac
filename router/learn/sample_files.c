#include "router/learn/sample_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "kernels/sys/atomic_file.h"
#include "kernels/sys/base.h"
#include "router/router.h"
#include "router/learn/safetensors_write.h"
#include "weights/weights.h"

#define FORMAT "mizzle samples 4"
static const char no_limit[] = "no limit";

enum { PATH = 600, VALUE = 260 };

enum kind { TEXT, NUMBER, HEX };
enum scope { MODEL, FOLDER, PLACE, COUNT };

/* The fields of a shard's metadata: its settings, its place, its counts. */
static const struct field {
    const char *name;
    enum kind kind;
    enum scope scope;
    size_t at, size; /* in struct sample_shard */
} fields[] = {
#define FIELD(name, kind, scope, member)                        \
    { name, kind, scope, offsetof(struct sample_shard, member), \
      sizeof(((struct sample_shard *)0)->member) },
#define TEXT_FIELD(name, bytes, scope) FIELD(#name, TEXT, scope, meta.name)
#define NUMBER_FIELD(name, scope)      FIELD(#name, NUMBER, scope, meta.name)
#define HEX_FIELD(name, scope)         FIELD(#name, HEX, scope, meta.name)
#define COUNT_FIELD(name)              FIELD(#name, NUMBER, COUNT, counts.name)
    SAMPLE_SETTINGS(TEXT_FIELD, NUMBER_FIELD, HEX_FIELD) FIELD("first", NUMBER, PLACE, first)
        FIELD("ntexts", NUMBER, PLACE, ntexts) SAMPLE_COUNTS(COUNT_FIELD)
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

/* The tensors: the hidden states, which have meta.dim columns, and the fields of a row. */
static const struct column {
    const char *name;
    int type;
    size_t cols, at, bytes; /* cols 0: one dimension; offset and size in struct sample_row */
} columns[] = {
#define COLUMN(name, type, cols)                              \
    {                                                         \
#name, type, cols, offsetof(struct sample_row, name), \
            sizeof(((struct sample_row *)0)->name)            \
    }
    { "hidden", W_F32, 0, 0, 0 }, COLUMN(label, W_U8, 0),
    COLUMN(way, W_U8, 0),         COLUMN(edge, W_I32, 0),
    COLUMN(cloud, W_I32, 0),      COLUMN(gold, W_I32, 0),
    COLUMN(before, W_I32, 2),     COLUMN(text, W_I32, 0),
    COLUMN(subject, W_U32, 0),    COLUMN(features, W_F32, FEATURE_CONTEXT),
    COLUMN(gain, W_I8, 0),        COLUMN(right, W_U8, 0),
};
enum { COLUMNS = sizeof(columns) / sizeof(*columns), OF_GAIN = 2 /* the last ones */ };

/* Return how many of the tensors a collection has. */
static size_t sample_files_columns(const struct sample_meta *m)
{
    return strcmp(m->labels, "gain") ? COLUMNS - OF_GAIN : COLUMNS;
}

/* ---- metadata ---- */

/* The metadata of a shard: pairs of name and value, ended by NULL. */
struct header {
    const char *pairs[2 * (FIELDS + 2) + 1];
    char value[FIELDS][VALUE], checksum[9];
};

/* Write a field as text. */
static void sample_files_value(char out[VALUE], const struct sample_shard *s, const struct field *f)
{
    const char *at = (const char *)s + f->at;
    uint64_t v = 0;
    if (f->kind != TEXT)
        memcpy(&v, at, sizeof(v));
    if (f->kind == TEXT || v == SAMPLE_FILES_NO_LIMIT)
        snprintf(out, VALUE, "%s", f->kind == TEXT ? at : no_limit);
    else
        snprintf(out, VALUE, f->kind == HEX ? "%016" PRIx64 : "%" PRIu64, v);
}

/* Set a field to what its text says; sample_files_value tells whether it says it properly. */
static void sample_files_parse(struct sample_shard *s, const struct field *f, struct str text)
{
    char *at = (char *)s + f->at;
    if (f->kind == TEXT) {
        size_t n = text.n < f->size ? text.n : f->size - 1;
        memcpy(at, text.p, n);
        at[n] = 0;
    } else {
        uint64_t v = strcmp(text.p, no_limit) ? strtoull(text.p, NULL, f->kind == HEX ? 16 : 10)
                                              : SAMPLE_FILES_NO_LIMIT;
        memcpy(at, &v, sizeof(v));
    }
}

static void sample_files_header(struct header *h, const struct sample_shard *s)
{
    uint32_t sum = 0;
    const char **pair = h->pairs;
    *pair++ = "format", *pair++ = FORMAT;
    for (size_t i = 0; i < FIELDS; i++) {
        sample_files_value(h->value[i], s, &fields[i]);
        sum = (uint32_t)crc32_z(sum, (const Bytef *)h->value[i], strlen(h->value[i]) + 1);
        *pair++ = fields[i].name, *pair++ = h->value[i];
    }
    snprintf(h->checksum, sizeof(h->checksum), "%08" PRIx32, sum);
    *pair++ = "checksum", *pair++ = h->checksum;
    *pair = NULL;
}

/* Read the metadata: what is written from it again must be what was read. */
static int sample_files_read_header(struct sample_shard *out, const struct weights *w,
                                    struct err *err)
{
    struct header h;
    struct str text;
    *out = (struct sample_shard){ .no_states = !weights_find(w, columns->name) };
    for (size_t i = 0; i < FIELDS; i++)
        if (weights_str(w, fields[i].name, &text))
            sample_files_parse(out, &fields[i], text);
    sample_files_header(&h, out);
    for (const char **pair = h.pairs; *pair; pair += 2) {
        bool found = weights_str(w, pair[0], &text);
        if (!found || text.n != strlen(pair[1]) || memcmp(text.p, pair[1], text.n) != 0)
            return err_set(err, ERR_FORMAT, "%s: metadata %s: expected %s, found %.60s",
                           weights_path(w), pair[0], found ? pair[1] : "a value",
                           found ? text.p : "nothing");
    }
    if (weights_nkv(w) != FIELDS + 2)
        return err_set(err, ERR_FORMAT, "%s: metadata: expected %d fields, found %zu",
                       weights_path(w), FIELDS + 2, weights_nkv(w));
    /* Sums of sizes must not overflow. */
    const struct {
        const char *name;
        uint64_t found, high;
    } sizes[] = { { "dim", out->meta.dim, ROUTER_MAX },
                  { "vocab", out->meta.vocab, INT32_MAX },
                  { "questions", out->meta.questions, INT32_MAX } };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (sizes[i].found < 1 || sizes[i].found > sizes[i].high)
            return err_set(err, ERR_FORMAT, "%s: %s: expected 1 to %" PRIu64 ", found %" PRIu64,
                           weights_path(w), sizes[i].name, sizes[i].high, sizes[i].found);
    if (!out->no_states && strcmp(out->meta.tap, "final") != 0)
        return err_set(err, ERR_FORMAT, "%s: tap: expected final, found %s", weights_path(w),
                       out->meta.tap);
    return OK;
}

/* Compare the fields up to a scope. Hidden states that are not there yet may be of any tap and
 * version. Another value is refused with this code; `as` says where the expected one is from. */
static int sample_files_agree(const struct sample_shard *want, const struct sample_shard *found,
                              enum scope to, int code, const char *path, const char *as,
                              struct err *err)
{
    char a[VALUE], b[VALUE];
    for (size_t i = 0; i < FIELDS; i++) {
        sample_files_value(a, want, &fields[i]);
        sample_files_value(b, found, &fields[i]);
        const char *name = fields[i].name;
        if (found->no_states &&
            (!strcmp(name, "tap") || !strcmp(name, "dim") || !strcmp(name, "mizzle")))
            continue;
        if (fields[i].scope <= to && strcmp(a, b) != 0)
            return err_set(err, code, "%s: %s: expected %.100s, as %s, found %.100s", path,
                           fields[i].name, *a ? a : "nothing", as, *b ? b : "nothing");
    }
    return OK;
}

void sample_counts_add(struct sample_counts *a, const struct sample_counts *b)
{
#define COUNT(name) a->name += b->name;
    SAMPLE_COUNTS(COUNT)
#undef COUNT
}

/* ---- rows ---- */

/* Copy the tensors into rows. */
static int sample_files_load(struct sample_shard *out, const struct weights *w, struct err *err)
{
    struct samples *s = &out->samples;
    size_t n = (size_t)out->counts.samples, all = sample_files_columns(&out->meta);
    s->dim = (size_t)out->meta.dim;
    if (weights_ntensors(w) != all - out->no_states)
        return err_set(err, ERR_FORMAT, "%s: expected %zu tensors, found %zu", weights_path(w), all,
                       weights_ntensors(w));
    for (size_t c = out->no_states; c < all; c++) {
        const struct column *at = &columns[c];
        const struct tensor *t = weights_want(w, at->name, n, c ? at->cols : s->dim, err);
        if (!t)
            return ERR_FORMAT;
        if (t->type != at->type)
            return err_set(err, ERR_FORMAT, "%s: tensor %s: expected %s, found %s", weights_path(w),
                           at->name, wtype_name(at->type), wtype_name(t->type));
        if (c == out->no_states && samples_reserve(s, n, err) != OK) /* only now n is known */
            return ERR_NOMEM;
        if (c == out->no_states && n) {
            memset(s->rows, 0, n * sizeof(*s->rows));
            memset(s->x, 0, n * s->dim * sizeof(*s->x));
        }
        if (!c && n)
            memcpy(s->x, t->data, t->bytes);
        for (size_t i = 0; c && i < n; i++)
            memcpy((char *)&s->rows[i] + at->at, (const char *)t->data + i * at->bytes, at->bytes);
    }
    s->n = n;
    return OK;
}

/* Check the rows, and count again what the metadata counts. */
static int sample_files_check(const struct sample_shard *s, const char *path, struct err *err)
{
    struct sample_shard again = *s;
    int rc = samples_check(&s->samples, (size_t)s->meta.vocab, (uint32_t)s->first,
                           (uint32_t)(s->first + s->ntexts), path, err);
    again.counts.texts = again.counts.right = again.counts.rollouts = 0;
    for (size_t i = 0; i < s->samples.n; i++) {
        const struct sample_row *row = &s->samples.rows[i];
        again.counts.texts += !i || row->text != row[-1].text;
        again.counts.right += row->label;
        again.counts.rollouts += row->way == SAMPLE_ROLLOUT;
    }
    if (rc != OK)
        return rc;
    return sample_files_agree(&again, s, COUNT, ERR_FORMAT, path, "the rows have", err);
}

/* Describe the tensors; columns are gathered into data, which has room for all rows. */
static void sample_files_tensors(struct tensor t[COLUMNS], unsigned char *data,
                                 const struct samples *s)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        const struct column *at = &columns[c];
        size_t cols = c ? at->cols : s->dim;
        t[c] = (struct tensor){ .name = at->name,
                                .type = at->type,
                                .ndim = cols ? 2 : 1,
                                .shape = { s->n, cols },
                                .data = c ? (void *)data : (void *)s->x,
                                .bytes = s->n * (c ? at->bytes : s->dim * sizeof(float)) };
        for (size_t i = 0; c && i < s->n; i++, data += at->bytes)
            memcpy(data, (const char *)&s->rows[i] + at->at, at->bytes);
    }
}

/* Read a shard and check everything in it, or its metadata alone. */
static int sample_files_read_shard(struct sample_shard *out, const char *path, bool rows,
                                   struct err *err)
{
    struct weights *w;
    *out = (struct sample_shard){ .first = 0 };
    int rc = weights_open(&w, path, err);
    if (rc == OK)
        rc = sample_files_read_header(out, w, err);
    if (rc == OK && rows)
        rc = sample_files_load(out, w, err);
    weights_close(w);
    if (rc == OK && rows)
        rc = sample_files_check(out, path, err);
    if (rc != OK)
        samples_close(&out->samples);
    return rc;
}

/* ---- the folder ---- */

size_t sample_files_shards(const struct sample_meta *m)
{
    return (size_t)((m->questions + SAMPLE_FILES_TEXTS - 1) / SAMPLE_FILES_TEXTS);
}

void sample_files_begin(struct sample_shard *out, const struct sample_meta *m, size_t i)
{
    uint64_t first = i * SAMPLE_FILES_TEXTS, rest = m->questions - first;
    *out = (struct sample_shard){ .meta = *m,
                                  .first = first,
                                  .ntexts = rest < SAMPLE_FILES_TEXTS ? rest : SAMPLE_FILES_TEXTS,
                                  .samples = { .dim = (size_t)m->dim } };
}

/* Set the path of a shard. False: there is no such file. */
static bool sample_files_path(char out[PATH], const char *dir, size_t i)
{
    snprintf(out, PATH, "%s/%05zu.safetensors", dir, i);
    return !access(out, F_OK) || errno != ENOENT;
}

/* Keep the folder's name. */
static int sample_files_keep_dir(struct sample_meta *m, const char *dir, struct err *err)
{
    if (strlen(dir) >= sizeof(m->dir))
        return err_set(err, ERR_ARG, "%.40s...: expected a path of at most %zu bytes", dir,
                       sizeof(m->dir) - 1);
    memcpy(m->dir, dir, strlen(dir) + 1);
    return OK;
}

/* Write the tasks of several folders, each once: "csqa+gsm8k". */
static void sample_files_join_tasks(struct sample_meta *m, const struct sample_meta *before)
{
    char all[2 * sizeof(m->task)];
    size_t n = strlen(m->task);
    bool known = false;
    for (const char *p = before->task; *p; p += strcspn(p, "+"), p += *p == '+')
        known |= strcspn(p, "+") == n && !memcmp(p, m->task, n);
    snprintf(all, sizeof(all), "%s%s%s", before->task, known ? "" : "+", known ? "" : m->task);
    memcpy(m->task, all, sizeof(m->task) - 1);
}

int sample_files_read(struct samples *out, struct sample_meta *meta, const char *dir,
                      struct err *err)
{
    char path[PATH], as[PATH];
    struct sample_shard s, want;
    struct sample_meta m = { .questions = 1 };
    const struct sample_shard before = { .meta = *meta };
    bool alone = !meta->dir[0];
    size_t n = out->n;
    int rc = sample_files_keep_dir(&m, dir, err);
    snprintf(as, sizeof(as), "in %s", meta->dir);
    for (size_t i = 0; rc == OK && i < sample_files_shards(&m); i++) {
        if (!sample_files_path(path, dir, i)) {
            rc = err_set(err, ERR_FORMAT,
                         "%s: expected a finished collection, found no such file; run router "
                         "collect again",
                         path);
            break;
        }
        rc = sample_files_read_shard(&s, path, true, err);
        if (rc == OK && s.no_states)
            rc = err_set(err, ERR_FORMAT,
                         "%s: tensor hidden: expected hidden states, found none; run router "
                         "collect again, with the same options",
                         path);
        if (rc == OK && !i) {
            rc = alone ? OK : sample_files_agree(&before, &s, MODEL, ERR_ARG, dir, as, err);
            m = s.meta;
            out->dim = rc == OK ? s.samples.dim : out->dim;
        }
        sample_files_begin(&want, &m, i);
        if (rc == OK)
            rc =
                sample_files_agree(&want, &s, PLACE, ERR_FORMAT, path, "the first shard says", err);
        if (rc == OK)
            rc = samples_append(out, &s.samples, alone ? 0 : (uint32_t)meta->questions, err);
        samples_close(&s.samples);
    }
    if (rc == OK && out->n == n)
        rc = err_set(err, ERR_FORMAT,
                     "%s: expected samples, found none in %" PRIu64 " texts; run router collect "
                     "again, into another folder",
                     dir, m.questions);
    if (rc != OK) {
        out->n = n;
        return rc;
    }
    m.questions += meta->questions;
    if (!alone)
        sample_files_join_tasks(&m, meta);
    *meta = m;
    return sample_files_keep_dir(meta, dir, err);
}

/* Compare the shards that are there with what this run would make. */
static int sample_files_compare(const struct sample_meta *m, struct err *err)
{
    char path[PATH];
    const struct sample_shard want = { .meta = *m };
    int rc = OK;
    for (size_t i = 0; rc == OK && i < sample_files_shards(m); i++) {
        struct sample_shard found;
        if (!sample_files_path(path, m->dir, i))
            continue;
        rc = sample_files_read_shard(&found, path, false, err);
        if (rc == OK)
            rc = sample_files_agree(&want, &found, FOLDER, ERR_ARG, path, "the options say", err);
    }
    return rc;
}

/* Delete the unfinished shards that killed runs have left, as atomic_file.h names them. */
static int sample_files_sweep(const struct sample_files *f, struct err *err)
{
    DIR *d = opendir(f->meta.dir);
    if (!d)
        return err_set(err, ERR_IO, "%s: %s", f->meta.dir, strerror(errno));
    for (const struct dirent *e; (e = readdir(d));)
        if (!fnmatch("[0-9]*.safetensors.*.part", e->d_name, 0))
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    return OK;
}

/* Take the lock, so that no other process writes here, and clean up. It ends with the process. */
static int sample_files_take_lock(struct sample_files *f, struct err *err)
{
    char path[PATH], name[ATOMIC_FILE_NAME];
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    snprintf(path, PATH, "%s/lock", f->meta.dir);
    int rc = atomic_file_target(name, path, err);
    if (rc != OK)
        return rc;
    f->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (f->lock >= 0 && !fcntl(f->lock, F_SETLK, &lock))
        return sample_files_sweep(f, err);
    if (f->lock >= 0 && (errno == EACCES || errno == EAGAIN))
        return err_set(err, ERR_IO, "%s: another process is collecting into this folder", path);
    return err_set(err, ERR_IO, "%s: cannot be locked: %s", path, strerror(errno));
}

int sample_files_open(struct sample_files *f, const struct sample_meta *meta, const char *dir,
                      struct err *err)
{
    *f = (struct sample_files){ .meta = *meta, .lock = -1 };
    char name[ATOMIC_FILE_NAME];
    int rc = sample_files_keep_dir(&f->meta, dir, err);
    if (rc == OK && (rc = atomic_file_target(name, dir, err)) == OK && mkdir(name, 0777) &&
        errno != EEXIST)
        rc = err_set(err, ERR_IO, "%s: cannot be made: %s", dir, strerror(errno));
    if (rc == OK)
        rc = sample_files_take_lock(f, err);
    if (rc == OK)
        rc = sample_files_compare(&f->meta, err);
    if (rc != OK)
        sample_files_close(f);
    return rc;
}

void sample_files_close(struct sample_files *f)
{
    if (f->lock >= 0)
        close(f->lock);
    f->lock = -1;
}

int sample_files_shard(struct sample_shard *out, bool *exists, const struct sample_files *f,
                       size_t i, struct err *err)
{
    char path[PATH];
    struct sample_shard want;
    sample_files_begin(&want, &f->meta, i);
    *out = want;
    *exists = sample_files_path(path, f->meta.dir, i);
    int rc = *exists ? sample_files_read_shard(out, path, true, err) : OK;
    if (rc == OK)
        rc = sample_files_agree(&want, out, PLACE, ERR_FORMAT, path, "the options say", err);
    if (rc == OK && out->no_states) { /* room for those of this tap */
        out->samples.dim = (size_t)f->meta.dim;
        out->samples.room = out->samples.n;
        rc = samples_reserve(&out->samples, 1, err);
    }
    if (rc == OK)
        out->meta = f->meta;
    else
        samples_close(&out->samples);
    return rc;
}

int sample_files_write(const struct sample_shard *s, struct err *err)
{
    char path[PATH];
    struct header h;
    struct tensor t[COLUMNS];
    unsigned char *data = malloc(s->samples.n * sizeof(struct sample_row) + 1);
    sample_files_path(path, s->meta.dir, (size_t)s->first / SAMPLE_FILES_TEXTS);
    if (!data)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    sample_files_header(&h, s);
    sample_files_tensors(t, data, &s->samples);
    size_t n = sample_files_columns(&s->meta) - s->no_states;
    int rc = safetensors_write(path, t + s->no_states, n, h.pairs, err);
    free(data);
    return rc;
}
