#include "net/answers/answer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "kernels/sys/os.h"
#include "net/http/json_input.h"

#define FIRST "{\"mizzle_answers\":3,"

enum { PATIENCE_MS = 50, CRC_TAIL = 18 /* ,"crc":"01234567"} */ };

/* Report a failed system call with errno. */
static int answer_file_error(const char *path, const char *what, struct err *err)
{
    return err_set(err, ERR_IO, "%s: %s%s", path, what, strerror(errno));
}

/* Keep a problem for answer_file_note, unless it is the latest one again. */
static void trouble(struct answer_file *f, const struct err *why)
{
    f->untold |= strcmp(f->trouble.msg, why->msg) != 0;
    f->trouble = *why;
}

static uint64_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) || st.st_size < 0 ? 0 : (uint64_t)st.st_size;
}

/* Open this path, and look at its first bytes; a file that is empty or torn there is fine. made:
 * O_CREAT or 0. After an error *fd may be open. */
static int answer_file_fd(int *fd, const struct answer_file *f, const char *path, int made,
                          struct err *err)
{
    struct stat st;
    char found[40], line[64];
    /* Do not wait for the other end of a FIFO; the path has been followed. */
    int flags = f->offline ? O_RDONLY : O_RDWR | O_APPEND | O_NOFOLLOW | made;
    *fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (*fd < 0 || fstat(*fd, &st))
        return answer_file_error(path, "", err);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_ARG, "%s: expected a regular file", path);
    /* Others could fill it with answers, or get to read them. */
    int rc = f->offline ? OK : atomic_file_owned(path, &st, true, err);
    if (rc != OK)
        return rc;
    ssize_t n = pread(*fd, found, sizeof(found), 0);
    size_t most = strlen(FIRST), known = n < 0 ? 0 : (size_t)n;
    if (n >= 0 && memcmp(found, FIRST, known < most ? known : most) == 0)
        return OK;
    json_input_line(line, sizeof(line), found, known);
    return err_set(err, ERR_FORMAT, "%s: expected a file of answers, %s..., found %s", path, FIRST,
                   line);
}

/* Keep a line as f->other: while the model is looked for, the latest one of the name, with or
 * without a fingerprint; the first one if there is no name, and of other models. */
static void keep_line(struct answer_file *f, const char *line)
{
    static const char form[] = "\",\"tokenizer\":\"0123456789abcdef\",";
    bool keeps = !f->other;
    if (f->finds && f->model[0]) {
        size_t behind = sizeof(form) - 1, name = strlen(f->head) - behind;
        const char *end = strncmp(line, f->head, name) == 0 ? line + name : NULL;
        end = end && *end == '@' ? strchr(end, '"') : end;
        keeps = end && strncmp(end, f->head + name, behind) == 0;
    }
    if (!keeps)
        return;
    free(f->other);
    f->other = strdup(line);
}

/* Read a line of n bytes. */
static void take_line(struct answer_file *f, const char *line, size_t n)
{
    char tail[CRC_TAIL + 1];
    struct prefix_key k;
    uint64_t id = 0;
    int from = 0, to = 0, end = 0;
    size_t body = n > CRC_TAIL && n < ANSWER_FILE_LINE ? n - CRC_TAIL : 0;
    snprintf(tail, sizeof(tail), ",\"crc\":\"%08x\"}",
             (unsigned)crc32_z(0, (const Bytef *)line, body));
    bool whole = body && memcmp(tail, line + body, CRC_TAIL) == 0;
    if (whole && (f->finds || strncmp(line, f->head, strlen(f->head)) != 0)) {
        keep_line(f, line);
        return;
    }
    if (whole)
        sscanf(line + strlen(f->head),
               "\"n\":%*19[0-9],\"prefix\":\"%n%16" SCNx64 "%16" SCNx64 "%n\",\"id\":%10" SCNu64
               ",\"crc%n",
               &from, &k.hi, &k.lo, &to, &id, &end);
    if (!end || to - from != 32 || id > UINT32_MAX) {
        f->damaged++;
        return;
    }
    f->ours = true;
    f->take(f->arg, &k, (uint32_t)id);
}

/* Read the whole lines that have not been read; of a file far beyond the limit, only the end.
 * f->rest: the bytes behind them, a torn line or one that is being written. False: not all could be
 * read. */
