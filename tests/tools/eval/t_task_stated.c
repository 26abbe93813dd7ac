/* t_task_stated.c - when an answer has been stated, so that what follows is not awaited. Over all
 * answers of the table that CITER's rule is checked with, the answer at that place is the one of
 * the whole text. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "tests/support/test.h"
#include "tools/tasks/extract.h"
#include "tools/tasks/task.h"

enum { MOST = 16 };

static const char path[] = "build/t_task_stated.jsonl";

static struct task *open_form(const char *name, enum task_form form)
{
    struct err err = { "" };
    struct task *t = NULL;
    const bool file = strcmp(name, "milli") != 0;
    const struct task_options o = { .name = name, .data = file ? path : NULL, .form = form };
    CHECK(task_open(&t, &o, &err) == OK);
    return t;
}

static void cases(void)
{
    static const struct {
        const char *text;
        bool stated;
    } rows[] = {
        { "[Explanation]. Therefore, the answer is answer (D).", true },
        { "It is wet. Therefore, the answer is C. department", true },
        { "Therefore the answer is B\n", true },
        { "It is so.\ntherefore, my answer is (A). Peop", true },
        { "Therefore, the answer is C.", false }, /* may go on: C.D. Howe */
        { "Therefore, the answer is answer (D)", false },
        { "Therefore, the answer is 3.5", false },
        { "The answer is (D).", false }, /* in the middle of an explanation */
        { "(A). Therefore, it is wet. The answer is (B).", false },
        { "Therefore, the answer is answer (label). C is a mall.", false },
        { "Therefore, the answer is answer (label). Therefore, the answer is (C).", true },
        { "Therefore,\nthe answer is (B)", false },
        { "", false },
    };
    const struct task_item item = { .labels = (const char *const[]){ "A", "B", "C", "D" },
                                    .choices = (const char *const[]){ "x", "y", "mall", "z" },
                                    .nchoices = 4 };
    struct task *chat = open_form("csqa", TASK_CHAT), *plain = open_form("csqa", TASK_CITER);
    struct task *harness = open_form("csqa", TASK_LM_EVAL), *milli = open_form("milli", TASK_CITER);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (task_stated(chat, &item, rows[i].text) != rows[i].stated)
            fprintf(stderr, "%s\n", rows[i].text);
        CHECK(task_stated(chat, &item, rows[i].text) == rows[i].stated);
        CHECK(task_stated(plain, &item, rows[i].text) == rows[i].stated);
        CHECK(!task_stated(harness, &item, rows[i].text) &&
              !task_stated(milli, &item, rows[i].text));
    }
    task_close(chat);
    task_close(plain);
    task_close(harness);
    task_close(milli);
}

/* Find what the first n bytes of a text give for an answer: a label, or a number as text. */
static bool answer_of(char out[EXTRACT_NUMBER], const char *text, size_t n,
                      const struct extract_choices *c)
{
    char *copy = strndup(text, n);
    CHECK(copy);
    out[0] = out[1] = 0;
    bool found = c->n ? (out[0] = extract_label(copy, c)) != 0 : extract_number(out, copy);
    free(copy);
    return found;
}

/* Cut a text where its answer has been stated, as a collection does after each token, and compare.
 * Return whether it has been cut. */
static bool check_cut(const struct task *t, const char *text, const struct extract_choices *c)
{
    char here[EXTRACT_NUMBER], whole[EXTRACT_NUMBER];
    const struct task_item item = { .labels = c->labels, .choices = c->choices, .nchoices = c->n };
    for (size_t n = 1; n < strlen(text); n++) {
        char *copy = strndup(text, n);
        bool stated = copy && task_stated(t, &item, copy);
        free(copy);
        if (!stated || !answer_of(here, text, n, c))
            continue;
        bool same = answer_of(whole, text, strlen(text), c) && strcmp(here, whole) == 0;
        if (!same)
            fprintf(stderr, "%s at byte %zu, %s at the end: %s\n", here, n, whole, text);
        CHECK(same);
        return true;
    }
    return false;
}

/* Return how many of all answers are cut, or SIZE_MAX without the data. */
static size_t table(void)
{
    char name[1024], line[1 << 16];
    const char *data = getenv("MIZZLE_TESTDATA");
    snprintf(name, sizeof(name), "%s/extract/answers.jsonl", data ? data : "../shared/data");
    FILE *f = fopen(name, "r");
    size_t cut = 0;
    if (!f)
        return SIZE_MAX;
    struct task *t = open_form("csqa", TASK_CHAT);
    while (fgets(line, sizeof(line), f)) {
        const char *labels[MOST], *choices[MOST];
        json_t *root = json_loads(line, 0, NULL), *list = json_object_get(root, "labels");
        struct extract_choices c = { labels, choices, json_array_size(list) };
        CHECK(root && c.n <= MOST);
        for (size_t i = 0; i < c.n; i++) {
            labels[i] = json_string_value(json_array_get(list, i));
            choices[i] = json_string_value(json_array_get(json_object_get(root, "choices"), i));
        }
        cut += check_cut(t, json_string_value(json_object_get(root, "text")), &c);
        json_decref(root);
    }
    task_close(t);
    CHECK(fclose(f) == 0);
    return cut;
}

int main(void)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fputs("{\"question\":{\"stem\":\"Q?\",\"choices\":[{\"label\":\"A\",\"text\":\"a\"},"
                     "{\"label\":\"B\",\"text\":\"b\"}],\"question_concept\":\"q\"},"
                     "\"answerKey\":\"A\"}\n",
                     f) >= 0);
    CHECK(fclose(f) == 0);
    cases();
    size_t cut = table();
    unlink(path);
    if (cut == SIZE_MAX) {
        printf("SKIP: no extract/answers.jsonl in $MIZZLE_TESTDATA or ../shared/data\n");
        return 77;
    }
    printf("%zu answers are cut where they have been stated\n", cut);
    CHECK(cut >= 20);
    return 0;
}
