#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/os.h"
#include "kernels/sys/wipe.h"
#include "net/http/http.h"

enum {
    MAX_HEADERS = 64 << 10, /* of one reply, including informational responses */
    CONNECT_MS = 60 * 1000,
    KEPT = 64, /* most idle connections kept */
    MAX_CA = 4 << 20,
};

struct http_hold { /* one reusable curl handle */
    struct http_try try;
    struct http *http;
    CURL *easy;
    size_t header_bytes, total, most; /* most: of total */
    bool running;
    bool too_long, no_memory; /* why a callback of ours ended it */
    bool once, again; /* the request may go out only once; it would have gone out too often */
    struct http_hold *next;
    char why[CURL_ERROR_SIZE];
};

struct http {
    CURLM *multi;
    struct http_hold *all;         /* all handles, running or idle */
    struct curl_slist *headers[2]; /* for GET, for POST */
    char *ca, *proxy;
    size_t max_reply;
    bool multiplexes;
    struct traffic traffic;
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
    struct http_hold *h = arg;
    struct http_try *t = &h->try;
    (void)size; /* always 1 */
    if (n > h->most - h->total) {
        h->too_long = true;
        return 0;
    }
    h->total += n;
    if (!buf_add(&t->body, p, n)) {
        h->no_memory = true;
        return 0;
    }
    if (!t->status) {
        const char *type = NULL;
        curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &t->status);
        curl_easy_getinfo(h->easy, CURLINFO_CONTENT_TYPE, &type);
        t->stream = type && strncasecmp(type, "text/event-stream", 17) == 0;
    }
    if (!t->data || t->data(t))
        return n;
    return 0;
}

/* curl's callback before a request goes out. libcurl repeats a request as often as it likes when a
 * kept connection ends without an answer; how often a server is asked must not depend on which
 * connections were kept. */
static int on_send(void *arg, char *to, char *from, int to_port, int from_port)
{
    struct http_hold *h = arg;
    (void)to, (void)from, (void)to_port, (void)from_port;
    h->again = h->try.sent >= (h->once ? 1 : 2) || (h->try.leave && !h->try.leave(&h->try));
    h->try.sent += !h->again;
    return h->again ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* curl's header callback: only limits the size. */
static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct http_hold *h = arg;
    (void)p, (void)size;
    h->header_bytes += n;
    if (h->header_bytes <= MAX_HEADERS)
        return n;
    h->too_long = true;
    return 0;
}

/* Count bytes. curl's trace is the only exact account of them (HTTP/2 included); nothing of it is
 * kept. */
static int on_trace(CURL *easy, curl_infotype type, char *p, size_t n, void *arg)
{
    struct http_hold *h = arg;
    bool header = type == CURLINFO_HEADER_OUT || type == CURLINFO_HEADER_IN;
    struct traffic more = { 0 };
    (void)easy, (void)p;
    if (type == CURLINFO_HEADER_OUT || type == CURLINFO_DATA_OUT)
        more = (struct traffic){ .bytes_up = n, .header_bytes_up = header ? n : 0 };
    if (type == CURLINFO_HEADER_IN || type == CURLINFO_DATA_IN) {
        more = (struct traffic){ .bytes_down = n, .header_bytes_down = header ? n : 0 };
        h->try.answered = true;
    }
    traffic_add(&h->http->traffic, &more);
    traffic_add(&h->try.traffic, &more);
    return 0;
}

static bool add_header(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer)
        *list = longer;
    return longer != NULL;
}

/* Build the three header lists, with the key in each. */
static bool make_headers(struct http *h, const char *key)
{
    size_t size = key ? strlen(key) + sizeof("Authorization: Bearer ") : 1;
    char *line = malloc(size);
    if (!line)
        return false;
    if (key)
        snprintf(line, size, "Authorization: Bearer %s", key);
    bool fine = true;
    for (size_t i = 0; i < 2; i++) {
        struct curl_slist **list = &h->headers[i];
        fine = fine && add_header(list, "Accept: application/json, text/event-stream");
        if (i)
            fine = fine && add_header(list, "Content-Type: application/json") &&
                   add_header(list, "Expect:"); /* no 100-continue round trip */
        fine = fine && (!key || add_header(list, line));
    }
    wipe(line, size);
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

/* Set the options that all transfers of a handle share. */
static bool configure(struct http_hold *h, const char *ca, const char *proxy)
{
    CURL *e = h->easy;
    bool fine = limit_protocols(e);
#define SET(option, value) fine = fine && !curl_easy_setopt(e, option, value)
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, proxy);                         /* NULL: those of the environment */
    SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE); /* no key for the proxy of a tunnel */
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L); /* a small reply must not unpack into a large one */
    SET(CURLOPT_HTTP_TRANSFER_DECODING, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_USERAGENT, "mizzle");
    SET(CURLOPT_ERRORBUFFER, h->why);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, h);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, h);
    SET(CURLOPT_PREREQFUNCTION, on_send);
    SET(CURLOPT_PREREQDATA, h);
    SET(CURLOPT_DEBUGFUNCTION, on_trace);
    SET(CURLOPT_DEBUGDATA, h);
    SET(CURLOPT_VERBOSE, 1L);
    SET(CURLOPT_PRIVATE, h);
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* do not wait for a hanging name look-up */
#endif
    if (ca) {
        SET(CURLOPT_CAINFO, ca);
        SET(CURLOPT_CAPATH, NULL);
    }
