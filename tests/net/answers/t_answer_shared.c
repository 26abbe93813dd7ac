/* t_answer_shared.c - a file of answers that processes share, who write, die and hold the lock. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/net/answers/answers_help.h"

/* Use answer i, so that it is written if it has not been. */
static void use(struct answers *c, uint32_t i)
{
    uint32_t id;
    CHECK(answers_get(c, &i, 1, true, &id) != CLOUD_UNKNOWN && id == id_of(i));
}

/* Children write, each its own answers, while the parent reads. */
static void test_processes(uint32_t each, uint64_t limit, bool inherited)
{
    enum { CHILDREN = 4 };
    const struct timespec nap = { .tv_nsec = 10000000 };
    pid_t pid[CHILDREN];
    struct answers *mine;
    CHECK(open_with(&mine, limit, false) == OK);
    for (uint32_t p = 0; p < CHILDREN; p++) {
        pid[p] = fork();
        CHECK(pid[p] >= 0);
        if (pid[p])
            continue;
        struct answers *c = mine;
        struct err note;
        CHECK(inherited || open_with(&c, limit, false) == OK);
        for (uint32_t i = 0; i < each; i++)
            put(c, p * each + i);
        while (answers_note(c, &note)) { /* others held the lock for too long */
            CHECK(strstr(note.msg, "lock"));
            nanosleep(&nap, NULL);
            for (uint32_t i = 0; i < each; i++)
                if (has(c, p * each + i))
                    use(c, p * each + i);
        }
        answers_close(c);
        _exit(0);
    }
    for (uint32_t i = 0; i < each; i++)
        has(mine, i);
    for (uint32_t p = 0; p < CHILDREN; p++) {
        int status;
        CHECK(waitpid(pid[p], &status, 0) == pid[p] && WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    silent(mine);
    CHECK(size_of(path) <= limit);
    answers_forget(mine);
    uint32_t found = 0;
    for (uint32_t i = 0; i < CHILDREN * each; i++)
        found += has(mine, i);
    bool all = CHILDREN * each * line_of(1) <= limit - LIMIT;
    CHECK_MSG(all ? found == CHILDREN * each : found >= 400, "%u", (unsigned)found);
    silent_close(mine);
    clean();
}

/* Writers are killed at any moment. */
static void test_killed(void)
{
    for (uint32_t round = 0; round < 12; round++) {
        int pipes[2];
        uint32_t done = 0, last;
        CHECK(pipe(pipes) == 0);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
            struct answers *c = must_open();
            for (uint32_t i = 0;; i++) {
                put(c, round * 100000 + i);
                if (write(pipes[1], &i, sizeof(i)) != sizeof(i))
                    _exit(1);
            }
        }
        close(pipes[1]);
        while (done < 400 * round && read(pipes[0], &last, sizeof(last)) == sizeof(last))
            done = last;
        CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        while (read(pipes[0], &last, sizeof(last)) == sizeof(last))
            done = last;
        close(pipes[0]);
        struct answers *c = must_open();
        for (uint32_t i = done > 150 ? done - 150 : 0; done && i <= done; i++)
            CHECK(has(c, round * 100000 + i)); /* it is there once answers_put has returned */
        answers_close(c);
        CHECK(size_of(path) <= LIMIT);
    }
    clean();
}

/* A process takes the lock, says so, and waits; without `replace`, for a signal, else to put
 * another file of the same lines in the place of this one. */
static pid_t hold(bool replace)
{
    int pipes[2];
    char c;
    CHECK(pipe(pipes) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        const struct timespec nap = { .tv_nsec = 10000000 };
        char bytes[1000];
        int fd = open(path, O_RDWR), new = open(old, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || fcntl(fd, F_SETLKW, &l) || write(pipes[1], "x", 1) != 1)
            _exit(1);
        if (!replace)
            pause();
        nanosleep(&nap, NULL);
        ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
        _exit(n < 1 || write(new, bytes, (size_t)n) != n || rename(old, path));
    }
    CHECK(read(pipes[0], &c, 1) == 1);
    close(pipes[0]);
    close(pipes[1]);
    return pid;
}

/* While a process waits for the lock, its holder replaces the file: the new one is written to. */
static void test_replaced(void)
{
    for (uint32_t round = 0; round < 5; round++) {
        struct answers *c = must_open();
        int status;
        put(c, 1);
        pid_t pid = hold(true);
        put(c, 2);
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        put(c, 3);
        use(c, 2);
        CHECK(has(c, 1) && has(c, 2) && has(c, 3));
        answers_close(c);
        c = must_open();
        CHECK(has(c, 1) && has(c, 2) && has(c, 3));
        CHECK(size_of(path) == line_of(1) + line_of(2) + line_of(3));
        close_clean(c);
    }
}

/* Another process holds the lock and does not release it. */
static void test_held(void)
{
    struct answers *c = must_open();
    pid_t pid = hold(false);
    for (uint32_t i = 0; i < 300; i++) {
        put(c, i);
        CHECK(has(c, i));
    }
    says(c, "another process holds the lock");
    CHECK(size_of(path) == 0);
    /* Its answer to the same prefix does not replace one that was there before. */
    char bytes[1000];
    struct answers *other;
    snprintf(bytes, sizeof(bytes), "%s", path);
    snprintf(path, sizeof(path), "%s/other", folder);
    const uint32_t ids[] = { 7, 299 };
    CHECK(open_with(&other, 0, false) == OK);
    for (size_t i = 0; i < 2; i++)
        answers_put(other, &ids[i], 1, true, 5);
    answers_close(other);
    size_t n = size_of(path);
    int from = open(path, O_RDONLY);
    CHECK(unlink(path) == 0);
    memcpy(path, bytes, sizeof(path));
    int fd = open(path, O_WRONLY | O_APPEND);
    CHECK(from >= 0 && read(from, bytes, n) == (ssize_t)n && close(from) == 0);
    CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0);
    CHECK(!has(c, 300) && has(c, 7) && has(c, 299));
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    for (uint32_t i = 0; i < 100; i++)
        use(c, i);
    answers_close(c);
    c = must_open();
    uint32_t id;
    CHECK(has(c, 0) && has(c, 99) && !has(c, 100));
    CHECK(answers_get(c, &ids[0], 1, false, &id) != CLOUD_UNKNOWN && id == 5); /* the first line */
    close_clean(c);
}

int main(void)
{
    begin();
    test_processes(200, 4 * LIMIT, false);
    test_processes(200, 4 * LIMIT, true);
    test_processes(1500, LIMIT, false);
    test_killed();
    test_held();
    test_replaced();
    CHECK(rmdir(folder) == 0);
    return 0;
}
