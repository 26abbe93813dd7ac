/* Sends every fault of the matrix, in each dialect, through the real client: no crash, no wait
 * beyond the deadline, no token where none came, and a client that is fit for the next call.
 * Meanwhile the wall clock jumps by hours at every look. */
#include "tests/support/wall_clock.h"

#include <fcntl.h>

#include "kernels/sys/buf.h"
#include "tests/support/fault_matrix.h"
#include "tests/support/port.h"
#include "tests/support/process.h"
#include "tools/lab/stand_in/fault.h"

enum { WORKERS = 12, MAX_ROWS = 400, FILLERS = 8 };

#define KEY "sk-matrix-0123456789"

#define UNTIL_END "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define STATUS(s) \
    "HTTP/1.1 " s "\r\nContent-Length: 52\r\n\r\n{\"error\":{\"message\":\"reason " KEY " \"}}"
#define OPENAI(name, code, says, bytes) ROW(name, code, says, CLOSE, bytes)

/* Forms of OpenAI's dialect alone, and the key in words of the server: the message lacks it. */
static const struct matrix_row openai[] = {
    OPENAI("choices is a string", ERR_NET, "a string", UNTIL_END "{\"choices\":\"42\"}"),
    OPENAI("choice is a number", ERR_NET, "choices", UNTIL_END "{\"choices\":[42]}"),
    OPENAI("ids null", ERR_REMOTE, "without token ids",
           UNTIL_END "{\"choices\":[{\"text\":\"x\",\"token_ids\":null}]}"),
    OPENAI("abort as the reason", ERR_NET, "abort",
           UNTIL_END "{\"choices\":[{\"token_ids\":[42],\"finish_reason\":\"abort\"}]}"),
    OPENAI("the end of the key", ERR_NET, "no (***), *** or 3456789",
           UNTIL_END "{\"error\":{\"message\":\"no (23456789), ix-0123456 or 3456789\"}}"),
    OPENAI("400 with the key", ERR_TEXT, "400: reason ***", STATUS("400 Bad Request")),
    OPENAI("401 with the key", ERR_REMOTE,
           "401: reason ***  (the API key that was sent is not accepted)",
           STATUS("401 Unauthorized")),
    { .name = NULL },
};

enum { PATIENT_MS = 30000, SLACK_MS = 10000, FIRST_MARK = 0xf1 };

struct text {
    char p[4096];
    size_t n;
};

struct matrix_server {
    struct rude *rude;
    char url[32];
    struct text bad, good;
};

static const uint32_t prompt[] = { 7, 8, 9 };
static const char good_reply[] = "HTTP/1.1 200 OK\r\nContent-Length: " L "\r\n\r\n" W;

/* Return the format of a whole reply in this dialect, with room for the list of ids. */
static const char *whole_form(enum cloud_api api)
{
    switch (api) {
    case CLOUD_SGLANG:
        return "{\"text\":\"x\",\"output_ids\":%s,\"meta_info\":{\"finish_reason\":{\"type\":"
               "\"length\",\"length\":1},\"completion_tokens\":1}}";
    case CLOUD_LLAMACPP:
        return "{\"index\":0,\"content\":\"x\",\"tokens\":%s,\"stop\":true,\"stop_type\":\"limit\","
               "\"tokens_predicted\":1}";
    default:
        return "{\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":\"length\","
               "\"token_ids\":%s}],\"usage\":{\"completion_tokens\":1}}";
    }
}

/* Return the format of one event in this dialect. */
static const char *event_form(enum cloud_api api)
{
    switch (api) {
    case CLOUD_SGLANG:
        return "data: {\"text\":\"x\",\"output_ids\":%s,\"meta_info\":{\"finish_reason\":null,"
               "\"completion_tokens\":1}}\n\n";
    case CLOUD_LLAMACPP:
        return "data: {\"content\":\"x\",\"tokens\":%s,\"stop\":false}\n\n";
    default:
        return "data: {\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":null,"
               "\"token_ids\":%s}]}\n\n";
    }
}

static void add(struct text *t, const char *p, size_t n)
{
    CHECK(n <= sizeof(t->p) - t->n);
    memcpy(t->p + t->n, p, n);
    t->n += n;
}

