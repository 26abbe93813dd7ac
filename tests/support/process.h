/* process.h - processes of a test with pipes to them, what they take of the machine, and sockets
 * of the loopback address. */
#ifndef TESTS_SUPPORT_PROCESS_H
#define TESTS_SUPPORT_PROCESS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/support/test.h"

struct child {
    pid_t pid;    /* 0: none */
    int to, from; /* its stdin and its stdout */
};

/* Start a process that calls run(arg) and ends with status 127 if that returns. */
static inline void child_start(struct child *c, void (*run)(const void *arg), const void *arg)
{
    int to[2], from[2];
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    c->pid = fork();
    CHECK(c->pid >= 0);
    if (c->pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[1]);
        close(from[0]);
        run(arg);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    c->to = to[1];
    c->from = from[0];
}

/* Send a signal (0: none), close the pipes, and return the status when it has ended. */
static inline int child_end(struct child *c, int sig)
{
    int status = 0;
    if (!c->pid)
        return 0;
    kill(c->pid, sig);
    close(c->to);
    close(c->from);
    CHECK(waitpid(c->pid, &status, 0) == c->pid);
    c->pid = 0;
    return status;
}

/* Return the resident memory of a process in KiB; 0 where that cannot be known. */
static inline size_t resident_kb(pid_t pid)
{
    char path[64];
    unsigned long all, resident = 0;
    snprintf(path, sizeof(path), "/proc/%ld/statm", (long)pid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lu %lu", &all, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* Bind a socket to a free port of 127.0.0.1 and listen; backlog -1: do not listen. */
static inline int loopback(unsigned *port, int backlog)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
    CHECK(backlog < 0 || listen(fd, backlog) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

#endif
