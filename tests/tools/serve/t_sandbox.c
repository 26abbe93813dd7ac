/* What a server can no longer do: write, make or execute files outside the folders named, get more
 * rights, dump its memory. What it still can: read, and use files that were open. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tools/serve/sandbox.h"
#include "tests/support/test.h"

static char inside[] = "/tmp/sandbox-in-XXXXXX", outside[] = "/tmp/sandbox-out-XXXXXX";

/* Return the path of a file in a folder, in static storage. */
static const char *at(const char *folder, const char *name)
{
    static char path[2][200];
    static int next;
    next = !next;
    snprintf(path[next], sizeof(path[0]), "%s/%s", folder, name);
    return path[next];
}

static bool opens(const char *folder, const char *name, int flags)
{
    int fd = open(at(folder, name), flags, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* In a process of its own: true if a program can be started. */
static bool executes(void)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(99);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

/* Run in a child, which is restricted for good. Return whether Landlock is in force. */
static bool restricted(void)
{
    const char *const folders[] = { inside, NULL };
    struct rlimit core;
    int fd = open(at(outside, "old"), O_WRONLY);
    CHECK(fd >= 0 && executes());
    bool locked = sandbox_enter(folders);
    CHECK(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0 && core.rlim_max == 0);
    CHECK(write(fd, "x", 1) == 1);
    CHECK(opens(outside, "old", O_RDONLY));
    CHECK(opens(inside, "new", O_WRONLY | O_CREAT));
    CHECK(rename(at(inside, "new"), at(inside, "renamed")) == 0);
    CHECK(unlink(at(inside, "renamed")) == 0);
    if (!locked)
        return false;
    CHECK(!opens(outside, "old", O_WRONLY));
    CHECK(!opens(outside, "old", O_WRONLY | O_TRUNC));
    CHECK(!opens(outside, "new", O_WRONLY | O_CREAT));
    CHECK(unlink(at(outside, "old")) != 0 && truncate(at(outside, "old"), 0) != 0);
    CHECK(mkdir(at(inside, "folder"), 0700) != 0);
    CHECK(!executes());
    return true;
}

int main(void)
{
    int status;
    CHECK(mkdtemp(inside) && mkdtemp(outside));
    CHECK(opens(outside, "old", O_WRONLY | O_CREAT));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(restricted() ? 0 : 77);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    unlink(at(outside, "old"));
    CHECK(rmdir(inside) == 0 && rmdir(outside) == 0);
    if (WEXITSTATUS(status) == 77)
        puts("SKIP: this kernel has no Landlock; the rest was tested");
    return WEXITSTATUS(status);
}
