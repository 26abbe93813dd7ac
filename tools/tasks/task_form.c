/* task_form.c - in which form a question is put to a model, and where its answer ends. */
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/chat.h"
#include "tools/tasks/task_internal.h"

static const char *const forms[] = { "citer", "lm-eval", "chat" }; /* as in enum task_form */

int task_form_parse(struct task_options *o, const char *name, struct err *err)
{
    o->form = TASK_DEFAULT;
    for (size_t i = 0; name && i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strcmp(name, forms[i]) == 0)
            o->form = (enum task_form)i;
    if (name && o->form == TASK_DEFAULT)
        return err_set(err, ERR_ARG, "--prompt: expected citer, lm-eval or chat, found %s", name);
    return OK;
}

const char *task_form_name(const struct task *t)
{
    return forms[t->form == TASK_DEFAULT ? TASK_CITER : t->form];
}

bool task_settle(struct task *t, const struct chat *chat, struct err *why)
{
    if (t->form != TASK_DEFAULT)
        return true;
    t->form = t->kind->file && chat_known(chat, why) ? TASK_CHAT : TASK_CITER;
    return t->form == TASK_CHAT || !t->kind->file;
}

const char *const *task_stops(const struct task *t)
{
    static const char *const run_on[] = { "\nQuestion:", NULL };
    if (!t->kind->file || t->form == TASK_CHAT)
        return NULL;
    return t->form == TASK_LM_EVAL ? t->kind->stops : run_on;
}

void task_cut(const struct task *t, char *text)
{
    for (const char *const *stop = task_stops(t); stop && *stop; stop++) {
        char *at = strstr(text, *stop);
        if (at)
            *at = 0;
    }
}
