#include "model/text/chat.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/jinja.h"
#include "model/text/tokenizer.h"
#include "weights/weights.h"

/* What becomes of thoughts in answers of the conversation. */
enum chat_thoughts {
    THOUGHTS_STAY,
    THOUGHTS_GO,  /* out of all answers but one that is the last message */
    THOUGHTS_LATE /* kept after the last question, written anew */
};

/* The known forms: how answers are shown again, and how the next one begins, by enum chat_think. */
static const struct chat_way {
    const char *name;
    enum chat_thoughts thoughts;
    const char *opening[3];
} chat_ways[] = {
    { "chatml", THOUGHTS_STAY, { "", "", "" } },
    { "qwq", THOUGHTS_GO, { "<think>\n</think>", "<think>\n", "<think>\n</think>" } },
    { "qwq", THOUGHTS_GO, { "<think>\n", "<think>\n", "<think>\n" } },
    { "qwen3", THOUGHTS_LATE, { "", "", "<think>\n\n</think>\n\n" } },
    { "qwen3", THOUGHTS_LATE, { "<think>\n", "<think>\n", "<think>\n" } },
};
enum { CHAT_WAYS = sizeof(chat_ways) / sizeof(chat_ways[0]) };

struct chat {
    const struct tokenizer *t;
    const struct chat_way *way; /* NULL: why not is in `why` */
    char *system;               /* the template's own system message, terminated; or NULL */
    enum chat_think think;
    bool guessed;
    struct err why;
};

static const struct str chat_start = { "<|im_start|>", 12 }, chat_end = { "<|im_end|>", 10 },
                        chat_open_thought = { "<think>", 7 }, chat_shut_thought = { "</think>", 8 };

/* A conversation as it is written: as ids, or as text if there is no tokenizer. */
struct chat_writing {
    const struct tokenizer *t;
    char *text; /* [n] all of it, or what is not encoded yet */
    size_t n, room;
    uint32_t *ids;
    size_t count;
    int rc;
    struct err *err;
};

static void chat_say(struct chat_writing *w, struct str s)
{
    size_t need;
    if (w->rc != OK || !s.n)
        return;
    if (!size_add(&need, w->n, s.n) || need > SIZE_MAX / 2) {
        w->rc = err_set(w->err, ERR_NOMEM, "chat: out of memory");
        return;
    }
    if (need > w->room) {
        char *more = realloc(w->text, 2 * need);
        if (!more) {
            w->rc = err_set(w->err, ERR_NOMEM, "chat: out of memory");
            return;
        }
        w->text = more;
        w->room = 2 * need;
    }
    memcpy(w->text + w->n, s.p, s.n);
    w->n += s.n;
}

/* Encode the text since the last mark, without special tokens, and then a mark. */
static void chat_flush(struct chat_writing *w, const uint32_t *mark)
{
    uint32_t *more, *ids = NULL;
    size_t count = 0;
    if (w->rc == OK && w->n)
        w->rc = tokenizer_encode(w->t, &ids, &count, w->text, w->n, false, w->err);
    more = w->rc == OK ? realloc(w->ids, (w->count + count + 1) * sizeof(*more)) : NULL;
    if (more) {
        w->ids = more;
        if (count)
            memcpy(w->ids + w->count, ids, count * sizeof(*ids));
        w->count += count;
        if (mark)
            w->ids[w->count++] = *mark;
        w->n = 0;
    } else if (w->rc == OK) {
        w->rc = err_set(w->err, ERR_NOMEM, "chat: out of memory");
    }
    free(ids);
}

/* Write a mark: as its id, or as text where the vocabulary does not have it. */
static void chat_mark(struct chat_writing *w, struct str mark)
{
    uint32_t id;
    if (w->t && tokenizer_special(w->t, mark.p, &id))
        chat_flush(w, &id);
    else
        chat_say(w, mark);
}

/* Write words of the template, which may contain the marks of thoughts. */
static void chat_words(struct chat_writing *w, const char *p)
{
    while (*p) {
        struct str mark = chat_open_thought;
        const char *at = strchr(p, '<');
        if (!at) {
            chat_say(w, (struct str){ p, strlen(p) });
            return;
        }
        if (at[1] == '/')
            mark = chat_shut_thought;
        chat_say(w, (struct str){ p, (size_t)(at - p) });
        chat_mark(w, mark);
        p = at + mark.n;
    }
}

