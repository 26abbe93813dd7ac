#include "net/answers/store.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/answers/answer_file.h"
#include "net/answers/answer_line.h"

enum {
    WAITING = 256, /* most answers that wait for the lock or the disk */
    PATIENCE_MS = 50,
    OPENING_MS = 2000,
    CLOSING_MS = 1000,
    OFTEN = 64,
    LEAST_LINE = ANSWER_LINE_STORED - 10 /* an id of one digit, no end of a string */
};

struct store {
    struct answer_file file;
    struct answer_table table; /* what the file holds, and what waits */
    uint64_t limit;
    char waiting[WAITING * ANSWER_LINE_STORED]; /* lines */
    size_t nwaiting, bytes;                     /* number and length of these lines */
    bool patient;                               /* the last wait for the lock succeeded */
    bool full;                                  /* compaction failed; nothing more is written */
    /* For store_note. */
    size_t damaged, lost;
    bool read_only;
    struct err trouble; /* the latest trouble, reported once */
    bool troubled;      /* it has not been reported yet */
};

/* Keep a problem for store_note, unless it is the latest one again. */
static void trouble(struct store *s, const struct err *why)
{
    if (strcmp(s->trouble.msg, why->msg) == 0)
        return;
    s->trouble = *why;
    s->troubled = true;
}

/* Keep an answer in memory. */
static int store_keep(struct store *s, const struct answer *a, struct err *err)
{
    return answer_table_put(&s->table, a)
               ? OK
               : err_set(err, ERR_NOMEM, "out of memory: not all answers are used");
}

/* Read one line of the file. */
static int store_take(void *arg, size_t number, const char *p, size_t n, struct err *err)
{
    struct store *s = arg;
    struct answer a;
    (void)number;
    if (answer_line_read(&a, p, n, false, err) == OK)
        return store_keep(s, &a, err);
    s->damaged++;
    return OK;
}

/* Read what was appended since the last call; of a file far beyond the limit, only the end. What
 * waits will stand behind it, so it counts again. False: out of memory or a read error, so not all
 * is known. */
static bool refresh(struct store *s)
{
    struct err err;
    uint64_t before = s->file.read;
    int rc = answer_file_read(&s->file, s->limit, store_take, s, &err);
    if (rc != OK)
        trouble(s, &err);
    if (s->file.read == before)
        return rc == OK;
    for (const char *p = s->waiting; p < s->waiting + s->bytes;) {
        size_t n = strcspn(p, "\n");
        store_take(s, 0, p, n, &err); /* needs no memory: the table has its key */
        p += n + 1;
    }
    return rc == OK;
}

/* Write the newest answers to the new file of a compaction, in their order. */
static void store_fill(void *arg, FILE *to)
{
    const struct store *s = arg;
    char line[ANSWER_LINE_STORED];
    size_t room = (size_t)(s->limit / 2 / ANSWER_LINE_STORED) - 1, n = s->table.n;
    for (size_t i = n > room ? n - room : 0; i < n; i++) {
        const struct answer *a = answer_table_at(&s->table, i);
        fwrite(line, 1, answer_line_stored(line, &a->key, a->id), to);
    }
}

/* Make room for n more bytes. False: there is no room; or a new file with all that waited is open
 * now, and the lock is lost. Call with the file locked. */
static bool store_make_room(struct store *s, size_t n)
{
    struct err err;
    if (answer_file_size(&s->file) + n <= s->limit)
        return true;
    if (!refresh(s)) {
        err_set(&err, ERR_IO, "%s: cannot be compacted: not all of it could be read", s->file.path);
    } else if (answer_file_replace(&s->file, store_fill, s, &err) == OK) {
        s->nwaiting = s->bytes = 0; /* they were in the table, and so are in the new file */
        return false;
    }
    s->full = true;
    trouble(s, &err);
    return false;
}

/* Take the lock on the file, waiting for at most ms, and cut off a torn tail. */
static bool take_lock(struct store *s, unsigned ms)
{
    struct err err;
    int rc = answer_file_lock(&s->file, ms, &err);
    s->patient = rc == OK;
    if (rc == OK && (rc = answer_file_cut(&s->file, &err)) != OK)
        answer_file_unlock(&s->file);
    if (rc != OK)
        trouble(s, &err);
    return rc == OK;
}

