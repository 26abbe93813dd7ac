#include "net/answers/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/crc.h"

/* Magic, version 1, record size, zeros: the same 32 bytes in every store. */
static const unsigned char header[STORE_HEADER] = { 'M',  'Z', 'S', 'T', 'O', 'R',         'E',
                                                    '\n', 1,   0,   0,   0,   STORE_RECORD };
enum { MAGIC = 8, LINKS = 16, PATH_BYTES = 4096 };

/* Write the low n bytes of v, little-endian. */
static void put_le(unsigned char *p, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get_le(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i--;)
        v = v << 8 | p[i];
    return v;
}

/* Return the CRC-32 of a record without its own checksum. */
static uint32_t checksum(const unsigned char *p)
{
    return crc_add(0, p, STORE_RECORD - 4);
}

static void store_file_encode(unsigned char *p, const struct store_record *r)
{
    put_le(p, r->key.lo, 8);
    put_le(p + 8, r->key.hi, 8);
    put_le(p + 16, r->id, 4);
    put_le(p + 20, checksum(p), 4);
}

/* Read a record. False: the checksum does not match. */
static bool store_file_decode(struct store_record *r, const unsigned char *p)
{
    r->key = (struct prefix_key){ get_le(p, 8), get_le(p + 8, 8) };
    r->id = (uint32_t)get_le(p + 16, 4);
    return get_le(p + 20, 4) == checksum(p);
}

/* Report a failed system call with errno. */
static int io_error(const struct store_file *f, const char *what, struct err *err)
{
    return err_set(err, ERR_IO, "%s: %s: %s", f->path, what, strerror(errno));
}

