#include "router/learn/sample_files_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "router/learn/samples.h"
#include "kernels/sys/atomic_file.h"

enum { PATH = 600, SHOWN = 160 };

/* Set the path of meta.json. */
static void sample_files_meta_path(char out[PATH], const char *dir)
{
    snprintf(out, PATH, "%s/meta.json", dir);
}

static void sample_files_shard_path(char out[PATH], const char *dir, size_t i)
{
    snprintf(out, PATH, "%s/%05zu.safetensors", dir, i);
}

size_t sample_files_shards(const struct sample_meta *m)
{
    return (size_t)((m->texts + SAMPLE_FILES_TEXTS - 1) / SAMPLE_FILES_TEXTS);
}

/* Say what shard i must be. */
static struct sample_shard_want sample_files_shard_want(const struct sample_meta *m,
                                                        uint32_t collection, size_t i)
{
    size_t first = i * SAMPLE_FILES_TEXTS, rest = (size_t)m->texts - first;
    return (struct sample_shard_want){ .collection = collection,
                                       .dim = (size_t)m->dim,
                                       .vocab = (size_t)m->vocab,
                                       .first = first,
                                       .ntexts =
                                           rest < SAMPLE_FILES_TEXTS ? rest : SAMPLE_FILES_TEXTS };
}

