#include "tools/stand_in/sending.h"

#include <string.h>

#include "kernels/sys/os.h"
#include "tools/stand_in/waiting.h"

enum { BLOCK = 16 << 10, BLANKS = 100 << 20, PIECES_A_SECOND = 50 };

void stand_in_sending_begin(struct stand_in_sending *s)
{
    s->blanks = s->way == WAY_HUGE ? (size_t)BLANKS : 0;
    s->cut = s->way == WAY_CUT || s->way == WAY_STALL ? s->bytes.n / 2 : SIZE_MAX;
}

/* Return how many of n bytes may be sent now, after waiting as the rate limit requires; 0: the
 * client has disconnected. */
static size_t portion(struct stand_in_sending *s, size_t n)
{
    uint64_t now = os_now_ns();
    if (s->way == WAY_SLOW || s->way == WAY_BYTES)
        n = 1;
    if (s->way == WAY_SLOW &&
        !stand_in_waiting_until(s->hold, s->fd, now + STAND_IN_SLOW_MS * UINT64_C(1000000)))
        return 0;
    if (!s->pace)
        return n;
    size_t most = (size_t)(s->pace / PIECES_A_SECOND) + 1;
    n = n < most ? n : most;
    s->due = (s->due > now ? s->due : now) + n * UINT64_C(1000000000) / s->pace;
    return stand_in_waiting_until(s->hold, s->fd, s->due) ? n : 0;
}

/* Callback of libmicrohttpd: fill out with the next bytes of the body. */
static ssize_t read_bytes(void *arg, uint64_t pos, char *out, size_t room)
{
    struct stand_in_sending *s = arg;
    (void)pos;
    while (!s->blanks && s->at == s->bytes.n) {
        enum stand_in_more more = s->more ? s->more(s->arg, &s->bytes) : MORE_END;
        if (more == MORE_END)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (more == MORE_BROKEN)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        s->at = 0;
    }
    if (s->sent >= s->cut) {
        if (s->way == WAY_STALL)
            stand_in_waiting_until(s->hold, s->fd, UINT64_MAX);
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    size_t n = s->blanks ? s->blanks : s->bytes.n - s->at;
    n = n < room ? n : room;
    n = n < s->cut - s->sent ? n : s->cut - s->sent;
    n = portion(s, n);
    if (!n)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (s->blanks) {
        memset(out, ' ', n);
        s->blanks -= n;
    } else {
        memcpy(out, s->bytes.p + s->at, n);
        s->at += n;
    }
    s->sent += n;
    return (ssize_t)n;
}

struct MHD_Response *stand_in_sending_response(struct stand_in_sending *s, bool length)
{
    uint64_t size = length ? (uint64_t)s->blanks + s->bytes.n : MHD_SIZE_UNKNOWN;
    return MHD_create_response_from_callback(size, BLOCK, read_bytes, s, NULL);
}
