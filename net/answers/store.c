#include "net/answers/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/answers/store_file.h"

enum {
    WAITING = STORE_FILE_BATCH,
    PATIENCE_MS = 50,
    CLOSING_MS = 1000,
    OFTEN = 64,
    FIRST_SLOTS = 1024
};

/* Where a record is: a hash of its key, and 1 + its number counted from base; 0: free. */
struct slot {
    uint32_t tag, record;
};

struct store {
    pthread_mutex_t mutex;
    struct store_file file;
    uint64_t limit;
    struct prefix_key seed; /* of the tags: a crafted file cannot make them collide */
    uint64_t base;          /* number of the first record in the index */
    uint64_t loaded;        /* records read so far, including the unused ones before base */
    struct slot *slots;
    size_t mask, used; /* number of slots - 1; number of different keys */
    struct store_record waiting[WAITING];
    size_t nwaiting;
    bool patient; /* the last wait for the lock succeeded */
    bool full;    /* compaction failed; nothing more is written */
    /* For store_note. */
    size_t torn, damaged, lost;
    bool read_only;
    struct err trouble; /* the latest trouble, reported once */
    bool troubled;      /* it has not been reported yet */
};

static void store_lock(struct store *s)
{
    pthread_mutex_lock(&s->mutex);
}

static void store_unlock(struct store *s)
{
    pthread_mutex_unlock(&s->mutex);
}

/* Keep a problem for store_note, unless it is the latest one again. */
static void trouble(struct store *s, const struct err *why)
{
    if (strcmp(s->trouble.msg, why->msg) == 0)
        return;
    s->trouble = *why;
    s->troubled = true;
}

/* Hash a key for the index. */
static uint32_t tag_of(const struct store *s, const struct prefix_key *k)
{
    return (uint32_t)prefix_key_mix(&s->seed, k);
}

/* Read a record. False: it is damaged or cannot be read. */
static bool record_at(const struct store *s, uint64_t number, struct store_record *r)
{
    bool bad;
    return store_file_read(&s->file, number, r, &bad, 1) == 1 && !bad;
}

/* Return the slot of the key, with its record in *r, or the free slot where it would go. There
 * always is a free one. */
static size_t store_find(const struct store *s, const struct prefix_key *k, struct store_record *r)
{
    uint32_t tag = tag_of(s, k);
    size_t i = tag & s->mask;
    for (; s->slots[i].record; i = (i + 1) & s->mask)
        if (s->slots[i].tag == tag && record_at(s, s->base + s->slots[i].record - 1, r) &&
            prefix_key_same(&r->key, k))
            break;
    return i;
}

/* True when record `number` is the one in the index for its key, so no later record replaces it. */
static bool is_latest(const struct store *s, const struct prefix_key *k, uint64_t number)
{
    for (size_t i = tag_of(s, k) & s->mask; s->slots[i].record; i = (i + 1) & s->mask)
        if (s->base + s->slots[i].record - 1 == number)
            return true;
    return false;
}

/* Double the slots. They are placed by their tags, so no record has to be read. */
static bool store_grow(struct store *s)
{
    size_t n = s->slots ? 2 * (s->mask + 1) : FIRST_SLOTS;
    struct slot *more = calloc(n, sizeof(*more));
    if (!more)
        return false;
    for (size_t i = 0; s->slots && i <= s->mask; i++) {
        size_t to = s->slots[i].tag & (n - 1);
        if (!s->slots[i].record)
            continue;
        while (more[to].record)
            to = (to + 1) & (n - 1);
        more[to] = s->slots[i];
    }
    free(s->slots);
    s->slots = more;
    s->mask = n - 1;
    return true;
}

/* Put a record into the index, in the place of an older one with its key. False: out of memory. */
static bool index_record(struct store *s, const struct store_record *r, uint64_t number)
{
    struct store_record old;
    if (4 * (s->used + 1) > 3 * (s->mask + 1) && !store_grow(s))
        return false;
    struct slot *slot = &s->slots[store_find(s, &r->key, &old)];
    s->used += slot->record == 0;
    *slot = (struct slot){ tag_of(s, &r->key), (uint32_t)(number - s->base) + 1 };
    return true;
}

/* Empty the index, because the path now leads to another file. */
static void store_begin_again(struct store *s)
{
    memset(s->slots, 0, (s->mask + 1) * sizeof(*s->slots));
    s->used = 0;
    s->loaded = s->base = 0;
}

