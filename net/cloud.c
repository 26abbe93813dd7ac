#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base.h"
#include "kernels/os.h"
#include "net/buf.h"
#include "net/cloud.h"
#include "net/dialect.h"
#include "net/http.h"
#include "net/jsonin.h"

enum { TIMEOUT_MS = 10000, MAX_REPLY = 1 << 20, MAX_NAME = 512, MESSAGE = 200 };

struct cloud {
    struct http *http;
    const struct dialect *dialect;
    char *base; /* URL without a slash at its end */
    char *key;
    char *model, *model_json; /* NULL: not named */
    bool settled;             /* the model's name is known, or known to be none */
    struct buf url, body;
    uint64_t timeout_ns;
    size_t vocab;
    const _Atomic int *stop;
    struct cloud_ledger ledger;
};

struct cloud_call {
    struct cloud *cloud;
    uint32_t *ids;
    size_t n, bytes;
    bool done;
    int rc;
    uint32_t id;
    struct err err;
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

/* One part of a parsed URL, compared with nothing: is it there? */
static bool has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool there = curl_url_get(u, part, &text, 0) == CURLUE_OK;
    curl_free(text);
    return there;
}

static const char *url_fault(CURLU *u, const char *url)
{
    for (const char *c = url; *c; c++)
        if (*c <= 0x20 || *c > 0x7e)
            return "holds blanks or characters that are not ASCII";
    if (strlen(url) > 2000)
        return "is too long";
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return "must begin with http:// or https://";
    if (curl_url_set(u, CURLUPART_URL, url, 0))
        return "is not a URL";
    if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD))
        return "must not hold a name or password (an API key is read from a file or the "
               "environment)";
    if (has_part(u, CURLUPART_QUERY) || has_part(u, CURLUPART_FRAGMENT))
        return "must end before ? or #";
    return NULL;
}

/* *base: url without "/" and "/v1" at its end. */
static int check_url(char **base, const char *url, struct err *err)
{
    if (!url || !*url)
        return err_set(err, ERR_ARG, "cloud: no URL");
    CURLU *u = curl_url();
    if (!u)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    const char *fault = url_fault(u, url);
    curl_url_cleanup(u);
    /* What is before an @ may be a secret: it is not repeated. */
    if (fault)
        return err_set(err, ERR_ARG, "cloud: the URL %s%s%s", strchr(url, '@') ? "" : url,
                       strchr(url, '@') ? "" : " ", fault);
    size_t n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    if (n > 3 && memcmp(url + n - 3, "/v1", 3) == 0)
        n -= 3;
    *base = malloc(n + 1);
    if (!*base)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    memcpy(*base, url, n);
    (*base)[n] = 0;
    return OK;
}

/* The server's words as one short line; where it repeats the key, that is blotted out. */
static void server_line(const struct cloud *c, char *out, size_t cap, const char *text, size_t n)
{
    struct buf clean = { 0 };
    size_t k = c->key ? strlen(c->key) : 0;
    for (size_t i = 0; i < n && clean.n < 4 * cap;) {
        bool secret = k && n - i >= k && memcmp(text + i, c->key, k) == 0;
        if (!buf_add(&clean, secret ? "***" : text + i, secret ? 3 : 1))
            break;
        i += secret ? k : 1;
    }
    jsonin_line(out, cap, clean.p ? clean.p : "", clean.n);
    buf_free(&clean);
}

/* A reply with a status other than 200: which kind of failure, with the server's own words. */
static int status_error(const struct cloud *c, const char *url, const struct http_reply *r,
                        struct err *err)
{
    char line[MESSAGE] = "";
    long s = r->status;
    bool passing = s < 300 || s >= 500 || s == 408 || s == 425 || s == 429 || s == 302 ||
                   s == 303 || s == 307 || s == 304;
    int code = passing ? ERR_NET : ERR_REMOTE;
    if (s >= 300 && s < 400) {
        if (r->location)
            server_line(c, line, sizeof(line), r->location, strlen(r->location));
        return err_set(err, code, "cloud %s: status %ld: redirects are not followed (to %s)", url,
                       s, *line ? line : "nowhere");
    }
    json_t *root;
    struct err ignored;
    if (jsonin_parse(&root, r->body, r->n, &ignored) == OK) {
        const char *text = dialect_message(root);
        if (text)
            server_line(c, line, sizeof(line), text, strlen(text));
    }
    json_decref(root);
    return err_set(err, code, "cloud %s: status %ld%s%s", url, s, *line ? ": " : "", line);
}

