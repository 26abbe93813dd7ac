#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "kernels/sys/os.h"
#include "kernels/sys/wipe.h"
#include "net/http/http.h"

enum {
    MAX_HEADERS = 64 << 10, /* of one reply, including informational responses */
    CONNECT_MS = 60 * 1000,
    KEPT = 64, /* most idle connections kept */
    MAX_CA = 4 << 20,
};

struct transfer {
    struct http_try try; /* the first member */
    CURL *easy;
    size_t header_bytes, total, most; /* most: of total */
    bool too_long, no_memory, held;   /* why a callback of ours ended it */
    char why[CURL_ERROR_SIZE];
};

struct http {
    CURLM *multi;
    struct curl_slist *headers[2]; /* for GET, for POST */
    char *ca, *proxy;
    size_t max_reply;
};

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static CURLcode global_state;

static void global_init(void)
{
    global_state = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* curl's write callback: keep the piece within what is allowed, and note status and content type
 * with the first one. */
static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *f = arg;
    struct http_try *t = &f->try;
    (void)size; /* always 1 */
    f->too_long = n > f->most - f->total;
    f->no_memory = !f->too_long && !buf_add(&t->body, p, n);
    if (f->too_long || f->no_memory)
        return 0;
    f->total += n;
    if (!t->status) {
        const char *type = NULL;
        curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &t->status);
        curl_easy_getinfo(f->easy, CURLINFO_CONTENT_TYPE, &type);
        t->stream = type && strncasecmp(type, "text/event-stream", 17) == 0;
    }
    return !t->request.data || t->request.data(t) ? n : 0;
}

/* curl's callback before a request goes out. libcurl repeats a request as often as it likes when a
 * kept connection ends without an answer; how often a server is asked must not depend on which
 * connections were kept. */
static int on_send(void *arg, char *to, char *from, int to_port, int from_port)
{
    struct transfer *f = arg;
    struct http_try *t = &f->try;
    (void)to, (void)from, (void)to_port, (void)from_port;
    f->held = t->sent || (t->request.leave && !t->request.leave(t));
    t->sent = t->sent || !f->held;
    return f->held ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* curl's header callback: only limits the size. */
static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *f = arg;
    (void)p, (void)size;
    f->header_bytes += n;
    f->too_long = f->header_bytes > MAX_HEADERS;
    return f->too_long ? 0 : n;
}

/* Count bytes. curl's trace is the only exact account of them (HTTP/2 included); nothing of it is
 * kept. */
static int on_trace(CURL *easy, curl_infotype type, char *p, size_t n, void *arg)
{
    struct http_try *t = arg;
    bool header = type == CURLINFO_HEADER_OUT || type == CURLINFO_HEADER_IN;
    struct traffic more = { 0 };
    (void)easy, (void)p;
    if (type == CURLINFO_HEADER_OUT || type == CURLINFO_DATA_OUT) {
        more = (struct traffic){ .bytes_up = n, .header_bytes_up = header ? n : 0 };
    } else if (type == CURLINFO_HEADER_IN || type == CURLINFO_DATA_IN) {
        more = (struct traffic){ .bytes_down = n, .header_bytes_down = header ? n : 0 };
        t->answered = true;
    } else {
        return 0;
    }
    if (t->request.moved)
        t->request.moved(t, &more);
    return 0;
}

/* Append a line to the headers of GET and POST, or of POST alone. */
static bool add_header(struct http *h, bool both, const char *line)
{
    for (size_t i = both ? 0 : 1; i < 2; i++) {
        struct curl_slist *longer = curl_slist_append(h->headers[i], line);
        if (!longer)
            return false;
        h->headers[i] = longer;
    }
    return true;
}

static bool make_headers(struct http *h, const char *key)
{
    static const char form[] = "Authorization: Bearer %s";
    size_t size = key ? strlen(key) + sizeof(form) : 1;
    char *line = malloc(size);
    bool fine = line && add_header(h, true, "Accept: application/json, text/event-stream") &&
                add_header(h, false, "Content-Type: application/json") &&
                add_header(h, false, "Expect:"); /* no 100-continue round trip */
    if (fine && key) {
        snprintf(line, size, form, key);
        fine = add_header(h, true, line);
        wipe(line, size);
    }
    free(line);
    return fine;
}