/* Read the records appended since the last call; of a file far beyond the limit, only the end.
 * False: out of memory or a read error, so the index is incomplete. */
static bool refresh(struct store *s)
{
    struct store_record r[STORE_FILE_BATCH];
    bool bad[STORE_FILE_BATCH];
    uint64_t total = store_file_records(&s->file), most = s->limit / STORE_RECORD;
    if (total < s->loaded) { /* truncated by another program */
        store_begin_again(s);
    }
    if (!s->loaded && total > most)
        s->loaded = s->base = total - most;
    while (s->loaded < total && s->loaded - s->base < UINT32_MAX - 1) {
        uint64_t left = total - s->loaded;
        size_t want = left < STORE_FILE_BATCH ? (size_t)left : STORE_FILE_BATCH;
        size_t n = store_file_read(&s->file, s->loaded, r, bad, want);
        for (size_t i = 0; i < n; i++, s->loaded++) {
            if (!bad[i] && !index_record(s, &r[i], s->loaded)) {
                struct err err;
                err_set(&err, ERR_NOMEM, "%s: out of memory: not all answers are used",
                        s->file.path);
                trouble(s, &err);
                return false;
            }
            s->damaged += bad[i];
        }
        if (n < want)
            return false;
    }
    return s->loaded >= total;
}

/* Copy the newest distinct answers, at most `room`, to made. Call with the file locked. */
static int copy_youngest(struct store *s, struct store_file *made, uint64_t room, struct err *err)
{
    struct store_record r[STORE_FILE_BATCH], keep[STORE_FILE_BATCH];
    bool bad[STORE_FILE_BATCH];
    /* The index holds each key once; skip the oldest of them, in file order. */
    uint64_t skip = s->used > room ? s->used - room : 0;
    for (uint64_t at = s->base; at < s->loaded;) {
        size_t torn, kept = 0, n = store_file_read(&s->file, at, r, bad, STORE_FILE_BATCH);
        for (size_t i = 0; i < n && at + i < s->loaded; i++) {
            if (bad[i] || !is_latest(s, &r[i].key, at + i))
                continue;
            if (skip)
                skip--;
            else
                keep[kept++] = r[i];
        }
        if (!n)
            return err_set(err, ERR_IO, "%s: cannot be read", s->file.path);
        at += n;
        int rc = kept ? store_file_append(made, keep, kept, &torn, err) : OK;
        if (rc != OK)
            return rc;
    }
    return OK;
}

/* Replace the file with one of half the limit. Call with the file locked; success releases the
 * lock. */
static int compact(struct store *s, struct err *err)
{
    struct store_file made;
    uint64_t room = (s->limit / 2 - STORE_HEADER) / STORE_RECORD;
    if (!refresh(s))
        return err_set(err, ERR_IO, "%s: cannot be compacted: not all of it could be read",
                       s->file.path);
    int rc = store_file_begin(&made, &s->file, err);
    if (rc != OK)
        return rc;
    rc = copy_youngest(s, &made, room, err);
    if (rc != OK) {
        store_file_discard(&made);
        return rc;
    }
    rc = store_file_replace(&s->file, &made, err);
    if (rc == OK)
        store_begin_again(s);
    return rc;
}

/* Make room for n more records. False: there is no room, or the lock is lost because another file
 * is open now. Call with the file locked. */
static bool store_make_room(struct store *s, size_t n)
{
    struct err err;
    if (store_file_records(&s->file) + n <= (s->limit - STORE_HEADER) / STORE_RECORD)
        return true;
    if (compact(s, &err) == OK) {
        refresh(s);
        return false;
    }
    s->full = true;
    trouble(s, &err);
    return false;
}

/* Take the lock on the file, waiting for at most ms; the index is emptied if the file was
 * replaced. */
static bool take_lock(struct store *s, unsigned ms)
{
    struct err err;
    bool moved;
    s->patient = store_file_lock(&s->file, ms, &moved, &err);
    if (moved)
        store_begin_again(s);
    if (!s->patient)
        trouble(s, &err);
    return s->patient;
}