/* Return where `what` is in s for the first or the last time; NULL if nowhere. */
static const char *chat_find(struct str s, struct str what, bool last)
{
    const char *found = NULL;
    for (size_t i = 0; i + what.n <= s.n && (last || !found); i++) {
        const char *p = memchr(s.p + i, what.p[0], s.n - what.n + 1 - i);
        if (!p)
            break;
        i = (size_t)(p - s.p);
        if (!memcmp(p, what.p, what.n))
            found = p;
    }
    return found;
}

/* Return s without newlines at its start, its end or both. */
static struct str chat_strip(struct str s, bool left, bool right)
{
    while (left && s.n && s.p[0] == '\n')
        s = (struct str){ s.p + 1, s.n - 1 };
    while (right && s.n && s.p[s.n - 1] == '\n')
        s.n--;
    return s;
}

/* Return what follows the last `mark` in s; all of s if there is none. */
static struct str chat_behind(struct str s, struct str mark)
{
    const char *p = chat_find(s, mark, true);
    size_t skip = p ? (size_t)(p - s.p) + mark.n : 0;
    return (struct str){ s.p ? s.p + skip : "", s.n - skip };
}

/* Write an answer of the conversation; `last`: no message follows, `late`: no question does. */
static void chat_answer(struct chat_writing *w, enum chat_thoughts thoughts, struct str s,
                        bool last, bool late)
{
    struct str thought = { "", 0 };
    const char *shut = chat_find(s, chat_shut_thought, false);
    if (thoughts == THOUGHTS_GO && !last)
        s = chat_strip(chat_behind(s, chat_shut_thought), true, false);
    if (thoughts == THOUGHTS_LATE && shut) {
        thought = chat_strip((struct str){ s.p, (size_t)(shut - s.p) }, false, true);
        thought = chat_strip(chat_behind(thought, chat_open_thought), true, false);
        s = chat_strip(chat_behind(s, chat_shut_thought), true, false);
    }
    if (thoughts == THOUGHTS_LATE && late && (last || thought.n)) {
        chat_words(w, "<think>\n");
        chat_say(w, chat_strip(thought, true, true));
        chat_words(w, "\n</think>\n\n");
        s = chat_strip(s, true, false);
    }
    chat_say(w, s);
}

/* Write the beginning of a turn. */
static void chat_turn(struct chat_writing *w, const char *role)
{
    chat_mark(w, chat_start);
    chat_say(w, (struct str){ role, strlen(role) });
    chat_say(w, (struct str){ "\n", 1 });
}

static void chat_turn_end(struct chat_writing *w)
{
    chat_mark(w, chat_end);
    chat_say(w, (struct str){ "\n", 1 });
}

/* Return the last question; results of tools, which are users' messages too, are none. */
static size_t chat_last_question(const struct chat_message *m, size_t n)
{
    static const struct str open = { "<tool_response>", 15 }, shut = { "</tool_response>", 16 };
    for (size_t i = n; i > 0; i--) {
        struct str s = { m[i - 1].text, m[i - 1].n };
        bool tool = s.n >= shut.n && !memcmp(s.p, open.p, open.n) &&
                    !memcmp(s.p + s.n - shut.n, shut.p, shut.n);
        if (strcmp(m[i - 1].role, "user") == 0 && !tool)
            return i - 1;
    }
    return n ? n - 1 : 0;
}

static void chat_write(struct chat_writing *w, const struct chat_way *way, const char *system,
                       const struct chat_message *m, size_t n, enum chat_think think)
{
    size_t question = chat_last_question(m, n);
    if (system && (!n || strcmp(m[0].role, "system") != 0)) {
        chat_turn(w, "system");
        chat_say(w, (struct str){ system, strlen(system) });
        chat_turn_end(w);
    }
    for (size_t i = 0; i < n; i++) {
        struct str s = { m[i].text, m[i].n };
        chat_turn(w, m[i].role);
        if (strcmp(m[i].role, "assistant") == 0)
            chat_answer(w, way->thoughts, s, i + 1 == n, i > question);
        else
            chat_say(w, s);
        chat_turn_end(w);
    }
    chat_turn(w, "assistant");
    chat_words(w, way->opening[think]);
}