/* Write the bytes to t with their marks replaced. */
static void render(struct text *t, const char *bytes, const char *ids, enum cloud_api api)
{
    struct text parts[5];
    const char *list = ids ? ids : "[42]";
    int n = snprintf(parts[0].p, sizeof(parts[0].p), whole_form(api), list);
    CHECK(n > 0 && (size_t)n < sizeof(parts[0].p));
    parts[0].n = (size_t)n;
    parts[1].n = (size_t)snprintf(parts[1].p, 20, "%d", n);
    parts[2].n = (size_t)snprintf(parts[2].p, 20, "%x", (unsigned)n);
    n = snprintf(parts[3].p, sizeof(parts[3].p), event_form(api), list);
    CHECK(n > 0 && (size_t)n < sizeof(parts[3].p));
    parts[3].n = (size_t)n;
    parts[4].p[0] = 0;
    parts[4].n = 1;
    t->n = 0;
    for (; *bytes; bytes++)
        if ((*bytes & 0xff) >= FIRST_MARK && (*bytes & 0xff) < FIRST_MARK + 5)
            add(t, parts[(*bytes & 0xff) - FIRST_MARK].p, parts[(*bytes & 0xff) - FIRST_MARK].n);
        else
            add(t, bytes, 1);
}

/* Write the reply that the fault of this name makes. */
static void render_fault(struct text *t, const char *name, enum cloud_api api)
{
    const struct stand_in_fault *f = stand_in_fault_find(name, strlen(name));
    const struct stand_in_facts at = { prompt, 3, MATRIX_VOCAB };
    struct text whole, head;
    struct buf body = { 0 };
    CHECK_MSG(f, "%s: no such fault", name);
    render(&whole, W, NULL, api);
    CHECK(f->body ? stand_in_fault_body(&body, f)
                  : buf_add(&body, whole.p, whole.n) && stand_in_fault_edit(&body, f, &at, true));
    head.n = (size_t)snprintf(
        head.p, sizeof(head.p), "HTTP/1.1 %u X\r\n%s%s%s%sConnection: close\r\n\r\n",
        f->status ? f->status : 200, f->header ? f->header : "", f->header ? ": " : "",
        f->header ? f->value : "", f->header ? "\r\n" : "");
    t->n = 0;
    add(t, head.p, head.n);
    add(t, body.p ? body.p : "", body.n);
    buf_free(&body);
}

/* Start a server that does to each request what the row says. Each check has one, on its own port,
 * so that checks can run side by side. */
static struct matrix_server *matrix_open(const struct matrix_row *row, enum cloud_api api)
{
    struct matrix_server *s = calloc(1, sizeof(*s));
    CHECK(s);
    s->rude = rude_open(NULL);
    render(&s->good, good_reply, NULL, api);
    if (row->fault)
        render_fault(&s->bad, row->fault, api);
    else
        render(&s->bad, row->bytes, row->ids, api);
    rude_part(s->rude, &(struct rude_part){ row->then, s->bad.p, s->bad.n, row->flood, row->when });
    snprintf(s->url, sizeof(s->url), "%s://127.0.0.1:%u", row->tls ? "https" : "http",
             rude_port(s->rude));
    return s;
}

static void matrix_close(struct matrix_server *s)
{
    rude_close(s->rude);
    free(s);
}

/* Check code, id and message: one harmless line that contains the row's text and not the key. */
static bool check_answer(const struct matrix_row *r, enum cloud_api api, int rc, uint32_t id,
                         const struct err *err)
{
    bool line = rc == OK || (*err->msg && strstr(err->msg, r->says) && !strstr(err->msg, KEY));
    bool right = rc == r->code && id == (rc == OK ? MATRIX_ID : 77) && line;
    for (const char *c = err->msg; *c && rc; c++)
        right = right && *c >= 0x20 && *c != 0x7f;
    if (!right)
        fprintf(stderr, "%s, %s: code %d, id %u: %s\n", r->name, cloud_api_name(api), rc,
                (unsigned)id, rc ? err->msg : "");
    return right;
}

/* Check that the call ended in time, and not before a deadline that alone can end it. */
static bool check_time(const struct matrix_row *r, int rc, double ms)
{
    bool waits = r->late && rc != OK;
    bool right =
        ms < (waits ? MATRIX_LATE_MS : 0) + SLACK_MS && (!waits || ms > MATRIX_LATE_MS - 1);
    if (!right)
        fprintf(stderr, "%s: %.0f ms\n", r->name, ms);
    return right;
}

static bool check_ledger(const struct matrix_row *r, const struct cloud_ledger *l, int rc)
{
    bool right = l->calls == 1 && l->faults == (rc != OK) &&
                 (r->stream ? (l->tokens > 0) == (rc == OK) : l->tokens == (rc == OK));
    if (!right)
        fprintf(stderr, "%s: the ledger is wrong\n", r->name);
    return right;
}

