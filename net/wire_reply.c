/* wire_reply.c - what a finished attempt has brought, and texts of the server without the key. */
#include <stdlib.h>
#include <string.h>

#include "net/http/json_input.h"
#include "net/wire_internal.h"

enum {
    LINE = 300,       /* bytes of an error's own part, */
    MESSAGE = 200,    /* of what the server says in it, */
    LOOKED_AT = 4096, /* and of any text of the server before it is cut to a line */
    /* This many characters of the key in a row are hidden; fewer at its beginning. */
    PART = 8,
    BEGINNING = 6,
};

/* In which the key may come: as it is, backwards, and in base64 behind 0, 1 or 2 other bytes. */
enum { FORWARDS, BACKWARDS, BASE64, FORMS = BASE64 + 3 };

/* Return character `at` of the key in this form, and 0 behind the last one. Base64 has those alone
 * that depend on no neighbour of the key. */
static char secret_at(const char *key, size_t k, size_t form, size_t at)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (form < BASE64)
        return at >= k ? 0 : form == FORWARDS ? key[at] : key[k - 1 - at];
    size_t before = 8 * (form - BASE64), bit = 6 * ((before + 5) / 6 + at) - before;
    if (bit + 6 > 8 * k)
        return 0;
    unsigned two = (unsigned)(unsigned char)key[bit / 8] << 8;
    two |= bit % 8 > 2 ? (unsigned char)key[bit / 8 + 1] : 0;
    return digits[two >> (10 - bit % 8) & 63];
}

/* Return how many bytes of text[n] write the character c, or 0. */
static size_t secret_same(char c, const char *text, size_t n)
{
    char hex[3] = "";
    if (n && c && *text == c)
        return 1;
    if (n < 3 || !c || *text != '%')
        return 0;
    memcpy(hex, text + 1, 2);
    return strtoul(hex, NULL, 16) == (unsigned char)c ? 3 : 0;
}

/* Return how many bytes at the beginning of text[n] are a part of the key in this form. */
static size_t secret_found(const char *key, size_t k, size_t form, const char *text, size_t n)
{
    size_t most = 0, enough = form < BASE64 && k < PART ? k : PART;
    for (size_t at = 0; secret_at(key, k, form, at); at++) {
        size_t same = 0, bytes = 0, more;
        while ((more = secret_same(secret_at(key, k, form, at + same), text + bytes, n - bytes))) {
            same++;
            bytes += more;
        }
        bool found = same >= enough || (at == 0 && same >= BEGINNING);
        most = found && bytes > most ? bytes : most;
    }
    return most;
}

/* Append text[n] to out, with *** for the key: all of it, 8 of its characters in a row, or its
 * first 6; read forwards or backwards; in base64; and with any character as %XX. key may be NULL.
 */
static void secret_hide(struct buf *out, const char *key, const char *text, size_t n)
{
    size_t k = key ? strlen(key) : 0, most;
    for (size_t i = 0; i < n; i += most ? most : 1) {
        most = 0;
        for (size_t form = 0; form < FORMS; form++) {
            size_t found = secret_found(key, k, form, text + i, n - i);
            most = found > most ? found : most;
        }
        if (!buf_add(out, most ? "***" : text + i, most ? 3 : 1))
            return;
    }
}

void wire_line(const struct wire *w, char *out, size_t cap, const char *text, size_t n)
{
    struct buf clean = { 0 };
    secret_hide(&clean, w->key, text, n < LOOKED_AT ? n : LOOKED_AT);
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