#define SAID(role, text)             \
    {                                \
        role, text, sizeof(text) - 1 \
    }

/* Conversations by which templates are told apart: without and with a system message, blanks at the
 * ends, thoughts in answers before and after the last question, a question that is none. */
enum { CHAT_TRIALS = 4, CHAT_TRIAL_MESSAGES = 5 };
static const struct chat_message chat_trials[CHAT_TRIALS][CHAT_TRIAL_MESSAGES] = {
    { SAID("user", " Why?\n") },
    { SAID("system", "\nBe kind. "), SAID("user", "Who?"), SAID("assistant", " I.\n"),
      SAID("user", "Oh </think> <think>") },
    { SAID("user", "One"), SAID("assistant", "<think>\nhm\n</think>\n\nTwo"), SAID("user", "Three"),
      SAID("assistant", "x<think>\n\nso\n</think></think>\n\nFour") },
    { SAID("user", "A"), SAID("assistant", "<think>b</think>\n\nC"), SAID("assistant", "D"),
      SAID("user", "<tool_response>E</tool_response>"), SAID("system", "F") },
};
#undef SAID

/* Set *same to whether the template's text of a trial is what the form gives. */
static int chat_compare(bool *same, const struct chat *c, const struct chat_way *way, size_t trial,
                        enum chat_think think, const char *rendered, struct err *err)
{
    const struct chat_message *m = chat_trials[trial];
    struct chat_writing w = { .err = err };
    size_t n = 0;
    while (n < CHAT_TRIAL_MESSAGES && m[n].role)
        n++;
    chat_write(&w, way, c->system, m, n, think);
    *same = w.rc == OK && w.n == strlen(rendered) && !memcmp(w.text, rendered, w.n);
    free(w.text);
    return w.rc;
}

/* Keep the system message with which a template's text of the first trial begins, if it does. */
static int chat_keep_system(struct chat *c, const char *rendered, struct err *err)
{
    static const char begin[] = "<|im_start|>system\n", end[] = "<|im_end|>\n<|im_start|>user\n";
    const char *stop = strstr(rendered, end);
    if (strncmp(rendered, begin, strlen(begin)) != 0 || !stop)
        return OK;
    size_t n = (size_t)(stop - rendered) - strlen(begin);
    c->system = malloc(n + 1);
    if (!c->system)
        return err_set(err, ERR_NOMEM, "chat: out of memory");
    memcpy(c->system, rendered + strlen(begin), n);
    c->system[n] = '\0';
    return OK;
}

/* Find the form in which the template renders all trials. */
static int chat_recognise(struct chat *c, const char *template, struct err *err)
{
    bool fits[CHAT_WAYS];
    int rc = OK;
    memset(fits, true, sizeof(fits));
    for (size_t i = 0; rc == OK && i < CHAT_TRIALS * 3; i++) {
        size_t trial = i / 3, n = 0;
        enum chat_think think = (enum chat_think)(i % 3);
        char *text;
        while (n < CHAT_TRIAL_MESSAGES && chat_trials[trial][n].role)
            n++;
        rc = jinja_render(&text, template, strlen(template), chat_trials[trial], n,
                          (enum jinja_flag)think, err);
        if (rc == OK && i == 0)
            rc = chat_keep_system(c, text, err);
        for (size_t k = 0; rc == OK && k < CHAT_WAYS; k++) {
            bool same = false;
            rc = fits[k] ? chat_compare(&same, c, &chat_ways[k], trial, think, text, err) : OK;
            fits[k] = fits[k] && rc == OK && same;
        }
        free(text);
    }
    for (size_t k = 0; rc == OK && !c->way && k < CHAT_WAYS; k++)
        c->way = fits[k] ? &chat_ways[k] : NULL;
    return rc;
}

/* Parse "auto" (also NULL), "on" or "off"; false for anything else. */
static bool chat_think_parse(enum chat_think *out, const char *name)
{
    static const char *const names[] = { "auto", "on", "off" };
    for (int i = 0; i < 3; i++)
        if (strcmp(name ? name : "auto", names[i]) == 0) {
            *out = (enum chat_think)i;
            return true;
        }
    return false;
}