/* Write the waiting records, if the lock can be acquired within ms. */
static void store_flush(struct store *s, unsigned ms)
{
    struct err err;
    size_t torn = 0;
    for (int again = 0; again < 2; again++) { /* a second time after a compaction */
        if (!s->nwaiting || !s->file.writable || s->full || !take_lock(s, ms))
            return;
        if (store_make_room(s, s->nwaiting)) {
            if (store_file_append(&s->file, s->waiting, s->nwaiting, &torn, &err) == OK)
                s->nwaiting = 0;
            else
                trouble(s, &err);
            s->torn += torn;
            refresh(s);
        }
        store_file_unlock(&s->file);
    }
}

/* Look among the waiting records, in the index, and in the records appended since. */
static bool look_up(struct store *s, const struct prefix_key *k, uint32_t *id)
{
    struct store_record r;
    for (size_t i = s->nwaiting; i--;)
        if (prefix_key_same(&s->waiting[i].key, k)) {
            *id = s->waiting[i].id;
            return true;
        }
    for (int again = 0; again < 2; again++) {
        if (s->slots[store_find(s, k, &r)].record) {
            *id = r.id;
            return true;
        }
        if (store_file_moved(&s->file))
            store_begin_again(s);
        else if (store_file_records(&s->file) == s->loaded)
            return false;
        refresh(s);
    }
    return false;
}

/* Open the file and read it into the index; compact it if it is beyond the limit. */
static int open_index(struct store *s, const char *path, uint64_t limit, struct err *err)
{
    s->limit = limit ? limit : STORE_LIMIT;
    if (s->limit < STORE_LEAST || s->limit / STORE_RECORD >= UINT32_MAX - WAITING)
        return err_set(
            err, ERR_ARG, "%s: limit: expected %d bytes to %u records of %d, found %llu bytes",
            path, STORE_LEAST, UINT32_MAX - WAITING, STORE_RECORD, (unsigned long long)s->limit);
    s->seed = prefix_key_seed();
    if (!store_grow(s))
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    int rc = store_file_open(&s->file, path, &s->torn, err);
    if (rc != OK)
        return rc;
    s->patient = true;
    s->read_only = !s->file.writable;
    refresh(s);
    if (s->file.writable && s->loaded > (s->limit - STORE_HEADER) / STORE_RECORD &&
        take_lock(s, PATIENCE_MS)) {
        store_make_room(s, 0);
        store_file_unlock(&s->file);
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
    if (pthread_mutex_init(&s->mutex, NULL)) {
        free(s);
        return err_set(err, ERR_NOMEM, "%s: no lock to be had", path);
    }
    int rc = open_index(s, path, limit, err);
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
    store_file_close(&s->file);
    pthread_mutex_destroy(&s->mutex);
    free(s->slots);
    free(s);
}

bool store_get(struct store *s, const struct prefix_key *k, uint32_t *id)
{
    store_lock(s);
    bool found = look_up(s, k, id);
    store_unlock(s);
    return found;
}

void store_put(struct store *s, const struct prefix_key *k, uint32_t id)
{
    uint32_t old;
    store_lock(s);
    if (!look_up(s, k, &old) || old != id) {
        /* A batch is appended whole, so no more may wait than fit into one. */
        if (s->nwaiting < WAITING && s->file.writable)
            s->waiting[s->nwaiting++] = (struct store_record){ *k, id };
        else
            s->lost++;
        /* Retry only occasionally after a failed wait. */
        store_flush(s, s->patient || (s->nwaiting + s->lost) % OFTEN == 0 ? PATIENCE_MS : 0);
    }
    store_unlock(s);
}

size_t store_size(struct store *s)
{
    store_lock(s);
    if (store_file_moved(&s->file))
        store_begin_again(s);
    refresh(s);
    size_t n = (size_t)(s->loaded - s->base) + s->nwaiting;
    store_unlock(s);
    return n;
}

/* store_note, with the lock held. */
static bool next_note(struct store *s, struct err *note)
{
    const char *path = s->file.path;
    if (s->torn) {
        err_set(note, OK, "%s: cut off %zu bytes of a torn record", path, s->torn);
        s->torn = 0;
    } else if (s->damaged) {
        err_set(note, OK, "%s: %zu damaged records are not used", path, s->damaged);
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

bool store_note(struct store *s, struct err *note)
{
    store_lock(s);
    bool told = next_note(s, note);
    store_unlock(s);
    return told;
}
