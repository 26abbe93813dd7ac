/* Sends every fault of the matrix, in each dialect, through the real client: no crash, no wait
 * beyond the deadline, no token where none came, and a client that is fit for the next call.
 * Meanwhile the wall clock jumps by hours at every look. */
#ifdef __linux__
#define _GNU_SOURCE
#include <sys/syscall.h>
#endif
#include <fcntl.h>
#include <sys/time.h>

#include "tests/support/fault_matrix.h"
#include "tests/support/port.h"
#include "tests/support/process.h"

enum { WORKERS = 12, MAX_ROWS = 400, FILLERS = 8 };

static const enum cloud_api apis[] = { CLOUD_OPENAI, CLOUD_SGLANG, CLOUD_LLAMACPP };
static atomic_size_t next_row, checked, wrong, jumps;
static atomic_int stop;

#ifdef __linux__
/* Replaces the C library's function: the wall clock is up to a day off, back and forth. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, t);
    if (rc == 0 && clock == CLOCK_REALTIME) {
        size_t n = atomic_fetch_add(&jumps, 1);
        t->tv_sec += (time_t)(n * 40503 % 172800) - 86400;
    }
    return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    int rc = clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
    return rc;
}

time_t time(time_t *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}

/* The wall clock does jump, and the deadlines' clock does not. */
static void test_clock(void)
{
    uint64_t start = os_now_ns();
    for (int back = 0; back<10; back += time(NULL)> time(NULL))
        CHECK(os_now_ns() - start < UINT64_C(5000000000));
}
#endif

/* Check one row in all dialects. */
static void one(const struct matrix_row *r)
{
    for (size_t a = 0; a < 3; a++, atomic_fetch_add(&checked, 1))
        atomic_fetch_add(&wrong, !matrix_check(r, apis[a]));
}

/* Check rows until none is left. */
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
    const struct matrix_row *const tables[] = { matrix_replies, matrix_bodies };
    pthread_t threads[WORKERS];
    size_t n = 0;
    for (int late = 1; late >= 0; late--)
        for (size_t t = 0; t < 2; t++)
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

/* Call an address where no server answers. */
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

/* Send SIGINT after a while. */
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
            port_open(matrix_url(s), (struct cloud_options){ .api = apis[i % 3], .stop = &stop });
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

/* A server that closes while a long request is written must not raise SIGPIPE, which would end this
 * program. */
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
        struct cloud *c = port_open(matrix_url(s), (struct cloud_options){ .api = apis[i % 3] });
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
    size_t kinds = atomic_load(&checked) / 3;
    CHECK(kinds >= 60 && atomic_load(&checked) == 3 * kinds);
    printf("%zu kinds of fault in 3 dialects: %zu checks; the wall clock jumped %zu times\n", kinds,
           3 * kinds, atomic_load(&jumps));
    return 0;
}