static bool each_line(struct answer_file *f)
{
    char bytes[4 * ANSWER_FILE_LINE];
    struct err why;
    uint64_t size = size_of(f->fd);
    if (size < f->read) /* another program has truncated it */
        f->read = 0;
    bool left_out = size > f->limit && f->read < size - f->limit; /* it begins within a line */
    bool skips = left_out;                                        /* to the end of a line */
    f->read = left_out ? size - f->limit : f->read;
    for (uint64_t seen = f->read; seen < size;) {
        ssize_t n = pread(f->fd, bytes, sizeof(bytes), (off_t)seen);
        char *p = bytes, *end;
        size_t got = n < 0 ? 0 : (size_t)n;
        while ((end = memchr(p, '\n', (size_t)(bytes + got - p)))) {
            *end = '\0';
            if (!skips)
                take_line(f, p, (size_t)(end - p));
            f->damaged += skips && !left_out; /* it was too long */
            skips = left_out = false;
            p = end + 1;
        }
        if (p > bytes) {
            f->read = seen += (uint64_t)(p - bytes);
        } else if (got >= ANSWER_FILE_LINE) {
            skips = true;
            seen += got;
        } else if (got && seen + got >= size) {
            break;
        } else {
            errno = n < 0 ? errno : EIO;
            answer_file_error(f->path, "cannot be read: ", &why);
            trouble(f, &why);
            return false;
        }
    }
    f->read = left_out ? size : f->read;
    f->rest = size - f->read;
    return true;
}

/* Go on with the file that the path leads to, if it is another one: it has been begun anew. If it
 * has been removed, begin it anew here. If the path leads to something else, the open file stays in
 * use. made: O_CREAT or 0. */
static bool answer_file_follow(struct answer_file *f, int made, struct err *err)
{
    struct stat st, open;
    struct err why;
    int fd, there = made ? 0 : stat(f->path, &st);
    bool gone = there != 0 && errno == ENOENT && !f->offline;
    if (!made && there == 0 && fstat(f->fd, &open) == 0 && st.st_dev == open.st_dev &&
        st.st_ino == open.st_ino)
        return false;
    if (answer_file_fd(&fd, f, f->path, gone ? O_CREAT : made, &why) != OK) {
        if (fd >= 0)
            close(fd);
        if (gone)
            trouble(f, &why);
        err_set(err, ERR_IO, "%s", why.msg);
        return false;
    }
    each_line(f); /* what others have added last */
    close(f->fd); /* which releases the lock */
    f->fd = fd;
    f->read = 0;
    return true;
}

/* Read FILE.old, if there is one. */
static void answer_file_read_old(struct answer_file *f)
{
    struct stat st;
    struct err why;
    int fd = f->fd;
    uint64_t read = f->read;
    f->read = 0;
    f->old_read = true;
    if (answer_file_fd(&f->fd, f, f->old, 0, &why) == OK)
        each_line(f);
    else if (lstat(f->old, &st) == 0)
        trouble(f, &why);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = fd;
    f->read = read;
}

void answer_file_read(struct answer_file *f)
{
    if (f->fd < 0)
        return;
    if (!f->old_read)
        answer_file_read_old(f);
    answer_file_follow(f, 0, NULL);
    each_line(f);
}

/* Lock the file, read it, and cut off a torn last line, unless it could not be read. After one wait
 * for the lock in vain there are no more waits. */
static int answer_file_lock(struct answer_file *f, struct err *err)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    for (int waited = 0; fcntl(f->fd, F_SETLK, &lock) || answer_file_follow(f, 0, NULL);) {
        if (f->impatient || waited++ == PATIENCE_MS) {
            f->impatient = true;
            return err_set(err, ERR_IO, "%s: another process holds the lock", f->path);
        }
        os_nap(1000000);
    }
    f->impatient = false;
    if (!each_line(f))
        return err_set(err, ERR_IO, "%s", f->trouble.msg);
    if (f->rest && ftruncate(f->fd, (off_t)f->read))
        return answer_file_error(f->path, "a torn line cannot be cut off: ", err);
    f->torn += (size_t)f->rest;
    return OK;
}

static void answer_file_unlock(const struct answer_file *f)
{
    fcntl(f->fd, F_SETLK, &(struct flock){ .l_type = F_UNLCK, .l_whence = SEEK_SET });
}

bool answer_file_append(struct answer_file *f, const struct prefix_key *k, size_t n, uint32_t id)
{
    char line[ANSWER_FILE_LINE];
    struct err why;
    if (f->fd < 0 || f->offline)
        return false;
    int at = snprintf(line, sizeof(line),
                      "%s\"n\":%zu,\"prefix\":\"%016" PRIx64 "%016" PRIx64 "\",\"id\":%u", f->head,
                      n, k->hi, k->lo, (unsigned)id);
    unsigned crc = (unsigned)crc32_z(0, (const Bytef *)line, (size_t)at);
    at += snprintf(line + at, sizeof(line) - (size_t)at, ",\"crc\":\"%08x\"}\n", crc);
    int rc = answer_file_lock(f, &why);
    if (rc == OK && f->read + (size_t)at > f->limit)
        rc = rename(f->path, f->old)
                 ? answer_file_error(f->path, "cannot be renamed to .old: ", &why)
             : answer_file_follow(f, O_CREAT, &why) ? answer_file_lock(f, &why)
                                                    : ERR_IO;
    uint64_t size = size_of(f->fd);
    ssize_t wrote = rc == OK ? write(f->fd, line, (size_t)at) : 0;
    if (rc == OK && wrote != at) {
        errno = wrote < 0 ? errno : ENOSPC;
        rc = answer_file_error(f->path, "cannot write: ", &why);
        if (wrote > 0)
            (void)!ftruncate(f->fd, (off_t)size); /* else the next writer cuts it off */
    }
    f->read = rc == OK ? size + (size_t)at : f->read;
    answer_file_unlock(f);
    if (rc != OK)
        trouble(f, &why);
    return rc == OK;
}

