#include <string.h>
#include <strings.h>

#include "net/server/server_internal.h"

static bool server_body_refuse(struct server_request *r, enum server_refusal what, const char *why)
{
    r->what = what;
    r->why = why;
    server_body_drop(r);
    return false;
}

bool server_body_claim(struct server_request *r, size_t n)
{
    struct server *s = r->server;
    size_t had = atomic_fetch_add(&s->bodies, n);
    bool fits = had <= s->o.bodies_max && n <= s->o.bodies_max - had;
    if (fits)
        r->claimed += n;
    else
        atomic_fetch_sub(&s->bodies, n);
    return fits;
}

void server_body_drop(struct server_request *r)
{
    buf_free(&r->body);
    atomic_fetch_sub(&r->server->bodies, r->claimed);
    r->claimed = 0;
}

bool server_is_json(const struct server_request *r)
{
    static const char json[] = "application/json";
    const char *type = r->head.single[SINGLE_TYPE];
    size_t n = sizeof(json) - 1;
    return type && strncasecmp(type, json, n) == 0 && (!type[n] || strchr("; \t", type[n]));
}

bool server_body_add(struct server_request *r, const char *data, size_t n)
{
    if (n > r->body.max - r->body.n)
        return server_body_refuse(r, SERVER_TOO_LARGE, "the request is too large");
    if (!server_body_claim(r, n))
        return server_body_refuse(r, SERVER_BUSY, SERVER_TOO_MANY);
    return buf_add(&r->body, data, n) || server_body_refuse(r, SERVER_NO_MEMORY, "out of memory");
}
