#include "tools/lab/tasks/task.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/sys/base.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "tools/lab/tasks/extract.h"
#include "tools/lab/tasks/task_internal.h"

/* Return the stream of milli's questions. Training streams have even numbers; the one for
 * calibration is that of the tests with the highest bit set. */
static uint64_t milli_stream(const struct task *t)
{
    return t->stream == TASK_TRAIN       ? 2 * t->seed + 1000
           : t->stream == TASK_CALIBRATE ? world_calibration_stream(t->seed)
                                         : world_test_stream(t->seed);
}

static void milli_read(struct task *t, size_t i)
{
    struct world_question *q = &t->question;
    world_question(q, t->world, t->filter, milli_stream(t), i);
    t->item = (struct task_item){
        .id = "", .prompt = q->prompt, .gold = q->answer, .key = q->key, .subject = q->subject
    };
}

static const struct task_kind kinds[] = {
    { .name = "milli" },
    { .name = "csqa", .file = true, .concepts = true, .least = 2, .most = TASK_CHOICES },
    { .name = "arc", .file = true, .least = 3, .most = 5 },
    { .name = "gsm8k", .file = true },
};

/* Check name and file of the options. */
static int task_find(const struct task_kind **out, const struct task_options *o, struct err *err)
{
    const struct task_kind *k = kinds, *end = kinds + sizeof(kinds) / sizeof(kinds[0]);
    while (k < end && strcmp(k->name, o->name) != 0)
        k++;
    *out = k;
    if (k == end)
        return err_set(err, ERR_ARG, "task: expected milli, csqa, arc or gsm8k, found %s", o->name);
    if (k->file && !o->data)
        return err_set(err, ERR_ARG, "task %s: expected --data FILE, found none", o->name);
    if (!k->file && o->data)
        return err_set(err, ERR_ARG, "task %s: expected no --data, found %s", o->name, o->data);
    if (k->file && (o->kind || o->wording))
        return err_set(err, ERR_ARG, "--kind, --wording: expected --task milli, found %s", o->name);
    return OK;
}

int task_open(struct task **out, const struct task_options *o, struct err *err)
{
    const struct task_kind *kind = NULL;
    struct task_item item;
    *out = NULL;
    int rc = task_find(&kind, o, err);
    if (rc != OK)
        return rc;
    struct task *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ERR_NOMEM, "task: out of memory");
    t->kind = kind;
    t->form = o->form;
    t->stream = o->stream;
    t->seed = o->seed;
    t->size = SIZE_MAX;
    if (!kind->file) {
        rc = world_topic_parse(&t->filter.topic, o->kind ? o->kind : "all", err);
        if (rc == OK)
            rc = world_wording_parse(&t->filter.wording, o->wording ? o->wording : "all", err);
        if (rc == OK)
            rc = world_open(&t->world, o->world, err);
    } else {
        rc = task_file_open(t, o->data, err);
    }
    if (rc == OK && o->own)
        rc = task_own_open(t, o->own, err);
    task_form_set_name(t);
    for (size_t i = 0; rc == OK && kind->file && i < t->size; i++)
        rc = task_item(&item, t, i, err); /* reads each once; only checks it */
    if (rc != OK) {
        task_close(t);
        return rc;
    }
    *out = t;
    return OK;
}

void task_close(struct task *t)
{
    if (!t)
        return;
    world_close(t->world);
    json_decref(t->json);
    free(t->path);
    free(t->data);
    free(t->lines);
    free(t->own);
    free(t->whole.b.p);
    free(t->prompt.b.p);
    free(t->gold.b.p);
    free(t);
}

const char *task_name(const struct task *t)
{
    return t->kind->name;
}

size_t task_size(const struct task *t)
{
    return t->size;
}

const char *task_digest(const struct task *t)
{
    return t->digest;
}

enum task_form task_form(const struct task *t)
{
    return t->form;
}

int task_item(struct task_item *out, struct task *t, size_t i, struct err *err)
{
    int rc = OK;
    t->item = (struct task_item){ .id = "" };
    t->prompt.b.n = t->gold.b.n = t->whole.b.n = 0;
    if (t->kind->file)
        rc = task_read(t, i, err);
    else
        milli_read(t, i);
    if (rc == OK && t->own)
        task_own_put(t);
    if (rc == OK && (t->prompt.full || t->gold.full || t->whole.full)) {
        t->prompt.full = t->gold.full = t->whole.full = false;
        rc = err_set(err, ERR_NOMEM, "task: out of memory");
    }
    if (rc == OK)
        *out = t->item;
    return rc;
}

int task_encode(uint32_t **ids, size_t *n, const struct task *t, const struct task_item *item,
                const struct tokenizer *tok, const struct chat *chat, struct err *err)
{
    size_t len = strlen(item->prompt);
    const struct chat_message message = { "user", item->prompt, len };
    if (t->form == TASK_CHAT && t->kind->file)
        return chat_encode(chat, ids, n, &message, 1, CHAT_THINK_AUTO, err);
    return tokenizer_encode(tok, ids, n, item->prompt, len, false, err);
}

bool task_extract(char out[TASK_ANSWER], const struct task *t, const struct task_item *item,
                  const char *text)
{
    const struct extract_choices c = { item->labels, item->choices, item->nchoices };
    if (!t->kind->file)
        return world_extract(out, text);
    if (!c.n)
        return extract_number(out, text);
    out[0] = extract_label(text, &c);
    out[1] = 0;
    return out[0];
}

bool task_right(const struct task *t, const struct task_item *item, const char *text)
{
    char answer[TASK_ANSWER];
    return task_extract(answer, t, item, text) && strcasecmp(answer, item->key) == 0;
}

bool task_right_citer(const struct task *t, const struct task_item *item, const char *text)
{
    const struct extract_choices c = { item->labels, item->choices, item->nchoices };
    size_t n, m = 0;
    if (!t->kind->file)
        return false;
    if (c.n) {
        const char label[] = { extract_citer_label(text, &c), 0 };
        return strcmp(label, item->key) == 0;
    }
    const char *found = extract_citer_number(&n, text), *key = NULL;
    if (item->gold && task_right(t, item, item->gold)) /* not so if answerKey is another */
        key = extract_citer_number(&m, item->gold);
    m = key ? m : strlen(item->key);
    return found && n == m && memcmp(found, key ? key : item->key, n) == 0;
}