/* Allow http and https only, with the option that this version of libcurl knows. */
static bool limit_protocols(CURL *e)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return !curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return !curl_easy_setopt(e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* Set the options of a transfer. */
static bool configure(const struct http *h, struct transfer *f, const struct http_request *r)
{
    CURL *e = f->easy;
    bool fine = limit_protocols(e);
#define SET(option, value) fine = fine && !curl_easy_setopt(e, option, value)
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, h->proxy);                      /* NULL: those of the environment */
    SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE); /* no key for the proxy of a tunnel */
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L); /* a small reply must not unpack into a large one */
    SET(CURLOPT_HTTP_TRANSFER_DECODING, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_USERAGENT, "mizzle");
    SET(CURLOPT_ERRORBUFFER, f->why);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, f);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, f);
    SET(CURLOPT_PREREQFUNCTION, on_send);
    SET(CURLOPT_PREREQDATA, f);
    SET(CURLOPT_DEBUGFUNCTION, on_trace);
    SET(CURLOPT_DEBUGDATA, f);
    SET(CURLOPT_VERBOSE, 1L);
    SET(CURLOPT_PRIVATE, f);
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* do not wait for a hanging name look-up */
#endif
    if (h->ca) {
        SET(CURLOPT_CAINFO, h->ca);
        SET(CURLOPT_CAPATH, NULL);
    }
    SET(CURLOPT_URL, r->url);
    /* With TLS, a connection that is being made may turn out to carry many requests. */
    SET(CURLOPT_PIPEWAIT, strncmp(r->url, "https:", 6) == 0 ? 1L : 0L);
    SET(CURLOPT_HTTPHEADER, h->headers[r->body ? 1 : 0]);
    SET(CURLOPT_FRESH_CONNECT, r->fresh ? 1L : 0L);
    if (r->body) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDS, r->body);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->n);
    }
#undef SET
    return fine;
}

/* libcurl reads the file only when it first connects, which is too late for a usage error, and
 * reads all of it, so the size is limited. */
int http_check_ca(const char *path, struct err *err)
{
    char line[128];
    struct stat st;
    bool found = false;
    if (stat(path, &st) == 0 && !(S_ISREG(st.st_mode) && st.st_size <= MAX_CA))
        return err_set(err, ERR_ARG,
                       "%s: expected a regular file of at most %d MiB with certificates to trust",
                       path, MAX_CA >> 20);
    FILE *f = fopen(path, "rbe");
    if (!f)
        return err_set(err, ERR_ARG, "%s: %s", path, strerror(errno));
    while (!found && fgets(line, sizeof(line), f))
        found = !strncmp(line, "-----BEGIN ", 11) && strstr(line, "CERTIFICATE-----");
    fclose(f);
    return found ? OK
                 : err_set(err, ERR_ARG, "%s: expected certificates to trust, in PEM form", path);
}

int http_open(struct http **out, const struct http_options *o, struct err *err)
{
    *out = NULL;
    pthread_once(&global_once, global_init);
    if (global_state)
        return err_set(err, ERR_NOMEM, "cloud: libcurl does not start: %s",
                       curl_easy_strerror(global_state));
    if (o->ca && http_check_ca(o->ca, err) != OK)
        return ERR_ARG;
    struct http *h = calloc(1, sizeof(*h));
    if (!h)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    h->max_reply = o->max_reply;
    h->multi = curl_multi_init();
    h->ca = o->ca ? strdup(o->ca) : NULL;
    h->proxy = o->proxy ? strdup(o->proxy) : NULL;
    /* libcurl would start without a descriptor to wake it, and calls would wait for its
     * timeouts. */
    bool wakes = h->multi && !curl_multi_wakeup(h->multi);
    if (wakes && (h->ca || !o->ca) && (h->proxy || !o->proxy) && make_headers(h, o->key) &&
        !curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)KEPT)) {
        *out = h;
        return OK;
    }
    bool memory = !h->multi || wakes;
    http_close(h);
    return memory ? err_set(err, ERR_NOMEM, "cloud: out of memory")
                  : err_set(err, ERR_NET, "cloud: no file descriptor is left (see ulimit -n)");
}

void http_close(struct http *h)
{
    if (!h)
        return;
    if (h->multi)
        curl_multi_cleanup(h->multi);
    for (size_t i = 0; i < 2; i++) {
        for (struct curl_slist *line = h->headers[i]; line; line = line->next)
            wipe(line->data, strlen(line->data)); /* one of these lines holds the key */
        curl_slist_free_all(h->headers[i]);
    }
    free(h->ca);
    wipe_text(h->proxy); /* it may hold a password */
    free(h);
}

