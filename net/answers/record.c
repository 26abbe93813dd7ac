#include "net/answers/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/crc.h"
#include "net/http/json_input.h"
#include "net/answers/record_internal.h"

enum { STRING = 2048 };

const char *const record_origins[5] = { NULL, "call", "memo", "store", "audit" };
const struct record_fault record_faults[3] = { { "net", ERR_NET },
                                               { "remote", ERR_REMOTE },
                                               { "text", ERR_TEXT } };
const char record_begin[] = "{\"mizzle_record\":";

void record_crc(char out[9], const char *p, size_t n)
{
    uint32_t crc = crc_add(0, p, n);
    for (unsigned i = 0; i < 8; i++)
        out[i] = "0123456789abcdef"[crc >> (28 - 4 * i) & 15];
    out[8] = 0;
}

static char *record_copy(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = malloc(n);
    if (p)
        memcpy(p, s, n);
    return p;
}

/* Return the slot of k, or the free slot where it would go. */
static size_t slot_of(const struct record *r, const struct prefix_key *k)
{
    size_t i = (size_t)prefix_key_mix(&r->seed, k) & r->mask;
    while (r->slots[i] && !prefix_key_same(&r->at[r->slots[i] - 1].key, k))
        i = (i + 1) & r->mask;
    return i;
}

/* Return the entry of k, or NULL. */
static struct record_entry *record_find(const struct record *r, const struct prefix_key *k)
{
    size_t i = r->slots ? r->slots[slot_of(r, k)] : 0;
    return i ? &r->at[i - 1] : NULL;
}

/* Make room for one more entry and keep half of the slots free. */
static bool record_make_room(struct record *r)
{
    size_t cap = r->cap ? 2 * r->cap : 64, bytes;
    if (r->n < r->cap)
        return true;
    if (cap >= UINT32_MAX || !size_mul(&bytes, cap, sizeof(*r->at)))
        return false;
    struct record_entry *at = realloc(r->at, bytes);
    if (!at)
        return false;
    r->at = at;
    uint32_t *slots = calloc(2 * cap, sizeof(*slots));
    if (!slots)
        return false;
    free(r->slots);
    r->slots = slots;
    r->mask = 2 * cap - 1;
    r->cap = cap;
    for (size_t i = 0; i < r->n; i++)
        slots[slot_of(r, &r->at[i].key)] = (uint32_t)i + 1;
    return true;
}

bool record_keep(struct record *r, const struct record_entry *e)
{
    struct record_entry *old = record_find(r, &e->key);
    if (old) {
        free(old->message);
        *old = *e;
        return true;
    }
    if (!record_make_room(r))
        return false;
    r->slots[slot_of(r, &e->key)] = (uint32_t)r->n + 1;
    r->at[r->n++] = *e;
    return true;
}

int record_name(struct record *r, const char *model, const char *api, uint64_t tokenizer,
                struct err *err)
{
    char *m = record_copy(model), *a = record_copy(api);
    if (!m || !a) {
        free(m);
        free(a);
        return err_set(err, ERR_NOMEM, "%s: out of memory", r->path);
    }
    r->model = m;
    r->api = a;
    r->tokenizer = tokenizer;
    r->print = prefix_key_fingerprint(model, tokenizer);
    return OK;
}

static int record_no_memory(const struct record *r, struct err *err)
{
    return err_set(err, ERR_NOMEM, "%s: out of memory: the recording is incomplete", r->path);
}

/* Append r->line with its checksum to the file, whole or not at all. */
static int record_append_line(struct record *r, struct err *err)
{
    char crc[9];
    ssize_t k;
    record_crc(crc, r->line.p, r->line.n);
    if (!buf_str(&r->line, ",\"crc\":\"") || !buf_str(&r->line, crc) || !buf_str(&r->line, "\"}\n"))
        return record_no_memory(r, err);
    off_t size = lseek(r->fd, 0, SEEK_END);
    do
        k = write(r->fd, r->line.p, r->line.n);
    while (k < 0 && errno == EINTR);
    if (size >= 0 && k >= 0 && (size_t)k == r->line.n)
        return OK;
    int why = k < 0 ? errno : ENOSPC;
    if (k > 0 && size >= 0 && ftruncate(r->fd, size))
        why = errno;
    return err_set(err, ERR_IO, "%s: cannot write: %s: the recording is incomplete", r->path,
                   strerror(why));
}

