/* Time in the HTTP server: waits that end when the client leaves, deadlines that a byte now and
 * then does not move, a thousand slow clients beside a fast one, and closing, while the wall clock
 * jumps. Bounds on time are generous: a test fails when something does not happen at all. */
#include "tests/support/wall_clock.h"

#include <sys/resource.h>

#include "net/server/server_internal.h"
#include "tests/support/http_client.h"
#include "tests/support/process.h"

#define HEALTH "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define GET(p) "GET " p " HTTP/1.1\r\nHost: localhost\r\n\r\n"

enum { PATIENT_MS = 20000 };

static struct server *server;
static struct server_request *_Atomic waiting;
static _Atomic int waits, gone, called, ended;

static void count(void *arg)
{
    _Atomic int *n = arg;
    ++*n;
}

static bool reaches(_Atomic int *n, int least)
{
    for (int i = 0; i < PATIENT_MS && *n < least; i++)
        rest_us(1000);
    return *n >= least;
}

static bool connections_reach(size_t n)
{
    for (int i = 0; i < PATIENT_MS && server_connections(server) != n; i++)
        rest_us(1000);
    return server_connections(server) == n;
}

static enum server_more endless(void *arg, struct buf *out)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        if (!buf_str(out, "0123456789abcdef"))
            return SERVER_BROKEN;
    return SERVER_MORE;
}

static enum server_more silent(void *arg, struct buf *out)
{
    waits++;
    while (server_wait(arg, UINT64_MAX)) {
        if (server_doubts(arg)) /* what a client that has left answers with a reset */
            return buf_str(out, ".") ? SERVER_MORE : SERVER_BROKEN;
        called += server_closing(arg); /* woken once by server_close */
    }
    gone++;
    return server_closing(arg) && buf_str(out, "bye") ? SERVER_END : SERVER_BROKEN;
}

/* The answer to a wait depends on how it ended. */
static void at_wait(struct server_request *r)
{
    struct buf out = { 0 };
    bool open = strcmp(server_path(r), "/grace") == 0;
    server_on_gone(r, count, &called);
    waiting = r;
    waits++;
    while (!(open && server_closing(r)))
        if (!server_wait(r, UINT64_MAX)) {
            CHECK(server_gone(r));
            gone++;
            return;
        } else if (strcmp(server_path(r), "/wake") == 0) {
            break;
        }
    server_on_gone(r, NULL, NULL);
    CHECK(buf_str(&out, "fine"));
    server_reply(r, 200, NULL, &out, NULL);
}

static void at_handle(void *arg, struct server_request *r)
{
    const char *path = server_path(r);
    struct buf out = { 0 };
    (void)arg;
    if (strcmp(path, "/endless") == 0) {
        server_stream(r, 200, NULL, -1, NULL, endless, r);
        server_set_own(r, &ended, count);
    } else if (strcmp(path, "/silent") == 0) {
        server_stream(r, 200, NULL, -1, NULL, silent, r);
        server_set_own(r, &ended, count);
    } else if (strcmp(path, "/late") == 0) {
        uint64_t until = os_now_ns() + 800 * UINT64_C(1000000);
        while (os_now_ns() < until)
            CHECK(server_wait(r, until));
        server_reply(r, 200, NULL, &out, NULL);
    } else if (path[1] == 'h' || server_body(r)->n) {
        server_reply(r, 200, NULL, &out, NULL);
    } else {
        at_wait(r);
    }
}

static void serve(struct server_options o)
{
    struct err err = { "" };
    o.handle = at_handle;
    CHECK_MSG(server_open(&server, &o, &err) == OK, "%s", err.msg);
    waits = gone = called = ended = 0;
}

static int begin(const char *bytes)
{
    int fd = http_client_open(server_port(server));
    http_client_send(fd, bytes, strlen(bytes));
    return fd;
}

