#include <string.h>
#include <strings.h>

#include "kernels/sys/base.h"
#include "tools/tasks/task_internal.h"

static int arc_read(struct task *t, size_t i, struct err *err)
{
    const char *question;
    (void)i;
    int rc = task_choices_read(&question, t, err);
    if (rc != OK || t->form != TASK_LM_EVAL)
        return rc;
    task_put(&t->prompt, "Question: ");
    task_put(&t->prompt, question);
    task_put(&t->prompt, "\nAnswer:");
    t->item.prompt = t->prompt.p;
    return OK;
}

/* Return the first line of a text without the blanks around it, *n bytes. */
static const char *arc_first_line(size_t *n, const char *text)
{
    text += strspn(text, " \t\r\n");
    *n = strcspn(text, "\r\n");
    while (*n && (text[*n - 1] == ' ' || text[*n - 1] == '\t'))
        --*n;
    return text;
}

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
                                    .read = arc_read,
                                    .stops = task_choices_stops,
                                    .extract = arc_extract,
                                    .right = arc_right };
