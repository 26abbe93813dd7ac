#include <string.h>

#include "kernels/sys/base.h"
#include "router/decode/decode.h"
#include "router/mizzle_internal.h"
#include "router/routing.h"

/* The largest size that is accepted; beyond, the field was probably never set. */
enum { MOST = 65536 };

/* Those of the answer; mizzle_defaults adds the others. */
static const struct mizzle_options mizzle_answer = {
    .abi = MIZZLE_ABI,
    .max_tokens = 256,
    .top_k = 40,
    .top_p = 0.95,
    .min_p = 0.05,
    .repeat_penalty = 1,
    .seed = 1,
};

static struct mizzle_options mizzle_defaults(void)
{
    struct mizzle_options o = mizzle_answer;
#define X(type, name) o.name = routing_defaults.name;
    ROUTING_OPTIONS(X)
#undef X
    return o;
}

/* True for a size that a struct of any version can have. */
static bool mizzle_sane(size_t size)
{
    return size >= sizeof(size) && size <= MOST && size % sizeof(void *) == 0;
}

void mizzle_options_init(struct mizzle_options *o, size_t size)
{
    if (!o || !mizzle_sane(size))
        return;
    const struct mizzle_options own = mizzle_defaults();
    memset(o, 0, size);
    memcpy(o, &own, size < sizeof(*o) ? size : sizeof(*o));
    o->size = size;
}

/* Copy the caller's struct to *out, which has `own` bytes and keeps its values where the caller's
 * struct is shorter. Both begin with their size. */
static int mizzle_read(void *out, size_t own, const void *in, const char *name, struct err *err)
{
    size_t size;
    if (!in)
        return err_set(err, ERR_ARG, "%s: expected a struct, found NULL", name);
    memcpy(&size, in, sizeof(size));
    if (!mizzle_sane(size))
        return err_set(err, ERR_ARG, "%s: size: expected sizeof the struct, found %zu", name, size);
    for (size_t i = own; i < size; i++)
        if (((const unsigned char *)in)[i])
            return err_set(err, ERR_ARG,
                           "%s: size: expected at most %zu, found %zu with fields that version "
                           "%s does not know",
                           name, own, size, MIZZLE_VERSION);
    memcpy(out, in, size < own ? size : own);
    memcpy(out, &own, sizeof(own));
    return OK;
}

int mizzle_read_options(struct mizzle_options *out, const struct mizzle_options *in,
                        struct err *err)
{
    *out = mizzle_defaults();
    int rc = mizzle_read(out, sizeof(*out), in, "options", err);
    if (rc == OK && out->abi != MIZZLE_ABI)
        rc = err_set(err, ERR_ARG,
                     "options: abi: expected %d, found %zu: build the program with the mizzle.h of "
                     "this library, and call mizzle_options_init",
                     MIZZLE_ABI, out->abi);
    return rc;
}

int mizzle_read_prompt(struct mizzle_prompt *out, const struct mizzle_prompt *in, struct err *err)
{
    memset(out, 0, sizeof(*out));
    return mizzle_read(out, sizeof(*out), in, "prompt", err);
}

/* Copy own[size] to the caller's out[room], except its size field: as much as there is room for,
 * and zeros after it. */
static void mizzle_write(void *out, size_t room, const void *own, size_t size)
{
    size_t n = room < size ? room : size, at = sizeof(size_t);
    memcpy((char *)out + at, (const char *)own + at, n - at);
    memset((char *)out + n, 0, room - n);
}

void mizzle_write_error(struct mizzle_error *out, int code, const char *line)
{
    struct mizzle_error own = { .code = -code };
    if (!out || !mizzle_sane(out->size))
        return;
    size_t n = strlen(line);
    n = n < sizeof(own.message) ? n : sizeof(own.message) - 1;
    memcpy(own.message, line, n);
    mizzle_write(out, out->size, &own, sizeof(own));
    /* An older struct may end within the message. */
    if (out->size > offsetof(struct mizzle_error, message) && out->size < sizeof(own))
        ((char *)out)[out->size - 1] = '\0';
}

bool mizzle_has_room(const struct mizzle_stats *stats)
{
    return !stats || mizzle_sane(stats->size);
}

void mizzle_write_stats(struct mizzle_stats *out, const struct decode_stats *s, double start_ms)
{
    if (!out)
        return;
    struct mizzle_stats own = {
        .finish = finish_name(s->finish),
        .start_ms = start_ms,
        .held = { .no_cloud = s->reasons[GATE_NO_CLOUD],
                  .refused = s->reasons[GATE_REFUSED],
                  .unfit = s->reasons[GATE_UNFIT],
                  .private_text = s->reasons[GATE_PRIVATE],
                  .capped = s->reasons[GATE_CAPPED],
                  .breaker = s->reasons[GATE_BREAKER],
                  .fault = s->reasons[GATE_FAULT] },
    };
#define X(name) own.name = s->name;
    FIGURES_COUNTS(X)
    FIGURES_TIMES(X)
#undef X
#define X(name) own.name = s->traffic.name;
    TRAFFIC_COUNTS(X)
#undef X
    mizzle_write(out, out->size, &own, sizeof(own));
}
