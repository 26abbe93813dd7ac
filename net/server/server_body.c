#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "net/server/server_internal.h"

#define TOO_LARGE "the request is too large"

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
        return server_body_refuse(r, SERVER_TOO_LARGE, TOO_LARGE);
    if (!server_body_claim(r, n))
        return server_body_refuse(r, SERVER_BUSY, SERVER_TOO_MANY);
    return buf_add(&r->body, data, n) || server_body_refuse(r, SERVER_NO_MEMORY, "out of memory");
}

/* Append the whole stream to out; anything after its end is an error. */
static bool server_body_inflate(struct server_request *r, z_stream *z, struct buf *out)
{
    unsigned char piece[SERVER_BLOCK];
    int rc = Z_OK;
    while (rc != Z_STREAM_END) {
        z->next_out = piece;
        z->avail_out = sizeof(piece);
        rc = inflate(z, Z_NO_FLUSH);
        size_t n = sizeof(piece) - z->avail_out;
        if (rc == Z_MEM_ERROR)
            return server_body_refuse(r, SERVER_NO_MEMORY, "out of memory");
        if ((rc != Z_OK && rc != Z_STREAM_END) || (rc == Z_STREAM_END && z->avail_in))
            return server_body_refuse(r, SERVER_BAD_BODY, "the compressed body is damaged");
        if (n > out->max - out->n)
            return server_body_refuse(r, SERVER_TOO_LARGE, TOO_LARGE);
        if (!buf_add(out, piece, n))
            return server_body_refuse(r, SERVER_NO_MEMORY, "out of memory");
    }
    return true;
}

bool server_body_unpack(struct server_request *r)
{
    const char *encoding = r->head.single[SINGLE_ENCODING];
    if (!encoding || strcasecmp(encoding, "identity") == 0)
        return true;
    if (strcasecmp(encoding, "gzip") != 0 && strcasecmp(encoding, "x-gzip") != 0 &&
        strcasecmp(encoding, "deflate") != 0)
        return server_body_refuse(r, SERVER_BAD_ENCODING,
                                  "Content-Encoding: expected gzip, deflate");
    /* Deflate makes at most 1,032 bytes of one. */
    size_t max = r->body.max, most = r->body.n < max / 1032 ? r->body.n * 1032 : max;
    if (!server_body_claim(r, most))
        return server_body_refuse(r, SERVER_BUSY, SERVER_TOO_MANY);
    struct buf out = { .max = max };
    z_stream z = { .next_in = (unsigned char *)r->body.p, .avail_in = (unsigned)r->body.n };
    if (inflateInit2(&z, 15 + 32) != Z_OK) /* gzip or zlib, told apart by the first bytes */
        return server_body_refuse(r, SERVER_NO_MEMORY, "out of memory");
    bool fine = server_body_inflate(r, &z, &out);
    inflateEnd(&z);
    buf_free(&r->body);
    r->body = out;
    if (!fine)
        server_body_drop(r);
    return fine;
}
