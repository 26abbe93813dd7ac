/* soak.c - `make soak-serve`: 100,000 requests (or as many as the argument says) of 64 clients to a
 * server of another process, one in ten rude. Each other answer is byte for byte the one that is
 * given alone; memory and descriptors of the server must not grow. */
#include <dirent.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/sys/os.h"
#include "tests/support/clients.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"

enum { CLIENTS = 64, REQUESTS = 100000, VARIANTS = 40, SLACK_KB = 4096, SLACK_FDS = 8 };

struct server {
    pid_t pid;
    int end; /* closing this ends the server */
    unsigned port;
};

/* Start the server in a child process. */
static void start(struct server *s)
{
    int port[2], end[2], status;
    char byte;
    CHECK(pipe(port) == 0 && pipe(end) == 0);
    s->pid = fork();
    CHECK(s->pid >= 0);
    if (s->pid == 0) {
        const struct serve_options o = { .parallel = 8 };
        struct serving serving;
        close(end[1]);
        serving_open(&serving, &o, SERVING_CLOUD);
        CHECK(write(port[1], &serving.port, sizeof(s->port)) == sizeof(s->port));
        while (read(end[0], &byte, 1) > 0)
            ;
        serving_close(&serving);
        exit(0);
    }
    close(port[1]);
    close(end[0]);
    if (read(port[0], &s->port, sizeof(s->port)) != sizeof(s->port)) {
        CHECK(waitpid(s->pid, &status, 0) == s->pid);
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    close(port[0]);
    s->end = end[1];
}

/* Return resident memory of the server; 0 when the system does not say. */
static size_t resident_kb(const struct server *s)
{
    char path[64];
    unsigned long pages, resident = 0;
    snprintf(path, sizeof(path), "/proc/%ld/statm", (long)s->pid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lu %lu", &pages, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* Return how many descriptors the server has open; 0 when the system does not say. */
static size_t open_files(const struct server *s)
{
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof(path), "/proc/%ld/fd", (long)s->pid);
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    size_t requests = argc > 1 ? strtoull(argv[1], NULL, 10) : REQUESTS, first = requests / 5;
    size_t kb[2], files[2];
    struct server s;
    int status;
    start(&s);
    size_t kinds = clients_learn(s.port, VARIANTS);
    uint64_t clock = os_now_ns();
    size_t rude = clients_run(s.port, CLIENTS, first);
    kb[0] = resident_kb(&s);
    files[0] = open_files(&s);
    rude += clients_run(s.port, CLIENTS, requests - first);
    double seconds = (double)(os_now_ns() - clock) / 1e9;
    kb[1] = resident_kb(&s);
    files[1] = open_files(&s);
    long failed = clients_metric(s.port, "texts_failed_total");
    long stopped = clients_metric(s.port, "texts_stopped_total");
    clients_forget();
    close(s.end);
    CHECK(waitpid(s.pid, &status, 0) == s.pid && status == 0);
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