/* Check the next call, after the server has been told to answer correctly. */
static bool check_next(const struct matrix_row *r, struct cloud *c, enum cloud_api api)
{
    const struct matrix_row well = { .name = r->name, .code = OK, .says = "" };
    struct err err = { "" };
    uint32_t id = 77;
    int rc = port_next(c, prompt, 3, &id, &err);
    for (int again = 0; rc == ERR_NET && r->late && again < 20; again++) /* its deadline is short */
        rc = port_next(c, prompt, 3, &id, &err);
    return check_answer(&well, api, rc, id, &err);
}

/* Make the row's call at this address and, with its server, one more, which must be answered.
 * Returns false and reports on stderr when something differs. */
static bool matrix_call(const struct matrix_row *r, enum cloud_api api, const char *url,
                        struct matrix_server *s)
{
    const struct cloud_options o = { .api = api,
                                     .key = KEY,
                                     .max_reply = 1 << 16,
                                     .tokens = r->stream ? 4 : 1,
                                     .timeout_ms =
                                         r->late || r->hasty ? MATRIX_LATE_MS : PATIENT_MS };
    struct err err = { "" };
    struct cloud *c = port_open(url, o);
    uint32_t id = 77;
    uint64_t start = os_now_ns();
    int rc = port_next(c, prompt, 3, &id, &err);
    bool right = check_time(r, rc, (double)(os_now_ns() - start) / 1e6);
    right = check_answer(r, api, rc, id, &err) && right;
    right = check_ledger(r, cloud_ledger(c), rc) && right;
    if (s)
        rude_part(s->rude, &(struct rude_part){ .bytes = s->good.p, .n = s->good.n });
    right = right && (!s || check_next(r, c, api));
    cloud_close(c);
    return right;
}

static const enum cloud_api apis[] = { CLOUD_OPENAI, CLOUD_SGLANG, CLOUD_LLAMACPP };
static atomic_size_t next_row, checked, wrong;
static atomic_int stop;

#ifdef __linux__
/* The wall clock does jump, and the deadlines' clock does not. */
static void test_clock(void)
{
    uint64_t start = os_now_ns();
    for (int back = 0; back<10; back += time(NULL)> time(NULL))
        CHECK(os_now_ns() - start < UINT64_C(5000000000));
}
#endif

/* Check one row in all dialects, or in its own. */
static void one(const struct matrix_row *r)
{
    bool alone = r >= openai && r < openai + sizeof(openai) / sizeof(openai[0]);
    for (size_t a = 0; a < (alone ? 1 : 3); a++, atomic_fetch_add(&checked, 1)) {
        struct matrix_server *s = matrix_open(r, apis[a]);
        atomic_fetch_add(&wrong, !matrix_call(r, apis[a], s->url, r->tls ? NULL : s));
        matrix_close(s);
    }
}

static void *work(void *arg)
{
    const struct matrix_row *const *rows = arg;
    for (size_t i; rows[i = atomic_fetch_add(&next_row, 1)];)
        one(rows[i]);
    return NULL;
}

/* Check many rows at a time; those that only wait go first. */
static void test_table(void)
{
    static const struct matrix_row *rows[MAX_ROWS + WORKERS + 1];
    const struct matrix_row *const tables[] = { matrix_replies, matrix_bodies, openai };
    pthread_t threads[WORKERS];
    size_t n = 0;
    for (int late = 1; late >= 0; late--)
        for (size_t t = 0; t < 3; t++)
            for (const struct matrix_row *r = tables[t]; r->name; r++) {
                if (r->late != late)
                    continue;
                CHECK(n < MAX_ROWS);
                rows[n++] = r;
            }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(rows[i]->name, rows[k]->name) != 0); /* each name is there once */
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, rows) == 0);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

static void nobody(const char *name, const char *url, bool late, bool hasty)
{
    const struct matrix_row r = {
        .name = name, .code = ERR_NET, .says = url, .late = late, .hasty = hasty
    };
    for (size_t a = 0; a < 3; a++, atomic_fetch_add(&checked, 1))
        atomic_fetch_add(&wrong, !matrix_call(&r, apis[a], url, NULL));
}