/* Append text as a JSON string. After json_input_line only quotes and backslashes need escaping. */
static bool add_string(struct buf *b, const char *text)
{
    char clean[STRING];
    json_input_line(clean, sizeof(clean), text, strlen(text));
    bool ok = buf_str(b, "\"");
    for (const char *c = clean; ok && *c; c++)
        ok = ((*c != '"' && *c != '\\') || buf_str(b, "\\")) && buf_add(b, c, 1);
    return ok && buf_str(b, "\"");
}

/* Append name and the number v. */
static bool add_number(struct buf *b, const char *name, uint64_t v)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%s%llu", name, (unsigned long long)v);
    return buf_add(b, text, (size_t)n);
}

/* Open the file, lock it for writing, read its lines, and cut off a torn one. */
static int open_file(struct record *r, const char *path, bool writes, struct err *err)
{
    const int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY; /* a FIFO must not block */
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    uint64_t whole, size;
    r->path = record_copy(path);
    if (!r->path)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    int fd = open(path, writes ? O_RDWR | O_APPEND | O_CREAT | flags : O_RDONLY | flags, 0600);
    if (fd < 0)
        return err_set(err, errno == EISDIR ? ERR_ARG : ERR_IO, "%s: %s", path, strerror(errno));
    r->fd = fd;
    if (writes && fcntl(fd, F_SETLK, &l))
        return err_set(err, ERR_IO, "%s: %s", path,
                       errno == EACCES || errno == EAGAIN ? "another process records there"
                                                          : strerror(errno));
    int rc = record_read(r, fd, &whole, &size, err);
    if (rc != OK)
        return rc;
    r->torn = (size_t)(size - whole);
    if (!writes && !r->model)
        return err_set(err, ERR_FORMAT, "%s: expected a recording, found %s", path,
                       size ? "a torn first line" : "an empty file");
    if (writes && r->torn && ftruncate(fd, (off_t)whole))
        return err_set(err, ERR_IO, "%s: a torn line cannot be cut off: %s", path, strerror(errno));
    return OK;
}

/* Create the recording around open_file. */
static int open_record(struct record **out, const char *path, bool writes, struct err *err)
{
    *out = NULL;
    struct record *r = calloc(1, sizeof(*r));
    if (!r)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    r->fd = -1;
    r->seed = prefix_key_seed();
    int rc = open_file(r, path, writes, err);
    if (rc != OK) {
        record_close(r, NULL);
        return rc;
    }
    *out = r;
    return OK;
}

int record_create(struct record **out, const char *path, struct err *err)
{
    return open_record(out, path, true, err);
}

/* Compare a server with the one in the first line. */
static int check_server(const struct record *r, const char *model, const char *api,
                        uint64_t tokenizer, struct err *err)
{
    if (strcmp(r->model, model) != 0)
        return err_set(err, ERR_FORMAT, "%s: model: expected %s, found %s", r->path, model,
                       r->model);
    if (strcmp(r->api, api) != 0)
        return err_set(err, ERR_FORMAT, "%s: api: expected %s, found %s", r->path, api, r->api);
    if (r->tokenizer != tokenizer)
        return err_set(err, ERR_FORMAT, "%s: tokenizer: expected %016llx, found %016llx", r->path,
                       (unsigned long long)tokenizer, (unsigned long long)r->tokenizer);
    return OK;
}

/* Return rc. After a failure, whose reason is in r->why, nothing more is written. */
static int record_broken(struct record *r, int rc, struct err *err)
{
    r->broken = rc != OK;
    return rc == OK ? OK : err_set(err, rc, "%s", r->why.msg);
}

