#include "net/answers/answer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/atomic_file.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/answers/answer_line.h"

enum { HEAD = 64 };

/* Report a failed system call with errno. */
static int io_error(const struct answer_file *f, const char *what, struct err *err)
{
    return err_set(err, ERR_IO, "%s: %s: %s", f->path, what, strerror(errno));
}

/* Read as much of [at, at + n) as there is. -1: an error, see errno. */
static ssize_t read_at(int fd, char *to, size_t n, uint64_t at)
{
    size_t got = 0;
    while (got < n) {
        ssize_t k = pread(fd, to + got, n - got, (off_t)(at + got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        if (!k)
            break;
        got += (size_t)k;
    }
    return (ssize_t)got;
}

/* Append p[n] to a file of `size` bytes in one write; a partial write is undone. */
static bool answer_file_write(int fd, const void *p, size_t n, off_t size)
{
    ssize_t k;
    do
        k = write(fd, p, n);
    while (k < 0 && errno == EINTR);
    if (k >= 0 && (size_t)k == n)
        return true;
    int why = k < 0 ? errno : ENOSPC;
    if (k > 0 && ftruncate(fd, size)) /* if this fails, the next writer cuts the torn tail */
        why = errno;
    errno = why;
    return false;
}

/* Open f->path; a store that cannot be written is opened for reading. made: O_CREAT or 0. */
static int open_fd(struct answer_file *f, int made, struct err *err)
{
    struct stat st;
    /* Do not wait for the other end of a FIFO. */
    int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY, why = EACCES;
    flags |= f->use == ANSWER_REPLAY ? 0 : O_NOFOLLOW; /* the path has been followed */
    f->writable = f->use != ANSWER_REPLAY;
    if (f->writable) {
        f->fd = open(f->path, O_RDWR | O_APPEND | made | flags, 0600);
        why = errno;
    }
    if (f->fd < 0 && f->use != ANSWER_RECORD && (why == EACCES || why == EROFS || why == EPERM)) {
        f->fd = open(f->path, O_RDONLY | flags);
        if (f->fd < 0 && f->writable)
            errno = why; /* "no such file" would hide that it could not be created */
        f->writable = false;
    }
    if (f->fd < 0)
        return err_set(err, errno == EISDIR ? ERR_ARG : ERR_IO, "%s: %s", f->path, strerror(errno));
    if (fstat(f->fd, &st))
        return err_set(err, ERR_IO, "%s: %s", f->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_ARG, "%s: expected a regular file", f->path);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    /* Others could fill it with answers, or get to read them. */
    return f->use == ANSWER_REPLAY ? OK : atomic_file_owned(f->path, &st, f->writable, err);
}

/* Write what a file of this use begins with: all of a store's first line, or the part of a
 * recording's that is the same in each. */
static size_t answer_file_head(enum answer_use use, char head[ANSWER_LINE])
{
    if (use == ANSWER_STORE)
        return answer_line_store(head);
    answer_line_server(head, &(struct answer_server){ 0 });
    return strlen("{\"mizzle_answers\":2,\"model\":\"");
}

/* No line has been read. */
static void answer_file_rewind(struct answer_file *f)
{
    char head[ANSWER_LINE];
    f->lines = f->use == ANSWER_STORE;
    f->read = f->lines ? answer_file_head(f->use, head) : 0;
    f->skipping = false;
}

void answer_file_close(struct answer_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    *f = (struct answer_file){ .fd = -1 };
}

uint64_t answer_file_size(const struct answer_file *f)
{
    struct stat st;
    return fstat(f->fd, &st) || st.st_size < 0 ? 0 : (uint64_t)st.st_size;
}

/* True when p[n] begins with text. */
static bool begins(const char *p, size_t n, const char *text)
{
    return n >= strlen(text) && memcmp(p, text, strlen(text)) == 0;
}

/* Look at the first bytes. ERR_FORMAT: the file is something else, or of another version. A file
 * that is empty or torn there is fine if it can be written. */
static int answer_file_check(const struct answer_file *f, struct err *err)
{
    static const char ours[] = "{\"mizzle_answers\":";
    char head[ANSWER_LINE], found[HEAD];
    size_t most = answer_file_head(f->use, head);
    ssize_t k = read_at(f->fd, found, HEAD, 0);
    if (k < 0)
        return io_error(f, "cannot be read", err);
    size_t n = (size_t)k;
    if (memcmp(found, head, n < most ? n : most) == 0 && (n >= most || f->writable))
        return OK;
    const char *want = f->use == ANSWER_STORE ? "a store of answers" : "a recording", *is = NULL;
    bool older = begins(found, n, "MZSTORE\n") || begins(found, n, "{\"mizzle_record\":");
    if (older || (begins(found, n, ours) && n >= sizeof(ours) && found[sizeof(ours) - 1] != '2'))
        return err_set(err, ERR_FORMAT,
                       "%s: version: expected 2, found %c, of another Mizzle: name another file",
                       f->path, older ? '1' : found[sizeof(ours) - 1]);
    if (begins(found, n, "{\"mizzle_answers\":2,\"model\":"))
        is = "a recording";
    else if (begins(found, n, "{\"mizzle_answers\":2,\"crc\":"))
        is = "a store of answers";
    return err_set(err, ERR_FORMAT, "%s: expected %s, found %s", f->path, want,
                   is && strcmp(is, want) != 0 ? is
                   : n                         ? "other bytes"
                                               : "an empty file");
}

int answer_file_cut(struct answer_file *f, struct err *err)
{
    char tail[ANSWER_LINE], head[ANSWER_LINE];
    uint64_t size = answer_file_size(f), from = size > ANSWER_LINE ? size - ANSWER_LINE : 0;
    if (f->read == size && !f->skipping)
        return OK;
    ssize_t n = read_at(f->fd, tail, (size_t)(size - from), from);
    size_t torn = 0;
    if (n < 0)
        return io_error(f, "cannot be read", err);
    while (torn < (size_t)n && tail[(size_t)n - torn - 1] != '\n')
        torn++;
    if (torn && torn == (size_t)n && from) /* damage: it ends here, and is skipped like a line */
        return answer_file_append(f, "\n", 1, err);
    if (torn && ftruncate(f->fd, (off_t)(size - torn)))
        return io_error(f, "a torn line cannot be cut off", err);
    f->torn += torn;
    return f->use == ANSWER_STORE && size == torn
               ? answer_file_append(f, head, answer_file_head(f->use, head), err)
               : OK;
}

bool answer_file_note(struct answer_file *f, struct err *note)
{
    if (!f->torn)
        return false;
    err_set(note, OK, "%s: %s %zu bytes of a torn line", f->path,
            f->writable ? "cut off" : "left out", f->torn);
    f->torn = 0;
    return true;
}

/* Give one line to take. */
static int take_line(struct answer_file *f, answer_file_take *take, void *arg, const char *p,
                     size_t n, struct err *err)
{
    struct err low;
    int rc = f->skipping ? OK : take(arg, f->lines + 1, p, n, &low);
    return rc == OK ? OK : err_set(err, rc, "%s: line %zu: %s", f->path, f->lines + 1, low.msg);
}

int answer_file_read(struct answer_file *f, uint64_t most, answer_file_take *take, void *arg,
                     struct err *err)
{
    char bytes[4 * ANSWER_LINE];
    uint64_t size = answer_file_size(f);
    if (size < f->read) /* another program has truncated it */
        answer_file_rewind(f);
    if (size > most && f->read < size - most) {
        f->read = size - most;
        f->skipping = true;
    }
    if (f->read >= size)
        return OK;
    for (;;) {
        ssize_t n = read_at(f->fd, bytes, sizeof(bytes), f->read);
        const char *p = bytes, *end;
        if (n < 0)
            return io_error(f, "cannot be read", err);
        while ((end = memchr(p, '\n', (size_t)(bytes + n - p)))) {
            int rc = take_line(f, take, arg, p, (size_t)(end - p), err);
            if (rc != OK)
                return rc;
            f->skipping = false;
            f->lines++;
            f->read += (size_t)(end - p) + 1;
            p = end + 1;
        }
        if (p > bytes)
            continue;
        if (n <= ANSWER_LINE)
            return OK;
        int rc = take_line(f, take, arg, p, (size_t)n, err);
        if (rc != OK)
            return rc;
        f->skipping = true;
        f->read += (size_t)n;
    }
}

/* Try to set or drop the lock, without waiting. */
static bool set_lock(int fd, short type)
{
    struct flock l = { .l_type = type, .l_whence = SEEK_SET };
    return fcntl(fd, F_SETLK, &l) == 0;
}

bool answer_file_moved(struct answer_file *f)
{
    struct stat st;
    struct answer_file now = { .use = f->use, .fd = -1, .path = f->path, .torn = f->torn };
    if (stat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
        return false;
    answer_file_rewind(&now);
    /* If the path no longer exists or is not a store, keep using the open file. */
    if (stat(f->path, &st) || !S_ISREG(st.st_mode) || open_fd(&now, 0, NULL) ||
        answer_file_check(&now, NULL) || answer_file_size(&now) < now.read) {
        if (now.fd >= 0)
            close(now.fd);
        return false;
    }
    close(f->fd);
    *f = now;
    return true;
}

int answer_file_lock(struct answer_file *f, unsigned ms, struct err *err)
{
    for (unsigned waited = 0;; waited++) {
        if (set_lock(f->fd, F_WRLCK)) {
            if (!answer_file_moved(f)) /* closing the old file has released the lock */
                return OK;
        } else if (errno != EACCES && errno != EAGAIN && errno != EINTR) {
            return io_error(f, "cannot be locked", err);
        }
        if (waited >= ms)
            return err_set(err, ERR_IO, "%s: another process holds the lock", f->path);
        os_nap(1000000);
    }
}

int answer_file_open(struct answer_file *f, const char *path, enum answer_use use, unsigned ms,
                     struct err *err)
{
    char name[ATOMIC_FILE_NAME];
    *f = (struct answer_file){ .use = use, .fd = -1 };
    int rc = use == ANSWER_REPLAY ? OK : atomic_file_target(name, path, err);
    if (rc != OK)
        return rc;
    path = use == ANSWER_REPLAY ? path : name;
    size_t n = strlen(path) + 1;
    if (!(f->path = malloc(n)))
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    memcpy(f->path, path, n);
    answer_file_rewind(f);
    rc = open_fd(f, O_CREAT, err);
    if (rc == OK && f->writable)
        rc = answer_file_lock(f, ms, err);
    return rc == OK ? answer_file_check(f, err) : rc;
}

void answer_file_unlock(struct answer_file *f)
{
    set_lock(f->fd, F_UNLCK);
}

int answer_file_append(struct answer_file *f, const char *lines, size_t n, struct err *err)
{
    uint64_t size = answer_file_size(f);
    if (!answer_file_write(f->fd, lines, n, (off_t)size))
        return io_error(f, "cannot write", err);
    if (f->read == size) {
        f->read += n;
        f->skipping = false;
    }
    return OK;
}

int answer_file_replace(struct answer_file *f, void (*fill)(void *arg, FILE *to), void *arg,
                        struct err *err)
{
    char head[ANSWER_LINE];
    struct atomic_file made;
    struct stat old, new;
    int rc = atomic_file_open(&made, f->path, err);
    if (rc != OK)
        return rc;
    int fd = fileno(made.f); /* whoever may write the store may write the new one, */
    if (fstat(f->fd, &old) == 0 && fstat(fd, &new) == 0 && old.st_gid == new.st_gid)
        (void)!fchmod(fd, old.st_mode & 0777); /* unless that would be another group */
    fwrite(head, 1, answer_file_head(f->use, head), made.f);
    fill(arg, made.f);
    rc = atomic_file_close(&made, true, err);
    if (rc == OK && !answer_file_moved(f)) /* closing the old file releases the lock */
        rc = err_set(err, ERR_IO, "%s: the compacted file cannot be opened", f->path);
    return rc;
}
