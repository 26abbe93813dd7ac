#include <pthread.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "net/http/json_input.h"

/* Jansson's parser goes on when its memory for a byte of the text fails, without that byte. */
static _Thread_local bool starved;
static json_malloc_t json_input_below;

static void *json_input_malloc(size_t n)
{
    void *p = json_input_below(n);
    starved = starved || !p;
    return p;
}

static void json_input_install(void)
{
    json_free_t end;
    json_get_alloc_funcs(&json_input_below, &end);
    json_set_alloc_funcs(json_input_malloc, end);
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
    starved = false;
    *out = json_loadb(p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (starved) {
        json_decref(*out);
        *out = NULL;
        return err_set(err, ERR_NOMEM, "JSON: out of memory");
    }
    if (*out)
        return OK;
    char line[96];
    json_input_line(line, sizeof(line), why.text, strlen(why.text));
    return err_set(err, ERR_FORMAT, "not JSON at byte %d: %s", why.position, line);
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
    if (!v)
        return "nothing";
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

void json_input_line(char *out, size_t cap, const char *text, size_t n)
{
    size_t at = 0, fit = 0; /* fit: the last length after which "..." still fits */
    bool cut = false;
    for (size_t i = 0; i < n && !cut;) {
        size_t len = text_shown(text + i, n - i);
        size_t put = len ? len : 1;
        bool blank = !len && at && out[at - 1] == ' '; /* a run of blanks becomes one */
        if (at + put + 1 > cap) {
            cut = true;
            break;
        }
        if (len)
            memcpy(out + at, text + i, len);
        else if (!blank)
            out[at] = ' ';
        at += blank ? 0 : put;
        if (at + 4 <= cap)
            fit = at;
        i += put;
    }
    if (cut) {
        at = fit;
        memcpy(out + at, "...", 3);
        at += 3;
    }
    out[at] = 0;
}