#undef SET
    return fine;
}

/* Create a handle and add it to the list. NULL: out of memory. */
static struct http_hold *hold_open(struct http *h)
{
    struct http_hold *new = calloc(1, sizeof(*new));
    if (!new)
        return NULL;
    new->http = h;
    new->easy = curl_easy_init();
    if (!new->easy || !configure(new, h->ca, h->proxy)) {
        if (new->easy)
            curl_easy_cleanup(new->easy);
        free(new);
        return NULL;
    }
    new->next = h->all;
    h->all = new;
    return new;
}

/* Check that the file holds a certificate in PEM form. libcurl reads the file only when it first
 * connects, which is too late for a usage error, and reads all of it, so the size is limited. */
static int http_check_ca(const char *path, struct err *err)
{
    char line[128];
    struct stat st;
    bool found = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!f || fstat(fd, &st)) {
        err_set(err, ERR_ARG, "%s: %s", path, strerror(errno));
        if (f)
            fclose(f);
        else if (fd >= 0)
            close(fd);
        return ERR_ARG;
    }
    bool fits = S_ISREG(st.st_mode) && st.st_size <= MAX_CA;
    while (fits && !found && fgets(line, sizeof(line), f))
        found = !strncmp(line, "-----BEGIN ", 11) && strstr(line, "CERTIFICATE-----");
    fclose(f);
    if (!fits)
        return err_set(err, ERR_ARG,
                       "%s: expected a regular file of at most %d MiB with certificates to trust",
                       path, MAX_CA >> 20);
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
    size_t ca_size = o->ca ? strlen(o->ca) + 1 : 1;
    h->max_reply = o->max_reply;
    h->multi = curl_multi_init();
    h->ca = o->ca ? malloc(ca_size) : NULL;
    if (h->ca)
        memcpy(h->ca, o->ca, ca_size);
    h->proxy = o->proxy ? strdup(o->proxy) : NULL;
    /* libcurl would start without a descriptor to wake it, and calls would wait for its
     * timeouts. */
    bool wakes = h->multi && !curl_multi_wakeup(h->multi);
    if (wakes && (h->ca || !o->ca) && (h->proxy || !o->proxy) && make_headers(h, o->key) &&
        !curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)KEPT) && hold_open(h)) {
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
    for (struct http_hold *t = h->all, *next; t; t = next) {
        next = t->next;
        curl_easy_cleanup(t->easy);
        buf_free(&t->try.body);
        free(t);
    }
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

/* Set the options of one request. */
static bool prepare(const struct http *h, const struct http_hold *t, const struct http_request *r)
{
    CURL *e = t->easy;
    struct curl_slist *headers = h->headers[r->body ? 1 : 0];
    /* With TLS, a connection that is being made may turn out to carry many requests. */
    bool may_carry = strncmp(r->url, "https:", 6) == 0;
    if (curl_easy_setopt(e, CURLOPT_URL, r->url) ||
        curl_easy_setopt(e, CURLOPT_PIPEWAIT, may_carry ? 1L : 0L) ||
        curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers) ||
        curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, r->fresh ? 1L : 0L))
        return false;
    if (!r->body)
        return !curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    return !curl_easy_setopt(e, CURLOPT_POST, 1L) &&
           !curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->body) &&
           !curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->n);
}

int http_start(struct http *h, struct http_try **out, const struct http_request *r, void *arg,
               bool (*data)(struct http_try *t), struct err *err)
{
    struct http_hold *hold = h->all;
    *out = NULL;
    while (hold && hold->running)
        hold = hold->next;
    if (!hold)
        hold = hold_open(h);
    if (!hold || !prepare(h, hold, r))
        return err_set(err, ERR_NOMEM, "out of memory");
    struct buf body = hold->try.body;
    body.n = 0;
    hold->try = (struct http_try){
        .arg = arg, .data = data, .leave = r->leave, .body = body, .hold = hold
    };
    hold->header_bytes = hold->total = 0;
    hold->most = h->max_reply;
    hold->too_long = hold->no_memory = hold->again = false;
    hold->once = r->once;
    hold->why[0] = 0;
    if (curl_multi_add_handle(h->multi, hold->easy))
        return err_set(err, ERR_NOMEM, "out of memory");
    hold->running = true;
    *out = &hold->try;
    return OK;
}

