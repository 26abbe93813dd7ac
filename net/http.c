#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/base.h"
#include "kernels/os.h"
#include "net/buf.h"
#include "net/http.h"

enum {
    MAX_HEADERS = 64 << 10, /* of one reply, informational ones included */
    STOP_SLICE_MS = 20,     /* how often an interruption is looked for */
    CONNECT_MS = 60 * 1000,
};

struct http {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *get_headers, *post_headers;
    const _Atomic int *stop;
    struct buf body;
    size_t header_bytes;
    bool too_long, no_memory, answered; /* of the request in flight */
    uint64_t up, down;
    pid_t owner;
    char why[CURL_ERROR_SIZE];
};

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static CURLcode global_state;

static void global_init(void)
{
    global_state = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct http *h = arg;
    (void)size; /* always 1 */
    if (buf_add(&h->body, p, n))
        return n;
    h->too_long = h->body.n + n > h->body.max;
    h->no_memory = !h->too_long;
    return 0;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct http *h = arg;
    (void)p, (void)size;
    h->header_bytes += n;
    if (h->header_bytes <= MAX_HEADERS)
        return n;
    h->too_long = true;
    return 0;
}

/* curl's trace is its only exact account of bytes (retries and HTTP/2 included); counted, not kept.
 */
static int on_trace(CURL *easy, curl_infotype type, char *p, size_t n, void *arg)
{
    struct http *h = arg;
    (void)easy, (void)p;
    if (type == CURLINFO_HEADER_OUT || type == CURLINFO_DATA_OUT)
        h->up += n;
    if (type == CURLINFO_HEADER_IN || type == CURLINFO_DATA_IN) {
        h->down += n;
        h->answered = true;
    }
    return 0;
}

static bool add_header(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer)
        *list = longer;
    return longer != NULL;
}

static bool make_headers(struct http *h, const char *key)
{
    bool fine = add_header(&h->get_headers, "Accept: application/json") &&
                add_header(&h->post_headers, "Accept: application/json") &&
                add_header(&h->post_headers, "Content-Type: application/json") &&
                add_header(&h->post_headers, "Expect:"); /* no 100-continue round trip */
    if (!key || !fine)
        return fine;
    size_t size = strlen(key) + sizeof("Authorization: Bearer ");
    char *line = malloc(size);
    if (!line)
        return false;
    snprintf(line, size, "Authorization: Bearer %s", key);
    fine = add_header(&h->get_headers, line) && add_header(&h->post_headers, line);
    memset(line, 0, size);
    free(line);
    return fine;
}

static bool limit_protocols(CURL *e)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return !curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return !curl_easy_setopt(e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static bool configure(struct http *h, const char *ca)
{
    CURL *e = h->easy;
    bool fine = limit_protocols(e);
#define SET(option, value) fine = fine && !curl_easy_setopt(e, option, value)
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, ""); /* whatever the environment says */
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L); /* no small reply becomes a large one */
    SET(CURLOPT_HTTP_TRANSFER_DECODING, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_USERAGENT, "mizzle");
    SET(CURLOPT_ERRORBUFFER, h->why);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, h);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, h);
    SET(CURLOPT_DEBUGFUNCTION, on_trace);
    SET(CURLOPT_DEBUGDATA, h);
    SET(CURLOPT_VERBOSE, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* a hanging name look-up must not outlive the deadline */
#endif
    if (ca) {
        SET(CURLOPT_CAINFO, ca);
        SET(CURLOPT_CAPATH, NULL);
    }
#undef SET
    return fine;
}

int http_open(struct http **out, const struct http_options *o, struct err *err)
{
    *out = NULL;
    pthread_once(&global_once, global_init);
    if (global_state)
        return err_set(err, ERR_NOMEM, "cloud: libcurl does not start: %s",
                       curl_easy_strerror(global_state));
    if (o->ca) {
        FILE *f = fopen(o->ca, "rb");
        if (!f)
            return err_set(err, ERR_ARG, "%s: cannot be read as certificates to trust", o->ca);
        fclose(f);
    }
    struct http *h = calloc(1, sizeof(*h));
    if (!h)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    h->body.max = o->max_reply;
    h->stop = o->stop;
    h->owner = getpid();
    h->multi = curl_multi_init();
    h->easy = curl_easy_init();
    if (h->multi && h->easy && make_headers(h, o->key) && configure(h, o->ca)) {
        *out = h;
        return OK;
    }
    http_close(h);
    return err_set(err, ERR_NOMEM, "cloud: out of memory");
}

/* curl leaves SIGPIPE to us (CURLOPT_NOSIGNAL), and OpenSSL writes with write(): hold the signal
 * back in this thread alone, and drop the one that came from here. */
struct pipe_hold {
    sigset_t old;
    bool pending;
};

static void pipe_begin(struct pipe_hold *hold)
{
    sigset_t set, now;
    sigpending(&now);
    hold->pending = sigismember(&now, SIGPIPE) == 1;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, &hold->old);
}

static void pipe_end(const struct pipe_hold *hold)
{
    sigset_t set, now;
    int sig;
    sigpending(&now);
    if (!hold->pending && sigismember(&now, SIGPIPE) == 1) {
        sigemptyset(&set);
        sigaddset(&set, SIGPIPE);
        sigwait(&set, &sig);
    }
    pthread_sigmask(SIG_SETMASK, &hold->old, NULL);
}

