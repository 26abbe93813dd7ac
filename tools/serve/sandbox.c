/* sandbox.c - see landlock(7) and prctl(2). */
#define _GNU_SOURCE
#include "tools/serve/sandbox.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/landlock.h>)
#define LANDLOCK 1
#endif
#endif

#ifdef __linux__
#include <sys/prctl.h>
#endif

#ifdef LANDLOCK
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rights of later versions, which older headers lack. */
#define REFER    (UINT64_C(1) << 13)
#define TRUNCATE (UINT64_C(1) << 14)

/* Forbid to change and to execute files, except to change them in the folders. */
static bool sandbox_lock(const char *const *folders)
{
    const uint64_t files = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                           LANDLOCK_ACCESS_FS_MAKE_REG;
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    uint64_t more = (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0);
    struct landlock_ruleset_attr rules = {
        .handled_access_fs = files | more | LANDLOCK_ACCESS_FS_EXECUTE |
                             LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                             LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                             LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                             LANDLOCK_ACCESS_FS_MAKE_SYM,
    };
    if (version < 1)
        return false;
    int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
    bool fine = fd >= 0;
    for (; fine && *folders; folders++) {
        struct landlock_path_beneath_attr rule = { .allowed_access = files | more };
        rule.parent_fd = open(*folders, O_PATH | O_CLOEXEC);
        fine = rule.parent_fd >= 0 &&
               syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
        if (rule.parent_fd >= 0)
            close(rule.parent_fd);
    }
    fine = fine && syscall(SYS_landlock_restrict_self, fd, 0) == 0;
    if (fd >= 0)
        close(fd);
    return fine;
}
#endif

bool sandbox_enter(const char *const *folders)
{
    const struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
#ifdef __linux__
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* core dumps into a pipe know no limit */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return false;
#endif
#ifdef LANDLOCK
    return sandbox_lock(folders);
#else
    (void)folders;
    return false;
#endif
}