/* Put what and the URL in front of a message of a lower layer, without the key. */
static int prefixed(const struct cloud *c, struct err *err, int code, const char *url,
                    const struct err *low)
{
    char line[MESSAGE];
    server_line(c, line, sizeof(line), low->msg, strlen(low->msg));
    return err_set(err, code, "cloud %s: %s", url, line);
}

/* One exchange; OK with *root for status 200 and JSON, else an error that names the URL. *status
 * is 0 where no reply came. */
static int exchange(struct cloud *c, const char *path, const struct buf *body, uint64_t deadline,
                    json_t **root, long *status, struct err *err)
{
    struct http_reply r;
    struct err low = { "" };
    *root = NULL;
    *status = 0;
    c->url.n = 0;
    if (!buf_str(&c->url, c->base) || !buf_str(&c->url, path) || !buf_add(&c->url, "", 1))
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    const char *url = c->url.p;
    int rc =
        http_request(c->http, url, body ? body->p : NULL, body ? body->n : 0, deadline, &r, &low);
    c->ledger.bytes_up = http_bytes_up(c->http);
    c->ledger.bytes_down = http_bytes_down(c->http);
    if (rc)
        return prefixed(c, err, rc, url, &low);
    *status = r.status;
    if (r.status != 200)
        return status_error(c, url, &r, err);
    if (jsonin_parse(root, r.body, r.n, &low) == OK)
        return OK;
    char begin[48];
    server_line(c, begin, sizeof(begin), r.body ? r.body : "", r.n);
    return err_set(err, ERR_NET, "cloud %s: the reply is %s (it begins: %s)", url, low.msg,
                   *begin ? begin : "with nothing");
}

static int set_model(struct cloud *c, const char *name, size_t n, struct err *err)
{
    json_t *s = n && n <= MAX_NAME ? json_stringn(name, n) : NULL;
    if (!s)
        return err_set(err, ERR_ARG, "cloud: a model's name must be 1 to %d bytes of UTF-8",
                       MAX_NAME);
    size_t quoted = json_dumpb(s, NULL, 0, JSON_ENCODE_ANY);
    char *model = malloc(n + 1), *text = malloc(quoted + 1);
    if (!model || !text || json_dumpb(s, text, quoted, JSON_ENCODE_ANY) != quoted) {
        json_decref(s);
        free(model);
        free(text);
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    }
    json_decref(s);
    memcpy(model, name, n);
    model[n] = text[quoted] = 0;
    c->model = model;
    c->model_json = text;
    c->settled = true;
    return OK;
}

/* Does the server offer llama.cpp's /props? */
static int ask_props(struct cloud *c, bool *llamacpp, uint64_t deadline, struct err *err)
{
    json_t *root;
    long status;
    int rc = exchange(c, "/props", NULL, deadline, &root, &status, err);
    *llamacpp = rc == OK && json_is_object(json_object_get(root, "default_generation_settings"));
    json_decref(root);
    /* A server that answers anything at all has told that this is not its path. */
    return rc == ERR_STOP || rc == ERR_NOMEM || !status ? rc : OK;
}

