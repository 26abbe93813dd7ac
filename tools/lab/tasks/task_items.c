/* task_items.c - the items of csqa, arc and gsm8k, as the authors or CITER's programs write them.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"
#include "tools/lab/tasks/extract.h"
#include "tools/lab/tasks/task_internal.h"

enum { FIELD = 64 };

/* What CITER's programs put around a question. Their training files have other wordings, which the
 * items bring along, and two more blank lines. */
static const char choose[] =
    "\nPlease format your response in the following way:\n"
    "[Explanation]. Therefore, the answer is answer (label).\n"
    "Ensure the final sentence includes the answer followed by the label in parentheses.\n"
    "Answer and Reasoning:";
static const char solve[] =
    "Solve the following math problem step by step. Ensure all reasoning is shown clearly in LaTeX "
    "format, and the final answer should be enclosed using the LaTeX command \\boxed{} to display "
    "it in a box.\nQuestion: ";

/* The texts of an item that may be missing, by CITER's name and by the authors'. */
static const struct item_field {
    const char *name, *also;
    bool choices, number; /* of tasks with choices; of those with a number */
    size_t at;            /* in struct task_texts */
} item_fields[] = {
#define AT(member) offsetof(struct task_texts, member)
    { "cot", NULL, true, true, AT(cot) },
    { "prompt", NULL, true, true, AT(prompt) },
    { "group", NULL, true, true, AT(group) },
    { "id", NULL, true, false, AT(id) },
    { "problem", "question", false, true, AT(asks) },
    { "solution", "answer", false, true, AT(solution) },
    { "answerKey", NULL, true, true, AT(key) },
#undef AT
};

int task_label(const char **out, const struct task *t, const char *field, const json_t *v,
               struct err *err)
{
    char found[FIELD];
    int rc = task_string(out, t, field, v, false, err);
    if (rc != OK || (isalnum((unsigned char)(*out)[0]) && !(*out)[1]))
        return rc;
    json_input_line(found, sizeof(found), *out, strlen(*out));
    return task_bad(t, field, "one letter or digit", found, err);
}

/* Find the lists of labels and texts: both are the authors' list of {label, text}, or they are the
 * two of CITER's {label: [], text: []}. Checks how many there are. */
static int items_lists(const json_t **labels, const json_t **texts, const struct task *t,
                       const char *field, const json_t *v, struct err *err)
{
    bool split = json_is_object(v);
    char expected[FIELD], found[FIELD];
    *labels = split ? json_object_get(v, "label") : v;
    *texts = split ? json_object_get(v, "text") : v;
    if (!json_is_array(*labels) || !json_is_array(*texts)) {
        const json_t *bad = json_is_array(*labels) ? *texts : *labels;
        return task_bad(t, field, split ? "lists label and text" : "a list", json_input_type(bad),
                        err);
    }
    size_t n = json_array_size(*labels), m = json_array_size(*texts);
    bool fits = n >= t->kind->least && n <= t->kind->most;
    if (m != n)
        snprintf(expected, sizeof(expected), "as many texts as labels, %zu", n);
    else
        snprintf(expected, sizeof(expected), "%zu to %zu choices", t->kind->least, t->kind->most);
    snprintf(found, sizeof(found), "%zu", m);
    return m == n && fits ? OK : task_bad(t, field, expected, found, err);
}

/* Read the choices of a field into t->item. */
static int items_choices(struct task *t, const char *field, const json_t *v, struct err *err)
{
    const json_t *labels, *texts;
    bool split = json_is_object(v);
    int rc = items_lists(&labels, &texts, t, field, v, err);
    for (size_t i = 0; rc == OK && i < json_array_size(labels); i++) {
        const json_t *label = json_array_get(labels, i), *text = json_array_get(texts, i);
        char name[2][FIELD];
        snprintf(name[0], FIELD, split ? "%s.label[%zu]" : "%s[%zu].label", field, i);
        snprintf(name[1], FIELD, split ? "%s.text[%zu]" : "%s[%zu].text", field, i);
        rc = task_label(&t->labels[i], t, name[0], split ? label : json_object_get(label, "label"),
                        err);
        for (size_t j = 0; rc == OK && j < i; j++)
            if (tolower((unsigned char)t->labels[j][0]) == tolower((unsigned char)t->labels[i][0]))
                rc = task_bad(t, name[0], "a label of its own", t->labels[i], err);
        if (rc == OK)
            rc = task_string(&t->choices[i], t, name[1],
                             split ? text : json_object_get(text, "text"), false, err);
        t->item.nchoices = i + 1;
    }
    t->item.labels = t->labels;
    t->item.choices = t->choices;
    return rc;
}

/* Read a question with choices and its key, which must be one of the labels. The concept of csqa is
 * beside the question or, in the authors' files, in it. */