void http_close(struct http *h)
{
    if (!h)
        return;
    /* A forked child's copy of the connection is the parent's: closing it would say goodbye in the
     * parent's name. */
    if (h->owner == getpid()) {
        struct pipe_hold hold;
        pipe_begin(&hold);
        if (h->easy)
            curl_easy_cleanup(h->easy);
        if (h->multi)
            curl_multi_cleanup(h->multi);
        pipe_end(&hold);
    }
    curl_slist_free_all(h->get_headers);
    curl_slist_free_all(h->post_headers);
    buf_free(&h->body);
    free(h);
}

static int failed(const struct http *h, CURLcode code, struct err *err)
{
    if (h->no_memory || code == CURLE_OUT_OF_MEMORY)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (h->too_long && h->header_bytes > MAX_HEADERS)
        return err_set(err, ERR_NET, "the reply's headers are longer than %d bytes", MAX_HEADERS);
    if (h->too_long)
        return err_set(err, ERR_NET, "the reply is longer than %zu bytes", h->body.max);
    return err_set(err, ERR_NET, "%s", h->why[0] ? h->why : curl_easy_strerror(code));
}

/* Drive the transfer that was added to multi until it is done. */
static int drive(struct http *h, uint64_t deadline, CURLcode *code, struct err *err)
{
    for (;;) {
        int running = 0, left = 0;
        CURLMcode m = curl_multi_perform(h->multi, &running);
        if (m)
            return err_set(err, m == CURLM_OUT_OF_MEMORY ? ERR_NOMEM : ERR_NET, "%s",
                           curl_multi_strerror(m));
        CURLMsg *msg = curl_multi_info_read(h->multi, &left);
        if (msg && msg->msg == CURLMSG_DONE) {
            *code = msg->data.result;
            return OK;
        }
        uint64_t now = os_now_ns();
        if (h->stop && atomic_load(h->stop))
            return err_set(err, ERR_STOP, "interrupted");
        if (now >= deadline)
            return err_set(err, ERR_NET, "no answer in time (%s)",
                           h->answered ? "it had begun" : "nothing came");
        uint64_t wait = (deadline - now) / 1000000 + 1;
        if (h->stop && wait > STOP_SLICE_MS)
            wait = STOP_SLICE_MS;
        m = curl_multi_poll(h->multi, NULL, 0, wait > 60000 ? 60000 : (int)wait, NULL);
        if (m)
            return err_set(err, ERR_NET, "%s", curl_multi_strerror(m));
    }
}

static int attempt(struct http *h, uint64_t deadline, bool *kept, struct err *err)
{
    CURLcode code = CURLE_OK;
    long opened = 0;
    h->body.n = h->header_bytes = 0;
    h->too_long = h->no_memory = h->answered = false;
    h->why[0] = 0;
    if (curl_multi_add_handle(h->multi, h->easy))
        return err_set(err, ERR_NOMEM, "out of memory");
    int rc = drive(h, deadline, &code, err);
    /* Removing an unfinished transfer closes its connection. */
    curl_multi_remove_handle(h->multi, h->easy);
    curl_easy_getinfo(h->easy, CURLINFO_NUM_CONNECTS, &opened);
    *kept = rc == OK && code != CURLE_OK && opened == 0 && !h->answered;
    return rc ? rc : code ? failed(h, code, err) : OK;
}

static bool prepare(struct http *h, const char *url, const char *body, size_t n)
{
    CURL *e = h->easy;
    if (curl_easy_setopt(e, CURLOPT_URL, url))
        return false;
    if (!body)
        return !curl_easy_setopt(e, CURLOPT_HTTPGET, 1L) &&
               !curl_easy_setopt(e, CURLOPT_HTTPHEADER, h->get_headers);
    return !curl_easy_setopt(e, CURLOPT_POST, 1L) &&
           !curl_easy_setopt(e, CURLOPT_POSTFIELDS, body) &&
           !curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n) &&
           !curl_easy_setopt(e, CURLOPT_HTTPHEADER, h->post_headers);
}

int http_request(struct http *h, const char *url, const char *body, size_t n, uint64_t deadline,
                 struct http_reply *reply, struct err *err)
{
    *reply = (struct http_reply){ 0 };
    if (h->owner != getpid())
        return err_set(err, ERR_ARG, "the connection belongs to the parent process");
    if (!prepare(h, url, body, n))
        return err_set(err, ERR_NOMEM, "out of memory");
    struct pipe_hold hold;
    bool kept = false;
    pipe_begin(&hold);
    int rc = attempt(h, deadline, &kept, err);
    if (rc == ERR_NET && kept) {
        curl_easy_setopt(h->easy, CURLOPT_FRESH_CONNECT, 1L);
        rc = attempt(h, deadline, &kept, err);
        curl_easy_setopt(h->easy, CURLOPT_FRESH_CONNECT, 0L);
    }
    pipe_end(&hold);
    if (rc)
        return rc;
    char *location = NULL;
    curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &reply->status);
    curl_easy_getinfo(h->easy, CURLINFO_REDIRECT_URL, &location);
    reply->location = location;
    reply->body = h->body.p;
    reply->n = h->body.n;
    return OK;
}

uint64_t http_bytes_up(const struct http *h)
{
    return h->up;
}

uint64_t http_bytes_down(const struct http *h)
{
    return h->down;
}
