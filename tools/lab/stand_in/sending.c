#include "tools/lab/stand_in/sending.h"

#include <string.h>

#include "kernels/sys/os.h"

enum { BLOCK = 16 << 10, BLANKS = 100 << 20, PIECES_A_SECOND = 50 };

bool stand_in_sending_wait(struct server_request *r, uint64_t until)
{
    while (os_now_ns() < until && !server_closing(r))
        if (!server_wait(r, until))
            return false;
    return true;
}

/* Return how many of n bytes may be sent now, after waiting as the rate limit requires; 0: the
 * client has disconnected. */
static size_t portion(struct stand_in_sending *s, size_t n)
{
    uint64_t now = os_now_ns();
    if (s->way == WAY_SLOW || s->way == WAY_BYTES)
        n = 1;
    if (s->way == WAY_SLOW &&
        !stand_in_sending_wait(s->r, now + STAND_IN_SLOW_MS * UINT64_C(1000000)))
        return 0;
    if (!s->pace)
        return n;
    size_t most = (size_t)(s->pace / PIECES_A_SECOND) + 1;
    n = n < most ? n : most;
    s->due = (s->due > now ? s->due : now) + n * UINT64_C(1000000000) / s->pace;
    return stand_in_sending_wait(s->r, s->due) ? n : 0;
}

/* Append n blanks. */
static bool stand_in_sending_blanks(struct buf *out, size_t n)
{
    char blanks[BLOCK];
    memset(blanks, ' ', n);
    return buf_add(out, blanks, n);
}

/* Callback of the server: append the next bytes of the body. */
static enum server_more stand_in_sending_more(void *arg, struct buf *out)
{
    struct stand_in_sending *s = arg;
    while (!s->blanks && s->at == s->bytes.n) {
        enum server_more more = s->more ? s->more(s->arg, &s->bytes) : SERVER_END;
        if (more != SERVER_MORE)
            return more;
        s->at = 0;
    }
    if (s->sent >= s->cut) {
        if (s->way == WAY_STALL)
            stand_in_sending_wait(s->r, UINT64_MAX);
        return SERVER_BROKEN;
    }
    size_t n = s->blanks ? s->blanks : s->bytes.n - s->at;
    n = n < BLOCK ? n : BLOCK;
    n = n < s->cut - s->sent ? n : s->cut - s->sent;
    n = portion(s, n);
    if (!n || !(s->blanks ? stand_in_sending_blanks(out, n) : buf_add(out, s->bytes.p + s->at, n)))
        return SERVER_BROKEN;
    if (s->blanks)
        s->blanks -= n;
    else
        s->at += n;
    s->sent += n;
    return SERVER_MORE;
}

void stand_in_sending_begin(struct stand_in_sending *s, unsigned status, const char *type,
                            bool length, const char *const headers[][2])
{
    s->blanks = s->way == WAY_HUGE ? (size_t)BLANKS : 0;
    s->cut = s->way == WAY_CUT || s->way == WAY_STALL ? s->bytes.n / 2 : SIZE_MAX;
    server_stream(s->r, status, type, length ? (int64_t)(s->blanks + s->bytes.n) : -1, headers,
                  stand_in_sending_more, s);
}