static void health(void)
{
    struct raw_reply r;
    raw_http_ask(server_port(server), &r, HEALTH, sizeof(HEALTH) - 1, 1, PATIENT_MS);
    CHECK(r.status == 200);
}

/* A closed connection and a TLS alert mean that the client has left; early data does not. */
static void test_left(void)
{
    static const char alert[] = "\x15\x03\x03\x00\x1a", hello[] = "POST / HTTP/1.1\r\n";
    char record[31] = "";
    int fd[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    CHECK(!server_watch_left(fd[0]));
    http_client_send(fd[1], hello, sizeof(hello) - 1);
    CHECK(!server_watch_left(fd[0])); /* the next request, sent early */
    CHECK(recv(fd[0], record, sizeof(record), 0) == sizeof(hello) - 1);
    memcpy(record, alert, 5);
    http_client_send(fd[1], record, 31);
    CHECK(server_watch_left(fd[0])); /* a TLS alert */
    CHECK(recv(fd[0], record, sizeof(record), 0) == 31 && !server_watch_left(fd[0]));
    close(fd[1]);
    CHECK(server_watch_left(fd[0]));
    close(fd[0]);
}

/* However a client leaves, its waiter is woken and the callback is called once. One that only shuts
 * down its sending side is told that it is waited for, and stays. */
static void test_gone(void)
{
    static const char *const extra[] = { "", "", "", GET("/next"), GET("/next") };
    const struct linger rst = { .l_onoff = 1 };
    int ways = os_poll_closed() ? 5 : 3; /* or unread bytes hide the end */
    serve((struct server_options){ 0 });
    for (int i = 0; i < ways; i++) {
        int fd = begin(GET("/wait"));
        CHECK(reaches(&waits, i + 1));
        if (*extra[i]) {
            http_client_send(fd, extra[i], strlen(extra[i]));
            rest_us(20000); /* the bytes are seen before the end is */
        }
        CHECK(gone == i && called == i);
        if (i == 1)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &rst, sizeof(rst));
        if (i == 2 || i == 4) {
            shutdown(fd, SHUT_WR);
            CHECK(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, PATIENT_MS) == 1);
            CHECK(gone == i && called == i);
        }
        close(fd);
        CHECK(reaches(&gone, i + 1) && reaches(&called, i + 1) && called == i + 1);
    }
    int fd = begin(GET("/silent"));
    CHECK(reaches(&waits, ways + 1) && !ended);
    close(fd);
    CHECK(reaches(&gone, ways + 1) && reaches(&ended, 1));
    server_close(server, 1000);
}

/* A wait ends when it is woken, also before it begins, and at its time. */
static void test_wake(void)
{
    struct raw_reply r;
    serve((struct server_options){ .head_ms = 500 });
    int fd = begin(GET("/wake"));
    CHECK(reaches(&waits, 1));
    server_wake(waiting);
    raw_http_read(fd, &r, 1, PATIENT_MS);
    CHECK(r.status == 200 && !called);
    /* The time of the answer is not that of the head. */
    http_client_send(fd, GET("/late"), sizeof(GET("/late")) - 1);
    raw_http_read(fd, &r, 1, PATIENT_MS);
    CHECK(r.status == 200);
    close(fd);
    server_close(server, 1000);
}

/* Send `first`, then one byte repeatedly. Return what comes back before the server ends the
 * connection; the test ends if it does not. */
