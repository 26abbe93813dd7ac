#include "net/answers/answers_port.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/answers/answers.h"
#include "net/http/json_input.h"

enum { FINGERPRINT = 16 };

struct answers_call {
    struct answers_port *port;
    struct answers_call *next, **link;
    void *call;       /* of the port behind; NULL: offline */
    bool used;        /* the caller has ended it; more tokens may come */
    bool over;        /* all its tokens have come */
    size_t n, tokens; /* ids of the prefix; tokens asked for, */
    size_t kept;      /* and how many of them are kept */
    uint32_t ids[];   /* [n + tokens]: the prefix, and the tokens that have come */
};

struct answers_port {
    struct answers *answers;
    struct cloud_port behind; /* all zero: offline */
    struct answers_call *calls;
    char model[]; /* offline: its name */
};

/* True for the fingerprint of a model, or of what serve writes with it, with nothing or with `end`
 * behind it. */
static bool is_fingerprint(const char *s, char end)
{
    s += strncmp(s, "mz-", 3) == 0 ? 3 : 0;
    return strspn(s, "0123456789abcdef") == FINGERPRINT &&
           (!s[FINGERPRINT] || s[FINGERPRINT] == end);
}

int answers_found(void *answers, const char *name, const char *says, struct err *err)
{
    struct buf whole = { 0 };
    json_t *root = NULL;
    if (says[0])
        json_input_parse(&root, says, strlen(says), NULL);
    const char *weights = json_string_value(json_object_get(root, "fingerprint"));
    const char *kv = json_string_value(json_object_get(root, "kv"));
    bool fine = buf_str(&whole, name);
    if (weights && is_fingerprint(weights, '\0')) {
        fine = fine && buf_str(&whole, "@") && buf_str(&whole, weights);
        fine = fine && (!kv || (buf_str(&whole, "/") && buf_str(&whole, kv)));
    }
    fine = fine && buf_add(&whole, "", 1);
    int rc = fine ? answers_server(answers, whole.p, err)
                  : err_set(err, ERR_NOMEM, "answers: out of memory");
    json_decref(root);
    buf_free(&whole);
    return rc;
}

static void answers_call_free(struct answers_call *c, enum cloud_end how)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    if (c->call)
        c->port->behind.end(c->call, how);
    free(c);
}

/* Keep the tokens of a reply that have come; wait for those before number `upto`. */
static void answers_harvest(struct answers_call *c, size_t upto)
{
    const struct cloud_port *behind = &c->port->behind;
    while (!c->over && (c->kept < upto || behind->done(c->call, c->kept))) {
        uint32_t *id = &c->ids[c->n + c->kept];
        c->over = behind->take(c->call, c->kept, id, NULL) != OK;
        if (c->kept && !c->over)
            answers_put(c->port->answers, c->ids, c->n + c->kept, false, *id);
        c->kept += !c->over;
        c->over = c->over || c->kept == c->tokens;
    }
}

/* Harvest all used calls, and free those that have ended. */
static void answers_harvest_all(struct answers_port *p)
{
    for (struct answers_call *c = p->calls, *next; c; c = next) {
        next = c->next;
        if (!c->used)
            continue;
        answers_harvest(c, 0);
        if (p->behind.done(c->call, c->tokens))
            answers_call_free(c, CLOUD_USE);
    }
}

/* True when this reply, which has been harvested, may still bring the token after ids[n]. */
static bool answers_may_come(const struct answers_call *c, const uint32_t *ids, size_t n)
{
    return c->used && !c->over && n > c->n && n - c->n < c->tokens && n >= c->n + c->kept &&
           memcmp(c->ids, ids, (c->n + c->kept) * sizeof(*ids)) == 0;
}

static enum cloud_sight answers_port_known(void *arg, const uint32_t *ids, size_t n, bool used,
                                           uint32_t *id)
{
    struct answers_port *p = arg;
    bool comes = false;
    answers_harvest_all(p);
    bool waits = used && answers_get(p->answers, ids, n, false, id) == CLOUD_UNKNOWN;
    for (struct answers_call *c = p->calls; c; c = c->next) {
        while (waits && answers_may_come(c, ids, n))
            answers_harvest(c, c->kept + 1);
        comes = comes || answers_may_come(c, ids, n);
    }
    enum cloud_sight sight = answers_get(p->answers, ids, n, used, id);
    return sight == CLOUD_UNKNOWN && comes ? CLOUD_COMING : sight;
}

