#define _XOPEN_SOURCE 700 /* S_ISVTX */
#include "kernels/sys/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"

/* The names of unfinished files. A slot is filled and emptied by one atomic exchange each, so that
 * a signal handler may empty it at any time; a name that it took is never freed. */
enum { PARTS_MAX = 64 };
static _Atomic(char *) unfinished[PARTS_MAX];

/* Replace `from` by `to` in a slot that holds `from`; false when no slot does. */
static bool atomic_file_swap(char *from, char *to)
{
    for (size_t i = 0; i < PARTS_MAX; i++) {
        char *expected = from;
        if (atomic_compare_exchange_strong(&unfinished[i], &expected, to))
            return true;
    }
    return false;
}

void atomic_file_abandon_all(void)
{
    for (size_t i = 0; i < PARTS_MAX; i++) {
        char *temp = atomic_exchange(&unfinished[i], NULL);
        if (temp)
            unlink(temp);
    }
}

enum { LINKS_MAX = 40, TARGET_MAX = ATOMIC_FILE_NAME };

/* Write the name of the folder of a file. False: it is too long. */
static bool atomic_file_folder(char folder[TARGET_MAX], const char *name)
{
    const char *slash = strrchr(name, '/');
    int n = slash ? (int)(slash - name) + 1 : 0;
    return snprintf(folder, TARGET_MAX, "%.*s", n ? n : 1, n ? name : ".") < TARGET_MAX;
}

/* True for a link that somebody else may have planted: it lies in a folder in which everybody may
 * make files, such as /tmp, and belongs neither to this user nor to the folder's owner. Linux
 * refuses to follow such links if fs.protected_symlinks is set, but only where it follows them. */
static bool atomic_file_planted(const char *name, const struct stat *link)
{
    char folder[TARGET_MAX];
    struct stat st;
    return !atomic_file_folder(folder, name) || stat(folder, &st) != 0 ||
           ((st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH) && link->st_uid != geteuid() &&
            link->st_uid != st.st_uid);
}

int atomic_file_target(char name[TARGET_MAX], const char *path, struct err *err)
{
    struct stat st;
    char rest[TARGET_MAX], target[TARGET_MAX], next[TARGET_MAX];
    size_t n = 0; /* of name, which has no links */
    int links = 0;
    const char *why = NULL;
    name[0] = '\0';
    if (snprintf(rest, TARGET_MAX, "%s", path) >= TARGET_MAX)
        why = strerror(ENAMETOOLONG);
    while (!why && *rest) {
        size_t slashes = strspn(rest, "/"), part = slashes + strcspn(rest + slashes, "/");
        ssize_t size = 0;
        if (n + part >= TARGET_MAX) {
            why = strerror(ENAMETOOLONG);
            break;
        }
        memcpy(name + n, rest, part);
        name[n + part] = '\0';
        if (lstat(name, &st) != 0 || !S_ISLNK(st.st_mode)) {
            n += part;
            memmove(rest, rest + part, strlen(rest + part) + 1);
            continue;
        }
        if (atomic_file_planted(name, &st))
            return err_set(err, ERR_IO, "%s: cannot be written: %s is another user's link", path,
                           name);
        if (links++ == LINKS_MAX)
            why = strerror(ELOOP);
        else if ((size = readlink(name, target, sizeof(target))) <= 0 || size == TARGET_MAX ||
                 snprintf(next, TARGET_MAX, "%.*s%s", (int)size, target, rest + part) >= TARGET_MAX)
            why = "a link that cannot be read";
        else
            memcpy(rest, next, TARGET_MAX);
        n = target[0] == '/' ? 0 : n + slashes;
    }
    return why ? err_set(err, ERR_IO, "%s: cannot be written: %s", path, why) : OK;
}

