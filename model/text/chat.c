#include "model/text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "kernels/sys/sha256.h"
#include "model/text/tokenizer.h"
#include "weights/weights.h"

#define CHAT_NAMES "qwen2.5, qwq, qwen3, qwen3-coder, deepseek, deepseek-r1 or chatml"

/* DeepSeek's marks have U+FF5C for the bar and U+2581 for the blank. */
#define MARK(name)   "<\xef\xbd\x9c" name "\xef\xbd\x9c>"
#define MARK_TEXT(a) MARK(a "\xe2\x96\x81of\xe2\x96\x81sentence")

/* What becomes of thoughts in answers of the conversation. */
enum chat_thoughts {
    THOUGHTS_STAY,
    THOUGHTS_GO,   /* out of all answers but one that is the last message */
    THOUGHTS_LATE, /* kept after the last question, written anew */
    THOUGHTS_CUT   /* out of all answers, and nothing else */
};

enum { QWEN2_5, QWQ, QWEN3, QWEN3_CODER, DEEPSEEK, DEEPSEEK_R1, CHATML, CHAT_WAYS };
enum { SYSTEM, USER, ASSISTANT, ROLES };

static const char *const chat_roles[ROLES] = { "system", "user", "assistant" };

/* What turns of each role begin and end with. With `front`, which begins a conversation, the last
 * system message follows it and the others are dropped. */
static const struct chat_turns {
    const char *front, *begin[ROLES], *end[ROLES];
} chat_im = { NULL,
              { "<|im_start|>system\n", "<|im_start|>user\n", "<|im_start|>assistant\n" },
              { "<|im_end|>\n", "<|im_end|>\n", "<|im_end|>\n" } },
  chat_deepseek = { MARK_TEXT("begin"),
                    { "", MARK("User"), MARK("Assistant") },
                    { "", "", MARK_TEXT("end") } };

/* The known forms: the system message of a conversation that has none, how answers are shown again,
 * how the next one begins, by enum chat_think, and what a template of another text has where this
 * is the nearest form (the last one with its sign; ChatML if none has). */
static const struct chat_way {
    const char *name, *system;
    enum chat_thoughts thoughts;
    const char *opening[3], *sign;
    const struct chat_turns *turns;
} chat_ways[CHAT_WAYS] = {
    [QWEN2_5] = { "qwen2.5",
                  "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
                  THOUGHTS_STAY,
                  { "", "", "" },
                  "You are Qwen, created by Alibaba Cloud.",
                  &chat_im },
    [QWQ] = { "qwq",
              NULL,
              THOUGHTS_GO,
              { "<think>\n</think>", "<think>\n", "<think>\n</think>" },
              "</think>",
              &chat_im },
    [QWEN3] = { "qwen3",
                NULL,
                THOUGHTS_LATE,
                { "", "", "<think>\n\n</think>\n\n" },
                "reasoning_content",
                &chat_im },
    [QWEN3_CODER] = { "qwen3-coder", NULL, THOUGHTS_STAY, { "", "", "" }, "<function=", &chat_im },
    [DEEPSEEK] = { "deepseek", NULL, THOUGHTS_CUT, { "", "", "" }, MARK("User"), &chat_deepseek },
    [DEEPSEEK_R1] = { "deepseek-r1",
                      NULL,
                      THOUGHTS_CUT,
                      { "<think>\n", "<think>\n", "<think>\n" },
                      MARK("User"),
                      &chat_deepseek },
    [CHATML] = { "chatml", NULL, THOUGHTS_STAY, { "", "", "" }, "", &chat_im },
};

