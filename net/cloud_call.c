/* cloud_call.c - what becomes of one call: its request is written and handed over, or it is ended
 * with an error. Also what every file of struct cloud needs: names of dialects, two errors. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/cloud_internal.h"

enum {
    PATIENCE = 4, /* see CLOUD_TIMEOUT_MS */
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

void cloud_call_settle(struct cloud_call *call, int rc, const struct err *why)
{
    struct wire_answer *answer = &call->wire->answer;
    answer->rc = rc;
    answer->err = *why;
    answer->done = answer->ended = true;
    wire_tell(call->cloud->wire);
}

/* Return how much later than by the least deadline a slow server may answer this question. */
static uint64_t cloud_call_more_ns(const struct cloud *c, const struct ask *a)
{
    size_t parts = 1 + a->want + (c->sample ? a->n / c->sample : 0);
    uint64_t ns = PATIENCE * parts * c->trip_ns, most = CLOUD_TIMEOUT_MOST_MS * UINT64_C(1000000);
    ns = ns < most ? ns : most;
    return c->o.timeout_ms || ns <= c->timeout_ns ? 0 : ns - c->timeout_ns;
}

void cloud_call_launch(struct cloud *c, struct cloud_call *call)
{
    struct wire_call *w = call->wire;
    struct buf url = { 0 };
    struct ask *a = &w->ask;
    size_t most = c->text ? 1 : c->o.tokens;
    call->sent = true;
    a->model = c->model_json;
    a->vocab = c->o.vocab;
    a->want = call->tokens < most ? call->tokens : most;
    a->stream = a->want > 1;
    a->encode = c->text ? c->o.encode : NULL;
    a->encode_arg = c->o.encode_arg;
    w->deadline += cloud_call_more_ns(c, a);
    w->dialect = c->dialect;
    if (!c->dialect->request(&w->body, a) || !buf_str(&url, c->base) ||
        !buf_str(&url, c->dialect->path) || !buf_add(&url, "", 1)) {
        buf_free(&url);
        call->sent = false;
        cloud_call_settle(call, ERR_NOMEM, &(struct err){ "cloud: out of memory" });
        return;
    }
    w->url = url.p;
    wire_submit(c->wire, w);
}

void cloud_call_free(struct cloud_call *call)
{
    struct cloud *c = call->cloud;
    struct wire_call *w = call->wire;
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    if (call->sent && !w->answer.ended)
        wire_drop(c->wire, w);
    else
        wire_free(w);
    free(call);
}