void sample_files_begin_shard(struct sample_shard *out, const struct sample_meta *m, size_t i)
{
    struct sample_shard_want want = sample_files_shard_want(m, 0, i);
    *out = (struct sample_shard){ .dim = want.dim, .first = want.first, .ntexts = want.ntexts };
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

int sample_files_append(struct samples *out, const struct sample_shard *s, uint32_t base,
                        struct err *err)
{
    int rc = samples_reserve(out, s->n, err);
    for (size_t i = 0; rc == OK && i < s->n; i++) {
        const struct sample_row *r = &s->rows[i];
        const struct sample one = { .x = s->hidden + i * s->dim,
                                    .features = r->features,
                                    .label = r->label,
                                    .group = r->subject,
                                    .text = base + (uint32_t)r->text,
                                    .before = { (uint32_t)r->before[0], (uint32_t)r->before[1] } };
        rc = samples_add(out, &one, err);
    }
    return rc;
}

/* Append all shards; their counts must add up to those of meta.json. */
static int sample_files_append_all(struct samples *out, const struct sample_meta *m, uint32_t base,
                                   struct err *err)
{
    char path[PATH];
    struct sample_counts sum = { 0 };
    bool ok;
    uint32_t collection = sample_meta_checksum(m, &ok);
    int rc = ok ? OK : err_set(err, ERR_NOMEM, "%s: out of memory", m->dir);
    for (size_t i = 0; rc == OK && i < sample_files_shards(m); i++) {
        struct sample_shard s;
        struct sample_shard_want want = sample_files_shard_want(m, collection, i);
        sample_files_shard_path(path, m->dir, i);
        rc = sample_shard_read(&s, path, &want, err);
        if (rc == ERR_IO) /* a shard that is missing is a bad collection */
            rc = ERR_FORMAT;
        if (rc != OK)
            break;
        rc = sample_files_append(out, &s, base, err);
        sample_counts_add(&sum, &s.counts);
        sample_shard_close(&s);
    }
    if (rc != OK || !memcmp(&sum, &m->counts, sizeof(sum)))
        return rc;
    sample_files_meta_path(path, m->dir);
    return err_set(err, ERR_FORMAT,
                   "%s: counts: expected the sums of all shards (%zu samples), found others (%zu "
                   "samples)",
                   path, (size_t)sum.samples, (size_t)m->counts.samples);
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
    char path[PATH], a[SHOWN], b[SHOWN];
    struct sample_meta m;
    bool missing, first = !meta->dir[0];
    int rc = sample_files_keep_dir(&m, dir, err);
    if (rc != OK)
        return rc;
    sample_files_meta_path(path, dir);
    rc = sample_meta_read(&m, &missing, path, err);
    if (rc == ERR_IO && missing)
        rc = err_set(err, ERR_FORMAT,
                     "%s: expected the samples of mizzle router collect, found "
                     "no meta.json",
                     dir);
    if (rc == OK && !m.complete)
        rc = err_set(err, ERR_FORMAT,
                     "%s: complete: expected a finished collection, found one that was "
                     "interrupted; run collect again",
                     path);
    if (rc == OK)
        rc = sample_files_keep_dir(&m, dir, err);
    const char *name = rc == OK && !first ? sample_meta_differ(a, b, meta, &m, true) : NULL;
    if (name)
        rc = err_set(err, ERR_ARG, "%s: %s: expected %s, as in %s, found %s", path, name, a,
                     meta->dir, b);
    if (rc == OK && out->dim && out->dim != m.dim)
        rc = err_set(err, ERR_ARG, "%s: dim: expected %zu, found %zu", path, out->dim,
                     (size_t)m.dim);
    if (rc != OK)
        return rc;
    size_t n = out->n;
    out->dim = (size_t)m.dim;
    rc = sample_files_append_all(out, &m, first ? 0 : (uint32_t)meta->texts, err);
    if (rc != OK) {
        out->n = n;
        return rc;
    }
    m.texts += first ? 0 : meta->texts;
    if (!first)
        sample_files_join_tasks(&m, meta);
    *meta = m;
    return OK;
}

/* Write meta.json. */
static int sample_files_write_meta(const struct sample_meta *m, struct err *err)
{
    char path[PATH];
    struct atomic_file file;
    sample_files_meta_path(path, m->dir);
    char *text = sample_meta_text(m);
    if (!text)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    int rc = atomic_file_open(&file, path, err);
    if (rc == OK) {
        fputs(text, file.f); /* atomic_file_close sees its errors */
        rc = atomic_file_close(&file, true, err);
    }
    free(text);
    return rc;
}

/* Compare the meta.json that is there with what this run would make, or write one. */
static int sample_files_begin(struct sample_files *f, struct err *err)
{
    char path[PATH], a[SHOWN], b[SHOWN];
    struct sample_meta found;
    bool missing;
    sample_files_meta_path(path, f->meta.dir);
    int rc = sample_meta_read(&found, &missing, path, err);
    if (rc == ERR_IO && missing)
        return sample_files_write_meta(&f->meta, err);
    const char *name = rc == OK ? sample_meta_differ(a, b, &f->meta, &found, false) : NULL;
    if (name)
        return err_set(err, ERR_ARG, "%s: %s: expected %s, as the options say, found %s", path,
                       name, a, b);
    if (rc == OK)
        f->meta.counts = found.counts;
    f->meta.complete = rc == OK && found.complete;
    return rc;
}

/* Lock meta.json, so that no other process writes here. The lock ends with the process. */
static int sample_files_take_lock(struct sample_files *f, struct err *err)
{
    char path[PATH];
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    sample_files_meta_path(path, f->meta.dir);
    f->lock = open(path, O_RDWR | O_CLOEXEC);
    if (f->lock < 0)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    if (!fcntl(f->lock, F_SETLK, &lock))
        return OK;
    if (errno == EACCES || errno == EAGAIN)
        return err_set(err, ERR_IO, "%s: another process is collecting into this folder", path);
    return err_set(err, ERR_IO, "%s: cannot be locked: %s", path, strerror(errno));
}

/* True for the name of an unfinished meta.json or shard, as atomic_file.h makes it. */
static bool sample_files_is_unfinished(const char *name)
{
    size_t n = strlen(name), digits = strspn(name, "0123456789");
    bool ours = !strncmp(name, "meta.json.", 10) ||
                (digits >= 5 && !strncmp(name + digits, ".safetensors.", 13));
    return ours && n > 5 && !strcmp(name + n - 5, ".part");
}

/* Delete what killed runs have left. */
static int sample_files_sweep(const struct sample_files *f, struct err *err)
{
    DIR *d = opendir(f->meta.dir);
    if (!d)
        return err_set(err, ERR_IO, "%s: %s", f->meta.dir, strerror(errno));
    for (const struct dirent *e; (e = readdir(d));)
        if (sample_files_is_unfinished(e->d_name))
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    return OK;
}

int sample_files_open(struct sample_files *f, const struct sample_meta *meta, const char *dir,
                      struct err *err)
{
    bool ok;
    *f = (struct sample_files){ .meta = *meta, .lock = -1 };
    f->meta.complete = false;
    f->meta.counts = (struct sample_counts){ 0 };
    f->collection = sample_meta_checksum(&f->meta, &ok);
    int rc = ok ? sample_files_keep_dir(&f->meta, dir, err)
                : err_set(err, ERR_NOMEM, "%s: out of memory", dir);
    if (rc == OK && mkdir(dir, 0777) && errno != EEXIST)
        rc = err_set(err, ERR_IO, "%s: cannot be made: %s", dir, strerror(errno));
    if (rc == OK)
        rc = sample_files_begin(f, err);
    if (rc == OK)
        rc = sample_files_take_lock(f, err);
    if (rc == OK)
        rc = sample_files_sweep(f, err);
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
    struct stat st;
    struct sample_shard_want want = sample_files_shard_want(&f->meta, f->collection, i);
    sample_files_shard_path(path, f->meta.dir, i);
    sample_files_begin_shard(out, &f->meta, i);
    *exists = !stat(path, &st) || errno != ENOENT;
    return *exists ? sample_shard_read(out, path, &want, err) : OK;
}

int sample_files_write(const struct sample_files *f, size_t i, struct sample_shard *s,
                       struct err *err)
{
    char path[PATH];
    sample_files_shard_path(path, f->meta.dir, i);
    return sample_shard_write(path, s, f->collection, err);
}

int sample_files_finish(struct sample_files *f, const struct sample_counts *counts, struct err *err)
{
    bool same = f->meta.complete && !memcmp(counts, &f->meta.counts, sizeof(*counts));
    f->meta.complete = true;
    f->meta.counts = *counts;
    return same ? OK : sample_files_write_meta(&f->meta, err);
}