int atomic_file_owned(const char *path, const struct stat *st, bool writes, struct err *err)
{
    if (st->st_uid != geteuid() && (writes || st->st_uid != 0))
        return err_set(err, ERR_IO, "%s: expected a file of this user, found one of user %lu", path,
                       (unsigned long)st->st_uid);
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, ERR_IO,
                       "%s: expected a file only its owner may write (chmod go-w), found mode %04o",
                       path, (unsigned)(st->st_mode & 07777));
    return OK;
}

/* Let a new file that will replace `old` be its group's. Where that is not allowed, its own group
 * gets no more than all others. */
static void atomic_file_regroup(int fd, const struct stat *old)
{
    struct stat made;
    if (fstat(fd, &made) == 0 && made.st_gid != old->st_gid &&
        fchown(fd, (uid_t)-1, old->st_gid) != 0)
        fchmod(fd, made.st_mode & (S_IRWXU | S_IRWXO | (made.st_mode & S_IRWXO) << 3));
}

/* Open a new file beside the final one. The process id and a number in its name keep writers apart.
 * old: what it will replace, or NULL; the new file allows no more. */
static int atomic_file_create(struct atomic_file *p, size_t room, const struct stat *old)
{
    int fd = -1;
    mode_t mode = old ? old->st_mode & 0666 : 0666;
    for (unsigned i = 0; i < 100 && fd < 0; i++) {
        snprintf(p->temp, room, "%s.%ld.%u.part", p->path, (long)getpid(), i);
        fd = open(p->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd >= 0 && old)
        atomic_file_regroup(fd, old);
    return fd;
}

int atomic_file_open(struct atomic_file *p, const char *path, struct err *err)
{
    struct stat st;
    char name[TARGET_MAX];
    *p = (struct atomic_file){ 0 };
    int fd = -1, code = atomic_file_target(name, path, err);
    if (code != OK)
        return code;
    bool exists = stat(name, &st) == 0;
    size_t n = strlen(name) + 1, room = n + 32;
    p->path = malloc(n);
    p->temp = malloc(room);
    if (p->path)
        memcpy(p->path, name, n);
    if (!p->path || !p->temp) {
        code = err_set(err, ERR_NOMEM, "%s: out of memory", path);
    } else if (exists && !S_ISREG(st.st_mode)) {
        code = err_set(err, ERR_IO, "%s: expected a regular file to replace, found %s", path,
                       S_ISDIR(st.st_mode) ? "a folder" : "something else");
    } else {
        fd = atomic_file_create(p, room, exists ? &st : NULL);
        p->f = fd >= 0 ? fdopen(fd, "wb") : NULL;
        if (!p->f)
            code = err_set(err, ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    if (code == OK) {
        p->listed = atomic_file_swap(NULL, p->temp);
        return OK;
    }
    if (fd >= 0) {
        close(fd);
        unlink(p->temp);
    }
    free(p->path);
    free(p->temp);
    *p = (struct atomic_file){ 0 };
    return code;
}

/* Let the new name survive a loss of power, where the file system can do that. */
static void atomic_file_sync_folder(const char *path)
{
    char folder[TARGET_MAX];
    atomic_file_folder(folder, path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

int atomic_file_close(struct atomic_file *p, bool commit, struct err *err)
{
    int code = OK;
    if (!p->f)
        return OK;
    if (commit && (ferror(p->f) || fflush(p->f) != 0 || fsync(fileno(p->f)) != 0))
        code = err_set(err, ERR_IO, "%s: %s", p->path, strerror(errno));
    if (fclose(p->f) != 0 && commit && code == OK)
        code = err_set(err, ERR_IO, "%s: %s", p->path, strerror(errno));
    if (commit && code == OK && rename(p->temp, p->path) != 0)
        code = err_set(err, ERR_IO, "%s: %s", p->path, strerror(errno));
    if (!commit || code != OK)
        unlink(p->temp);
    else
        atomic_file_sync_folder(p->path);
    free(p->path);
    if (!p->listed || atomic_file_swap(p->temp, NULL)) /* otherwise a signal handler is using it */
        free(p->temp);
    *p = (struct atomic_file){ 0 };
    return code;
}
