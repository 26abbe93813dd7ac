/* task_choices.c - tasks csqa and arc: questions with choices. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"
#include "tools/lab/tasks/task_internal.h"

enum { FIELD = 64 };

/* The harness generates no answers to such questions; this is what it stops at by default. */
static const char *const choices_stops[] = { "\n\n", NULL };

/* Check a label: one letter or digit, unlike those before it. */
static int choices_label(struct task *t, size_t i, const char *field, struct err *err)
{
    const char *label = t->labels[i];
    char found[FIELD];
    json_input_line(found, sizeof(found), label, strlen(label));
    if (!isalnum((unsigned char)label[0]) || label[1])
        return task_bad(t, field, "one letter or digit", found, err);
    for (size_t j = 0; j < i; j++)
        if (tolower((unsigned char)t->labels[j][0]) == tolower((unsigned char)label[0]))
            return task_bad(t, field, "a label of its own", found, err);
    return OK;
}

/* Find the lists of labels and texts: both are the authors' list of {label, text}, or they are the
 * two of CITER's {label: [], text: []}. Checks how many there are. */
static int choices_lists(const json_t **labels, const json_t **texts, const struct task *t,
                         const char *field, const json_t *v, struct err *err)
{
    bool split = json_is_object(v), arc = t->kind == &task_arc;
    char expected[FIELD], found[FIELD];
    *labels = split ? json_object_get(v, "label") : v;
    *texts = split ? json_object_get(v, "text") : v;
    if (!json_is_array(*labels) || !json_is_array(*texts)) {
        const json_t *bad = json_is_array(*labels) ? *texts : *labels;
        return task_bad(t, field, split ? "lists label and text" : "a list", json_input_type(bad),
                        err);
    }
    size_t n = json_array_size(*labels), m = json_array_size(*texts);
    snprintf(expected, sizeof(expected), "as many texts as labels, %zu", n);
    snprintf(found, sizeof(found), "%zu", m);
    if (m != n)
        return task_bad(t, field, expected, found, err);
    size_t least = arc ? 3 : 2, most = arc ? 5 : TASK_CHOICES;
    snprintf(expected, sizeof(expected), "%zu to %zu choices", least, most);
    return n < least || n > most ? task_bad(t, field, expected, found, err) : OK;
}

/* Read the choices of a field into t->item. */
static int choices_read(struct task *t, const char *field, const json_t *v, struct err *err)
{
    const json_t *labels, *texts;
    bool split = json_is_object(v);
    int rc = choices_lists(&labels, &texts, t, field, v, err);
    for (size_t i = 0; rc == OK && i < json_array_size(labels); i++) {
        const json_t *label = json_array_get(labels, i), *text = json_array_get(texts, i);
        char name[2][FIELD];
        snprintf(name[0], FIELD, split ? "%s.label[%zu]" : "%s[%zu].label", field, i);
        snprintf(name[1], FIELD, split ? "%s.text[%zu]" : "%s[%zu].text", field, i);
        rc = task_string(&t->labels[i], t, name[0], split ? label : json_object_get(label, "label"),
                         err);
        if (rc == OK)
            rc = choices_label(t, i, name[0], err);
        if (rc == OK)
            rc = task_string(&t->choices[i], t, name[1],
                             split ? text : json_object_get(text, "text"), err);
        t->item.nchoices = i + 1;
    }
    t->item.labels = t->labels;
    t->item.choices = t->choices;
    return rc;
}