static int items_question(struct task *t, struct err *err)
{
    const json_t *q = json_object_get(t->json, "question");
    bool in = json_is_object(q);
    const json_t *concept = json_object_get(in ? q : t->json, "question_concept");
    char labels[3 * TASK_CHOICES + 8] = "", found[FIELD];
    int rc = task_string(&t->texts.asks, t, in ? "question.stem" : "question",
                         in ? json_object_get(q, "stem") : q, false, err);
    if (rc == OK)
        rc = items_choices(t, in ? "question.choices" : "choices",
                           json_object_get(in ? q : t->json, "choices"), err);
    t->item.key = t->texts.key;
    t->item.subject = t->texts.asks;
    if (rc == OK && !t->item.key)
        rc = task_bad(t, "answerKey", "a string", "nothing", err);
    if (rc == OK && concept && t->kind->concepts)
        rc = task_string(&t->item.subject, t, in ? "question.question_concept" : "question_concept",
                         concept, false, err);
    for (size_t i = 0; rc == OK && i < t->item.nchoices; i++) {
        size_t at = strlen(labels);
        snprintf(labels + at, sizeof(labels) - at, "%s%s", i ? " " : "one of ", t->labels[i]);
        if (strcmp(t->labels[i], t->item.key) == 0)
            return OK;
    }
    if (rc != OK)
        return rc;
    json_input_line(found, sizeof(found), t->item.key, strlen(t->item.key));
    return task_bad(t, "answerKey", labels, found, err);
}

/* Set t->key from answerKey or, without one, from the solution: \boxed{18}, or #### 18 in the
 * authors' files. */
static int items_number(struct task *t, struct err *err)
{
    char found[TASK_ANSWER];
    const char *own = t->texts.prompt, *asks = t->texts.asks, *key = t->texts.key;
    if (!asks && (!own || t->own))
        return task_bad(t, "problem", own ? "a string, for its own prompt is citer's" : "a string",
                        "nothing", err);
    t->texts.cot = t->texts.cot ? t->texts.cot : t->texts.solution;
    t->item.subject = asks ? asks : own;
    t->item.key = t->key;
    const char *solution = t->texts.cot, *from = key;
    if (!from && solution)
        from = strstr(solution, "\\boxed{");
    if (!from && solution)
        from = strstr(solution, "#### ");
    if (from && extract_number(t->key, from))
        return OK;
    if (!key)
        return task_bad(t, solution ? "solution" : "answerKey",
                        solution ? "a number in \\boxed{} or after ####" : "a number",
                        solution ? "none" : "nothing", err);
    json_input_line(found, sizeof(found), key, strlen(key));
    return task_bad(t, "answerKey", "a number", found, err);
}

void task_put_choices(struct task_text *out, const struct task *t)
{
    for (size_t i = 0; i < t->item.nchoices; i++) {
        task_put(out, i ? "\n" : "");
        task_put(out, t->labels[i]);
        task_put(out, ". ");
        task_put(out, t->choices[i]);
    }
}

/* Put the prompt together in CITER's form. */
static void items_put(struct task *t)
{
    bool choices = t->item.nchoices;
    task_put(&t->prompt, choices ? "Question: " : solve);
    task_put(&t->prompt, t->texts.asks);
    task_put(&t->prompt, choices ? "\nChoices:\n" : "\nSolution: ");
    task_put_choices(&t->prompt, t);
    task_put(&t->prompt, choices ? choose : "");
}

int task_read(struct task *t, size_t i, struct err *err)
{
    bool choices = t->kind->most;
    t->texts = (struct task_texts){ 0 };
    int rc = task_file_line(t, i, err);
    for (size_t k = 0; rc == OK && k < sizeof(item_fields) / sizeof(item_fields[0]); k++) {
        const struct item_field *f = &item_fields[k];
        const json_t *v = json_object_get(t->json, f->name);
        const char *name = v || !f->also ? f->name : f->also;
        v = json_object_get(t->json, name);
        if (v && (choices ? f->choices : f->number))
            rc = task_string((const char **)(void *)((char *)&t->texts + f->at), t, name, v, false,
                             err);
    }
    if (rc == OK)
        rc = choices ? items_question(t, err) : items_number(t, err);
    if (rc != OK)
        return rc;
    const struct task_texts *x = &t->texts;
    if (!x->prompt)
        items_put(t);
    if (x->cot) {
        task_put(&t->gold, " ");
        task_put(&t->gold, x->cot);
    }
    t->item.id = x->id ? x->id : "";
    t->item.prompt = x->prompt ? x->prompt : t->prompt.b.p;
    t->item.gold = x->cot ? t->gold.b.p : NULL;
    t->item.subject = x->group ? x->group : t->item.subject;
    return OK;
}