void http_release(struct http *h, struct http_try *t)
{
    if (!t)
        return;
    /* Removing an unfinished transfer closes its connection, or its HTTP/2 stream. */
    curl_multi_remove_handle(h->multi, t->hold->easy);
    t->hold->running = false;
}

/* Put into words why a transfer failed; our own callbacks' reasons come first. */
static int http_failed(const struct http_hold *h, CURLcode code, struct err *err)
{
    /* libcurl reports a header line beyond its own limit as "out of memory". */
    curl_off_t begun = 0;
    curl_easy_getinfo(h->easy, CURLINFO_STARTTRANSFER_TIME_T, &begun);
    if (!h->no_memory && begun && code == CURLE_OUT_OF_MEMORY)
        return err_set(err, ERR_NET, "a header of the reply is too long, or memory is short");
    if (h->no_memory || code == CURLE_OUT_OF_MEMORY)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (h->too_long && h->header_bytes > MAX_HEADERS)
        return err_set(err, ERR_NET, "the reply's headers are longer than %d bytes", MAX_HEADERS);
    if (h->too_long)
        return err_set(err, ERR_NET, "the reply is longer than %zu bytes", h->most);
    if (h->again)
        return err_set(err, ERR_NET, "the connection was closed before an answer came");
    if (strncmp(h->why, "Unsupported proxy", 17) == 0) /* in whose URL there may be a password */
        return err_set(err, ERR_NET, "the URL of the proxy is none that libcurl knows");
    long number = 0;
    curl_easy_getinfo(h->easy, CURLINFO_OS_ERRNO, &number);
    if (code == CURLE_COULDNT_CONNECT && number)
        return err_set(err, ERR_NET, "cannot connect: %s", strerror((int)number));
    return err_set(err, ERR_NET, "%s", h->why[0] ? h->why : curl_easy_strerror(code));
}

/* True for faults of the connection, which another connection may not have. */
static bool is_broken(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
           code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE || code == CURLE_HTTP2 ||
           code == CURLE_HTTP2_STREAM;
}

/* Fill in the results of a transfer that has ended. */
static void http_finish(struct http *h, struct http_hold *hold, CURLcode code)
{
    struct http_try *t = &hold->try;
    long version = 0;
    curl_off_t seconds = 0;
    char *location = NULL;
    curl_easy_getinfo(hold->easy, CURLINFO_RESPONSE_CODE, &t->status);
    curl_easy_getinfo(hold->easy, CURLINFO_RETRY_AFTER, &seconds);
    curl_easy_getinfo(hold->easy, CURLINFO_REDIRECT_URL, &location);
    curl_easy_getinfo(hold->easy, CURLINFO_HTTP_VERSION, &version);
    if (version)
        h->multiplexes = version == CURL_HTTP_VERSION_2_0;
    t->location = location;
    t->retry_ms = seconds > 0 ? (uint64_t)seconds * 1000 : 0;
    t->rc = code ? http_failed(hold, code, &t->err) : OK;
    t->broken = code && !hold->no_memory && !hold->too_long && (hold->again || is_broken(code));
    t->lost = t->broken && t->sent == 1 && !t->answered;
}

int http_perform(struct http *h, struct err *err)
{
    int running = 0;
    CURLMcode m = curl_multi_perform(h->multi, &running);
    if (m)
        return err_set(err, m == CURLM_OUT_OF_MEMORY ? ERR_NOMEM : ERR_NET, "%s",
                       curl_multi_strerror(m));
    return OK;
}

struct http_try *http_ended(struct http *h)
{
    int left = 0;
    for (CURLMsg *msg; (msg = curl_multi_info_read(h->multi, &left));) {
        char *hold = NULL;
        if (msg->msg != CURLMSG_DONE)
            continue;
        CURLcode code = msg->data.result;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &hold);
        http_finish(h, (struct http_hold *)(void *)hold, code);
        return &((struct http_hold *)(void *)hold)->try;
    }
    return NULL;
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

bool http_multiplexes(const struct http *h)
{
    return h->multiplexes;
}

struct traffic http_traffic(const struct http *h)
{
    return h->traffic;
}
