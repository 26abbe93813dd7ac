#include "tests/support/malformed.h"

#include "model/model.h"
#include "model/text/tokenizer.h"
#include "tests/support/test.h"
#include "weights/weights.h"

static size_t kinds;

/* Append n bytes, or zeros if p is NULL. */
static void malformed_put(unsigned char *out, size_t room, size_t *at, const void *p, size_t n)
{
    CHECK(n <= room - *at);
    if (n && p)
        memcpy(out + *at, p, n);
    else if (n)
        memset(out + *at, 0, n);
    *at += n;
}

/* Append a number of so many bytes. */
static void malformed_number(unsigned char *out, size_t room, size_t *at, uint64_t v, size_t bytes)
{
    unsigned char b[8];
    for (size_t i = 0; i < 8; i++)
        b[i] = (unsigned char)(v >> (8 * i));
    CHECK(bytes <= sizeof(b));
    malformed_put(out, room, at, b, bytes);
}

size_t malformed_assemble(unsigned char *out, size_t room, const char *words)
{
    size_t at = 0;
    for (const char *p = words + strspn(words, " "); *p; p += strspn(p, " ")) {
        bool counted = p[0] == 's';
        if (counted || *p == '\'') {
            const char *text = p + counted + 1, *end = strchr(text, '\'');
            CHECK(end);
            if (counted)
                malformed_number(out, room, &at, (uint64_t)(end - text), 8);
            malformed_put(out, room, &at, text, (size_t)(end - text));
            p = end + 1;
            continue;
        }
        char *end;
        CHECK(p[1] == ':');
        uint64_t v = strtoull(p + 2, &end, 0);
        CHECK(end > p + 2);
        if (*p == 'z')
            malformed_put(out, room, &at, NULL, (size_t)v);
        else if (*p == 'a')
            malformed_put(out, room, &at, NULL, (size_t)((v - at % v) % v));
        else
            malformed_number(out, room, &at, v, (size_t)(*p - '0'));
        p = end;
    }
    return at;
}

/* Open a part; return the code. */
static int malformed_open(const char *path, enum malformed_part part, struct err *err)
{
    struct weights *w = NULL;
    struct model *m = NULL;
    struct tokenizer *t = NULL;
    if (part == MALFORMED_TOKENIZER) {
        int code = tokenizer_open_path(&t, path, err);
        CHECK((code == OK) == (t != NULL));
        tokenizer_close(t);
        return code;
    }
    int code = weights_open(&w, path, err);
    CHECK((code == OK) == (w != NULL));
    if (code == OK && part == MALFORMED_MODEL)
        code = model_outline(&m, w, err);
    model_close(m);
    weights_close(w);
    return code;
}

void malformed_opens(const char *name, const char *path, enum malformed_part part)
{
    struct err err;
    CHECK_MSG(malformed_open(path, part, &err) == OK, "%s: expected to open, found \"%s\"", name,
              err.msg);
}

void malformed_refused(const char *name, const char *path, enum malformed_part part,
                       const char *says)
{
    struct err err;
    int code = malformed_open(path, part, &err);
    CHECK_MSG((code == ERR_FORMAT || code == ERR_IO) && strstr(err.msg, says) &&
                  strncmp(err.msg, path, strlen(path)) == 0 && !strchr(err.msg, '\n'),
              "%s: expected \"%s\", found %d \"%s\"", name, says, code, code == OK ? "" : err.msg);
    kinds++;
}

/* Copy what stands before the next ~ of a list, and return what is behind it, or NULL. */
static const char *malformed_first(char *out, size_t room, const char *list)
{
    size_t n = strcspn(list, "~");
    CHECK(n < room);
    memcpy(out, list, n);
    out[n] = '\0';
    return list[n] ? list + n + 1 : NULL;
}

void malformed_each(const struct malformed_kind *rows, size_t n,
                    void (*write)(const struct malformed_kind *k), const char *path,
                    enum malformed_part part)
{
    static char what[1024], to[1024], name[sizeof(what) + sizeof(to) + 4];
    for (size_t i = 0; i < n; i++)
        for (const char *w = rows[i].what; w;) {
            w = malformed_first(what, sizeof(what), w);
            for (const char *t = rows[i].to; t;) {
                t = malformed_first(to, sizeof(to), t);
                const char *says = rows[i].says ? rows[i].says : what;
                write(&(struct malformed_kind){ what, strcmp(to, "-") ? to : NULL, says });
                snprintf(name, sizeof(name), "%s: %s", what, to);
                malformed_refused(name, path, part, says);
            }
        }
}

void malformed_count(size_t least)
{
    printf("%zu malformed kinds\n", kinds);
    CHECK(kinds >= least);
}
