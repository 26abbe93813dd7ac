/* gguf_shards.c - GGUF files in parts, as llama-gguf-split writes them: STEM-00001-of-00003.gguf
 * and so on, each a GGUF file with the keys split.no (from 0), split.count and
 * split.tensors.count (of all parts). The model's own keys are in the first part. Source:
 * llama.cpp's examples/gguf-split and its loader. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "weights/find.h"
#include "weights/table.h"

enum { SHARDS_MAX = 1000 };

/* Write the path of a part; all parts have names of the same length. */
static void gguf_shard_path(char *out, const char *any, size_t stem, unsigned number,
                            unsigned count)
{
    snprintf(out, strlen(any) + 1, "%.*s-%05u-of-%05u.gguf", (int)stem, any, number, count);
}

/* Name all parts that are not there, with the command that would fetch the first. */
static int gguf_shards_there(const char *any, size_t stem, unsigned count, char *path,
                             struct err *err)
{
    char missing[300] = "", hint[300] = "";
    size_t at = 0;
    for (unsigned i = 1; i <= count; i++) {
        gguf_shard_path(path, any, stem, i, count);
        if (access(path, F_OK) == 0)
            continue;
        const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        if (!at)
            find_hint(hint, sizeof(hint), path);
        bool fits = at + strlen(base) + 8 < sizeof(missing);
        at += (size_t)snprintf(missing + at, sizeof(missing) - at, "%s%s", at ? " " : "",
                               fits ? base : "...");
        if (!fits)
            break;
    }
    return at ? err_set(err, ERR_IO, "%.*s.gguf: expected %u parts, missing %s%s", (int)stem, any,
                        count, missing, hint)
              : OK;
}

/* Find an integer among the keys from `first` on. Return how many of that name there are: each
 * should have one, and only here is that checked, for these keys are dropped. */
static unsigned gguf_shard_key(const struct weights *w, size_t first, const char *key,
                               uint64_t *out)
{
    unsigned found = 0;
    for (size_t i = first; i < w->nkvs; i++) {
        bool negative;
        found += strcmp(w->kvs[i].key.p, key) == 0 && kv_integer(&w->kvs[i], out, &negative);
    }
    return found;
}

/* Require that a key of this part has a value; `first` is the part's first key. */
static int gguf_shard_want(const struct weights *w, size_t first, const char *path, const char *key,
                           uint64_t want, struct err *err)
{
    uint64_t v = 0;
    unsigned count = gguf_shard_key(w, first, key, &v);
    if (count == 1 && v == want)
        return OK;
    char found[32] = "none";
    if (count)
        snprintf(found, sizeof(found), "%lld", (long long)v);
    if (count > 1)
        snprintf(found, sizeof(found), "%u keys of this name", count);
    return err_set(err, ERR_FORMAT, "%s: %s: expected %llu, found %s", path, key,
                   (unsigned long long)want, found);
}

/* Map and read part i of n, check what it says about itself, and drop the keys that the first part
 * does not have. */
static int gguf_shard_read(struct weights *w, const char *path, unsigned i, unsigned n,
                           bool header_only, struct err *err)
{
    struct mapping m;
    size_t first = w->nkvs;
    int code = table_map(w, &m, path, err);
    if (code == OK)
        code = gguf_read(w, &m, path, header_only, err);
    if (code == OK)
        code = gguf_shard_want(w, first, path, "split.count", n, err);
    if (code == OK)
        code = gguf_shard_want(w, first, path, "split.no", i, err);
    if (code == OK && i)
        w->nkvs = first;
    return code;
}

/* Drop the keys "split.*": they describe files, not the model. */
static void gguf_shards_drop_keys(struct weights *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->nkvs; i++)
        if (strncmp(w->kvs[i].key.p, "split.", 6) != 0)
            w->kvs[kept++] = w->kvs[i];
    w->nkvs = kept;
}

int gguf_read_shards(struct weights *w, bool header_only, struct err *err)
{
    size_t stem = 0;
    unsigned number, n = 0;
    char *path = table_copy(w, w->path, strlen(w->path));
    if (!path)
        return err_set(err, ERR_NOMEM, "%s: out of memory", w->path);
    find_shard(w->path, &stem, &number, &n);
    if (n > SHARDS_MAX)
        return err_set(err, ERR_FORMAT, "%s: expected at most %d parts, found %u", w->path,
                       SHARDS_MAX, n);
    int code = gguf_shards_there(w->path, stem, n, path, err);
    for (unsigned i = 0; code == OK && i < n; i++) {
        gguf_shard_path(path, w->path, stem, i + 1, n);
        code = gguf_shard_read(w, path, i, n, header_only, err);
    }
    gguf_shard_path(path, w->path, stem, 1, n);
    if (code == OK)
        code = gguf_shard_want(w, 0, path, "split.tensors.count", w->ntensors, err);
    if (code != OK)
        return code;
    w->shards = n;
    gguf_shards_drop_keys(w);
    return OK;
}

int gguf_read_alone(struct weights *w, const struct mapping *m, bool header_only, struct err *err)
{
    uint64_t n;
    int code = gguf_read(w, m, w->path, header_only, err);
    if (code != OK)
        return code;
    if (gguf_shard_key(w, 0, "split.count", &n) > 0 && n > 1)
        return err_set(err, ERR_FORMAT,
                       "%s: split.count: expected a name like STEM-00001-of-%05llu.gguf for one of "
                       "%llu parts",
                       w->path, (unsigned long long)n, (unsigned long long)n);
    gguf_shards_drop_keys(w);
    return OK;
}