static struct cloud_info answers_port_info(void *arg)
{
    const struct answers_port *p = arg;
    return p->behind.info ? p->behind.info(p->behind.arg)
                          : (struct cloud_info){ .model = p->model, .tokens = 1, .ids = true };
}

static int answers_port_ask(void *arg, const uint32_t *ids, size_t n, size_t tokens,
                            struct cloud_tally *tally, void **call, struct err *err)
{
    struct answers_port *p = arg;
    size_t room;
    bool fits = size_add(&room, n, tokens) && size_mul(&room, room, sizeof(*ids)) &&
                size_add(&room, room, sizeof(struct answers_call));
    struct answers_call *c = fits ? malloc(room) : NULL;
    if (!c)
        return err_set(err, ERR_NOMEM, "answers: out of memory");
    *c = (struct answers_call){ .port = p, .n = n, .tokens = tokens };
    int rc =
        p->behind.ask ? p->behind.ask(p->behind.arg, ids, n, tokens, tally, &c->call, err) : OK;
    if (rc != OK) {
        free(c);
        return rc;
    }
    memcpy(c->ids, ids, n * sizeof(*ids));
    c->next = p->calls;
    c->link = &p->calls;
    if (c->next)
        c->next->link = &c->next;
    p->calls = c;
    *call = c;
    return OK;
}

static bool answers_port_done(const void *call, size_t at)
{
    const struct answers_call *c = call;
    return !c->call || c->port->behind.done(c->call, at);
}

static int answers_port_take(void *call, size_t at, uint32_t *id, struct err *err)
{
    const struct answers_call *c = call;
    if (c->call)
        return c->port->behind.take(c->call, at, id, err);
    return err_set(err, ERR_NET,
                   "offline: no answer to a prefix of %zu tokens, the last of them %u", c->n,
                   (unsigned)c->ids[c->n - 1]);
}

static void answers_port_end(void *call, enum cloud_end how)
{
    struct answers_call *c = call;
    struct answers_port *p = c->port;
    uint32_t id;
    bool here = how != CLOUD_DROP && answers_port_take(c, 0, &id, NULL) == OK;
    if (here)
        answers_put(p->answers, c->ids, c->n, true, id);
    if (here)
        answers_harvest(c, 0);
    c->used = here;
    if (!here || c->tokens == 1)
        answers_call_free(c, how);
    else
        answers_harvest_all(p);
}

static struct traffic answers_port_traffic(void *arg, struct cloud_tally *tally, bool last)
{
    const struct answers_port *p = arg;
    return p->behind.traffic ? p->behind.traffic(p->behind.arg, tally, last) : tally->traffic;
}

static void answers_port_notify(void *arg, void (*f)(void *), void *f_arg)
{
    const struct answers_port *p = arg;
    if (p->behind.notify)
        p->behind.notify(p->behind.arg, f, f_arg);
}

static void answers_port_close(void *arg)
{
    struct answers_port *p = arg;
    while (p->calls)
        answers_call_free(p->calls, CLOUD_DROP);
    if (p->behind.close)
        p->behind.close(p->behind.arg);
    free(p);
}

int answers_port(struct cloud_port *out, struct answers *a, const struct cloud_port *behind,
                 struct err *err)
{
    const char *name = behind ? NULL : answers_model(a), *at = name ? strrchr(name, '@') : NULL;
    size_t n = !name ? 0 : at && is_fingerprint(at + 1, '/') ? (size_t)(at - name) : strlen(name);
    struct answers_port *p = calloc(1, sizeof(*p) + n + 1);
    if (!p)
        return err_set(err, ERR_NOMEM, "answers: out of memory");
    p->answers = a;
    if (n)
        memcpy(p->model, name, n);
    if (behind)
        p->behind = *behind;
    *out = (struct cloud_port){ .arg = p,
                                .known = answers_port_known,
                                .info = answers_port_info,
                                .ask = answers_port_ask,
                                .done = answers_port_done,
                                .take = answers_port_take,
                                .end = answers_port_end,
                                .traffic = answers_port_traffic,
                                .notify = answers_port_notify,
                                .close = answers_port_close };
    return OK;
}