int record_server(struct record *r, const char *name, const char *api, uint64_t tokenizer,
                  struct err *err)
{
    struct prefix_key print = { tokenizer, 0 };
    char hex[PREFIX_KEY_TEXT],
        model[STRING]; /* as it will be written, so that it reads back as the same */
    json_input_line(model, sizeof(model), name, strlen(name));
    if (r->model)
        return check_server(r, model, api, tokenizer, err);
    prefix_key_text(hex, &print);
    r->line.n = 0;
    if (!buf_str(&r->line, record_begin) || !buf_str(&r->line, "1,\"model\":") ||
        !add_string(&r->line, model) || !buf_str(&r->line, ",\"api\":") ||
        !add_string(&r->line, api) || !buf_str(&r->line, ",\"tokenizer\":\"") ||
        !buf_add(&r->line, hex + 16, 16) || !buf_str(&r->line, "\""))
        return err_set(err, ERR_NOMEM, "%s: out of memory", r->path);
    int rc = record_name(r, model, api, tokenizer, err);
    return rc == OK ? record_broken(r, record_append_line(r, &r->why), err) : rc;
}

int record_open(struct record **out, const char *path, uint64_t tokenizer, struct err *err)
{
    int rc = open_record(out, path, false, err);
    if (rc != OK)
        return rc;
    struct record *r = *out;
    close(r->fd);
    r->fd = -1;
    if (r->tokenizer == tokenizer)
        return OK;
    rc = check_server(r, r->model, r->api, tokenizer, err);
    record_close(r, NULL);
    *out = NULL;
    return rc;
}

int record_whole(const struct record *r, struct err *err)
{
    return r && r->broken ? err_set(err, ERR_IO, "%s", r->why.msg) : OK;
}

int record_close(struct record *r, struct err *err)
{
    if (!r)
        return OK;
    int rc = record_whole(r, err);
    if (rc == OK && r->fd >= 0 && r->model && (fsync(r->fd)) && errno != EINVAL)
        rc = err_set(err, ERR_IO, "%s: %s", r->path, strerror(errno));
    if (r->fd >= 0)
        close(r->fd);
    for (size_t i = 0; i < r->n; i++)
        free(r->at[i].message);
    buf_free(&r->line);
    free(r->at);
    free(r->slots);
    free(r->model);
    free(r->api);
    free(r->path);
    free(r);
    return rc;
}

const char *record_model(const struct record *r)
{
    return r->model;
}

const char *record_api(const struct record *r)
{
    return r->api;
}

size_t record_size(const struct record *r)
{
    return r->n;
}

bool record_note(struct record *r, struct err *note)
{
    if (!r->torn)
        return false;
    err_set(note, OK, "%s: %s %zu bytes of a torn line", r->path,
            r->fd >= 0 ? "cut off" : "left out", r->torn);
    r->torn = 0;
    return true;
}

bool record_get(struct record *r, const uint32_t *ids, size_t n, struct record_answer *out)
{
    struct prefix_key k = prefix_key_of(&r->print, ids, n);
    const struct record_entry *e = r->model ? record_find(r, &k) : NULL;
    if (e)
        *out = (struct record_answer){ (enum origin)e->from, e->fault, e->id, e->message };
    return e != NULL;
}

struct prefix_key record_audit_key(const struct prefix_key *k, uint32_t nth)
{
    return (struct prefix_key){ k->lo ^ rand_u64(nth, 0), k->hi ^ rand_u64(nth, 1) };
}

/* Return the entry of the first audit after a prefix, or NULL. */
static struct record_entry *record_first_audit(const struct record *r, const struct prefix_key *k)
{
    struct prefix_key first = record_audit_key(k, 1);
    return record_find(r, &first);
}

