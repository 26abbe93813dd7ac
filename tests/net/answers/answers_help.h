/* answers_help.h - numbered answers in a file, for the tests of answers. */
#ifndef TESTS_NET_ANSWERS_ANSWERS_HELP_H
#define TESTS_NET_ANSWERS_ANSWERS_HELP_H

#include <sys/stat.h>

#include "net/answers/answer_file.h"
#include "tests/support/test.h"

enum { LIMIT = 65536 };

static char folder[] = "build/answers-XXXXXX", path[64], old[64];
static struct err err;

static inline uint32_t id_of(uint32_t i)
{
    return i * 2654435761u;
}

static inline void put(struct answers *c, uint32_t i)
{
    answers_put(c, &i, 1, true, id_of(i));
}

/* True when answer i is known; checks that it is right. */
static inline bool has(struct answers *c, uint32_t i)
{
    uint32_t id = 0;
    if (answers_get(c, &i, 1, false, &id) == CLOUD_UNKNOWN)
        return false;
    CHECK(id == id_of(i));
    return true;
}

static inline int open_with(struct answers **c, uint64_t limit, bool offline)
{
    const struct answers_options o = {
        .file = path, .limit = limit, .offline = offline, .tokenizer = 7, .vocab = SIZE_MAX
    };
    int rc = answers_open(c, &o, &err);
    if (rc == OK && (rc = answers_server(*c, "model", &err)) != OK) {
        answers_close(*c);
        *c = NULL;
    }
    return rc;
}

static inline struct answers *must_open(void)
{
    struct answers *c;
    CHECK_MSG(open_with(&c, LIMIT, false) == OK && c, "%s", err.msg);
    return c;
}

/* There is nothing to report. */
static inline void silent(struct answers *c)
{
    struct err note;
    bool told = answers_note(c, &note);
    CHECK_MSG(!told, "%s", note.msg);
}

/* There is a line with this text to report, and no other one. */
static inline void says(struct answers *c, const char *what)
{
    struct err note = { "" };
    CHECK(answers_note(c, &note));
    CHECK_MSG(strstr(note.msg, what) && strstr(note.msg, path) && !strchr(note.msg, '\n'),
              "expected %s, found %s", what, note.msg);
    silent(c);
}

/* There is nothing to report up to the end. */
static inline void silent_close(struct answers *c)
{
    silent(c);
    answers_close(c);
}

static inline size_t size_of(const char *name)
{
    struct stat st;
    CHECK(stat(name, &st) == 0);
    return (size_t)st.st_size;
}

/* Return the length of the line of answer i. */
static inline size_t line_of(uint32_t i)
{
    return (size_t)snprintf(NULL, 0,
                            "{\"mizzle_answers\":3,\"model\":\"model\",\"tokenizer\":\"%016x\","
                            "\"n\":1,\"prefix\":\"%032x\",\"id\":%u,\"crc\":\"%08x\"}\n",
                            0, 0, id_of(i), 0);
}

static inline void clean(void)
{
    CHECK(unlink(path) == 0);
    unlink(old);
}

static inline void close_clean(struct answers *c)
{
    answers_close(c);
    clean();
}

static inline void begin(void)
{
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/kept", folder);
    snprintf(old, sizeof(old), "%s/kept.old", folder);
}

#endif
