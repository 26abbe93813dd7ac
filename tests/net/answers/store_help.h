/* store_help.h - numbered answers in a store, for t_store.c and t_store_shared.c. */
#ifndef TESTS_NET_ANSWERS_STORE_HELP_H
#define TESTS_NET_ANSWERS_STORE_HELP_H

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "net/answers/answer_line.h"
#include "net/answers/store.h"
#include "tests/support/test.h"

static char folder[] = "build/store-XXXXXX", path[64], made[96];
static struct err err;

static inline struct prefix_key key_of(uint32_t i)
{
    struct prefix_key print = prefix_key_fingerprint("model", 7);
    return prefix_key_of(&print, &i, 1);
}

static inline uint32_t id_of(uint32_t i)
{
    return i * 2654435761u;
}

/* Store answer i. */
static inline void put(struct store *s, uint32_t i)
{
    struct prefix_key k = key_of(i);
    store_put(s, &k, id_of(i));
}

/* True when answer i is in the store; checks that it is right. */
static inline bool has(struct store *s, uint32_t i)
{
    struct prefix_key k = key_of(i);
    uint32_t id;
    if (!store_get(s, &k, &id))
        return false;
    CHECK(id == id_of(i));
    return true;
}

static inline struct store *must_open(void)
{
    struct store *s;
    CHECK_MSG(store_open(&s, path, STORE_LEAST, &err) == OK && s, "%s", err.msg);
    return s;
}

/* The store has nothing to report. */
static inline void silent(struct store *s)
{
    struct err note;
    bool told = store_note(s, &note);
    CHECK_MSG(!told, "%s", note.msg);
}

/* Return the size of the file. */
static inline size_t size_of(void)
{
    struct stat st;
    CHECK(stat(path, &st) == 0);
    return (size_t)st.st_size;
}

/* Return the length of the line of answer i. */
static inline size_t line_of(uint32_t i)
{
    char line[ANSWER_LINE_STORED];
    struct prefix_key k = key_of(i);
    return answer_line_stored(line, &k, id_of(i));
}

/* Return the length of an empty store. */
static inline size_t head_size(void)
{
    char line[ANSWER_LINE];
    return answer_line_store(line);
}

/* Set made to the i-th name of a file by which a process would replace the store. Always true, for
 * use in loops. */
static inline bool name_made(pid_t pid, unsigned i)
{
    snprintf(made, sizeof(made), "%s.%ld.%u.part", path, (long)pid, i);
    return true;
}

/* Make the folder for the test. */
static inline void begin(void)
{
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/store", folder);
}

#endif
