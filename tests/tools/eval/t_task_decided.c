/* t_task_decided.c - both rules on answers as models write them, with what CITER's own functions
 * and a reader found in each. And when nothing that follows can change an answer, so that it is not
 * awaited. Every beginning of every answer of the table that CITER's rule is checked with, each of
 * which then runs on to another question, is judged as the whole wherever it is said to be decided.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/files.h"
#include "tests/tools/eval/task_help.h"
#include "tools/lab/tasks/extract.h"

enum { MOST = 26 };

static struct task *open_form(const char *name, enum task_form form)
{
    if (!strcmp(name, "milli"))
        return open_with(&(struct task_options){ .name = name, .form = form });
    return open_text(name,
                     !strcmp(name, "gsm8k")
                         ? "{\"question\":\"Q?\",\"answer\":\"So it is 2.\\n#### 2\"}\n"
                         : "{\"question\":{\"stem\":\"Q?\",\"choices\":[{\"label\":\"A\",\"text\":"
                           "\"a\"},{\"label\":\"B\",\"text\":\"b\"}],\"question_concept\":\"q\"},"
                           "\"answerKey\":\"A\"}\n",
                     form);
}

static void cases(struct task *const tasks[3])
{
    static const struct {
        const char *text;
        bool decided;
    } rows[] = {
        { "", false },
        /* Statements that later ones, or a box, outweigh. */
        { "Therefore, the answer is (A).", false },
        { "Therefore, the answer is (A). Wait. Therefore, the answer is", false },
        { "Therefore, the answer is (A).\n\nNo, ", false },
        { "Therefore, the answer is (A). Therefore, the answer is (A). ", false },
        { "Therefore, the answer is 18 per day. In a week it is 7 * 18 = ", false },
        { "It is \\boxed{18} a day, and ", false },
        { "So it is\n#### 18\n", false },
        /* Another question. */
        { "Therefore, the answer is (A).\nQuestion", false },
        { "Therefore, the answer is (A).\nQuestion:", true },
        { "Therefore, the answer is (A).\nQuestion: Q?\nAnswer: (B).", true },
        { "It is \\boxed{18}.\n\nProblem: ", true },
        { "It is a question of taste.\nHuman: ", true },
        { "(A)<|im_end|>", true },
        { "Is this the Question: A or B?", false },
        /* That which was asked, and thoughts about it. */
        { "Question: Q?\nChoices:\n(A) a\n(B) b\n", false },
        { "<think>\nOne may ask:\nQuestion: is it A?\n", false },
        { "<think>\nQuestion: is it A?\n</think>\n\n(B).", false },
        { "<think>\nQuestion: is it A?\n</think>\n\n(B).\nQ:", true },
    };
    struct task *milli = open_form("milli", TASK_CITER);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t k = 0; k < 3; k++)
            CHECK_MSG(task_decided(tasks[k], rows[i].text) == rows[i].decided, "%s", rows[i].text);
        CHECK(!task_decided(milli, rows[i].text));
    }
    task_close(milli);
}

/* Find what a text gives for an answer: a label, a number as text, or "". */
static void answer_of(char out[EXTRACT_NUMBER], const char *text, const struct extract_choices *c)
{
    out[0] = out[1] = 0;
    if (c->n)
        out[0] = extract_label(text, c);
    else if (!extract_number(out, text))
        out[0] = 0;
}

/* Let a text run on, and judge each beginning that is decided. Returns whether there is one. */
static bool check(struct task *const tasks[3], const char *text, const struct extract_choices *c)
{
    static const char *const more[] = {
        "\nQuestion: And now?\nTherefore, the answer is (A). Wait. It is (B). The answer is (B).",
        "\nQuestion: And now?\nTherefore, the answer is 5 a day.\n#### 4\nIt is \\boxed{4711}."
    };
    char here[EXTRACT_NUMBER], whole[EXTRACT_NUMBER], all[1 << 13];
    bool decided = false;
    size_t n = (size_t)snprintf(all, sizeof(all), "%s%s", text, more[!c->n]);
    CHECK(n < sizeof(all));
    answer_of(whole, all, c);
    while (n-- > 1) {
        all[n] = 0;
        bool now = task_decided(tasks[0], all);
        CHECK(now == task_decided(tasks[1], all) && now == task_decided(tasks[2], all));
        if (!now)
            continue;
        decided = true;
        answer_of(here, all, c);
        CHECK_MSG(strcmp(here, whole) == 0, "%s here, %s at the end: %s", here, whole, all);
    }
    return decided;
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

/* Apply both rules to a line of the table, whose choices are c. */
static void check_line(const json_t *o, const struct extract_choices *c, size_t *citer,
                       size_t *answer)
{
    const char *text = json_string_value(json_object_get(o, "text"));
    char number[EXTRACT_NUMBER] = "";
    size_t n = 0;
    if (c->n) {
        char label = extract_citer_label(text, c);
        *citer += same(json_object_get(o, "citer"), label ? &label : NULL, 1, true);
    } else {
        const char *found = extract_citer_number(&n, text);
        *citer += same(json_object_get(o, "citer_math"), found, n, false);
    }
    answer_of(number, text, c);
    *answer += same(json_object_get(o, "reader"), *number ? number : NULL, strlen(number), true);
}

/* Check all answers of the table; false without the data. */
static bool table(struct task *const tasks[3])
{
    char line[1 << 16];
    FILE *f = fopen(test_data("extract/answers.jsonl"), "r");
    size_t n = 0, decided = 0, citer = 0, answer = 0;
    if (!f)
        return false;
    for (; fgets(line, sizeof(line), f); n++) {
        const char *labels[MOST], *choices[MOST];
        json_t *root = json_loads(line, 0, NULL), *list = json_object_get(root, "labels");
        const json_t *texts = json_object_get(root, "choices");
        struct extract_choices c = { labels, choices, json_array_size(list) };
        CHECK(root && c.n <= MOST && json_array_size(texts) == c.n);
        for (size_t i = 0; i < c.n; i++) {
            labels[i] = json_string_value(json_array_get(list, i));
            choices[i] = json_string_value(json_array_get(texts, i));
        }
        check_line(root, &c, &citer, &answer);
        decided += check(tasks, json_string_value(json_object_get(root, "text")), &c);
        json_decref(root);
    }
    CHECK(fclose(f) == 0);
    printf("%zu answers: CITER's rule %zu, a reader's %zu; %zu are decided where they run on\n", n,
           citer, answer, decided);
    CHECK(n >= 453 && citer == n && 100 * answer >= 97 * n && decided >= 440);
    return true;
}

int main(void)
{
    struct task *tasks[3] = { open_form("csqa", TASK_CHAT), open_form("csqa", TASK_CITER),
                              open_form("gsm8k", TASK_CHAT) };
    cases(tasks);
    bool found = table(tasks);
    for (size_t k = 0; k < 3; k++)
        task_close(tasks[k]);
    if (!found)
        SKIP("no extract/answers.jsonl in $MIZZLE_TESTDATA or ../shared/data");
    return 0;
}
