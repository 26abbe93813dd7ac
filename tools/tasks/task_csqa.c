#include <ctype.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/tasks/task_internal.h"

/* Put together the harness's prompt. */
static void csqa_lm_eval(struct task *t, const char *question)
{
    task_put(&t->prompt, "Question: ");
    task_put_trimmed(&t->prompt, question);
    task_put(&t->prompt, "\n");
    task_put_choices(&t->prompt, t);
    task_put(&t->prompt, "\nAnswer:");
    t->item.prompt = t->prompt.p;
}

/* The concept is beside the question or, in the authors' files, in it. */
static int csqa_concept(struct task *t, struct err *err)
{
    const json_t *q = json_object_get(t->json, "question");
    const json_t *concept = json_object_get(json_is_object(q) ? q : t->json, "question_concept");
    return concept
               ? task_string(&t->item.subject, t,
                             json_is_object(q) ? "question.question_concept" : "question_concept",
                             concept, err)
               : OK;
}

static int csqa_read(struct task *t, size_t i, struct err *err)
{
    const char *question;
    (void)i;
    int rc = task_choices_read(&question, t, err);
    if (rc == OK)
        rc = csqa_concept(t, err);
    if (rc == OK && t->form == TASK_LM_EVAL)
        csqa_lm_eval(t, question);
    return rc;
}

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
                                     .read = csqa_read,
                                     .stops = task_choices_stops,
                                     .extract = csqa_extract };