bool record_get_audit(const struct record *r, const uint32_t *ids, size_t n,
                      struct record_answer *out)
{
    struct prefix_key k = prefix_key_of(&r->print, ids, n);
    const struct record_entry *first = r->model ? record_first_audit(r, &k) : NULL;
    if (!first)
        return false;
    k = record_audit_key(&k, first->audits + 1);
    const struct record_entry *e = record_find(r, &k);
    if (e)
        *out = (struct record_answer){ (enum origin)e->from, e->fault, e->id, e->message };
    return e != NULL;
}

void record_count_audit(struct record *r, const uint32_t *ids, size_t n)
{
    struct prefix_key k = prefix_key_of(&r->print, ids, n);
    struct record_entry *first = r->model ? record_first_audit(r, &k) : NULL;
    if (first)
        first->audits++;
}

/* Write the line of an answer after ids[n], whose key is k, into b, up to its checksum. */
static bool write_line(struct buf *b, const struct record_entry *e, const struct prefix_key *k,
                       const uint32_t *ids, size_t n)
{
    char hash[PREFIX_KEY_TEXT];
    size_t last = n < RECORD_LAST ? n : RECORD_LAST;
    prefix_key_text(hash, k);
    b->n = 0;
    bool ok = add_number(b, "{\"n\":", n) && buf_str(b, ",\"hash\":\"") && buf_str(b, hash) &&
              buf_str(b, "\",\"last\":") && buf_ids(b, ids + n - last, last) &&
              buf_str(b, ",\"from\":\"") && buf_str(b, record_origins[e->from]) &&
              buf_str(b, "\"") && (!e->nth || add_number(b, ",\"nth\":", e->nth));
    if (!ok || e->fault == OK)
        return ok && add_number(b, ",\"id\":", e->id);
    size_t i = 0;
    while (record_faults[i].code != e->fault)
        i++;
    return buf_str(b, ",\"fault\":\"") && buf_str(b, record_faults[i].name) &&
           buf_str(b, "\",\"message\":") && add_string(b, e->message);
}

int record_put(struct record *r, const uint32_t *ids, size_t n, const struct record_answer *a,
               struct err *err)
{
    char message[RECORD_MESSAGE] = "";
    const struct prefix_key k = prefix_key_of(&r->print, ids, n);
    struct record_entry e = {
        .key = k, .id = a->id, .fault = (signed char)a->fault, .from = (unsigned char)a->from
    };
    if (!r->model || r->fd < 0)
        return err_set(err, ERR_ARG, "%s: nothing can be recorded yet", r->path);
    if (a->from == ORIGIN_AUDIT) {
        const struct record_entry *first = record_first_audit(r, &k);
        e.nth = first ? first->audits + 1 : 1;
        e.key = record_audit_key(&k, e.nth);
    }
    const struct record_entry *old = record_find(r, &e.key);
    if (r->broken || (old && (a->fault || (!old->fault && old->id == a->id))))
        return OK;
    if (a->fault) {
        const char *why = a->message ? a->message : "";
        json_input_line(message, sizeof(message), why, strlen(why));
        e.message = record_copy(message);
    }
    int rc = OK;
    if ((a->fault && !e.message) || !write_line(&r->line, &e, &k, ids, n))
        rc = record_no_memory(r, &r->why);
    if (rc == OK)
        rc = record_append_line(r, &r->why);
    if (rc == OK && !record_keep(r, &e))
        rc = record_no_memory(r, &r->why);
    if (rc != OK)
        free(e.message);
    return record_broken(r, rc, err);
}

int record_miss(const struct record *r, const uint32_t *ids, size_t n, struct err *err)
{
    struct prefix_key k = prefix_key_of(&r->print, ids, n);
    struct buf last = { 0 };
    char hash[PREFIX_KEY_TEXT];
    size_t few = n < 4 ? n : 4;
    prefix_key_text(hash, &k);
    bool ok = buf_ids(&last, ids + n - few, few) && buf_add(&last, "", 1);
    int rc = err_set(err, ERR_NET, "%s: no answer for a prefix of %zu tokens, hash %s, last ids %s",
                     r->path, n, hash, ok ? last.p : "unknown");
    buf_free(&last);
    return rc;
}
