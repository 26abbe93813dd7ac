#include "model/session_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/crc.h"
#include "model/batch_internal.h"
#include "weights/atomic_file.h"

/* All fields of struct model_config, in its order, and those of its struct rope_scaling. */
#define CONFIG_FIELDS(X) \
    X(layers)            \
    X(hidden)            \
    X(heads)             \
    X(kv_heads)          \
    X(head_dim)          \
    X(ffn)               \
    X(vocab)             \
    X(context)           \
    X(eps)               \
    X(rope_theta)        \
    X(tied)              \
    X(qk_norm)
#define ROPE_FIELDS(X) \
    X(kind)            \
    X(factor)          \
    X(magnitude)       \
    X(beta_fast)       \
    X(beta_slow)       \
    X(original)

#define X(field) #field,
static const char *const config_names[] = { CONFIG_FIELDS(X) ROPE_FIELDS(X) };
#undef X
/* An initializer without designators, so that the compiler complains (-Wextra) when the list above
 * lacks a field. */
#define X(field) 0,
_Static_assert(sizeof((struct model_config){ CONFIG_FIELDS(X){ ROPE_FIELDS(X) } }),
               "every field has a value");
#undef X

/* The words of the head. */
enum {
    HEAD_MAGIC,
    HEAD_VERSION,
    HEAD_WEIGHTS,
    HEAD_KV,
    HEAD_KERNELS,
    HEAD_TOKENS = HEAD_KERNELS + 2,
    HEAD_CONFIG,
    HEAD_WORDS = HEAD_CONFIG + sizeof(config_names) / sizeof(config_names[0])
};

/* "MizzleKV" on a little-endian machine. */
static const uint64_t magic = UINT64_C(0x564b656c7a7a694d);

/* A file that is read or written in one go. */
struct session_file {
    const char *path;
    int fd;    /* while reading */
    FILE *out; /* while writing */
    uint32_t crc;
    struct err *err;
};

/* Write a text of at most 8 * words bytes, padded with zeros. */
static void session_file_text(uint64_t *to, size_t words, const char *text)
{
    size_t n = strlen(text);
    memset(to, 0, 8 * words);
    memcpy(to, text, n < 8 * words ? n : 8 * words);
}

/* Write the head that a file of s with this many tokens has. */
static void session_file_head(uint64_t head[HEAD_WORDS], const struct session *s, uint64_t weights,
                              uint64_t tokens)
{
    const struct model_config *c = model_config(s->batch->m);
    const struct kernels *k = model_kernels(s->batch->m);
#define C(field) (double)c->field,
#define R(field) (double)c->rope.field,
    const double config[] = { CONFIG_FIELDS(C) ROPE_FIELDS(R) };
#undef C
#undef R
    head[HEAD_MAGIC] = magic;
    head[HEAD_VERSION] = SESSION_FILE_VERSION;
    head[HEAD_WEIGHTS] = weights;
    session_file_text(head + HEAD_KV, 1, kvcache_name(s->kv));
    session_file_text(head + HEAD_KERNELS, 2, k->needs & CPU_INEXACT ? k->isa : "exact");
    head[HEAD_TOKENS] = tokens;
    memcpy(head + HEAD_CONFIG, config, sizeof(config));
}

/* Compute the bytes of a file with n tokens; false if they do not fit into a size_t. */
static bool session_file_size(size_t *out, const struct session *s, size_t n)
{
    const struct model_config *c = model_config(s->batch->m);
    size_t keys, values, head, cache, ids;
    if (!size_mul(&keys, n / PANEL + (n % PANEL != 0), s->keys_bytes) ||
        !size_mul(&values, n, s->value_bytes) || !size_add(&head, keys, values) ||
        !size_mul(&cache, c->layers * c->kv_heads, head) || !size_mul(&ids, n, sizeof(*s->ids)))
        return false;
    return size_add(out, HEAD_WORDS * sizeof(uint64_t) + 3 * sizeof(uint32_t), ids) &&
           size_add(out, *out, cache);
}

/* Read n bytes. */
static int session_file_read(struct session_file *f, void *to, size_t n)
{
    unsigned char *at = to;
    for (size_t done = 0; done < n;) {
        ssize_t some = read(f->fd, at + done, n - done);
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0)
            return err_set(f->err, ERR_IO, "%s: %s", f->path, strerror(errno));
        if (some == 0)
            return err_set(f->err, ERR_FORMAT, "%s: size: expected %zu more bytes, found its end",
                           f->path, n - done);
        done += (size_t)some;
    }
    f->crc = crc_add(f->crc, to, n);
    return OK;
}

/* Read n bytes for the checksum alone. */
static int session_file_skip(struct session_file *f, size_t n)
{
    unsigned char piece[16384];
    int rc = OK;
    for (size_t some; rc == OK && n; n -= some) {
        some = n < sizeof(piece) ? n : sizeof(piece);
        rc = session_file_read(f, piece, some);
    }
    return rc;
}