/* Addresses that refuse, unknown names, and a SYN without an answer. */
static void test_nobody(void)
{
    char url[64];
    unsigned port;
    int fd = loopback(&port, -1), fillers[FILLERS]; /* bound, but not listening */
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    nobody("refused", url, false, false);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", port);
    nobody("refused, TLS", url, false, false);
    snprintf(url, sizeof(url), "http://[::1]:%u", port);
    nobody("refused, IPv6", url, false, false);
    close(fd);
    nobody("no such name", "http://no-such-host.invalid:8080", false, true);
    nobody("a name too long",
           "http://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.invalid",
           false, true);
#ifdef __linux__ /* a full queue answers no SYN */
    fd = loopback(&port, 0);
    for (size_t i = 0; i < FILLERS; i++) {
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fillers[i] = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(fillers[i] >= 0 && fcntl(fillers[i], F_SETFL, O_NONBLOCK) == 0);
        connect(fillers[i], (struct sockaddr *)&at, sizeof(at));
    }
    usleep(20000);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    nobody("SYN into a black hole", url, true, false);
    for (size_t i = 0; i < FILLERS; i++)
        close(fillers[i]);
    close(fd);
#else
    (void)fillers;
#endif
}

static void on_signal(int sig)
{
    (void)sig;
    atomic_store(&stop, 1);
}

static void *interrupt(void *arg)
{
    rest_us(60000);
    pthread_kill(*(pthread_t *)arg, SIGINT);
    return NULL;
}

/* Ctrl-C works at each stage of the wait. */
static void test_interrupt(void)
{
    static const struct matrix_row rows[] = {
        ROW("SIGINT before the request", ERR_STOP, "", SILENT, "", .when = RUDE_ACCEPT),
        ROW("SIGINT before the reply", ERR_STOP, "", SILENT, ""),
        ROW("SIGINT in the reply", ERR_STOP, "", SILENT, "HTTP/1.1 200 OK\r\n\r\n{"),
        ROW("SIGINT in the handshake", ERR_STOP, "", SILENT, "", .when = RUDE_HALF, .tls = true),
    };
    pthread_t self = pthread_self(), other;
    const struct sigaction action = { .sa_handler = on_signal };
    CHECK(sigaction(SIGINT, &action, NULL) == 0);
    for (size_t i = 0; i < 12; i++, atomic_fetch_add(&checked, 1)) {
        const struct matrix_row *r = &rows[i / 3];
        struct matrix_server *s = matrix_open(r, apis[i % 3]);
        struct cloud *c =
            port_open(s->url, (struct cloud_options){ .api = apis[i % 3], .stop = &stop });
        uint32_t id = 77;
        CHECK(pthread_create(&other, NULL, interrupt, &self) == 0);
        uint64_t start = os_now_ns();
        CHECK(port_next(c, (const uint32_t[]){ 7 }, 1, &id, NULL) == ERR_STOP && id == 77);
        CHECK(os_now_ns() - start < UINT64_C(5000000000));
        pthread_join(other, NULL);
        atomic_store(&stop, 0);
        cloud_close(c);
        matrix_close(s);
    }
}

/* A server that closes while a long request is written must not cause a SIGPIPE. */
static void test_pipe(void)
{
    static uint32_t ids[1 << 18];
    static const struct matrix_row rows[] = {
        ROW("FIN while a long request is written", ERR_NET, "", CLOSE, "", .when = RUDE_HALF),
        ROW("RST while a long request is written", ERR_NET, "", RESET, "", .when = RUDE_HALF),
    };
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    for (size_t i = 0; i < 6; i++, atomic_fetch_add(&checked, 1)) {
        struct matrix_server *s = matrix_open(&rows[i / 3], apis[i % 3]);
        struct cloud *c = port_open(s->url, (struct cloud_options){ .api = apis[i % 3] });
        uint32_t id = 77;
        CHECK(port_next(c, ids, 1 << 18, &id, NULL) == ERR_NET && id == 77);
        cloud_close(c);
        matrix_close(s);
    }
}

int main(void)
{
    /* Libraries have opened their files before descriptors are counted. */
    nobody("refused", "http://127.0.0.1:1", false, false);
    atomic_store(&checked, 0);
    size_t open = descriptors();
    test_nobody();
    test_table();
    test_interrupt();
    test_pipe();
    CHECK(atomic_load(&wrong) == 0);
    CHECK(descriptors() == open);
#ifdef __linux__
    test_clock();
#endif
    CHECK(atomic_load(&checked) >= 3 * 60);
    printf("%zu checks of kinds of fault, in 3 dialects\n", atomic_load(&checked));
    return 0;
}
