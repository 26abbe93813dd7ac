#include "net/answers/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/answers/answer_file.h"
#include "net/http/json_input.h"

struct record {
    struct answer_file file;
    struct answer_table table;
    struct answer_server server;
    bool named; /* the server is known */
    uint64_t tokenizer;
    bool broken; /* a write failed; why has the reason */
    struct err why;
};

/* Read one line of the file. */
static int record_take(void *arg, size_t number, const char *p, size_t n, struct err *err)
{
    struct record *r = arg;
    struct answer a;
    if (number == 1) {
        int rc = answer_line_read_server(&r->server, p, n, err);
        r->named = rc == OK;
        return rc != OK || r->server.tokenizer == r->tokenizer
                   ? rc
                   : err_set(err, ERR_FORMAT, "tokenizer: expected %016llx, found %016llx",
                             (unsigned long long)r->tokenizer,
                             (unsigned long long)r->server.tokenizer);
    }
    int rc = answer_line_read(&a, p, n, true, err);
    if (rc == OK && !answer_table_put(&r->table, &a)) {
        free(a.message);
        rc = err_set(err, ERR_NOMEM, "out of memory");
    }
    return rc;
}

/* Open the file, lock it for writing, read its lines, and cut off a torn one. */
static int open_file(struct record *r, const char *path, bool replay, struct err *err)
{
    int rc = answer_file_open(&r->file, path, replay ? ANSWER_REPLAY : ANSWER_RECORD, 0, err);
    if (rc == OK)
        rc = answer_file_read(&r->file, UINT64_MAX, record_take, r, err);
    if (rc != OK)
        return rc;
    if (!replay)
        return answer_file_cut(&r->file, err);
    r->file.torn = (size_t)(answer_file_size(&r->file) - r->file.read);
    return r->named ? OK
                    : err_set(err, ERR_FORMAT, "%s: expected a recording, found a torn first line",
                              path);
}

int record_open(struct record **out, const char *path, uint64_t tokenizer, bool replay,
                struct err *err)
{
    *out = NULL;
    struct record *r = calloc(1, sizeof(*r));
    if (!r)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    r->file.fd = -1;
    r->tokenizer = tokenizer;
    answer_table_init(&r->table, UINT32_MAX);
    int rc = open_file(r, path, replay, err);
    if (rc != OK) {
        record_close(r, NULL);
        return rc;
    }
    *out = r;
    return OK;
}

const struct answer_server *record_server(const struct record *r)
{
    return r->named ? &r->server : NULL;
}

/* Append a line; after a failure, whose reason is kept, nothing more is written. */
static void record_append(struct record *r, const char *line, size_t n)
{
    struct err low;
    int rc = answer_file_append(&r->file, line, n, &low);
    r->broken = rc != OK;
    if (r->broken)
        err_set(&r->why, rc, "%s: the recording is incomplete", low.msg);
}

int record_begin(struct record *r, const struct answer_server *s, struct err *err)
{
    char line[ANSWER_LINE];
    if (r->named && strcmp(r->server.model, s->model) != 0)
        return err_set(err, ERR_FORMAT, "%s: model: expected %s, found %s", r->file.path, s->model,
                       r->server.model);
    if (r->named && strcmp(r->server.api, s->api) != 0)
        return err_set(err, ERR_FORMAT, "%s: api: expected %s, found %s", r->file.path, s->api,
                       r->server.api);
    if (!r->named)
        record_append(r, line, answer_line_server(line, s));
    r->named = true;
    r->server = *s;
    return record_whole(r, err);
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
    if (rc == OK && r->file.writable && r->named && fsync(r->file.fd) && errno != EINVAL)
        rc = err_set(err, ERR_IO, "%s: %s", r->file.path, strerror(errno));
    answer_file_close(&r->file);
    answer_table_free(&r->table);
    free(r);
    return rc;
}

size_t record_size(const struct record *r)
{
    return r->table.n;
}

bool record_note(struct record *r, struct err *note)
{
    return answer_file_note(&r->file, note);
}

const struct answer *record_get(const struct record *r, const struct prefix_key *k)
{
    return answer_table_find(&r->table, k);
}

void record_put(struct record *r, const struct prefix_key *k, const uint32_t *ids, size_t n,
                const struct answer *a, const char *why)
{
    char line[ANSWER_LINE];
    struct answer e = { .key = *k, .from = a->from, .fault = a->fault, .id = a->id };
    const struct answer *old = answer_table_find(&r->table, &e.key);
    if (r->broken || (old && (a->fault || (!old->fault && old->id == a->id))))
        return;
    bool kept = !a->fault || (e.message = malloc(ANSWER_MESSAGE));
    if (kept && a->fault)
        json_input_line(e.message, ANSWER_MESSAGE, why, strlen(why));
    if (kept) {
        record_append(r, line, answer_line_recorded(line, &e, k, ids, n));
        kept = !r->broken && answer_table_put(&r->table, &e);
    }
    if (kept)
        return;
    free(e.message);
    if (!r->broken)
        err_set(&r->why, ERR_NOMEM, "%s: out of memory: the recording is incomplete", r->file.path);
    r->broken = true;
}

int record_miss(const struct record *r, const struct prefix_key *k, const uint32_t *ids, size_t n,
                struct err *err)
{
    struct buf last = { 0 };
    char hash[PREFIX_KEY_TEXT];
    size_t few = n < 4 ? n : 4;
    prefix_key_text(hash, k);
    bool ok = buf_ids(&last, ids + n - few, few) && buf_add(&last, "", 1);
    int rc = err_set(err, ERR_NET, "%s: no answer for a prefix of %zu tokens, hash %s, last ids %s",
                     r->file.path, n, hash, ok ? last.p : "unknown");
    buf_free(&last);
    return rc;
}
