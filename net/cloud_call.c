/* cloud_call.c - what becomes of one call: its request is written and handed over, or it is ended
 * with an error. Also what every file of struct cloud needs: names of dialects, two errors, the
 * note for a person.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/cloud_internal.h"

enum {
    PATIENCE = 4,             /* see CLOUD_TIMEOUT_MS */
    STOP_SLICE_NS = 20000000, /* how often to look for an interruption */
};

static const char *const api_names[] = { "auto", "openai", "llamacpp", "sglang" };

bool cloud_api_parse(enum cloud_api *out, const char *name)
{
    for (size_t i = 0; i < sizeof(api_names) / sizeof(api_names[0]); i++)
        if (strcmp(name, api_names[i]) == 0) {
            *out = (enum cloud_api)i;
            return true;
        }
    return false;
}

const char *cloud_api_name(enum cloud_api api)
{
    return api_names[api];
}

int cloud_no_memory(struct err *err)
{
    return err_set(err, ERR_NOMEM, "cloud: out of memory");
}

int cloud_forked(struct err *err)
{
    return err_set(err, ERR_ARG, "cloud: the connection belongs to the parent process");
}

void cloud_say(struct cloud *c, const char *text)
{
    wire_lock(c->wire);
    err_set(&c->note, OK, "cloud %s: %s", c->base, text);
    wire_unlock(c->wire);
}

void cloud_call_settle(struct cloud_call *call, int rc, const struct err *why)
{
    struct wire_answer *answer = &call->wire->answer;
    answer->rc = rc;
    answer->err = *why;
    answer->done = answer->ended = true;
    wire_tell(call->cloud->wire);
}

bool cloud_call_body(struct buf *out, struct cloud *c, const struct ask *a)
{
    return id_list_set(&c->list, a->ids, a->n) && c->dialect->request(out, a, &c->list.text);
}

struct ask cloud_call_question(const struct cloud *c, const uint32_t *ids, size_t n, size_t tokens)
{
    size_t most = c->text ? 1 : c->o.tokens;
    size_t want = tokens < most ? tokens : most;
    return (struct ask){ .model = c->model_json,
                         .ids = ids,
                         .n = n,
                         .vocab = c->o.vocab,
                         .want = want,
                         .stream = want > 1,
                         .logprobs = c->logprobs,
                         .encode = c->text && !c->logprobs ? c->o.encode : NULL,
                         .encode_arg = c->o.encode_arg };
}

/* Return how much later than by the least deadline a slow server may answer this question. */
static uint64_t cloud_call_more_ns(const struct cloud *c, const struct ask *a)
{
    size_t parts = 1 + a->want + (c->sample ? a->n / c->sample : 0);
    uint64_t ns = PATIENCE * parts * c->trip_ns, most = CLOUD_TIMEOUT_MOST_MS * UINT64_C(1000000);
    ns = ns < most ? ns : most;
    return c->o.timeout_ms || ns <= c->timeout_ns ? 0 : ns - c->timeout_ns;
}

/* Write the request and hand it to the network thread. */
static void cloud_call_send(struct cloud *c, struct cloud_call *call)
{
    struct wire_call *w = call->wire;
    struct buf url = { 0 };
    w->deadline += cloud_call_more_ns(c, &w->ask);
    w->dialect = c->dialect;
    if (!cloud_call_body(&w->body, c, &w->ask) || !buf_str(&url, c->base) ||
        !buf_str(&url, c->dialect->path) || !buf_add(&url, "", 1)) {
        buf_free(&url);
        call->sent = false;
        cloud_call_settle(call, ERR_NOMEM, &(struct err){ "cloud: out of memory" });
        return;
    }
    w->url = url.p;
    wire_submit(c->wire, w);
}

/* Note how the local model failed. */
static void cloud_call_fail(struct cloud_call *call, int rc, const struct err *why)
{
    struct err err;
    err_set(&err, rc, "cloud %s: %s", call->cloud->o.local->name, why->msg);
    wire_ledger(call->cloud->wire)->faults += rc != ERR_STOP;
    cloud_call_settle(call, rc, &err);
}

/* Callback of the local model: copy what there is of its text. */
static void cloud_call_news(void *arg)
{
    struct cloud_call *call = arg;
    struct cloud *c = call->cloud;
    struct wire_answer *a = &call->wire->answer;
    struct err why = { "" };
    int rc = OK;
    wire_lock(c->wire);
    size_t had = a->reply.n;
    if (!a->ended)
        a->ended = c->o.local->look(call->text, a->reply.ids, &a->reply.n, &rc, &why);
    for (size_t i = had; i < a->reply.n; i++)
        if (a->reply.ids[i] >= c->o.vocab) { /* as in a reply: it ends before that */
            rc = err_set(&why, ERR_NET, "expected a token id below %zu, found %u", c->o.vocab,
                         (unsigned)a->reply.ids[i]);
            a->reply.n = i;
            a->ended = true;
        }
    wire_ledger(c->wire)->tokens += a->reply.n - had;
    if (rc && !a->done && !a->reply.n)
        cloud_call_fail(call, rc, &why);
    a->done = a->done || a->reply.n || a->ended;
    if (a->ended)
        wire_untally(call->wire);
    wire_tell(c->wire);
    wire_unlock(c->wire);
}

void cloud_call_launch(struct cloud *c, struct cloud_call *call)
{
    struct wire_call *w = call->wire;
    struct err why = { "" };
    w->ask = cloud_call_question(c, w->ask.ids, w->ask.n, call->tokens);
    call->sent = true;
    if (!c->o.local) {
        cloud_call_send(c, call);
        return;
    }
    int rc = c->o.local->ask(c->o.local->arg, &call->text, w->ask.ids, w->ask.n, w->ask.want,
                             cloud_call_news, call, &why);
    if (rc == OK)
        wire_left(c->wire, w);
    else
        cloud_call_fail(call, rc, &why);
}

void cloud_call_free(struct cloud_call *call)
{
    struct cloud *c = call->cloud;
    struct wire_call *w = call->wire;
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    if (call->text) {
        wire_unlock(c->wire);
        c->o.local->drop(call->text);
        wire_lock(c->wire);
    }
    if (call->sent && !c->o.local && !w->answer.ended) {
        wire_drop(c->wire, w);
    } else {
        wire_untally(w);
        wire_free(w);
    }
    free(call);
}

void cloud_wait(struct cloud *c)
{
    if (!c->o.local) { /* else the network thread sees to that */
        wire_wait(c->wire);
        return;
    }
    wire_wait_until(c->wire, os_now_ns() + STOP_SLICE_NS);
    if (!c->o.stop || !atomic_load(c->o.stop))
        return;
    for (struct cloud_call *call = c->calls; call; call = call->next) {
        if (!call->wire->answer.done)
            cloud_call_settle(call, ERR_STOP, &(struct err){ "cloud: interrupted" });
        call->wire->answer.ended = true;
    }
}