/* Learn the model's name from /v1/models and, where it is still open, the dialect. */
static int settle(struct cloud *c, uint64_t deadline, struct err *err)
{
    json_t *root;
    long status;
    int rc = exchange(c, "/v1/models", NULL, deadline, &root, &status, err);
    const json_t *first = json_array_get(json_object_get(root, "data"), 0);
    const json_t *id = json_object_get(first, "id");
    const char *owner = json_string_value(json_object_get(first, "owned_by"));
    bool unknown_path = status == 404 || status == 405 || status == 501;
    if (rc == OK && owner && strcmp(owner, "sglang") == 0)
        rc = err_set(err, ERR_REMOTE,
                     "cloud %s: this is SGLang, whose completions hold no token ids", c->base);
    else if (rc && unknown_path)
        rc = OK;
    if (rc == OK && json_string_length(id) && !c->model)
        rc = set_model(c, json_string_value(id), json_string_length(id), err);
    bool llamacpp = owner && strcmp(owner, "llamacpp") == 0;
    bool told = llamacpp || (owner && (strcmp(owner, "vllm") == 0 || strcmp(owner, "mizzle") == 0));
    json_decref(root);
    if (rc)
        return rc;
    if (!c->dialect) {
        if (!told && (rc = ask_props(c, &llamacpp, deadline, err)) != OK)
            return rc;
        c->dialect = llamacpp ? &dialect_llamacpp : &dialect_openai;
    }
    c->settled = true;
    return OK;
}

static uint64_t deadline_of(const struct cloud *c)
{
    return os_now_ns() + c->timeout_ns;
}

static int open_parts(struct cloud *c, const struct cloud_options *o, struct err *err)
{
    int rc = check_url(&c->base, o->url, err);
    if (rc)
        return rc;
    if (o->key) {
        c->key = malloc(strlen(o->key) + 1);
        if (!c->key)
            return err_set(err, ERR_NOMEM, "cloud: out of memory");
        memcpy(c->key, o->key, strlen(o->key) + 1);
    }
    const struct http_options http = { .key = o->key,
                                       .ca = o->ca,
                                       .max_reply = o->max_reply ? o->max_reply : MAX_REPLY,
                                       .stop = o->stop };
    rc = http_open(&c->http, &http, err);
    if (rc == OK && o->model)
        rc = set_model(c, o->model, strlen(o->model), err);
    if (rc)
        return rc;
    if (o->api != CLOUD_AUTO) {
        c->dialect = dialect_of(o->api);
        c->settled = c->settled || o->api == CLOUD_LLAMACPP; /* which serves one model, unnamed */
        return OK;
    }
    uint64_t start = os_now_ns();
    rc = settle(c, deadline_of(c), err);
    c->ledger.ns += os_now_ns() - start;
    return rc;
}

int cloud_open(struct cloud **out, const struct cloud_options *o, struct err *err)
{
    *out = NULL;
    for (const char *k = o->key ? o->key : ""; *k; k++)
        if (*k <= 0x20 || *k > 0x7e)
            return err_set(err, ERR_ARG, "cloud: the API key must be one word of printable ASCII");
    struct cloud *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    c->timeout_ns = (o->timeout_ms ? o->timeout_ms : TIMEOUT_MS) * UINT64_C(1000000);
    c->vocab = o->vocab;
    c->stop = o->stop;
    int rc = open_parts(c, o, err);
    if (rc) {
        cloud_close(c);
        return rc;
    }
    *out = c;
    return OK;
}

void cloud_close(struct cloud *c)
{
    if (!c)
        return;
    http_close(c->http);
    buf_free(&c->url);
    buf_free(&c->body);
    if (c->key)
        memset(c->key, 0, strlen(c->key));
    free(c->key);
    free(c->base);
    free(c->model);
    free(c->model_json);
    free(c);
}

enum cloud_api cloud_dialect(const struct cloud *c)
{
    return c->dialect->api;
}

const char *cloud_model(const struct cloud *c)
{
    return c->model;
}

const struct cloud_ledger *cloud_ledger(struct cloud *c)
{
    return &c->ledger;
}