/* Read the checksum at the end of a part and compare it with that of what was read. */
static int session_file_check(struct session_file *f, const char *part)
{
    uint32_t expected = f->crc, found;
    int rc = session_file_read(f, &found, sizeof(found));
    f->crc = expected;
    if (rc == OK && found != expected)
        return err_set(f->err, ERR_FORMAT, "%s: checksum of the %s: expected %08lx, found %08lx",
                       f->path, part, (unsigned long)expected, (unsigned long)found);
    return rc;
}

/* Compare a head with the one that is expected, and name the first field that differs. */
static int session_file_compare(const struct session_file *f, const uint64_t *expected,
                                const uint64_t *found)
{
    size_t i = HEAD_VERSION;
    while (i < HEAD_WORDS && found[i] == expected[i])
        i++;
    if (i == HEAD_WORDS)
        return OK;
    if (i == HEAD_WEIGHTS)
        return err_set(f->err, ERR_FORMAT, "%s: made with other weights", f->path);
    if (i < HEAD_TOKENS) {
        bool kv = i == HEAD_KV;
        const char *want = (const char *)(expected + (kv ? HEAD_KV : HEAD_KERNELS));
        const char *have = (const char *)(found + (kv ? HEAD_KV : HEAD_KERNELS));
        return err_set(f->err, ERR_FORMAT, "%s: %s: expected %.*s, found %.*s", f->path,
                       kv ? "KV type" : "kernels", kv ? 8 : 16, want, kv ? 8 : 16, have);
    }
    double want, have;
    memcpy(&want, expected + i, sizeof(want));
    memcpy(&have, found + i, sizeof(have));
    return err_set(f->err, ERR_FORMAT, "%s: %s: expected %.10g, found %.10g", f->path,
                   config_names[i - HEAD_CONFIG], want, have);
}

/* Read and check the head of a file with this many bytes, and set the number of its tokens. */
static int session_file_read_head(size_t *tokens, struct session_file *f, const struct session *s,
                                  uint64_t weights, uint64_t bytes)
{
    uint64_t found[HEAD_WORDS], expected[HEAD_WORDS];
    size_t size = 0, word = sizeof(found[0]);
    int rc = bytes < word ? OK : session_file_read(f, found, word);
    if (rc == OK && (bytes < word || found[HEAD_MAGIC] != magic))
        return err_set(f->err, ERR_ARG, "%s: expected a prompt cache, found another file", f->path);
    if (rc == OK)
        rc = session_file_read(f, found + HEAD_VERSION, word);
    if (rc == OK && found[HEAD_VERSION] != SESSION_FILE_VERSION)
        return err_set(f->err, ERR_FORMAT, "%s: version: expected %d, found %llu", f->path,
                       SESSION_FILE_VERSION, (unsigned long long)found[HEAD_VERSION]);
    if (rc == OK)
        rc = session_file_read(f, found + HEAD_WEIGHTS, sizeof(found) - HEAD_WEIGHTS * word);
    if (rc == OK)
        rc = session_file_check(f, "head");
    if (rc != OK)
        return rc;
    session_file_head(expected, s, weights, found[HEAD_TOKENS]);
    rc = session_file_compare(f, expected, found);
    if (rc != OK)
        return rc;
    if (found[HEAD_TOKENS] == 0 || found[HEAD_TOKENS] > UINT32_MAX)
        return err_set(f->err, ERR_FORMAT, "%s: tokens: expected 1 to %lu, found %llu", f->path,
                       (unsigned long)UINT32_MAX, (unsigned long long)found[HEAD_TOKENS]);
    *tokens = (size_t)found[HEAD_TOKENS];
    if (!session_file_size(&size, s, *tokens) || size != bytes)
        return err_set(f->err, ERR_FORMAT, "%s: size: expected %zu bytes, found %llu", f->path,
                       size, (unsigned long long)bytes);
    return OK;
}

/* Read the ids of the file and set how many at their beginning are those of ids[n]. What no session
 * may hold, ids beyond the vocabulary, is in no file. */
static int session_file_read_ids(size_t *shared, struct session_file *f, size_t tokens,
                                 const uint32_t *ids, size_t n, size_t vocab)
{
    uint32_t piece[4096];
    size_t same = 0, room = sizeof(piece) / sizeof(piece[0]);
    int rc = OK;
    for (size_t at = 0; rc == OK && at < tokens; at += room) {
        size_t some = tokens - at < room ? tokens - at : room;
        rc = session_file_read(f, piece, some * sizeof(*piece));
        while (rc == OK && same < n && same - at < some && ids[same] == piece[same - at] &&
               ids[same] < vocab)
            same++;
    }
    if (rc == OK)
        rc = session_file_check(f, "ids");
    *shared = rc == OK ? same : 0;
    return rc;
}

