/* t_extract_data.c - both rules on answers as models write them, with what CITER's own functions
 * and a reader found in each. Skipped without the data. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tools/lab/tasks/extract.h"

enum { MOST = 26 };

/* Take the strings of a list. */
static size_t strings(const char *out[MOST], const json_t *list)
{
    size_t n = json_array_size(list);
    CHECK(n <= MOST);
    for (size_t i = 0; i < n; i++)
        out[i] = json_string_value(json_array_get(list, i));
    return n;
}

/* True when text[n], or none, is what a field says: null, "" and "NULL" are none where `none` is.
 */
static bool same(const json_t *want, const char *text, size_t n, bool none)
{
    const char *s = json_string_value(want);
    if (none && s && (!*s || !strcmp(s, "NULL")))
        s = NULL;
    return s && text ? strlen(s) == n && !memcmp(s, text, n) : !s && !text;
}

static void check_line(const json_t *o, size_t *citer, size_t *answer)
{
    const char *labels[MOST], *choices[MOST], *text = json_string_value(json_object_get(o, "text"));
    struct extract_choices c = { labels, choices, strings(labels, json_object_get(o, "labels")) };
    char number[EXTRACT_NUMBER] = "";
    CHECK(text && strings(choices, json_object_get(o, "choices")) == c.n);
    if (c.n) {
        char label = extract_citer_label(text, &c);
        *citer += same(json_object_get(o, "citer"), label ? &label : NULL, 1, true);
        number[0] = extract_label(text, &c);
    } else {
        size_t n = 0;
        const char *found = extract_citer_number(&n, text);
        *citer += same(json_object_get(o, "citer_math"), found, n, false);
        (void)extract_number(number, text);
    }
    *answer += same(json_object_get(o, "reader"), *number ? number : NULL, strlen(number), true);
}

int main(void)
{
    const char *data = getenv("MIZZLE_TESTDATA");
    char path[512], *line = NULL;
    size_t room = 0, n = 0, citer = 0, answer = 0;
    snprintf(path, sizeof(path), "%s/extract/answers.jsonl", data ? data : "../shared/data");
    FILE *f = fopen(path, "r");
    if (!f)
        SKIP("no %s (MIZZLE_TESTDATA)", path);
    for (; getline(&line, &room, f) > 0; n++) {
        json_t *o = json_loads(line, 0, NULL);
        CHECK(o);
        check_line(o, &citer, &answer);
        json_decref(o);
    }
    free(line);
    fclose(f);
    printf("%zu answers: CITER's rule %zu, a reader's %zu\n", n, citer, answer);
    CHECK(n >= 453 && citer == n && 100 * answer >= 97 * n);
    return 0;
}