static int ask(struct cloud *c, const struct ask *a, uint64_t deadline, uint32_t *out,
               struct err *err)
{
    json_t *root;
    long status;
    struct err low = { "" };
    c->body.n = 0;
    if (!c->dialect->request(&c->body, a))
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    int rc = exchange(c, c->dialect->path, &c->body, deadline, &root, &status, err);
    if (rc)
        return rc;
    const char *words = dialect_message(root);
    uint32_t id = 0;
    if (words && json_object_get(root, "error")) /* an error dressed as success */
        rc = err_set(&low, ERR_NET, "the server says: %s", words);
    else
        rc = c->dialect->reply(&id, root, a, &low);
    if (rc)
        rc = prefixed(c, err, rc, c->url.p, &low);
    else
        *out = id;
    json_decref(root);
    return rc;
}

/* An id that is no token of the vocabulary must not go up. */
static int check_ids(const struct cloud *c, const uint32_t *ids, size_t n, struct err *err)
{
    if (!n)
        return err_set(err, ERR_ARG, "cloud: no tokens to continue");
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= c->vocab)
            return err_set(err, ERR_ARG, "cloud: token %zu: expected an id below %zu, found %u", i,
                           c->vocab, (unsigned)ids[i]);
    return OK;
}

int cloud_ask(struct cloud *c, const uint32_t *ids, size_t n, struct cloud_call **out,
              struct err *err)
{
    size_t size;
    *out = NULL;
    int rc = check_ids(c, ids, n, err);
    if (rc)
        return rc;
    if (c->stop && atomic_load(c->stop))
        return err_set(err, ERR_STOP, "cloud: interrupted");
    struct cloud_call *call = calloc(1, sizeof(*call));
    if (call && size_mul(&size, n, sizeof(*ids)))
        call->ids = malloc(size);
    if (!call || !call->ids) {
        free(call);
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    }
    memcpy(call->ids, ids, n * sizeof(*ids));
    call->cloud = c;
    call->n = n;
    c->ledger.calls++;
    *out = call;
    return OK;
}

bool cloud_done(const struct cloud_call *call)
{
    return call->done;
}

static void answer(struct cloud_call *call)
{
    struct cloud *c = call->cloud;
    uint64_t start = os_now_ns(), deadline = deadline_of(c);
    call->rc = c->settled ? OK : settle(c, deadline, &call->err);
    const struct ask a = { c->model_json, call->ids, call->n, c->vocab };
    if (call->rc == OK)
        call->rc = ask(c, &a, deadline, &call->id, &call->err);
    call->done = true;
    call->bytes = c->body.n;
    c->ledger.ns += os_now_ns() - start;
    c->ledger.tokens += call->rc == OK;
    c->ledger.faults += call->rc != OK && call->rc != ERR_STOP;
}

int cloud_take(struct cloud_call *call, uint32_t *id, struct err *err)
{
    if (!call->done)
        answer(call);
    if (call->rc)
        return err_set(err, call->rc, "%s", call->err.msg);
    *id = call->id;
    return OK;
}

static void call_free(struct cloud_call *call)
{
    free(call->ids);
    free(call);
}

void cloud_commit(struct cloud_call *call)
{
    uint32_t id;
    call->cloud->ledger.committed += cloud_take(call, &id, NULL) == OK;
    call_free(call);
}

void cloud_drop(struct cloud_call *call)
{
    call->cloud->ledger.wasted++;
    call_free(call);
}

size_t cloud_call_bytes(const struct cloud_call *call)
{
    return call->bytes;
}

size_t cloud_bytes(struct cloud *c, const uint32_t *ids, size_t n)
{
    const struct ask a = { c->model_json, ids, n, c->vocab };
    c->body.n = 0;
    return c->dialect && c->dialect->request(&c->body, &a) ? c->body.n : 0;
}

bool cloud_known(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id,
                 enum cloud_from *from)
{
    (void)c, (void)ids, (void)n, (void)id, (void)from;
    return false; /* nothing is remembered */
}

int cloud_next(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *out, struct err *err)
{
    struct cloud_call *call;
    int rc = cloud_ask(c, ids, n, &call, err);
    if (rc)
        return rc;
    rc = cloud_take(call, out, err);
    cloud_commit(call);
    return rc;
}