/* Read as much of [at, at + n) as there is. */
static size_t read_at(int fd, void *to, size_t n, uint64_t at)
{
    size_t got = 0;
    while (got < n) {
        ssize_t k = pread(fd, (char *)to + got, n - got, (off_t)(at + got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            break;
        got += (size_t)k;
    }
    return got;
}

/* Append p[n] to a file of `size` bytes in one write; a partial write is undone. */
static bool store_file_write_whole(int fd, const void *p, size_t n, off_t size)
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

/* Return path with symbolic links at its end followed (malloc'ed), so that a compaction replaces
 * the file and not the link. */
static int store_file_follow(char **out, const char *path, struct err *err)
{
    char target[PATH_BYTES];
    char *at = malloc(strlen(path) + 1);
    if (at)
        memcpy(at, path, strlen(path) + 1);
    for (int links = 0; at; links++) {
        ssize_t n = readlink(at, target, sizeof(target));
        if (n < 0) { /* not a link */
            *out = at;
            return OK;
        }
        if ((size_t)n == sizeof(target) || links == LINKS) {
            free(at);
            return err_set(err, ERR_IO, "%s: too many symbolic links, or too long ones", path);
        }
        const char *slash = *target == '/' ? NULL : strrchr(at, '/');
        size_t folder = slash ? (size_t)(slash - at) + 1 : 0;
        char *next = malloc(folder + (size_t)n + 1);
        if (next) {
            memcpy(next, at, folder);
            memcpy(next + folder, target, (size_t)n);
            next[folder + (size_t)n] = 0;
        }
        free(at);
        at = next;
    }
    return err_set(err, ERR_NOMEM, "%s: out of memory", path);
}

/* Open f->path, read-only if it cannot be written. made: O_CREAT or 0. */
static int open_fd(struct store_file *f, int made, struct err *err)
{
    struct stat st;
    /* Do not wait for the other end of a FIFO. */
    int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    f->writable = true;
    f->fd = open(f->path, O_RDWR | O_APPEND | made | flags, 0600);
    int why = errno;
    if (f->fd < 0 && (why == EACCES || why == EROFS || why == EPERM)) {
        f->writable = false;
        f->fd = open(f->path, O_RDONLY | flags);
        if (f->fd < 0)
            errno = why; /* "no such file" would hide that it could not be created */
    }
    if (f->fd < 0)
        return err_set(err, errno == EISDIR ? ERR_ARG : ERR_IO, "%s: %s", f->path, strerror(errno));
    if (fstat(f->fd, &st))
        return err_set(err, ERR_IO, "%s: %s", f->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_ARG, "%s: expected a regular file", f->path);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    return OK;
}

/* Check the header. repair (needs the lock): write it into an empty file or over a torn header. */
static int check_header(struct store_file *f, bool repair, struct err *err)
{
    unsigned char found[STORE_HEADER];
    size_t n = read_at(f->fd, found, sizeof(found), 0);
    if (n == sizeof(found) && memcmp(found, header, n) == 0)
        return OK;
    if (n >= MAGIC && memcmp(found, header, MAGIC) == 0 && n == sizeof(found))
        return err_set(err, ERR_FORMAT,
                       "%s: header: expected version 1 with records of %d bytes, found %u and %u",
                       f->path, STORE_RECORD, (unsigned)get_le(found + 8, 4),
                       (unsigned)get_le(found + 12, 4));
    if (n == sizeof(found) || memcmp(found, header, n) != 0 || !repair)
        return err_set(err, ERR_FORMAT, "%s: expected a store of answers, found other bytes",
                       f->path);
    if (ftruncate(f->fd, 0) || !store_file_write_whole(f->fd, header, sizeof(header), 0))
        return io_error(f, "cannot write", err);
    return OK;
}

static uint64_t file_size(const struct store_file *f)
{
    struct stat st;
    return fstat(f->fd, &st) || st.st_size < 0 ? 0 : (uint64_t)st.st_size;
}

/* Truncate the file after its last whole record. Call with the file locked. */
static int store_file_cut_tail(struct store_file *f, size_t *torn, struct err *err)
{
    uint64_t size = file_size(f);
    *torn = size > STORE_HEADER ? (size_t)((size - STORE_HEADER) % STORE_RECORD) : 0;
    if (!*torn || ftruncate(f->fd, (off_t)(size - *torn)) == 0)
        return OK;
    return io_error(f, "a torn record cannot be cut off", err);
}

int store_file_open(struct store_file *f, const char *path, size_t *torn, struct err *err)
{
    bool moved;
    *torn = 0;
    *f = (struct store_file){ .fd = -1 };
    int rc = store_file_follow(&f->path, path, err);
    if (rc == OK)
        rc = open_fd(f, O_CREAT, err);
    if (rc == OK && f->writable) {
        if (!store_file_lock(f, 2000, &moved, err)) {
            rc = ERR_IO;
        } else {
            rc = check_header(f, true, err);
            if (rc == OK)
                rc = store_file_cut_tail(f, torn, err);
            store_file_unlock(f);
        }
    } else if (rc == OK) {
        rc = check_header(f, false, err);
    }
    if (rc != OK)
        store_file_close(f);
    return rc;
}

void store_file_close(struct store_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    *f = (struct store_file){ .fd = -1 };
}

/* Try to set or drop the lock, without waiting. */
static bool set_lock(int fd, short type)
{
    struct flock l = { .l_type = type, .l_whence = SEEK_SET };
    return fcntl(fd, F_SETLK, &l) == 0;
}

bool store_file_moved(struct store_file *f)
{
    struct stat st;
    struct store_file now = { .fd = -1 };
    if (stat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
        return false;
    /* If the path no longer exists or is not a store, keep using the open file. */
    now.path = f->path;
    if (stat(f->path, &st) || !S_ISREG(st.st_mode) || open_fd(&now, 0, NULL) ||
        check_header(&now, false, NULL)) {
        if (now.fd >= 0)
            close(now.fd);
        return false;
    }
    close(f->fd);
    *f = now;
    return true;
}

bool store_file_lock(struct store_file *f, unsigned ms, bool *moved, struct err *err)
{
    const struct timespec nap = { .tv_nsec = 1000000 };
    *moved = false;
    for (unsigned waited = 0;; waited++) {
        if (set_lock(f->fd, F_WRLCK)) {
            if (!store_file_moved(f))
                return true;
            *moved = true; /* closing the old file released the lock */
        } else if (errno != EACCES && errno != EAGAIN && errno != EINTR) {
            io_error(f, "cannot be locked", err);
            return false;
        }
        if (waited >= ms) {
            err_set(err, ERR_IO, "%s: another process holds the lock", f->path);
            return false;
        }
        nanosleep(&nap, NULL);
    }
}

void store_file_unlock(struct store_file *f)
{
    set_lock(f->fd, F_UNLCK);
}

uint64_t store_file_records(const struct store_file *f)
{
    uint64_t size = file_size(f);
    return size > STORE_HEADER ? (size - STORE_HEADER) / STORE_RECORD : 0;
}

size_t store_file_read(const struct store_file *f, uint64_t at, struct store_record *out, bool *bad,
                       size_t n)
{
    unsigned char bytes[STORE_FILE_BATCH * STORE_RECORD];
    if (n > STORE_FILE_BATCH)
        n = STORE_FILE_BATCH;
    n = read_at(f->fd, bytes, n * STORE_RECORD, STORE_HEADER + at * STORE_RECORD) / STORE_RECORD;
    for (size_t i = 0; i < n; i++)
        bad[i] = !store_file_decode(&out[i], bytes + i * STORE_RECORD);
    return n;
}

int store_file_append(struct store_file *f, const struct store_record *r, size_t n, size_t *torn,
                      struct err *err)
{
    unsigned char bytes[STORE_FILE_BATCH * STORE_RECORD];
    int rc = store_file_cut_tail(f, torn, err);
    if (rc != OK)
        return rc;
    uint64_t size = file_size(f);
    if (size < STORE_HEADER)
        return err_set(err, ERR_FORMAT, "%s: the header is gone", f->path);
    for (size_t i = 0; i < n; i++)
        store_file_encode(bytes + i * STORE_RECORD, &r[i]);
    return store_file_write_whole(f->fd, bytes, n * STORE_RECORD, (off_t)size)
               ? OK
               : io_error(f, "cannot write", err);
}

/* Open a new file beside f; process id and a number keep its name apart from other files. */
static int store_file_create(struct store_file *made, const struct store_file *f, size_t room)
{
    int fd = -1;
    for (unsigned i = 0; i < STORE_FILE_NAMES && fd < 0; i++) {
        snprintf(made->path, room, "%s.%ld.%u.new", f->path, (long)getpid(), i);
        fd = open(made->path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

int store_file_begin(struct store_file *made, const struct store_file *f, struct err *err)
{
    struct stat st;
    size_t room = strlen(f->path) + 32;
    *made = (struct store_file){ .fd = -1, .writable = true, .path = malloc(room) };
    if (!made->path)
        return err_set(err, ERR_NOMEM, "%s: out of memory", f->path);
    made->fd = store_file_create(made, f, room);
    if (made->fd < 0 || fstat(f->fd, &st) || fchmod(made->fd, st.st_mode & 0777) ||
        !store_file_write_whole(made->fd, header, sizeof(header), 0) || fstat(made->fd, &st)) {
        int rc = io_error(made, "cannot write", err);
        store_file_discard(made);
        return rc;
    }
    made->dev = st.st_dev;
    made->ino = st.st_ino;
    return OK;
}

void store_file_discard(struct store_file *made)
{
    if (made->fd >= 0)
        unlink(made->path);
    store_file_close(made);
}

/* Sync the folder of path if the system can, so that the new name survives a power loss. */
static void sync_folder(char *path)
{
    char *slash = strrchr(path, '/'), kept = slash ? slash[1] : 0;
    if (slash)
        slash[1] = 0;
    int fd = open(slash ? path : ".", O_RDONLY | O_CLOEXEC);
    if (slash)
        slash[1] = kept;
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

int store_file_replace(struct store_file *f, struct store_file *made, struct err *err)
{
    if (fsync(made->fd) || rename(made->path, f->path)) {
        int rc = io_error(made, "cannot take the store's place", err);
        store_file_discard(made);
        return rc;
    }
    close(f->fd); /* this drops the lock, too */
    free(made->path);
    made->path = f->path;
    *f = *made;
    *made = (struct store_file){ .fd = -1 };
    sync_folder(f->path);
    return OK;
}