/* Read the cache of all tokens and keep the first n. */
static int session_file_read_cache(struct session_file *f, struct session *s, size_t tokens,
                                   size_t n)
{
    const struct model_config *c = model_config(s->batch->m);
    size_t groups = panels_count(n), rest = panels_count(tokens) - groups;
    int rc = OK;
    for (size_t head = 0; rc == OK && head < c->layers * c->kv_heads; head++) {
        size_t at = head * s->context16;
        rc = session_file_read(f, s->cache + at / PANEL * s->keys_bytes, groups * s->keys_bytes);
        if (rc == OK)
            rc = session_file_skip(f, rest * s->keys_bytes);
        if (rc == OK)
            rc = session_file_read(f, s->cache + s->cache_half + at * s->value_bytes,
                                   n * s->value_bytes);
        if (rc == OK)
            rc = session_file_skip(f, (tokens - n) * s->value_bytes);
    }
    return rc == OK ? session_file_check(f, "cache") : rc;
}

/* Load from an open file with this many bytes. */
static int session_file_load_open(size_t *shared, struct session_file *f, struct session *s,
                                  uint64_t weights, const uint32_t *ids, size_t n, uint64_t bytes)
{
    size_t tokens = 0, same = 0, held = 0;
    int rc = session_file_read_head(&tokens, f, s, weights, bytes);
    if (rc == OK)
        rc = session_file_read_ids(&same, f, tokens, ids, n, model_config(s->batch->m)->vocab);
    if (rc != OK)
        return rc;
    while (held < s->length && held < n && s->ids[held] == ids[held])
        held++;
    *shared = same;
    if (held >= same)
        return OK;
    session_rewind(s, 0); /* its cache is overwritten before the last checksum is known */
    rc = session_file_read_cache(f, s, tokens, same);
    if (rc == OK) {
        memcpy(s->ids, ids, same * sizeof(*ids));
        s->length = same;
    } else {
        *shared = 0;
    }
    return rc;
}

int session_file_load(size_t *shared, struct session *s, const char *path, uint64_t weights,
                      const uint32_t *ids, size_t n, struct err *err)
{
    struct stat st;
    struct session_file f = { .path = path, .err = err };
    *shared = 0;
    if (n > s->context)
        return err_set(err, ERR_ARG, "context: expected at least %zu positions, found %zu", n,
                       s->context);
    /* A named pipe would otherwise wait for a writer. */
    f.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f.fd < 0 && errno == ENOENT)
        return OK;
    if (f.fd < 0)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    int rc = OK;
    if (fstat(f.fd, &st) != 0)
        rc = err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = err_set(err, ERR_ARG, "%s: expected a prompt cache, found %s", path,
                     S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
    else if (st.st_size > 0)
        rc = session_file_load_open(shared, &f, s, weights, ids, n, (uint64_t)st.st_size);
    close(f.fd);
    return rc;
}

/* Write n bytes; an error is found when the file is closed. */
static void session_file_write(struct session_file *f, const void *p, size_t n)
{
    fwrite(p, 1, n, f->out);
    f->crc = crc_add(f->crc, p, n);
}

/* Write the checksum of all parts so far. */
static void session_file_end_part(struct session_file *f)
{
    fwrite(&f->crc, 1, sizeof(f->crc), f->out);
}

/* Write the cache of the first n tokens. The last group of keys may also hold keys of later tokens,
 * which are replaced by zeros. group has keys_bytes, zeros a row of floats. */
static void session_file_write_cache(struct session_file *f, const struct session *s, size_t n,
                                     unsigned char *group, const float *zeros)
{
    const struct model_config *c = model_config(s->batch->m);
    size_t full = n / PANEL;
    for (size_t head = 0; head < c->layers * c->kv_heads; head++) {
        size_t at = head * s->context16;
        const unsigned char *keys = s->cache + at / PANEL * s->keys_bytes;
        session_file_write(f, keys, full * s->keys_bytes);
        if (n % PANEL) {
            memcpy(group, keys + full * s->keys_bytes, s->keys_bytes);
            for (size_t lane = n % PANEL; lane < PANEL; lane++)
                kvcache_put_key(s->kv, group, lane, zeros, s->batch->hd16);
            session_file_write(f, group, s->keys_bytes);
        }
        session_file_write(f, s->cache + s->cache_half + at * s->value_bytes, n * s->value_bytes);
    }
}

int session_file_save(const struct session *s, size_t n, const char *path, uint64_t weights,
                      struct err *err)
{
    struct atomic_file to;
    struct session_file f = { .path = path, .err = err };
    uint64_t head[HEAD_WORDS];
    if (n == 0 || n > s->length)
        return err_set(err, ERR_ARG, "%s: expected 1 to %zu tokens to keep, found %zu", path,
                       s->length, n);
    unsigned char *group = malloc(s->keys_bytes);
    float *zeros = calloc(s->batch->hd16, sizeof(*zeros));
    int rc = group && zeros ? atomic_file_open_private(&to, path, err)
                            : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (rc == OK) {
        f.out = to.f;
        session_file_head(head, s, weights, n);
        session_file_write(&f, head, sizeof(head));
        session_file_end_part(&f);
        session_file_write(&f, s->ids, n * sizeof(*s->ids));
        session_file_end_part(&f);
        session_file_write_cache(&f, s, n, group, zeros);
        session_file_end_part(&f);
        rc = atomic_file_close(&to, true, err);
    }
    free(group);
    free(zeros);
    return rc;
}
