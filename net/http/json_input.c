#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "net/http/json_input.h"

/* Jansson's lexer goes on when memory for a byte of the text fails, without that byte; if it closes
 * a string, jansson then reads and writes past its buffer. So what fails while a text is parsed
 * comes from a spare block, and the text ends there: it has room for what its last piece can still
 * ask for, and for doubling the buffer once. */
enum { PIECE = 64, SPARE = 20 << 10 };
enum { FLAGS = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES };
static _Thread_local struct {
    char *block;       /* NULL: no text is being parsed */
    size_t size, left; /* bytes: in all; at its beginning */
    bool starved;
} spare;
static json_malloc_t json_input_below;
static json_free_t json_input_end;

static void *json_input_malloc(size_t n)
{
    void *p = json_input_below(n);
    if (p || !spare.block)
        return p;
    spare.starved = true;
    n = (n + 15) / 16 * 16;
    return n <= spare.left ? spare.block + (spare.left -= n) : NULL;
}

static void json_input_free(void *p)
{
    uintptr_t at = (uintptr_t)p, block = (uintptr_t)spare.block;
    if (!spare.block || at < block || at >= block + spare.size)
        json_input_end(p);
}

static void json_input_install(void)
{
    json_get_alloc_funcs(&json_input_below, &json_input_end);
    json_set_alloc_funcs(json_input_malloc, json_input_free);
}

void json_input_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, json_input_install);
}

/* True when at most JSON_INPUT_DEPTH brackets are open at once. Brackets inside strings do not
 * count; text that is not JSON is left for the parser to refuse. */
static bool shallow(const char *p, size_t n)
{
    size_t depth = 0;
    bool string = false;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                string = false;
        } else if (c == '"') {
            string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > JSON_INPUT_DEPTH)
                return false;
        } else if ((c == ']' || c == '}') && depth) {
            depth--;
        }
    }
    return true;
}

/* What is left of a text. */
struct json_text {
    const char *p;
    size_t n;
};

/* Called by jansson: give it the next piece. */
static size_t json_input_piece(void *to, size_t room, void *arg)
{
    struct json_text *text = arg;
    size_t n = text->n < PIECE ? text->n : PIECE;
    n = spare.starved ? 0 : n < room ? n : room;
    memcpy(to, text->p, n);
    text->p += n;
    text->n -= n;
    return n;
}

/* Parse where memory is watched. */
static int json_input_load(json_t **out, const char *p, size_t n, json_error_t *why,
                           struct err *err)
{
    struct json_text text = { p, n };
    spare.size = spare.left = (2 * n + SPARE + 15) / 16 * 16;
    spare.starved = false;
    spare.block = malloc(spare.size);
    if (!spare.block)
        return err_set(err, ERR_NOMEM, "JSON: out of memory");
    *out = json_load_callback(json_input_piece, &text, FLAGS, why);
    if (spare.starved) {
        json_decref(*out);
        *out = NULL;
    }
    free(spare.block);
    spare.block = NULL;
    return spare.starved ? err_set(err, ERR_NOMEM, "JSON: out of memory") : OK;
}

int json_input_parse(json_t **out, const char *p, size_t n, struct err *err)
{
    json_error_t why;
    *out = NULL;
    if (!n)
        return err_set(err, ERR_FORMAT, "not JSON: empty");
    if (memchr(p, 0, n)) /* jansson would take a final 0 for the end of the text */
        return err_set(err, ERR_FORMAT, "not JSON: a byte 0");
    if (!shallow(p, n))
        return err_set(err, ERR_FORMAT, "not JSON: nested deeper than %d", JSON_INPUT_DEPTH);
    if (json_input_below) {
        int rc = json_input_load(out, p, n, &why, err);
        if (rc != OK)
            return rc;
    } else {
        *out = json_loadb(p, n, FLAGS, &why);
    }
    if (*out)
        return OK;
    char line[96];
    json_input_line(line, sizeof(line), why.text, strlen(why.text));
    return err_set(err, ERR_FORMAT, "%sat byte %d: %s",
                   json_error_code(&why) == json_error_duplicate_key ? "" : "not JSON ",
                   why.position, line);
}

bool json_input_id(uint32_t *out, const json_t *v, size_t vocab)
{
    if (!json_is_integer(v))
        return false;
    json_int_t i = json_integer_value(v);
    if (i < 0 || (uint64_t)i >= vocab || (uint64_t)i > UINT32_MAX)
        return false;
    *out = (uint32_t)i;
    return true;
}

size_t json_input_count(const json_t *v)
{
    json_int_t n = json_integer_value(v);
    return n > 0 ? (size_t)n : 0;
}

const char *json_input_type(const json_t *v)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null",
    };
    return v ? names[json_typeof(v)] : "nothing";
}

void json_input_line(char *out, size_t cap, const char *text, size_t n)
{
    size_t at = 0, fit = 0, i = 0; /* fit: the last length after which "..." still fits */
    while (i < n) {
        size_t len = text_shown(text + i, n - i), put = len ? len : 1;
        bool again = !len && at && out[at - 1] == ' '; /* a run of blanks becomes one */
        if (at + put + 1 > cap)
            break;
        if (!again)
            memcpy(out + at, len ? text + i : " ", put);
        at += again ? 0 : put;
        fit = at + 4 <= cap ? at : fit;
        i += put;
    }
    if (i < n) {
        memcpy(out + fit, "...", 3);
        at = fit + 3;
    }
    out[at] = 0;
}