int answer_file_open(struct answer_file *f, const char *path, struct err *err)
{
    int rc = f->offline ? OK : atomic_file_target(f->path, path, err);
    if (f->offline && snprintf(f->path, sizeof(f->path), "%s", path) >= (int)sizeof(f->path))
        rc = err_set(err, ERR_IO, "%s: %s", path, strerror(ENAMETOOLONG));
    snprintf(f->old, sizeof(f->old), "%s.old", f->path);
    return rc == OK ? answer_file_fd(&f->fd, f, f->path, O_CREAT, err) : rc;
}

static void answer_file_forget(struct answer_file *f)
{
    free(f->model);
    free(f->head);
    free(f->other);
    f->model = f->head = f->other = NULL;
}

void answer_file_close(struct answer_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    answer_file_forget(f);
}

/* Keep the model's name, and how its lines begin; they are then read from the file's beginning. */
static int answer_file_name(struct answer_file *f, const char *model, struct err *err)
{
    char tokenizer[17], head[ANSWER_FILE_LINE - 128] = "";
    snprintf(tokenizer, sizeof(tokenizer), "%016" PRIx64, f->tokenizer);
    json_t *named =
        json_pack("{s:i,s:s,s:s}", "mizzle_answers", 3, "model", model, "tokenizer", tokenizer);
    size_t n = named ? json_dumpb(named, head, sizeof(head) - 1, JSON_COMPACT) : 0;
    json_decref(named);
    answer_file_forget(f);
    f->model = strdup(model);
    f->head = n && n < sizeof(head) ? strdup(head) : NULL;
    if (f->head)
        f->head[n - 1] = ','; /* in place of } */
    f->read = f->damaged = 0;
    f->old_read = false;
    return f->model && f->head ? OK : err_set(err, ERR_NOMEM, "answers: no memory for the name");
}

int answer_file_server(struct answer_file *f, const char *model, struct err *err)
{
    char line[160];
    json_t *root = NULL;
    int rc = answer_file_name(f, model ? model : "", err);
    /* Find the model whose answers there are, and name it: that of FILE's first answer, else of
     * FILE.old's; if it is named, that of its latest fingerprint. */
    if (rc == OK && f->offline) {
        f->finds = true;
        f->old_read = !model;
        answer_file_read(f);
        if (!model && !f->other)
            answer_file_read_old(f);
        f->finds = false;
        if (f->other)
            json_input_parse(&root, f->other, strlen(f->other), NULL);
        const char *found = json_string_value(json_object_get(root, "model"));
        rc = answer_file_name(f, found ? found : model ? model : "", err);
        json_decref(root);
    }
    if (rc != OK || f->fd < 0)
        return rc;
    answer_file_read(f);
    if (!f->offline) { /* a torn line is cut off now, unless the lock is another's */
        answer_file_lock(f, NULL);
        answer_file_unlock(f);
        return OK;
    }
    f->torn = (size_t)f->rest;
    if (f->ours && f->other && !model && !f->untold) {
        json_input_line(line, sizeof(line), f->model, strlen(f->model));
        err_set(&f->trouble, OK, "%s: answers of several models: those of %s are used", f->path,
                line);
        f->untold = true;
    }
    if (f->ours)
        return OK;
    const char *found = f->other ? f->other : "none", *end = strstr(found, "\"n\":");
    json_input_line(line, sizeof(line), found, end ? (size_t)(end - found) : strlen(found));
    return err_set(err, ERR_FORMAT, "%s: expected %s... found %s", f->path, f->head, line);
}

bool answer_file_note(struct answer_file *f, struct err *note)
{
    if (f->torn) {
        err_set(note, OK, "%s: %s %zu bytes of a torn line", f->path,
                f->offline ? "left out" : "cut off", f->torn);
        f->torn = 0;
    } else if (f->damaged) {
        err_set(note, OK, "%s: %zu damaged lines are not used", f->path, f->damaged);
        f->damaged = 0;
    } else if (f->untold) {
        *note = f->trouble;
        f->untold = false;
    } else {
        return false;
    }
    return true;
}