/* The known templates, by the SHA-256 of their text. */
static const struct chat_template {
    int way;
    const char *sha256;
} chat_templates[] = {
    /* Qwen2.5-0.5B-Instruct, Qwen2.5-7B-Instruct, the GGUF file of Qwen2.5-Coder-0.5B-Instruct */
    { QWEN2_5, "cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f" },
    /* the GGUF file of Qwen2.5-Coder-1.5B-Instruct: two braces more, in what is said of tools */
    { QWEN2_5, "d5495a1e5db0611132a97e46a65dbb64a642a499421228b9c8b93229097fa9a4" },
    /* QwQ-32B, as llama.cpp has it: with enable_thinking */
    { QWQ, "5ed15374ce53e19a7798710736a2c9fe41c79f7385e8421a2080d6575a80ef1b" },
    /* Qwen3-0.6B */
    { QWEN3, "87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5" },
    /* Qwen3-Coder */
    { QWEN3_CODER, "d287fb2edf144207f868ae1b282755dc19db2a3f1c5b3a3d57e9e5abffa98392" },
    /* DeepSeek-R1-Distill-Qwen-1.5B to 32B, as they came and as they are since February 2025 */
    { DEEPSEEK, "b6835114b7303ddd78919a82e4d9f7d8c26ed0d7dfc36beeb12d524f6144eab1" },
    { DEEPSEEK_R1, "56a1447ad31926fdc21fb07e56e5642bd9c850c4f52d8c8af7bbe5f079a84f5f" },
    /* ChatML in one line with newlines in its strings, as many tuned models have it */
    { CHATML, "153280e3ff55d19da1398bdb3914ee2a51b80429bfaedde11d7d216c39db80f3" },
    /* ChatML as llama.cpp's server has it for a model without a template */
    { CHATML, "cc145ac597328b60dbce2631dce17c0c84bb6a87b2380cc0473e2e1291965db7" },
};

struct chat {
    const struct tokenizer *t;
    const struct chat_way *way; /* NULL: why not is in `why` */
    enum chat_think think;
    bool guessed;
    struct err why;
};

static const struct str chat_open_thought = { "<think>", 7 }, chat_shut_thought = { "</think>", 8 };

/* A conversation as it is written. */
struct chat_writing {
    const struct tokenizer *t;
    struct buf text; /* what is not encoded yet */
    uint32_t *ids;
    size_t count, room;
    int rc;
    struct err *err;
};

static void chat_say(struct chat_writing *w, struct str s)
{
    if (w->rc == OK && !buf_add(&w->text, s.p, s.n))
        w->rc = err_set(w->err, ERR_NOMEM, "chat: out of memory");
}

/* Encode the text since the last mark, without special tokens, and then a mark. */
static void chat_flush(struct chat_writing *w, const uint32_t *mark)
{
    uint32_t *more, *ids = NULL;
    size_t count = 0;
    if (w->rc == OK && w->text.n)
        w->rc = tokenizer_encode_part(w->t, &ids, &count, w->text.p, w->text.n, false, w->err);
    while (w->rc == OK && w->room < w->count + count + 1) {
        more = array_grow(w->ids, &w->room, w->room, sizeof(*more));
        w->ids = more ? more : w->ids;
        w->rc = more ? OK : err_set(w->err, ERR_NOMEM, "chat: out of memory");
    }
    if (w->rc == OK) {
        if (count)
            memcpy(w->ids + w->count, ids, count * sizeof(*ids));
        w->count += count;
        if (mark)
            w->ids[w->count++] = *mark;
        w->text.n = 0;
    }
    free(ids);
}

/* Write what a template says. A mark, which is all from < to >, becomes its id, or text where the
 * vocabulary does not have it. */