int chat_check_options(const char *form, const char *think, struct err *err)
{
    enum chat_think t;
    if (form && strcmp(form, "chatml") != 0)
        return err_set(err, ERR_ARG, "chat_template: expected chatml, found %s", form);
    if (!chat_think_parse(&t, think))
        return err_set(err, ERR_ARG, "think: expected auto, on or off, found %s", think);
    return OK;
}

/* Decide on the form, or why there is none. */
static int chat_choose(struct chat *c, const char *form, struct err *err)
{
    const char *template = form ? NULL : tokenizer_template(c->t);
    uint32_t id;
    struct err why = { "" };
    if (!tokenizer_special(c->t, chat_start.p, &id) || !tokenizer_special(c->t, chat_end.p, &id)) {
        err_set(&c->why, ERR_FORMAT,
                "chat: expected the added tokens <|im_start|> and <|im_end|> in the vocabulary, "
                "found none");
        return OK;
    }
    if (!template) {
        c->way = &chat_ways[0];
        c->guessed = !form;
        return OK;
    }
    int rc = chat_recognise(c, template, &why);
    if (rc == ERR_NOMEM)
        return err_set(err, rc, "%s", why.msg);
    if (!c->way)
        err_set(&c->why, ERR_FORMAT,
                "chat template: expected that of Qwen2.5, QwQ, Qwen3 or ChatML, found another%s%s; "
                "set chat_template (--chat-template) to chatml to use ChatML",
                rc == OK ? "" : ": ", rc == OK ? "" : why.msg);
    return OK;
}

int chat_open(struct chat **out, const struct tokenizer *t, const char *form, const char *think,
              struct err *err)
{
    *out = NULL;
    int rc = chat_check_options(form, think, err);
    if (rc != OK)
        return rc;
    struct chat *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(err, ERR_NOMEM, "chat: out of memory");
    c->t = t;
    chat_think_parse(&c->think, think);
    rc = chat_choose(c, form, err);
    if (rc == OK)
        *out = c;
    else
        chat_close(c);
    return rc;
}

void chat_close(struct chat *c)
{
    if (c)
        free(c->system);
    free(c);
}

const char *chat_form(const struct chat *c)
{
    static const char qwen[] =
        "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
    if (c->way == &chat_ways[0] && c->system && strcmp(c->system, qwen) == 0)
        return "qwen2.5";
    return c->way ? c->way->name : NULL;
}

bool chat_note(const struct chat *c, struct err *note)
{
    const char *const *opening = c->way ? c->way->opening : NULL;
    bool idle = opening && c->think != CHAT_THINK_AUTO && strcmp(opening[0], opening[1]) == 0 &&
                strcmp(opening[0], opening[2]) == 0;
    if (c->guessed)
        err_set(note, OK, "the model has no chat template: conversations are written in ChatML%s",
                idle ? ", where think (--think) has no effect" : "");
    else if (idle)
        err_set(note, OK, "think: no effect, as the chat template does not have that choice");
    return c->guessed || idle;
}

bool chat_known(const struct chat *c, struct err *why)
{
    if (c->guessed)
        err_set(why, OK, "the model has no chat template");
    else if (!c->way)
        *why = c->why;
    return c->way && !c->guessed;
}

int chat_check(const struct chat *c, struct err *err)
{
    return c->way ? OK : err_set(err, ERR_FORMAT, "%s", c->why.msg);
}

int chat_encode(const struct chat *c, uint32_t **ids, size_t *count,
                const struct chat_message *messages, size_t n, enum chat_think think,
                struct err *err)
{
    static const char *const roles[] = { "system", "user", "assistant" };
    struct chat_writing w = { .t = c->t, .err = err };
    *ids = NULL;
    *count = 0;
    int rc = chat_check(c, err);
    for (size_t i = 0; rc == OK && i < n; i++) {
        size_t k = 0;
        while (k < 3 && strcmp(messages[i].role, roles[k]) != 0)
            k++;
        if (k == 3)
            return err_set(err, ERR_ARG,
                           "messages[%zu]: role: expected system, user or assistant, found %.40s",
                           i, messages[i].role);
    }
    if (rc != OK)
        return rc;
    chat_write(&w, c->way, c->system, messages, n, think == CHAT_THINK_AUTO ? c->think : think);
    chat_flush(&w, NULL);
    free(w.text);
    if (w.rc != OK) {
        free(w.ids);
        return w.rc;
    }
    *ids = w.ids;
    *count = w.count;
    return OK;
}
