#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "net/http/json_input.h"
#include "tools/cli/input_file.h"
#include "tools/cli/setup.h"
#include "tools/lab/tasks/task_internal.h"

int task_bad(const struct task *t, const char *field, const char *expected, const char *found,
             struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s: line %zu: %s: expected %s, found %s", t->path, t->line,
                   field, expected, found);
}

/* Note where each line begins. A newline at the end of the file ends the last line. */
static int task_file_lines(struct task *t, size_t bytes, struct err *err)
{
    size_t count = 0, size;
    for (size_t i = 0; i < bytes; i++)
        count += t->data[i] == '\n' || i + 1 == bytes;
    t->size = 0;
    t->lines = size_mul(&size, count + 1, sizeof(*t->lines)) ? malloc(size) : NULL;
    if (!t->lines)
        return err_set(err, ERR_NOMEM, "%s: out of memory", t->path);
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(t->data + at, '\n', bytes - at);
        size_t next = end ? (size_t)(end - t->data) + 1 : bytes;
        t->line = t->size + 1;
        t->lines[t->size++] = at;
        if (next - at > TASK_LINE) {
            char expected[48], found[48];
            snprintf(expected, sizeof(expected), "at most %d bytes", TASK_LINE);
            snprintf(found, sizeof(found), "%zu", next - at);
            return task_bad(t, "the line", expected, found, err);
        }
        at = next;
    }
    t->lines[t->size] = bytes;
    return OK;
}

int task_file_open(struct task *t, const char *path, struct err *err)
{
    size_t bytes;
    t->path = strdup(path);
    if (!t->path)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    int rc = input_file_read(&t->data, &bytes, path, INPUT_FILE_USUAL, err);
    if (rc != OK) /* a FIFO may wait until somebody presses Ctrl-C */
        return interrupted ? err_set(err, ERR_STOP, "interrupted") : rc;
    if (!bytes)
        return err_set(err, ERR_FORMAT, "%s: line 1: expected a JSON object, found an empty file",
                       path);
    sha256_hex(t->digest, t->data, bytes);
    return task_file_lines(t, bytes, err);
}

int task_file_line(struct task *t, size_t i, struct err *err)
{
    const char *p = t->data + t->lines[i];
    size_t n = t->lines[i + 1] - t->lines[i];
    json_error_t why;
    char found[160];
    json_decref(t->json);
    t->json = NULL;
    t->line = i + 1;
    n -= n && p[n - 1] == '\n';
    if (!n)
        return task_bad(t, "the line", "a JSON object", "an empty line", err);
    if (memchr(p, 0, n)) /* jansson would take a final 0 for the end of the text */
        return task_bad(t, "the line", "JSON", "a byte 0", err);
    if (!text_valid(p, n))
        return task_bad(t, "the line", "UTF-8", "other bytes", err);
    if (p[strspn(p, " \t\r")] == '[') /* perhaps all items in one array, over many lines */
        return task_bad(t, "the line", "a JSON object, as each item has a line of its own",
                        "an array", err);
    t->json = json_loadb(p, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!t->json) {
        if (json_error_code(&why) == json_error_out_of_memory)
            return err_set(err, ERR_NOMEM, "%s: out of memory", t->path);
        snprintf(found, sizeof(found), "at byte %d: ", why.position);
        size_t at = strlen(found);
        json_input_line(found + at, sizeof(found) - at, why.text, strlen(why.text));
        return task_bad(t, "the line", "JSON", found, err);
    }
    if (!json_is_object(t->json))
        return task_bad(t, "the line", "a JSON object", json_input_type(t->json), err);
    return OK;
}

int task_string(const char **out, const struct task *t, const char *field, const json_t *v,
                bool empty, struct err *err)
{
    const char *s = *out = json_string_value(v);
    if (!s)
        return task_bad(t, field, "a string", json_input_type(v), err);
    if (strlen(s) != json_string_length(v))
        return task_bad(t, field, "a text", "a byte 0 in it", err);
    return empty || s[strspn(s, " \t\r\n")] ? OK
                                            : task_bad(t, field, "a text", "an empty one", err);
}

void task_append(struct task_text *out, const char *s, size_t n)
{
    out->full = out->full || !buf_add(&out->b, s, n) || !buf_add(&out->b, "", 1);
    out->b.n -= !out->full; /* the terminator */
}

void task_put(struct task_text *out, const char *s)
{
    task_append(out, s, strlen(s));
}