/* Write the waiting answers, if the lock can be acquired within ms. */
static void store_flush(struct store *s, unsigned ms)
{
    struct err err;
    if (!s->nwaiting || !s->file.writable || s->full || !take_lock(s, ms))
        return;
    refresh(s);
    if (store_make_room(s, s->bytes)) {
        if (answer_file_append(&s->file, s->waiting, s->bytes, &err) == OK)
            s->nwaiting = s->bytes = 0;
        else
            trouble(s, &err);
    }
    answer_file_unlock(&s->file);
}

/* Open the file and read it; compact it if it is beyond the limit. */
static int open_file(struct store *s, const char *path, uint64_t limit, struct err *err)
{
    const uint64_t most = (uint64_t)LEAST_LINE * (UINT32_MAX / 2);
    s->limit = limit ? limit : STORE_LIMIT;
    if (s->limit < STORE_LEAST || s->limit > most)
        return err_set(err, ERR_ARG, "%s: limit: expected %d to %llu bytes, found %llu bytes", path,
                       STORE_LEAST, (unsigned long long)most, (unsigned long long)s->limit);
    answer_table_init(&s->table, (size_t)(s->limit / LEAST_LINE) + WAITING);
    int rc = answer_file_open(&s->file, path, ANSWER_STORE, OPENING_MS, err);
    if (rc == OK && s->file.writable)
        rc = answer_file_cut(&s->file, err);
    if (rc != OK)
        return rc;
    answer_file_unlock(&s->file);
    s->patient = true;
    s->read_only = !s->file.writable;
    refresh(s);
    if (s->file.writable && answer_file_size(&s->file) > s->limit && take_lock(s, PATIENCE_MS)) {
        store_make_room(s, 0);
        answer_file_unlock(&s->file);
    }
    return OK;
}

int store_open(struct store **out, const char *path, uint64_t limit, struct err *err)
{
    *out = NULL;
    struct store *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    s->file.fd = -1;
    int rc = open_file(s, path, limit, err);
    if (rc != OK) {
        store_close(s);
        return rc;
    }
    *out = s;
    return OK;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    store_flush(s, CLOSING_MS);
    answer_file_close(&s->file);
    answer_table_free(&s->table);
    free(s);
}

bool store_get(struct store *s, const struct prefix_key *k, uint32_t *id)
{
    const struct answer *a = answer_table_find(&s->table, k);
    if (!a && (answer_file_moved(&s->file) || answer_file_size(&s->file) != s->file.read)) {
        refresh(s);
        a = answer_table_find(&s->table, k);
    }
    if (a)
        *id = a->id;
    return a != NULL;
}

void store_put(struct store *s, const struct prefix_key *k, uint32_t id)
{
    const struct answer a = { .key = *k, .from = ORIGIN_STORE, .id = id };
    struct err err;
    uint32_t old;
    if (store_get(s, k, &old) && old == id)
        return;
    /* All that waits is written at once, so no more may wait than there is room for. */
    if (s->nwaiting == WAITING || !s->file.writable) {
        s->lost++;
    } else if (store_keep(s, &a, &err) != OK) {
        s->lost++;
        trouble(s, &err);
    } else {
        s->bytes += answer_line_stored(s->waiting + s->bytes, k, id);
        s->nwaiting++;
    }
    /* Retry only occasionally after a failed wait. */
    store_flush(s, s->patient || (s->nwaiting + s->lost) % OFTEN == 0 ? PATIENCE_MS : 0);
}

size_t store_size(struct store *s)
{
    answer_file_moved(&s->file);
    refresh(s);
    return s->table.n;
}

bool store_note(struct store *s, struct err *note)
{
    const char *path = s->file.path;
    if (answer_file_note(&s->file, note))
        return true;
    if (s->damaged) {
        err_set(note, OK, "%s: %zu damaged lines are not used", path, s->damaged);
        s->damaged = 0;
    } else if (s->read_only) {
        err_set(note, OK, "%s: is read-only: new answers are not kept", path);
        s->read_only = false;
    } else if (s->troubled) {
        *note = s->trouble;
        s->troubled = false;
    } else if (s->lost && s->file.writable) {
        err_set(note, OK, "%s: %zu answers could not be kept", path, s->lost);
        s->lost = 0;
    } else {
        return false;
    }
    return true;
}
