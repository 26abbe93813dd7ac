/* task_form.c - in which form a question is put to a model, and where its answer ends. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/chat.h"
#include "tools/cli/input_file.h"
#include "tools/lab/tasks/extract.h"
#include "tools/lab/tasks/task_internal.h"

static const char *const forms[] = { "citer", "chat" }; /* as in enum task_form */

int task_form_parse(struct task_options *o, const char *name, struct err *err)
{
    const char *plain = name && !strncmp(name, "plain@", 6) ? name + 5 : NULL;
    const char *own = plain ? plain : name;
    o->form = plain ? TASK_CITER : TASK_DEFAULT;
    o->own = own && own[0] == '@' && own[1] ? own + 1 : NULL;
    for (size_t i = 0; name && i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strcmp(name, forms[i]) == 0)
            o->form = (enum task_form)i;
    if (name && !o->own && (plain || o->form == TASK_DEFAULT))
        return err_set(err, ERR_ARG,
                       "--prompt: expected citer, chat, @FILE or plain@FILE, found %s", name);
    return OK;
}

/* What is replaced in a form of one's own. */
static const char *const fields[] = { "{question}", "{choices}", "{labels}" };

int task_own_open(struct task *t, const char *path, struct err *err)
{
    size_t n;
    bool choices = t->kind->most;
    if (!t->kind->file)
        return err_set(err, ERR_ARG, "--prompt @%s: expected --task csqa, arc or gsm8k, found %s",
                       path, t->kind->name);
    int rc = input_file_read(&t->own, &n, path, INPUT_FILE_USUAL, err);
    if (rc != OK)
        return rc;
    sha256_hex(t->own_digest, t->own, n);
    if (memchr(t->own, 0, n) || !text_valid(t->own, n))
        return err_set(err, ERR_FORMAT, "%s: expected a text in UTF-8, found other bytes", path);
    for (size_t i = 0; i < 3; i++) {
        bool found = strstr(t->own, fields[i]), wanted = !i || (i == 1 && choices);
        if (found ? i && !choices : wanted)
            return err_set(err, ERR_FORMAT, "%s: %s: expected %s in a form for %s, found %s", path,
                           fields[i], wanted ? "it" : "none", t->kind->name, found ? "it" : "none");
    }
    n -= n && t->own[n - 1] == '\n';
    n -= n && t->own[n - 1] == '\r';
    t->own[n] = 0;
    return OK;
}

void task_own_put(struct task *t)
{
    for (const char *p = t->own; *p;) {
        size_t i = 0, n = strcspn(p + 1, "{") + 1;
        while (i < 3 && strncmp(p, fields[i], strlen(fields[i])) != 0)
            i++;
        if (i == 0)
            task_put(&t->whole, t->texts.asks);
        else if (i == 1)
            task_put_choices(&t->whole, t);
        for (size_t k = 0; i == 2 && k < t->item.nchoices; k++) {
            task_put(&t->whole, !k ? "" : k + 1 < t->item.nchoices ? ", " : " or ");
            task_put(&t->whole, t->labels[k]);
        }
        if (i == 3)
            task_append(&t->whole, p, n);
        p += i < 3 ? strlen(fields[i]) : n;
    }
    t->item.prompt = t->whole.b.p;
}

const char *task_form_name(const struct task *t)
{
    return t->form_name;
}

void task_form_set_name(struct task *t)
{
    const char *form = forms[t->form == TASK_DEFAULT ? TASK_CITER : t->form];
    if (t->own)
        snprintf(t->form_name, TASK_FORM, "%s @%s", t->form == TASK_CHAT ? form : "plain",
                 t->own_digest);
    else
        snprintf(t->form_name, TASK_FORM, "%s", form);
}

bool task_settle(struct task *t, const struct chat *chat, struct err *note)
{
    struct err why;
    if (t->form == TASK_DEFAULT)
        t->form = t->kind->file && chat_known(chat, &why) ? TASK_CHAT : TASK_CITER;
    else
        return true;
    task_form_set_name(t);
    if (t->form == TASK_CHAT || !t->kind->file)
        return true;
    err_set(note, OK, "prompts are in %s: %s",
            t->own ? "the form of --prompt as it stands" : "CITER's plain form", why.msg);
    return false;
}

/* True for a form with solved examples: its last line begins an earlier one, too, behind which an
 * answer stands, and an empty line ends each. */
static bool own_has_examples(const char *own)
{
    const char *last = strrchr(own, '\n'), *first = last && last[1] ? strstr(own, last) : last;
    return first < last && strstr(first, "\n\n");
}

const char *const *task_stops(const struct task *t)
{
    static const char *const run_on[] = { "\nQuestion:", NULL }, *const block[] = { "\n\n", NULL };
    if (!t->kind->file || t->form == TASK_CHAT)
        return NULL;
    return t->own && own_has_examples(t->own) ? block : run_on;
}

void task_cut(const struct task *t, char *text)
{
    const char *const *stop = task_stops(t);
    char *at = stop ? strstr(text, *stop) : NULL;
    if (at)
        *at = 0;
}

bool task_decided(const struct task *t, const char *text)
{
    size_t n;
    const char *answer = extract_segment(&n, text);
    bool thinks = answer == text && strstr(text, "<think>");
    return t->kind->file && !thinks && answer[n];
}
