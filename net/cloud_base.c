/* cloud_base.c - what every file of struct cloud needs: two errors, and the notes for a person. */
#include "kernels/sys/base.h"
#include "net/cloud_internal.h"

int cloud_no_memory(struct err *err)
{
    return err_set(err, ERR_NOMEM, "cloud: out of memory");
}

int cloud_forked(struct err *err)
{
    return err_set(err, ERR_ARG, "cloud: the connection belongs to the parent process");
}

void cloud_say(struct cloud *c, size_t slot, const char *text)
{
    wire_lock(c->wire);
    err_set(&c->notes[slot], OK, "cloud %s: %s", c->base, text);
    wire_unlock(c->wire);
}

bool cloud_note(struct cloud *c, struct err *note)
{
    bool some = false;
    if (wire_forked(c->wire))
        return false;
    wire_lock(c->wire);
    for (size_t i = 0; i < sizeof(c->notes) / sizeof(c->notes[0]) && !some; i++) {
        some = c->notes[i].msg[0];
        if (some)
            *note = c->notes[i];
        c->notes[i].msg[0] = 0;
    }
    wire_unlock(c->wire);
    return some;
}