static void chat_words(struct chat_writing *w, const char *p)
{
    for (size_t n; *p; p += n) {
        char mark[40];
        uint32_t id;
        n = *p == '<' ? strcspn(p, ">") + 1 : strcspn(p, "<");
        snprintf(mark, sizeof(mark), "%.*s", (int)n, p);
        if (*p == '<' && tokenizer_special(w->t, mark, &id))
            chat_flush(w, &id);
        else
            chat_say(w, (struct str){ p, n });
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
    if (thoughts == THOUGHTS_CUT)
        s = chat_behind(s, chat_shut_thought);
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

/* Return the role's number, or ROLES. */
static size_t chat_role(const char *role)
{
    size_t k = 0;
    while (k < ROLES && strcmp(role, chat_roles[k]) != 0)
        k++;
    return k;
}

static void chat_write(struct chat_writing *w, const struct chat_way *way,
                       const struct chat_message *m, size_t n, enum chat_think think)
{
    const struct chat_turns *turns = way->turns;
    size_t question = chat_last_question(m, n), last = n;
    if (way->system && (!n || chat_role(m[0].role) != SYSTEM)) {
        chat_words(w, turns->begin[SYSTEM]);
        chat_say(w, (struct str){ way->system, strlen(way->system) });
        chat_words(w, turns->end[SYSTEM]);
    }
    if (turns->front) {
        chat_words(w, turns->front);
        while (last && chat_role(m[last - 1].role) != SYSTEM)
            last--;
        if (last)
            chat_say(w, (struct str){ m[last - 1].text, m[last - 1].n });
    }
    for (size_t i = 0; i < n; i++) {
        struct str s = { m[i].text, m[i].n };
        size_t role = chat_role(m[i].role);
        if (turns->front && role == SYSTEM)
            continue;
        chat_words(w, turns->begin[role]);
        if (role == ASSISTANT)
            chat_answer(w, way->thoughts, s, i + 1 == n, i > question);
        else
            chat_say(w, s);
        chat_words(w, turns->end[role]);
    }
    chat_words(w, turns->begin[ASSISTANT]);
    chat_words(w, way->opening[think]);
}

/* Return the form of this name, or NULL. */
static const struct chat_way *chat_named(const char *name)
{
    for (size_t i = 0; i < CHAT_WAYS; i++)
        if (strcmp(name, chat_ways[i].name) == 0)
            return &chat_ways[i];
    return NULL;
}

/* Find the form of a template, or keep why there is none; return it, or the nearest. */
static const struct chat_way *chat_recognise(struct chat *c, const char *template)
{
    char hex[SHA256_HEX];
    size_t near = CHATML;
    sha256_hex(hex, template, strlen(template));
    for (size_t i = 0; i < sizeof(chat_templates) / sizeof(chat_templates[0]); i++)
        if (strcmp(hex, chat_templates[i].sha256) == 0)
            c->way = &chat_ways[chat_templates[i].way];
    for (size_t i = 0; i < CHATML; i++)
        if (strstr(template, chat_ways[i].sign))
            near = i;
    if (!c->way)
        err_set(&c->why, ERR_FORMAT,
                "chat template: expected one that is known, found another, nearest to %s; set "
                "chat_template (--chat-template) to " CHAT_NAMES,
                chat_ways[near].name);
    return c->way ? c->way : &chat_ways[near];
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
    if (form && !chat_named(form))
        return err_set(err, ERR_ARG, "chat_template: expected " CHAT_NAMES ", found %s", form);
    if (!chat_think_parse(&t, think))
        return err_set(err, ERR_ARG, "think: expected auto, on or off, found %s", think);
    return OK;
}

/* Decide on the form, or why there is none. */
static void chat_choose(struct chat *c, const char *form)
{
    const char *template = tokenizer_template(c->t);
    const struct chat_way *way = &chat_ways[CHATML];
    uint32_t id;
    if (form || !template)
        c->way = way = form ? chat_named(form) : way;
    else
        way = chat_recognise(c, template);
    bool im = way->turns == &chat_im;
    const char *first = im ? "<|im_start|>" : way->turns->begin[USER];
    const char *second = im ? "<|im_end|>" : way->turns->end[ASSISTANT];
    if (!tokenizer_special(c->t, first, &id) || !tokenizer_special(c->t, second, &id)) {
        c->way = NULL;
        err_set(&c->why, ERR_FORMAT,
                "chat: expected the added tokens %s and %s in the vocabulary, found none", first,
                second);
    }
    c->guessed = c->way && !form && !template;
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
    chat_choose(c, form);
    *out = c;
    return OK;
}

void chat_close(struct chat *c)
{
    free(c);
}

const char *chat_form(const struct chat *c)
{
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
    struct chat_writing w = { .t = c->t, .err = err };
    *ids = NULL;
    *count = 0;
    int rc = chat_check(c, err);
    for (size_t i = 0; rc == OK && i < n; i++)
        if (chat_role(messages[i].role) == ROLES)
            return err_set(err, ERR_ARG,
                           "messages[%zu]: role: expected system, user or assistant, found %.40s",
                           i, messages[i].role);
    if (rc != OK)
        return rc;
    chat_write(&w, c->way, messages, n, think == CHAT_THINK_AUTO ? c->think : think);
    chat_flush(&w, NULL);
    buf_free(&w.text);
    if (w.rc != OK) {
        free(w.ids);
        return w.rc;
    }
    *ids = w.ids;
    *count = w.count;
    return OK;
}