static int dripped(const char *first, char byte)
{
    struct raw_reply r;
    int fd = begin(first);
    for (int i = 0; i < PATIENT_MS / 20; i++) {
        raw_http_read(fd, &r, 1, 20);
        if (r.ended || r.status || send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
            break;
    }
    int status = r.status;
    if (!r.ended)
        raw_http_read(fd, &r, 0, PATIENT_MS);
    CHECK(r.ended);
    close(fd);
    return status;
}

#define POST "POST /health HTTP/1.1\r\nHost: localhost\r\n"

/* An occasional byte does not hold a connection: head and body have a deadline in all. */
static void test_drip(void)
{
    serve((struct server_options){ .head_ms = 400, .body_ms = 200 });
    CHECK(dripped("", 'G') == 0);
    CHECK(dripped("GET /health HTTP/1.1\r\nA: ", 'x') == 408);
    CHECK(dripped(POST "Content-Length: 1000000\r\n\r\n", ' ') == 408);
    CHECK(dripped(POST "Transfer-Encoding: chunked\r\n\r\n5;x=", 'y') == 408);
    CHECK(dripped(POST "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: ", 'x') == 408);
    server_close(server, 1000);
    /* Between requests the connection ends without a word. */
    struct raw_reply r;
    serve((struct server_options){ .head_ms = 700 });
    int fd = begin(HEALTH);
    raw_http_read(fd, &r, 0, PATIENT_MS);
    CHECK(r.ended && r.replies == 1);
    close(fd);
    server_close(server, 1000);
    serve((struct server_options){ .body_ms = 100, .late = "{\"late\":1}" });
    raw_http_ask(server_port(server), &r, POST "Content-Length: 9\r\n\r\n", sizeof(POST) + 22 - 1,
                 0, PATIENT_MS);
    CHECK(r.status == 408 && strstr(r.bytes, "application/json") &&
          strstr(r.bytes, "x-request-id: req-") && strstr(r.bytes, "{\"late\":1}"));
    server_close(server, 1000);
}

/* With few descriptors there are fewer places, and the limit is raised where that is allowed. */
static void test_files(void)
{
    struct rlimit files = { 0 }, most;
    CHECK(getrlimit(RLIMIT_NOFILE, &most) == 0);
    files.rlim_cur = 200;
    files.rlim_max = most.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    serve((struct server_options){ 0 });
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 200);
    health();
    server_close(server, 1000);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        files.rlim_cur = files.rlim_max = 120;
        CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
        serve((struct server_options){ 0 });
        health();
        server_close(server, 1000);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &most) == 0);
}

/* A client that stops reading does not hold its request. */
static void test_reader(void)
{
    serve((struct server_options){ .send_ms = 200 });
    int fd = begin(GET("/endless"));
    CHECK(reaches(&ended, 1));
    close(fd);
    server_close(server, 1000);
}

/* Open `n` connections that send a part of a head. */
static void begin_heads(int *fd, int n)
{
    for (int i = 0; i < n; i++) {
        fd[i] = begin("GET /");
        CHECK(connections_reach((size_t)i + 1));
    }
}

/* When all places are taken, a new client takes that of one whose request is not there yet, but not
 * of one that waits for its answer. */
static void test_evicted(void)
{
    struct raw_reply r;
    int fd;
    serve((struct server_options){ .connections = 1, .head_ms = 3600000 });
    begin_heads(&fd, 1);
    health();
    raw_http_read(fd, &r, 0, PATIENT_MS);
    CHECK(r.ended && !r.n);
    close(fd);
    CHECK(connections_reach(0));
    static const char post[] = POST "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    fd = begin(post);
    raw_http_read(fd, &r, 1, PATIENT_MS);
    CHECK(r.status == 100);
    health();
    raw_http_read(fd, &r, 0, PATIENT_MS);
    CHECK(r.ended && r.status == 408);
    close(fd);
    CHECK(connections_reach(0));
    fd = begin(GET("/wait"));
    CHECK(reaches(&waits, 1));
    raw_http_ask(server_port(server), &r, HEALTH, sizeof(HEALTH) - 1, 0, PATIENT_MS);
    CHECK(r.ended && !r.n && !gone);
    close(fd);
    server_close(server, 1000);
}

