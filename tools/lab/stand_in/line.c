/* line.c - the simulated line: what a reply becomes on its way, and when it arrives. Faults edit
 * it, delay it, cut it. Each connection has a thread, so it may wait here. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "kernels/sys/os.h"
#include "tools/lab/stand_in/stand_in_internal.h"

enum { BLOCK = 16 << 10, BLANKS = 100 << 20, HUGE_HEADER = 100 << 10 };

static const uint64_t ms_ns = 1000000;
static const struct stand_in_fault none; /* a reply as it should be */
static const char asked_for[] = "a fault was asked for";

bool stand_in_line_begin(struct serve_exchange *x)
{
    struct stand_in_call *c = calloc(1, sizeof(*c));
    if (!c)
        return false;
    c->x = x;
    c->cut = SIZE_MAX;
    c->fault = &none;
    x->own = c;
    return true;
}

void stand_in_line_end(struct serve_exchange *x)
{
    struct stand_in_call *c = x->own;
    buf_free(&c->bytes);
    free(c);
}

/* Wait until os_now_ns() reaches `until` or the server begins to close. False: the client has
 * gone. */
static bool line_wait(struct server_request *r, uint64_t until)
{
    while (os_now_ns() < until && !server_closing(r))
        if (!server_wait(r, until))
            return false;
    return true;
}

/* Return how many of n bytes may be sent now, after waiting as the fault requires; 0: the client
 * has disconnected. */
static size_t line_portion(struct stand_in_call *c, size_t n)
{
    enum stand_in_way way = c->fault->way;
    if (way == WAY_SLOW && !line_wait(c->x->r, os_now_ns() + STAND_IN_SLOW_MS * ms_ns))
        return 0;
    return way == WAY_SLOW || way == WAY_BYTES ? 1 : n;
}

/* Callback of the server: append the next bytes of the body. */
static enum server_more line_more(void *arg, struct buf *out)
{
    struct stand_in_call *c = arg;
    char blanks[BLOCK];
    while (!c->blanks && c->at == c->bytes.n) {
        c->at = c->bytes.n = 0;
        enum server_more more = c->more ? c->more(c, &c->bytes) : SERVER_END;
        if (more == SERVER_BROKEN || (more == SERVER_END && !c->bytes.n))
            return more;
        c->more = more == SERVER_END ? NULL : c->more;
    }
    if (c->sent >= c->cut) {
        if (c->fault->way == WAY_STALL)
            line_wait(c->x->r, UINT64_MAX);
        return SERVER_BROKEN;
    }
    size_t n = c->blanks ? c->blanks : c->bytes.n - c->at;
    n = n < BLOCK ? n : BLOCK;
    n = n < c->cut - c->sent ? n : c->cut - c->sent;
    n = line_portion(c, n);
    memset(blanks, ' ', c->blanks ? n : 0);
    if (!n || !buf_add(out, c->blanks ? blanks : c->bytes.p + c->at, n))
        return SERVER_BROKEN;
    if (c->blanks)
        c->blanks -= n;
    else
        c->at += n;
    c->sent += n;
    return SERVER_MORE;
}

/* Answer with c->bytes and what c->more appends; without `length` in chunks. */
static void line_send(struct stand_in_call *c, unsigned status, const char *type, bool length,
                      const char *const (*headers)[2], const char *name, const char *value)
{
    const char *all[12][2] = { { name, value } };
    size_t n = name && value;
    for (; headers && headers[0][0] && n < 11; n++, headers++)
        memcpy(all[n], headers[0], sizeof(all[n]));
    memset(all[n], 0, sizeof(all[n]));
    c->blanks = c->fault->way == WAY_HUGE ? (size_t)BLANKS : 0;
    if (c->fault->way == WAY_CUT || c->fault->way == WAY_STALL)
        c->cut = c->bytes.n / 2;
    server_stream(c->x->r, status, type, length ? (int64_t)(c->blanks + c->bytes.n) : -1,
                  (const char *const(*)[2])all, line_more, c);
}

/* Send the status of a fault instead of the answer. */
static void line_fail(struct stand_in_call *c)
{
    const struct stand_in_fault *f = c->fault;
    const char *value = f->value && !*f->value ? server_path(c->x->r) : f->value;
    char *filler = f->header && !value ? malloc(HUGE_HEADER + 1) : NULL;
    if (filler) {
        memset(filler, 'x', HUGE_HEADER);
        filler[HUGE_HEADER] = 0;
    }
    if (f->body ? stand_in_fault_body(&c->bytes, f)
                : stand_in_refusal_print(&c->bytes, stand_in_dialect(c->x), f->status, asked_for))
        line_send(c, f->status, f->type ? f->type : "application/json", true, NULL, f->header,
                  filler ? filler : value);
    free(filler);
}

