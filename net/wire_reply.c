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

/* Return character `at` of the key[k] in this form, and 0 behind the last one. Base64 has those
 * alone that depend on no neighbour of the key. */
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

/* Return how many bytes at the beginning of text[n] are a part of the key in this form, where any
 * character may be written as %XX. */
static size_t secret_found(const char *key, size_t form, const char *text, size_t n)
{
    size_t k = strlen(key), most = 0, enough = form < BASE64 && k < PART ? k : PART;
    for (size_t at = 0; secret_at(key, k, form, at); at++) {
        size_t same = 0, bytes = 0;
        for (char c; bytes < n && (c = secret_at(key, k, form, at + same)); same++) {
            char hex[3] = "";
            bool coded = text[bytes] == '%' && n - bytes >= 3;
            memcpy(hex, text + bytes + 1, coded ? 2 : 0);
            if (text[bytes] != c && !(coded && strtoul(hex, NULL, 16) == (unsigned char)c))
                break;
            bytes += text[bytes] == c ? 1 : 3;
        }
        if (bytes > most && (same >= enough || (at == 0 && same >= BEGINNING)))
            most = bytes;
    }
    return most;
}

void wire_line(const struct wire *w, char *out, size_t cap, const char *text, size_t n)
{
    struct buf clean = { 0 };
    n = n < LOOKED_AT ? n : LOOKED_AT;
    for (size_t i = 0, found; i < n; i += found ? found : 1) {
        found = 0;
        for (size_t form = 0; w->key && !found && form < FORMS; form++)
            found = secret_found(w->key, form, text + i, n - i);
        if (!buf_add(&clean, found ? "***" : text + i, found ? 3 : 1))
            break;
    }
    json_input_line(out, cap, clean.p, clean.n);
    buf_free(&clean);
}

int wire_reply_error(const struct wire_call *call, struct err *err, int code, const char *why)
{
    char line[LINE];
    wire_line(call->wire, line, sizeof(line), why, strlen(why));
    return err_set(err, code, "cloud %s: %s", call->url, line);
}

/* True for a status that another attempt may change. */
static bool status_passes(long s)
{
    return s >= 500 || s == 408 || s == 425 || s == 429;
}

/* Describe a non-200 status, quoting the server, and choose the kind of failure. */
static int status_error(const struct wire_call *call, const struct http_try *t, struct err *err)
{
    long s = t->status;
    bool passing = status_passes(s) || s < 300 || s == 302 || s == 303 || s == 304 || s == 307;
    bool good = s == 401 || s == 403 || s == 404 || !call->dialect; /* whatever the prompt */
    int code = passing ? ERR_NET : good ? ERR_REMOTE : ERR_TEXT;
    json_t *root = NULL;
    struct err low;
    const char *text = NULL, *hint = "";
    if (s == 401)
        hint = call->wire->key ? " (the API key that was sent is not accepted)"
                               : " (no API key was sent: give one with --cloud-key-file or in "
                                 "MIZZLE_API_KEY)";
    if (s >= 300 && s < 400) {
        err_set(&low, code, "status %ld: redirects are not followed (to %.*s)", s, MESSAGE,
                t->location ? t->location : "nowhere");
    } else {
        if (json_input_parse(&root, t->body.p, t->body.n, NULL) == OK)
            text = dialect_message(root);
        err_set(&low, code, "status %ld%s%.*s%s", s, text ? ": " : "", MESSAGE, text ? text : "",
                hint);
    }
    json_decref(root);
    return wire_reply_error(call, err, code, low.msg);
}

int wire_reply_event(void *arg, const char *data, size_t n, struct err *err)
{
    struct wire_call *call = arg;
    struct err low = { "" };
    json_t *root;
    if (call->reply.ended)
        return OK;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        call->reply.ended = true;
        return OK;
    }
    int rc = json_input_parse(&root, data, n, &low);
    if (rc) {
        char begin[48];
        json_input_line(begin, sizeof(begin), data, n);
        return err_set(err, rc == ERR_NOMEM ? rc : ERR_NET, "the reply is %.250s (it begins: %s)",
                       low.msg, *begin ? begin : "with nothing");
    }
    if (!call->dialect) {
        call->root = root;
        return OK;
    }
    const char *words = json_object_get(root, "error") ? dialect_message(root) : NULL;
    if (words) /* an error that is disguised as success */
        rc = err_set(err, ERR_NET, "the server says: %s", words);
    else
        rc = call->dialect->read(&call->reply, root, &call->ask, err);
    json_decref(root);
    return rc;
}

int wire_reply_end(struct wire_call *call, const struct http_try *t, bool *passes, struct err *err)
{
    *passes = t->rc ? t->broken : status_passes(t->status);
    struct err low = call->rc ? call->err : t->err;
    int rc = call->rc ? call->rc : t->rc;
    if (rc == OK && t->status != 200)
        return status_error(call, t, err);
    if (rc == OK && !(t->stream && call->dialect))
        rc = wire_reply_event(call, t->body.p, t->body.n, &low);
    if (rc == OK && call->dialect && !call->reply.n)
        rc = err_set(&low, ERR_NET, "the reply ended without a token");
    call->reply.ended = true;
    return rc ? wire_reply_error(call, err, rc, low.msg) : OK;
}
