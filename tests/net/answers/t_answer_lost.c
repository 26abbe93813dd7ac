/* t_answer_lost.c - tests a file of answers that cannot be read, or is removed or renamed while it
 * is open. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/net/answers/answers_help.h"

/* How the file is read: as it is, not at all, or without its end. */
static enum { READS, FAILS, ENDS } reading;

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    if (reading != READS && at > 0) {
        errno = EIO;
        return reading == FAILS ? -1 : 0;
    }
    if (lseek(fd, at, SEEK_SET) < 0) /* files of answers are appended to, wherever they stand */
        return -1;
    return read(fd, p, n);
}

/* What cannot be read is not cut off. */
static void test_unread(void)
{
    for (reading = FAILS; reading <= ENDS; reading++) {
        struct answers *c = must_open(), *other = must_open();
        for (uint32_t i = 0; i < 400; i++)
            put(c, i);
        size_t n = size_of(path);
        CHECK(n > 4 * ANSWER_FILE_LINE);
        put(other, 400);
        says(other, strerror(EIO));
        silent(other);
        CHECK(size_of(path) == n && has(other, 400) && !has(other, 399));
        answers_close(other);
        other = must_open();
        says(other, strerror(EIO));
        CHECK(size_of(path) == n);
        answers_close(other);
        answers_close(c);
        CHECK(open_with(&c, 0, true) == OK && has(c, 0) && !has(c, 399));
        says(c, strerror(EIO));
        silent(c);
        answers_close(c);
        CHECK(unlink(path) == 0);
    }
    reading = READS;
}

/* A file that is removed or renamed begins anew with the next answer. */
static void test_removed(void)
{
    struct answers *c = must_open();
    put(c, 1);
    CHECK(unlink(path) == 0);
    put(c, 2);
    CHECK(size_of(path) == line_of(2));
    CHECK(rename(path, old) == 0); /* as a process does that then dies */
    put(c, 3);
    CHECK(has(c, 1) && has(c, 2) && has(c, 3) && size_of(path) == line_of(3));
    silent(c);
    answers_close(c);
    c = must_open();
    CHECK(!has(c, 1) && has(c, 2) && has(c, 3));
    answers_close(c);
    CHECK(unlink(old) == 0 && mkdir(old, 0700) == 0); /* what cannot be used is noted */
    c = must_open();
    says(c, "kept.old: ");
    silent(c);
    CHECK(has(c, 3));
    answers_close(c);
    CHECK(open_with(&c, 0, true) == OK);
    says(c, "kept.old: ");
    CHECK(unlink(path) == 0 && !has(c, 4) && access(path, F_OK) != 0); /* it is only read */
    silent(c);
    answers_close(c);
    CHECK(rmdir(old) == 0);
}

int main(void)
{
    begin();
    test_unread();
    test_removed();
    CHECK(rmdir(folder) == 0);
    return 0;
}