/* The time for a head shrinks, here from an hour to a second, as the places run out. */
static void test_shrunk(void)
{
    enum { PLACES = 4 };
    struct raw_reply r;
    int fd[PLACES];
    serve((struct server_options){ .connections = PLACES, .head_ms = 3600000 });
    begin_heads(fd, PLACES);
    raw_http_read(fd[0], &r, 0, PATIENT_MS);
    CHECK(r.ended && !r.n);
    for (int i = 0; i < PLACES; i++)
        close(fd[i]);
    server_close(server, 1000);
}

/* Slow clients by the hundred leave room for a fast one and take little memory. */
static void test_many(void)
{
    enum { MANY = SANITIZED ? 200 : 1000 };
    static int fd[MANY];
    struct rlimit files;
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    serve((struct server_options){ .head_ms = 3600000 });
    health();
    size_t before = resident_kb(getpid());
    for (int i = 0; i < MANY; i++)
        fd[i] = begin("GET /health HTTP/1.1\r\nA: b");
    CHECK(connections_reach(MANY));
    health();
    CHECK(SANITIZED || resident_kb(getpid()) <= before + 48 * MANY);
    /* They may still finish. */
    struct raw_reply r;
    http_client_send(fd[0], "\r\nHost: localhost\r\n\r\n", 21);
    raw_http_read(fd[0], &r, 1, PATIENT_MS);
    CHECK(r.status == 200);
    server_close(server, 1000); /* does not wait for them */
    for (int i = 0; i < MANY; i++)
        close(fd[i]);
}

static void *closer(void *arg)
{
    server_close(server, *(unsigned *)arg);
    return NULL;
}

/* Closing: idle connections end at once, requests may finish for the grace, those without an answer
 * then get 503, streams can say goodbye, and a client that does not read is not waited for. */
static void test_close(void)
{
    static const char *const paths[] = { GET("/grace"), GET("/wait"), GET("/silent"), "", "GET /" };
    static const int statuses[] = { 200, 503, 200, 0, 0 };
    struct raw_reply r[5];
    int fd[5], stuck, byte = 0;
    unsigned grace = 300;
    pthread_t thread;
    serve((struct server_options){ 0 });
    for (int i = 0; i < 5; i++)
        fd[i] = begin(paths[i]);
    stuck = begin(GET("/endless"));
    CHECK(reaches(&waits, 3) && connections_reach(6));
    CHECK(recv(stuck, &byte, 1, MSG_PEEK) == 1); /* the endless one has begun */
    CHECK(pthread_create(&thread, NULL, closer, &grace) == 0);
    for (int i = 0; i < 5; i++) {
        raw_http_read(fd[i], &r[i], 0, PATIENT_MS);
        CHECK(r[i].ended && r[i].status == statuses[i]);
        close(fd[i]);
    }
    CHECK(strstr(r[0].bytes, "Connection: close") && strstr(r[0].bytes, "fine"));
    CHECK(strstr(r[1].bytes, "the server is stopping"));
    CHECK(strstr(r[2].bytes, "\r\nbye\r\n0\r\n\r\n"));
    pthread_join(thread, NULL);
    CHECK(gone == 2 && ended == 2);
    close(stuck);
}

/* Most of the time is spent waiting, so the tests run in a few processes at once. */
int main(void)
{
    static void (*const lanes[][6])(void) = {
        { test_files, test_left, test_gone, test_wake },
        { test_drip },
        { test_reader, test_evicted, test_shrunk, test_many, test_close },
    };
    enum { LANES = sizeof(lanes) / sizeof(lanes[0]) };
    pid_t child[LANES];
    for (size_t i = 0; i < LANES; i++) {
        child[i] = fork();
        CHECK(child[i] >= 0);
        if (child[i])
            continue;
        for (size_t k = 0; lanes[i][k]; k++)
            lanes[i][k]();
        exit(0);
    }
    int bad = 0, status;
    for (size_t i = 0; i < LANES; i++)
        bad += waitpid(child[i], &status, 0) != child[i] || status != 0;
    return bad != 0;
}