bool stand_in_line_draw(struct serve_exchange *x)
{
    struct stand_in *s = stand_in_of(x);
    struct stand_in_call *c = x->own;
    const struct serve_prompt *p = &x->ask.prompts[0];
    const struct stand_in_fault *f =
        stand_in_fault_draw(&s->faults, stand_in_chance_key(s->draw, p->ids, p->n));
    c->fault = f = f ? f : &none;
    c->drawn = true;
    if (!(f->status || f->way == WAY_CLOSE || f->way == WAY_RESET || f->way == WAY_SILENT))
        return true;
    if (!line_wait(x->r, f->way == WAY_SILENT ? UINT64_MAX : os_now_ns() + s->latency))
        return false;
    const struct linger rst = { .l_onoff = 1 };
    if (f->way == WAY_RESET)
        setsockopt(server_facts(x->r).fd, SOL_SOCKET, SO_LINGER, &rst, sizeof(rst));
    if (f->status)
        line_fail(c);
    return false;
}

/* Let the fault edit a reply or an event. */
static bool line_edit(struct stand_in_call *c, struct buf *text, bool first)
{
    const struct serve_prompt *p = &c->x->ask.prompts[0];
    const struct stand_in_facts at = { p->ids, p->n, c->x->s->vocab };
    return stand_in_fault_edit(text, c->fault, &at, first);
}

/* Wait until the newest token may arrive: its time of computation plus the latency. */
static bool line_due(const struct stand_in_call *c)
{
    uint64_t late = c->fault->way == WAY_LATE ? STAND_IN_LATE_MS * ms_ns : 0;
    return line_wait(c->x->r, c->x->at + stand_in_of(c->x)->latency + late);
}

void stand_in_line_send(struct serve_exchange *x, unsigned status, const char *type,
                        struct buf *text, const char *const (*headers)[2])
{
    struct stand_in_call *c = x->own;
    bool answer = c->drawn && status == 200;
    const struct stand_in_fault *f = c->fault = answer ? c->fault : &none;
    buf_free(&c->bytes);
    c->bytes = *text;
    *text = (struct buf){ 0 };
    if (!answer) {
        line_send(c, status, type, true, headers, NULL, NULL);
        return;
    }
    if (!line_edit(c, &c->bytes, true))
        return;
    if (line_due(c))
        line_send(c, 200, f->type ? f->type : type, !f->no_length, headers, f->header, f->value);
}

/* Append the event p[n], which ends in a blank line, as the fault makes it. */
static bool line_event(struct stand_in_call *c, struct buf *out, const char *p, size_t n)
{
    static const char begin[] = "data: ";
    enum stand_in_events odd = c->fault->events;
    const char *end = odd == EVENTS_COMMENTS ? "\r\n\r\n" : "\n\n";
    struct buf text = { 0 };
    size_t skip = sizeof(begin) - 1;
    bool fine = true;
    if (n <= skip + 2 || p[skip] != '{') /* a comment, or the end of the stream */
        return buf_add(out, p, n);
    fine = buf_add(&text, p + skip, n - skip - 2) && line_edit(c, &text, !c->events++);
    for (int i = 0; i < 1 + (odd == EVENTS_TWICE) && fine; i++)
        fine = buf_str(out, odd == EVENTS_COMMENTS ? ": ping\r\n\r\n" : "") &&
               buf_str(out, begin) && buf_add(out, text.p, text.n) && buf_str(out, end);
    if (odd == EVENTS_ERROR)
        fine = fine && buf_str(out, begin) &&
               stand_in_refusal_print(out, stand_in_dialect(c->x), 500, asked_for) &&
               buf_str(out, end);
    buf_free(&text);
    return fine;
}

/* Append the next events once they are due. */
static enum server_more line_events(void *arg, struct buf *out)
{
    struct stand_in_call *c = arg;
    enum stand_in_events odd = c->fault->events;
    struct buf made = { 0 };
    enum server_more more = c->events && odd == EVENTS_ERROR ? SERVER_END : c->feed(c->arg, &made);
    bool fine = more != SERVER_BROKEN && line_due(c);
    for (size_t at = 0, n; at < made.n && fine; at += n) {
        const char *end = memchr(made.p + at, '\n', made.n - at); /* of two; JSON has none */
        n = end ? (size_t)(end - made.p) + 2 - at : made.n - at;
        if (odd == EVENTS_NO_DONE && more == SERVER_END && at + n == made.n)
            break;
        fine = line_event(c, out, made.p + at, n);
        if (odd == EVENTS_ERROR && c->events)
            break;
    }
    buf_free(&made);
    return fine ? more : SERVER_BROKEN;
}

void stand_in_line_stream(struct serve_exchange *x, const char *const (*headers)[2],
                          enum server_more (*more)(void *arg, struct buf *out), void *arg)
{
    struct stand_in_call *c = x->own;
    const struct stand_in_fault *f = c->fault;
    c->feed = more;
    c->arg = arg;
    enum server_more next = line_events(c, &c->bytes); /* the head arrives with the first event */
    c->more = next == SERVER_MORE ? line_events : NULL;
    if (next == SERVER_BROKEN)
        return;
    line_send(c, 200, f->type ? f->type : "text/event-stream", false, headers, f->header, f->value);
}
