#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"
#include "tools/cli/setup.h"
#include "tools/lab/tasks/extract.h"
#include "tools/lab/tasks/task_internal.h"

enum { MOST = 26, FIELD = 32 };

/* Read a list of strings, as many as *n; 0: 1 to MOST, and *n is set. */
static int file_list(const char *out[MOST], size_t *n, const struct task *t, const char *field,
                     struct err *err)
{
    const json_t *list = json_object_get(t->json, field), *v;
    char name[FIELD], expected[FIELD], found[FIELD];
    size_t have = json_array_size(list);
    if (!json_is_array(list))
        return task_bad(t, field, "a list", json_input_type(list), err);
    snprintf(expected, sizeof(expected), *n ? "as many as labels, %zu" : "1 to 26", *n);
    snprintf(found, sizeof(found), "%zu", have);
    if (!have || have > MOST || (*n && have != *n))
        return task_bad(t, field, expected, found, err);
    *n = have;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < have; i++) {
        snprintf(name, sizeof(name), "%s[%zu]", field, i);
        v = json_array_get(list, i);
        rc = !strcmp(field, "labels") ? task_label(&out[i], t, name, v, err)
                                      : task_string(&out[i], t, name, v, true, err);
    }
    return rc;
}

/* Print what was found in a line, with NULL for none. */
static int file_print(const char *citer, size_t n, const char *answer, bool json, struct err *err)
{
    if (json) {
        json_t *line =
            json_pack("{s:o, s:o}", "citer", citer ? json_stringn(citer, n) : json_null(), "answer",
                      answer ? json_string(answer) : json_null());
        bool fine = line && json_dumpf(line, stdout, JSON_COMPACT) == 0;
        json_decref(line);
        putchar('\n');
        return fine ? OK : err_set(err, ERR_IO, "eval: the answers could not be written");
    }
    char shown[EXTRACT_NUMBER];
    json_input_line(shown, sizeof(shown), citer ? citer : "-", citer ? n : 1);
    printf("%-20s %s\n", shown, answer ? answer : "-");
    return OK;
}

/* Check line i and, if it is to be shown, apply the rules to it. */
static int file_line(struct task *t, size_t i, bool show, bool json, struct err *err)
{
    const char *text, *labels[MOST], *choices[MOST];
    struct extract_choices c = { labels, choices, 0 };
    int rc = task_file_line(t, i, err);
    if (rc == OK)
        rc = task_string(&text, t, "text", json_object_get(t->json, "text"), true, err);
    if (rc == OK && (json_object_get(t->json, "labels") || json_object_get(t->json, "choices"))) {
        rc = file_list(labels, &c.n, t, "labels", err);
        if (rc == OK)
            rc = file_list(choices, &c.n, t, "choices", err);
    }
    if (rc != OK || !show)
        return rc;
    char answer[EXTRACT_NUMBER] = "", label;
    if (!c.n) {
        size_t n = 0;
        const char *citer = extract_citer_number(&n, text);
        return file_print(citer, n, extract_number(answer, text) ? answer : NULL, json, err);
    }
    label = extract_citer_label(text, &c);
    answer[0] = extract_label(text, &c);
    return file_print(label ? &label : NULL, 1, *answer ? answer : NULL, json, err);
}

int extract_file(const char *path, bool json, struct err *err)
{
    struct task *t = calloc(1, sizeof(*t));
    int rc = t ? task_file_open(t, path, err) : err_set(err, ERR_NOMEM, "eval: out of memory");
    for (int show = 0; rc == OK && show < 2; show++) {
        if (show && !json)
            printf("%-20s %s\n", "citer", "answer");
        for (size_t i = 0; rc == OK && i < t->size; i++)
            rc = interrupted ? err_set(err, ERR_STOP, "interrupted")
                             : file_line(t, i, show, json, err);
    }
    task_close(t);
    return rc;
}
