/* t_atomic_file.c - permissions of new files and of those that replace another one. */
#define _DEFAULT_SOURCE /* setgroups */
#include <grp.h>
#include <sys/stat.h>

#include "tests/support/test.h"
#include "kernels/sys/atomic_file.h"

static char folder[] = "/tmp/t_atomic_file_XXXXXX", path[64], name[64];
static struct err err;

static unsigned save(const char *to)
{
    struct atomic_file f;
    struct stat st;
    CHECK(atomic_file_open(&f, to, &err) == OK);
    CHECK(fputs("new", f.f) >= 0 && atomic_file_close(&f, true, &err) == OK);
    CHECK(stat(to, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 3);
    return st.st_mode & 07777;
}

/* Create what will be replaced. */
static void create(mode_t mode)
{
    unlink(path);
    FILE *f = fopen(path, "wb");
    CHECK(f && fclose(f) == 0 && chmod(path, mode) == 0);
}

/* A new file follows the umask; one that replaces another allows no more than that did either. */
static void test_kept(void)
{
    static const mode_t modes[][2] = { { 0600, 0600 }, { 0400, 0400 },  { 0640, 0640 },
                                       { 0644, 0640 }, { 0660, 0640 },  { 0666, 0640 },
                                       { 0604, 0600 }, { 04755, 0640 }, { 0606, 0600 } };
    umask(027);
    unlink(path);
    CHECK(save(path) == 0640);
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        create(modes[i][0]);
        CHECK(save(path) == modes[i][1]);
        CHECK(save(path) == modes[i][1]);
    }
}

/* While it is written, a file never allows more than in the end. */
static void test_unfinished(void)
{
    struct atomic_file f;
    struct stat st;
    create(0600);
    umask(0);
    CHECK(atomic_file_open(&f, path, &err) == OK && fstat(fileno(f.f), &st) == 0);
    CHECK((st.st_mode & 0777) == 0600 && atomic_file_close(&f, false, &err) == OK);
    CHECK(stat(path, &st) == 0 && st.st_size == 0 && (st.st_mode & 0777) == 0600);
}

/* A link stays, and what it leads to allows no more than before. */
static void test_link(void)
{
    struct stat st;
    umask(022);
    create(0600);
    CHECK(symlink(strrchr(path, '/') + 1, name) == 0);
    CHECK(save(name) == 0600 && lstat(name, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(unlink(path) == 0 && save(name) == 0644 && lstat(path, &st) == 0);
    CHECK(S_ISREG(st.st_mode) && unlink(name) == 0);
}

/* Another user's link in a folder for all is not followed, whether it is the file, a folder on the
 * way, or one that a link of one's own leads through. Only root can make such links. */
static void test_planted(void)
{
    static const char *const tries[] = { "%s/all/x/file", "%s/all//x/./file", "%s/mine/file",
                                         "%s/own",        "%s/all/y/file",    "%s/all/x" };
    char all[64], made[64], to[ATOMIC_FILE_NAME];
    struct atomic_file f;
    snprintf(all, sizeof(all), "%s/all", folder);
    CHECK(mkdir(all, 0777) == 0 && chdir(all) == 0 && symlink("..", "x") == 0);
    CHECK(symlink("x", "y") == 0 && symlink("all/x", "../mine") == 0);
    CHECK(symlink("mine/file", "../own") == 0 && chmod(".", 01777) == 0);
    for (int planted = 0; planted < (geteuid() ? 1 : 2); planted++) {
        CHECK(!planted || lchown("x", 65534, 65534) == 0);
        for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
            snprintf(made, sizeof(made), tries[i], folder);
            int rc = atomic_file_target(to, made, &err);
            CHECK_MSG(rc == (planted ? ERR_IO : OK), "%s: %s", made, rc ? err.msg : to);
            CHECK(!planted || strstr(err.msg, "/x is another user's link"));
        }
        CHECK(atomic_file_target(to, "x/file", &err) == (planted ? ERR_IO : OK));
        CHECK(planted ? atomic_file_open(&f, "x/file", &err) == ERR_IO : save("y/file") > 0);
    }
    CHECK(unlink("x") == 0 && symlink("x", "x") == 0);
    CHECK(atomic_file_target(to, "y/file", &err) == ERR_IO && strstr(err.msg, "symbolic"));
    CHECK(unlink("x") == 0 && unlink("y") == 0 && unlink("../mine") == 0 && unlink("../own") == 0);
    CHECK(chdir("/") == 0 && rmdir(all) == 0);
    if (geteuid() != 0)
        puts("SKIP: links of other users need root");
}

/* Replace a file of user 0 and this group as a user who is in no other group than 65534. */
static void check_group(gid_t group, mode_t old, mode_t new)
{
    struct stat st;
    create(old);
    CHECK(chown(path, 0, group) == 0 && chown(folder, 65534, 65534) == 0);
    CHECK(setgroups(0, NULL) == 0 && setegid(65534) == 0 && seteuid(65534) == 0);
    CHECK(save(path) == new &&stat(path, &st) == 0);
    CHECK(st.st_uid == 65534 && st.st_gid == 65534);
    CHECK(seteuid(0) == 0 && setegid(0) == 0 && chown(folder, 0, 0) == 0);
}

/* A file stays in its group, if whoever replaces it may put it there; or else their group gets no
 * more than all others had. Only root can make such files. */
static void test_groups(void)
{
    struct stat st;
    if (geteuid() != 0) {
        puts("SKIP: files of other groups need root");
        return;
    }
    umask(002);
    create(0660);
    CHECK(chown(path, 65534, 65534) == 0 && save(path) == 0660);
    CHECK(stat(path, &st) == 0 && st.st_uid == 0 && st.st_gid == 65534);
    check_group(65534, 0660, 0660);
    check_group(0, 0660, 0600);
    check_group(0, 0664, 0644);
    check_group(0, 0604, 0604);
}

int main(void)
{
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/file", folder);
    snprintf(name, sizeof(name), "%s/link", folder);
    test_kept();
    test_unfinished();
    test_link();
    test_planted();
    test_groups();
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
    return 0;
}