/* Read answerKey, which must be one of the labels. */
static int choices_read_key(struct task *t, struct err *err)
{
    char labels[3 * TASK_CHOICES + 8] = "", found[FIELD];
    int rc = task_field(&t->item.key, t, "answerKey", err);
    if (rc != OK)
        return rc;
    for (size_t i = 0; i < t->item.nchoices; i++) {
        size_t at = strlen(labels);
        snprintf(labels + at, sizeof(labels) - at, "%s%s", i ? " " : "one of ", t->labels[i]);
        if (strcmp(t->labels[i], t->item.key) == 0)
            return OK;
    }
    json_input_line(found, sizeof(found), t->item.key, strlen(t->item.key));
    return task_bad(t, "answerKey", labels, found, err);
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

/* CITER's training sets have two more blank lines than this form of its test sets; the harness
 * lists the choices of csqa alone. */
static void choices_put(struct task *t)
{
    bool harness = t->form == TASK_LM_EVAL, csqa = t->kind == &task_csqa;
    task_put(&t->prompt, "Question: ");
    if (harness && csqa)
        task_put_trimmed(&t->prompt, t->asks);
    else
        task_put(&t->prompt, t->asks);
    task_put(&t->prompt, !harness ? "\nChoices:\n" : csqa ? "\n" : "");
    if (!harness || csqa)
        task_put_choices(&t->prompt, t);
    task_put(&t->prompt,
             harness ? "\nAnswer:"
                     : "\nPlease format your response in the following way:\n"
                       "[Explanation]. Therefore, the answer is answer (label).\n"
                       "Ensure the final sentence includes the answer followed by the label in "
                       "parentheses.\nAnswer and Reasoning:");
}

/* Read the question and its choices, in the authors' or in CITER's form. The concept of csqa is
 * beside the question or, in the authors' files, in it. */
static int choices_item(struct task *t, struct err *err)
{
    const json_t *q = json_object_get(t->json, "question");
    bool authors = json_is_object(q);
    const json_t *concept = json_object_get(authors ? q : t->json, "question_concept");
    int rc = task_field_optional(&t->item.id, t, "id", err);
    if (!t->item.id)
        t->item.id = "";
    if (rc == OK)
        rc = task_string(&t->asks, t, authors ? "question.stem" : "question",
                         authors ? json_object_get(q, "stem") : q, err);
    if (rc == OK)
        rc = choices_read(t, authors ? "question.choices" : "choices",
                          json_object_get(authors ? q : t->json, "choices"), err);
    if (rc == OK)
        rc = choices_read_key(t, err);
    t->item.subject = t->asks;
    if (rc == OK && concept && t->kind == &task_csqa)
        rc = task_string(&t->item.subject, t,
                         authors ? "question.question_concept" : "question_concept", concept, err);
    return rc;
}

/* In form lm-eval: the first word, if it is a label. */
static bool csqa_extract(char out[TASK_ANSWER], const char *text)
{
    text += strspn(text, " \t\r\n");
    text += *text == '(';
    if (!isalnum((unsigned char)text[0]) || (text[1] && !strchr(" \t\r\n.,:;)", text[1])))
        return false;
    out[0] = (char)toupper((unsigned char)text[0]);
    out[1] = 0;
    return true;
}

const struct task_kind task_csqa = { .name = "csqa",
                                     .file = true,
                                     .read = choices_item,
                                     .put = choices_put,
                                     .stops = choices_stops,
                                     .extract = csqa_extract };

/* Return the first line of a text without the blanks around it, *n bytes. */
static const char *arc_first_line(size_t *n, const char *text)
{
    text += strspn(text, " \t\r\n");
    *n = strcspn(text, "\r\n");
    while (*n && (text[*n - 1] == ' ' || text[*n - 1] == '\t'))
        --*n;
    return text;
}

/* In form lm-eval: the first line. */
static bool arc_extract(char out[TASK_ANSWER], const char *text)
{
    size_t n;
    text = arc_first_line(&n, text);
    task_copy(out, text, n);
    return n > 0;
}

/* The answer is the text of a choice, which may be longer than TASK_ANSWER. */
static bool arc_right(const struct task_item *item, const char *text)
{
    size_t n;
    text = arc_first_line(&n, text);
    for (size_t i = 0; i < item->nchoices; i++)
        if (strcmp(item->labels[i], item->key) == 0)
            return strlen(item->choices[i]) == n && strncasecmp(item->choices[i], text, n) == 0;
    return false;
}

const struct task_kind task_arc = { .name = "arc",
                                    .file = true,
                                    .read = choices_item,
                                    .put = choices_put,
                                    .stops = choices_stops,
                                    .extract = arc_extract,
                                    .right = arc_right };
