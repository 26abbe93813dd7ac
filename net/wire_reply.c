/* wire_reply.c - what a finished attempt has brought, and texts of the server without the key. */
#include <string.h>

#include "net/http/json_input.h"
#include "net/http/secret.h"
#include "net/wire_internal.h"

enum {
    LINE = 300,       /* bytes of an error's own part, */
    MESSAGE = 200,    /* of what the server says in it, */
    LOOKED_AT = 4096, /* and of any text of the server before it is cut to a line */
};

bool wire_hide(const struct wire *w, struct buf *out, const char *text, size_t n)
{
    return secret_hide(out, w->key, text, n);
}

void wire_line(const struct wire *w, char *out, size_t cap, const char *text, size_t n)
{
    struct buf clean = { 0 };
    wire_hide(w, &clean, text, n < LOOKED_AT ? n : LOOKED_AT);
    json_input_line(out, cap, clean.p, clean.n);
    buf_free(&clean);
}

int wire_reply_error(const struct wire_call *call, struct err *err, int code, const struct err *low)
{
    char line[LINE];
    wire_line(call->wire, line, sizeof(line), low->msg, strlen(low->msg));
    return err_set(err, code, "cloud %s: %s", call->url, line);
}

int wire_reply_says(const json_t *root, struct err *err)
{
    const char *words = json_object_get(root, "error") ? dialect_message(root) : NULL;
    return words ? err_set(err, ERR_NET, "the server says: %s", words) : OK;
}

/* Describe a non-200 status, quoting the server, and choose the kind of failure. */
static int status_error(const struct wire_call *call, const struct http_try *t, struct err *err)
{
    long s = t->status;
    bool passing = s < 300 || s >= 500 || s == 408 || s == 425 || s == 429 || s == 302 ||
                   s == 303 || s == 307 || s == 304;
    bool good = s == 401 || s == 403 || s == 404 || !call->dialect; /* whatever the prompt */
    int code = passing ? ERR_NET : good ? ERR_REMOTE : ERR_TEXT;
    struct err low;
    if (s >= 300 && s < 400) {
        err_set(&low, code, "status %ld: redirects are not followed (to %.*s)", s, MESSAGE,
                t->location ? t->location : "nowhere");
        return wire_reply_error(call, err, code, &low);
    }
    json_t *root;
    struct err ignored;
    const char *text = NULL, *hint = "";
    if (s == 401)
        hint = call->wire->key ? " (the API key that was sent is not accepted)"
                               : " (no API key was sent: give one with --cloud-key-file or in "
                                 "MIZZLE_API_KEY)";
    if (json_input_parse(&root, t->body.p, t->body.n, &ignored) == OK)
        text = dialect_message(root);
    err_set(&low, code, "status %ld%s%.*s%s", s, text ? ": " : "", MESSAGE, text ? text : "", hint);
    json_decref(root);
    return wire_reply_error(call, err, code, &low);
}

/* Read a complete reply with status 200 that is not a stream. */
static int read_whole(struct wire_call *call, const struct http_try *t, json_t **root,
                      struct err *err)
{
    struct err low = { "" };
    int rc = json_input_parse(root, t->body.p, t->body.n, &low);
    if (rc) {
        char begin[48], line[256];
        json_input_line(begin, sizeof(begin), t->body.p, t->body.n);
        json_input_line(line, sizeof(line), low.msg, strlen(low.msg));
        rc = rc == ERR_NOMEM ? rc : ERR_NET;
        err_set(&low, rc, "the reply is %s (it begins: %s)", line, *begin ? begin : "with nothing");
        return wire_reply_error(call, err, rc, &low);
    }
    if (!call->dialect)
        return OK;
    rc = wire_reply_says(*root, &low);
    if (rc == OK)
        rc = call->dialect->reply(&call->reply, *root, &call->ask, &low);
    return rc ? wire_reply_error(call, err, rc, &low) : OK;
}

int wire_reply_read(struct wire_call *call, const struct http_try *t, json_t **root,
                    struct err *err)
{
    *root = NULL;
    if (call->rc)
        return wire_reply_error(call, err, call->rc, &call->err);
    if (t->rc)
        return wire_reply_error(call, err, t->rc, &t->err);
    if (t->status != 200)
        return status_error(call, t, err);
    if (!t->stream || !call->dialect)
        return read_whole(call, t, root, err);
    if (call->reply.n)
        return OK;
    return wire_reply_error(call, err, ERR_NET, &(struct err){ "the reply ended without a token" });
}
