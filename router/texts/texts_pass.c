/* texts_pass.c - one pass for all texts that want one: who gets how many of its rows, and how large
 * a piece of a prompt may be. */
#include <string.h>

#include "kernels/sys/os.h"
#include "router/texts/texts_internal.h"

enum { PIECE_LEAST = 8 /* rows of prompts in a pass, however slow it is */ };

/* True while the text's prompt is being read. */
static bool texts_reads(const struct text *t)
{
    return t->view.read < t->reads;
}

/* Return the rows that pieces of prompts may have in this pass, the others aside. While somebody
 * writes, even if it waits for the cloud, its prompt unread, the pass is to take piece_ns. */
static size_t texts_piece_rows(const struct texts *e, struct text *const *list, size_t n)
{
    bool writes = false;
    for (size_t i = 0; i < n; i++)
        writes = writes ||
                 (list[i]->step && !(list[i]->need->want == STEP_ROWS && texts_reads(list[i])));
    if (!writes)
        return BATCH_ROWS;
    double rows = e->row_ns > 0 ? (double)e->piece_ns / e->row_ns : PIECE_LEAST;
    return rows < PIECE_LEAST ? PIECE_LEAST : rows < BATCH_ROWS ? (size_t)rows : BATCH_ROWS;
}

/* Learn from a pass of so many rows what a row takes. The pieces' size then settles where a pass
 * takes piece_ns, as what the weights cost is spread over the rows. */
static void texts_learn(struct texts *e, size_t rows, uint64_t ns)
{
    double one = (double)ns / (double)rows;
    e->row_ns = e->row_ns > 0 ? (e->row_ns + one) / 2 : one;
}

/* Give the readers their shares of `room` rows: equal ones, but none gets more than it can use, and
 * what one leaves goes to the others. */
static void texts_share(struct text *const *list, size_t n, size_t room)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        left += list[i]->need->want == STEP_ROWS && texts_reads(list[i]);
    while (left) {
        struct text *least = NULL;
        for (size_t i = 0; i < n; i++) {
            struct text *t = list[i];
            if (t->need->want == STEP_ROWS && texts_reads(t) && !t->rows &&
                (!least || t->need->n < least->need->n))
                least = t;
        }
        size_t share = room / left, wants = least->need->n;
        share = share ? share : 1;
        least->rows = wants < share ? wants : share;
        room -= room < least->rows ? room : least->rows;
        left--;
    }
}

/* Say in t->rows how many rows each text gets: those that write a token and some of their draft,
 * the oldest first, and then the readers. */
static size_t texts_divide(const struct texts *e, struct text *const *list, size_t n)
{
    size_t used = 0, piece = texts_piece_rows(e, list, n);
    for (size_t i = 0; i < n; i++) {
        list[i]->rows = list[i]->need->want == STEP_ROWS && !texts_reads(list[i]);
        used += list[i]->rows;
    }
    for (size_t i = 0; i < n && used < TEXTS_DRAFTED; i++) {
        if (!list[i]->rows)
            continue;
        size_t more = list[i]->need->n - 1, room = TEXTS_DRAFTED - used;
        more = more < room ? more : room;
        list[i]->rows += more;
        used += more;
    }
    size_t room = BATCH_ROWS - used; /* at least one for each of the slots that are left */
    texts_share(list, n, piece < room ? piece : room);
    size_t rows = 0;
    for (size_t i = 0; i < n; i++)
        rows += list[i]->rows;
    return rows;
}

/* Tell the texts what became of the pass. One that was cut short is made again. */
static void texts_passed(struct text *const *list, size_t n, const struct batch_part *p, int rc,
                         const struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct text *t = list[i];
        if (!t->rows)
            continue;
        t->row = p->row;
        if (rc == OK && p->rc == OK)
            step_give_rows(t->step, t->rows);
        else if (rc != ERR_STOP)
            step_fail(t->step, rc == OK ? p->rc : rc, rc == OK ? &p->err : err);
        p++;
    }
}

/* Collect the parts of the pass, and return how many there are; *reading: rows of prompts. */
static size_t texts_collect(struct batch_part *parts, struct text *const *list, size_t n,
                            size_t *reading)
{
    size_t count = 0;
    *reading = 0;
    for (size_t i = 0; i < n; i++) {
        struct text *t = list[i];
        if (!t->rows)
            continue;
        t->before = session_length(t->slot->session);
        parts[count++] =
            (struct batch_part){ .session = t->slot->session, .ids = t->need->ids, .n = t->rows };
        *reading += texts_reads(t) ? t->rows : 0;
    }
    return count;
}

/* Return the only text of the pass, or NULL. */
static struct text *texts_single(struct text *const *list, size_t n)
{
    struct text *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (list[i]->rows && found)
            return NULL;
        found = list[i]->rows ? list[i] : found;
    }
    return found;
}

bool texts_pass(struct texts *e, struct text *const *list, size_t n)
{
    struct batch_part parts[TEXTS_SLOTS];
    struct err err = { "" };
    size_t reading, rows = texts_divide(e, list, n);
    size_t count = texts_collect(parts, list, n, &reading);
    if (!count)
        return false;
    pthread_mutex_lock(&e->lock);
    e->single = texts_single(list, n);
    atomic_store(&e->halt, e->stopped || (e->single && atomic_load(&e->single->stop)));
    e->count.passes++;
    e->count.rows += rows;
    pthread_mutex_unlock(&e->lock);
    uint64_t start = os_now_ns();
    int rc = batch_eval(e->batch, parts, count, &e->halt, &err);
    texts_passed(list, n, parts, rc, &err);
    if (rc == OK)
        texts_score(e, list, n);
    if (rc == OK && reading >= PIECE_LEAST)
        texts_learn(e, rows, os_now_ns() - start);
    return true;
}
