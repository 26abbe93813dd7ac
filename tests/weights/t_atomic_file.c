/* t_atomic_file.c - permissions of new files and of those that replace another one. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "tests/support/test.h"
#include "weights/atomic_file.h"

static char folder[] = "/tmp/t_atomic_file_XXXXXX", path[64], name[64];
static struct err err;

/* Write a file and return its permissions. */
static unsigned save(const char *to, bool private)
{
    struct atomic_file f;
    struct stat st;
    CHECK((private ? atomic_file_open_private : atomic_file_open)(&f, to, &err) == OK);
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

/* A new file follows the umask; one that replaces another keeps its bits, whatever the umask,
 * except set-user-ID. A private file is its owner's in any case. */
static void test_kept(void)
{
    static const mode_t modes[] = { 0600, 0400, 0640, 0644, 0660, 0666, 0604, 0755, 04755 };
    umask(027);
    unlink(path);
    CHECK(save(path, false) == 0640);
    unlink(path);
    CHECK(save(path, true) == 0600);
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        create(modes[i]);
        CHECK(save(path, false) == (modes[i] & 0777));
        CHECK(save(path, false) == (modes[i] & 0777));
        CHECK(save(path, true) == 0600);
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

/* A link stays, and what it leads to keeps its bits. */
static void test_link(void)
{
    struct stat st;
    umask(022);
    create(0600);
    CHECK(symlink(strrchr(path, '/') + 1, name) == 0);
    CHECK(save(name, false) == 0600 && lstat(name, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(unlink(path) == 0 && save(name, false) == 0644 && lstat(path, &st) == 0);
    CHECK(S_ISREG(st.st_mode) && unlink(name) == 0);
}

/* Replacing another user's or group's file lets nobody else read or write more than before. Only
 * root can make such a file. */
static void test_foreign(void)
{
    static const struct {
        mode_t old, new;
    } rows[] = { { 0640, 0600 }, { 0604, 0600 }, { 0644, 0644 }, { 0666, 0644 }, { 0, 0600 } };
    if (geteuid() != 0)
        return;
    umask(022);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        create(rows[i].old);
        CHECK(chown(path, 65534, (gid_t)-1) == 0 && save(path, false) == rows[i].new);
        create(rows[i].old);
        CHECK(chown(path, (uid_t)-1, 65534) == 0 && save(path, false) == rows[i].new);
        create(rows[i].old);
        CHECK(chown(path, 65534, 65534) == 0 && save(path, true) == 0600);
    }
}

int main(void)
{
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/file", folder);
    snprintf(name, sizeof(name), "%s/link", folder);
    test_kept();
    test_unfinished();
    test_link();
    test_foreign();
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
    return 0;
}
