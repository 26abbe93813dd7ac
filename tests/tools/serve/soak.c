/* soak.c - `make soak-serve`: 100,000 requests (or as many as the argument says) of 64 clients to a
 * server of another process, one in ten rude. Each other answer is byte for byte the one that is
 * given alone; memory and descriptors of the server must not grow. */
#include "tests/support/clients.h"
#include "tests/support/process.h"
#include "tests/support/serving.h"

enum { CLIENTS = 64, REQUESTS = 100000, VARIANTS = 40, SLACK_KB = 4096, SLACK_FDS = 8 };

/* The server, which says its port and ends with its stdin. */
static void serve(const void *none)
{
    const struct serve_options o = { .parallel = 8 };
    struct serving serving;
    char byte;
    (void)none;
    serving_open(&serving, &o, SERVING_CLOUD);
    CHECK(write(STDOUT_FILENO, &serving.port, sizeof(serving.port)) == sizeof(serving.port));
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    serving_close(&serving);
    exit(0);
}

int main(int argc, char **argv)
{
    size_t requests = argc > 1 ? strtoull(argv[1], NULL, 10) : REQUESTS, first = requests / 5;
    size_t kb[2], files[2];
    struct child s;
    unsigned port;
    serving_need_pair();
    child_start(&s, serve, NULL);
    CHECK(read(s.from, &port, sizeof(port)) == sizeof(port));
    size_t kinds = clients_learn(port, VARIANTS);
    uint64_t clock = os_now_ns();
    size_t rude = clients_run(port, CLIENTS, first);
    kb[0] = resident_kb(s.pid);
    files[0] = descriptors_of(s.pid);
    rude += clients_run(port, CLIENTS, requests - first);
    double seconds = (double)(os_now_ns() - clock) / 1e9;
    kb[1] = resident_kb(s.pid);
    files[1] = descriptors_of(s.pid);
    long failed = clients_metric(port, "texts_failed_total");
    long stopped = clients_metric(port, "texts_stopped_total");
    clients_forget();
    CHECK(child_end(&s, 0) == 0);
    printf("%zu requests of %d clients, %zu different ones, as alone; %zu rude, %ld texts stopped, "
           "%ld failed; resident after a fifth and at the end: %zu and %zu KB, descriptors: %zu "
           "and %zu; %.1f s\n",
           requests, CLIENTS, kinds, rude, stopped, failed, kb[0], kb[1], files[0], files[1],
           seconds);
    CHECK(failed == 0);
    CHECK(SANITIZED || kb[1] <= kb[0] + SLACK_KB); /* a sanitizer keeps what is freed */
    CHECK(files[1] <= files[0] + SLACK_FDS);
    return 0;
}
