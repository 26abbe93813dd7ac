/* What a server can no longer do: write, make or execute files outside the folders named, get more
 * rights, dump its memory. What it still can: read, and use files that were open. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tools/serve/sandbox.h"
#include "tests/support/test.h"

static char inside[] = "/tmp/sandbox-in-XXXXXX", outside[] = "/tmp/sandbox-out-XXXXXX";

/* Try to open folder/name. */
static bool opens(const char *folder, const char *name, int flags)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, flags, 0600);
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
    char path[200], name[200];
    int fd;
    snprintf(path, sizeof(path), "%s/old", outside);
    fd = open(path, O_WRONLY);
    CHECK(fd >= 0 && executes());
    bool locked = sandbox_enter(folders);
    CHECK(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0 && core.rlim_max == 0);
    CHECK(write(fd, "x", 1) == 1);
    CHECK(opens(outside, "old", O_RDONLY));
    CHECK(opens(inside, "new", O_WRONLY | O_CREAT));
    snprintf(path, sizeof(path), "%s/new", inside);
    snprintf(name, sizeof(name), "%s/renamed", inside);
    CHECK(rename(path, name) == 0 && unlink(name) == 0);
    if (!locked)
        return false;
    CHECK(!opens(outside, "old", O_WRONLY));
    CHECK(!opens(outside, "old", O_WRONLY | O_TRUNC));
    CHECK(!opens(outside, "new", O_WRONLY | O_CREAT));
    snprintf(path, sizeof(path), "%s/old", outside);
    CHECK(unlink(path) != 0 && truncate(path, 0) != 0);
    snprintf(path, sizeof(path), "%s/folder", inside);
    CHECK(mkdir(path, 0700) != 0);
    CHECK(!executes());
    return true;
}

int main(void)
{
    char path[200];
    int status;
    CHECK(mkdtemp(inside) && mkdtemp(outside));
    snprintf(path, sizeof(path), "%s/old", outside);
    CHECK(opens(outside, "old", O_WRONLY | O_CREAT));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(restricted() ? 0 : 77);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    unlink(path);
    CHECK(rmdir(inside) == 0 && rmdir(outside) == 0);
    if (WEXITSTATUS(status) == 77)
        puts("SKIP: this kernel has no Landlock; the rest was tested");
    return WEXITSTATUS(status);
}