int http_start(struct http *h, struct http_try **out, const struct http_request *r, struct err *err)
{
    struct transfer *f = calloc(1, sizeof(*f));
    *out = NULL;
    if (f) {
        f->try.request = *r;
        f->most = h->max_reply;
        f->easy = curl_easy_init();
        if (f->easy && configure(h, f, r) && !curl_multi_add_handle(h->multi, f->easy)) {
            *out = &f->try;
            return OK;
        }
        http_release(h, &f->try);
    }
    return err_set(err, ERR_NOMEM, "out of memory");
}

void http_release(struct http *h, struct http_try *t)
{
    struct transfer *f = (struct transfer *)t;
    if (!t)
        return;
    /* Removing an unfinished transfer closes its connection, or its HTTP/2 stream. */
    if (f->easy)
        curl_multi_remove_handle(h->multi, f->easy);
    curl_easy_cleanup(f->easy);
    buf_free(&t->body);
    free(f);
}

/* Put into words why a transfer failed; our own callbacks' reasons come first. */
static int http_failed(const struct transfer *f, CURLcode code, struct err *err)
{
    /* libcurl reports a header line beyond its own limit as "out of memory". */
    curl_off_t begun = 0;
    curl_easy_getinfo(f->easy, CURLINFO_STARTTRANSFER_TIME_T, &begun);
    if (!f->no_memory && begun && code == CURLE_OUT_OF_MEMORY)
        return err_set(err, ERR_NET, "a header of the reply is too long, or memory is short");
    if (f->no_memory || code == CURLE_OUT_OF_MEMORY)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (f->too_long && f->header_bytes > MAX_HEADERS)
        return err_set(err, ERR_NET, "the reply's headers are longer than %d bytes", MAX_HEADERS);
    if (f->too_long)
        return err_set(err, ERR_NET, "the reply is longer than %zu bytes", f->most);
    if (f->held)
        return err_set(err, ERR_NET, "the connection was closed before an answer came");
    if (strncmp(f->why, "Unsupported proxy", 17) == 0) /* in whose URL there may be a password */
        return err_set(err, ERR_NET, "the URL of the proxy is none that libcurl knows");
    long number = 0;
    curl_easy_getinfo(f->easy, CURLINFO_OS_ERRNO, &number);
    if (code == CURLE_COULDNT_CONNECT && number)
        return err_set(err, ERR_NET, "cannot connect: %s", strerror((int)number));
    return err_set(err, ERR_NET, "%s", f->why[0] ? f->why : curl_easy_strerror(code));
}

/* True for faults of the connection, which another connection may not have. */
static bool is_broken(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
           code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE || code == CURLE_HTTP2 ||
           code == CURLE_HTTP2_STREAM;
}

/* Fill in the results of a transfer that has ended. */
static void http_finish(struct transfer *f, CURLcode code)
{
    struct http_try *t = &f->try;
    long version = 0;
    curl_off_t seconds = 0;
    char *location = NULL;
    curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &t->status);
    curl_easy_getinfo(f->easy, CURLINFO_RETRY_AFTER, &seconds);
    curl_easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &location);
    curl_easy_getinfo(f->easy, CURLINFO_HTTP_VERSION, &version);
    t->http2 = version == CURL_HTTP_VERSION_2_0;
    t->location = location;
    t->retry_ms = seconds > 0 ? (uint64_t)seconds * 1000 : 0;
    t->rc = code ? http_failed(f, code, &t->err) : OK;
    t->broken = code && !f->no_memory && !f->too_long && (f->held || is_broken(code));
    t->over = true;
    if (t->request.ended)
        t->request.ended(t);
}

int http_perform(struct http *h, struct err *err)
{
    int running = 0, left = 0;
    CURLMcode m = curl_multi_perform(h->multi, &running);
    if (m)
        return err_set(err, m == CURLM_OUT_OF_MEMORY ? ERR_NOMEM : ERR_NET, "%s",
                       curl_multi_strerror(m));
    for (CURLMsg *msg; (msg = curl_multi_info_read(h->multi, &left));) {
        char *f = NULL;
        if (msg->msg != CURLMSG_DONE)
            continue;
        CURLcode code = msg->data.result;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &f);
        http_finish((struct transfer *)(void *)f, code);
    }
    return OK;
}

void http_wait(struct http *h, int ms)
{
    if (curl_multi_poll(h->multi, NULL, 0, ms, NULL) && ms)
        os_nap(10000000); /* it returned at once: avoid a busy loop */
}

void http_wake(struct http *h)
{
    curl_multi_wakeup(h->multi);
}
