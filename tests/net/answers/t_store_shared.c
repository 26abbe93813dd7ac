/* t_store_shared.c - tests a shared store: processes that write, die and hold the lock; forked
 * children. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/net/answers/store_help.h"

/* Children write, each its own answers, while the parent reads. */
static void test_processes(uint32_t each, bool inherited)
{
    enum { CHILDREN = 4 };
    const struct timespec nap = { .tv_nsec = 10000000 };
    pid_t pid[CHILDREN];
    struct store *mine = must_open();
    for (uint32_t c = 0; c < CHILDREN; c++) {
        pid[c] = fork();
        CHECK(pid[c] >= 0);
        if (pid[c])
            continue;
        struct store *s = inherited ? mine : must_open();
        for (uint32_t i = 0; i < each; i++) {
            put(s, c * each + i);
            for (int tries = 0; !has(s, c * each + i);
                 tries++) { /* others held the lock for too long */
                CHECK(tries < 1000);
                nanosleep(&nap, NULL);
                put(s, c * each + i);
            }
        }
        store_close(s);
        _exit(0);
    }
    for (uint32_t i = 0; i < each; i++)
        has(mine, i);
    for (uint32_t c = 0; c < CHILDREN; c++) {
        int status;
        CHECK(waitpid(pid[c], &status, 0) == pid[c] && WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    silent(mine);
    CHECK(size_of() <= STORE_LEAST);
    bool all = CHILDREN * each * ANSWER_LINE_STORED + head_size() <= STORE_LEAST;
    uint32_t found = 0;
    for (uint32_t i = 0; i < CHILDREN * each; i++)
        found += has(mine, i);
    CHECK(all ? found == CHILDREN * each && store_size(mine) == found : found >= 400);
    store_close(mine);
    CHECK(unlink(path) == 0);
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
            struct store *s = must_open();
            for (uint32_t i = 0;; i++) {
                put(s, round * 100000 + i);
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
        struct store *s = must_open();
        for (uint32_t i = done > 150 ? done - 150 : 0; done && i <= done; i++)
            CHECK(has(s, round * 100000 + i)); /* an answer is there once store_put has returned */
        store_close(s);
        CHECK(size_of() <= STORE_LEAST);
        name_made(pid, 0);
        unlink(made); /* it may have been killed during a compaction */
    }
    CHECK(unlink(path) == 0);
}

/* While one process waits for the lock, its holder replaces the store; the answer goes to the new
 * file. */
static void test_replaced(void)
{
    for (uint32_t round = 0; round < 5; round++) {
        struct store *s = must_open();
        int pipes[2];
        char c;
        put(s, 1);
        CHECK(pipe(pipes) == 0);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
            struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
            const struct timespec nap = { .tv_nsec = 10000000 };
            char bytes[200];
            ssize_t n = (ssize_t)(head_size() + line_of(1));
            name_made(getpid(), 0);
            int fd = open(path, O_RDWR), new = open(made, O_RDWR | O_CREAT | O_TRUNC, 0600);
            if (fd < 0 || fcntl(fd, F_SETLKW, &l) || write(pipes[1], "x", 1) != 1)
                _exit(1);
            nanosleep(&nap, NULL);
            if (pread(fd, bytes, (size_t)n, 0) != n || write(new, bytes, (size_t)n) != n ||
                rename(made, path))
                _exit(1);
            _exit(0);
        }
        CHECK(read(pipes[0], &c, 1) == 1);
        put(s, 2);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        put(s, 3);
        CHECK(has(s, 1) && has(s, 2) && has(s, 3));
        store_close(s);
        close(pipes[0]);
        close(pipes[1]);
        s = must_open();
        CHECK(has(s, 1) && has(s, 2) && has(s, 3) && store_size(s) == 3);
        store_close(s);
        CHECK(unlink(path) == 0);
    }
}

/* Another process holds the lock and does not release it. */
static void test_held(void)
{
    struct store *s = must_open();
    int pipes[2];
    char c;
    CHECK(pipe(pipes) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int fd = open(path, O_RDWR);
        if (fd < 0 || fcntl(fd, F_SETLKW, &l) || write(pipes[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    CHECK(read(pipes[0], &c, 1) == 1);
    for (uint32_t i = 0; i < 300; i++) {
        put(s, i);
        CHECK(has(s, i) == (i < 256));
    }
    struct err note;
    CHECK(store_note(s, &note) && strstr(note.msg, "holds the lock"));
    CHECK(store_note(s, &note) && strstr(note.msg, "44 answers could not be kept"));
    CHECK(size_of() == head_size());
    /* Its answer to the same prefix does not replace one that waits, and will stand behind it. */
    char line[ANSWER_LINE_STORED];
    struct prefix_key k = key_of(7);
    ssize_t n = (ssize_t)answer_line_stored(line, &k, 5);
    int fd = open(path, O_WRONLY | O_APPEND);
    CHECK(fd >= 0 && write(fd, line, (size_t)n) == n && close(fd) == 0);
    CHECK(!has(s, 300) && has(s, 7));
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    close(pipes[0]);
    close(pipes[1]);
    store_close(s);
    s = must_open();
    CHECK(has(s, 0) && has(s, 7) && has(s, 255) && !has(s, 256));
    store_close(s);
    CHECK(unlink(path) == 0);
}

int main(void)
{
    begin();
    test_processes(200, false);
    test_processes(200, true);
    test_processes(3000, false);
    test_killed();
    test_held();
    test_replaced();
    CHECK(rmdir(folder) == 0);
    return 0;
}
