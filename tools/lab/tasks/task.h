/* task.h - what is asked: items with prompts, reference answers and how an answer is judged.
 *
 * Four tasks: milli (the demo world), csqa (CommonsenseQA), arc (AI2's ARC) and gsm8k. All but
 * milli read a file of JSON lines, one item each; the forms of the authors and of CITER are read.
 *
 * Two forms of prompts:
 *   citer    An item's own `prompt` as it stands, else the form of CITER's test sets
 *            (arXiv 2502.01976).
 *   chat     The prompt of citer as the user's message, in the model's chat template.
 * Without a form it is chat for a model with a known chat template, else citer. milli has one
 * prompt, which all forms mean.
 *
 * A form of one's own is a text in which {question}, {choices} and {labels} are replaced: by the
 * question alone, a line for each choice as in form citer ("A. pond"), and "A, B, C, D or E". Other
 * braces stay, and a newline at the end of the file is not part of it. With a known chat template
 * it is the user's message, else, and as plain@FILE, the whole prompt.
 *
 * In a plain form, citer or one's own, an answer ends where a small model goes on with a question
 * of its own: before a line that begins with "Question:" or, if the form holds solved examples (its
 * last line begins an earlier one, too), before an empty line. In form chat the end of the turn
 * ends it.
 *
 * The final answer is taken from the generated text alone, never from the prompt: for milli the
 * last X of "answer is (X)", for the others what a reader takes for the answer (extract.h,
 * `answer`). Beside it, for all but milli, stands CITER's own rule: published scores use it. */
#ifndef TOOLS_LAB_TASKS_TASK_H
#define TOOLS_LAB_TASKS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct task; /* one thread at a time */
struct tokenizer;
struct chat;

enum task_form {
    TASK_CITER,
    TASK_CHAT,
    TASK_DEFAULT /* chat or citer; before task_settle as citer */
};
/* Which questions of milli; the items of a file are the same for all. Training questions are worded
 * as the models have seen them. Those for calibration are worded as test questions, and no test
 * stream with a seed below 2^62 contains them. */
enum task_stream { TASK_TRAIN, TASK_CALIBRATE, TASK_TEST };

struct task_options {
    const char *name;   /* "milli", "csqa", "arc", "gsm8k" */
    const char *data;   /* path of the file; NULL for milli */
    const char *prompt; /* what task_form_parse has read, or shall; NULL: the default form */
    enum task_form form;
    const char *own; /* path of a form of one's own, form TASK_DEFAULT or, plain, TASK_CITER */
    enum task_stream stream;
    uint64_t seed, world;       /* milli: of the questions, and of the world */
    const char *kind, *wording; /* milli: as --kind and --wording take them; NULL: all */
};

enum {
    TASK_ANSWER = 64, /* = EXTRACT_NUMBER; bytes of a final answer, with its terminator; longer ones
                         are cut */
    TASK_CHOICES = 26,   /* most choices of an item */
    TASK_LINE = 1 << 20, /* most bytes of a line */
    TASK_FORM = 96,      /* bytes of a form's name, with its terminator */
};

struct task_item {       /* valid until the next task_item */
    const char *id;      /* as the file says, or "" */
    const char *prompt;  /* as it is sent; form chat: the user's message */
    const char *gold;    /* reference answer with its leading blank, without end-of-text, or NULL */
    const char *key;     /* the right final answer: "C", "18" */
    const char *subject; /* what it asks about: items of one subject are never split, and
                          * tools/lab/study draws them together. The field `group`; without it csqa:
                          * question_concept, milli: the thing, else the question */
    size_t nchoices;     /* 0: none (milli, gsm8k) */
    const char *const *labels, *const *choices; /* [nchoices] */
};

/* Set the form to the one of this name, citer or chat, or to that of @FILE or plain@FILE;
 * NULL: the default. ERR_ARG names --prompt. */
int task_form_parse(struct task_options *o, const char *name, struct err *err);

/* Open a task. The whole file, at most 64 MiB, is read and checked first, so task_item can only run
 * out of memory. ERR_FORMAT names file, line, field, what was expected and found; ERR_IO; ERR_ARG:
 * no such task, or a file that is missing or not wanted; ERR_STOP; ERR_NOMEM. On error *out is
 * NULL. */
int task_open(struct task **out, const struct task_options *o, struct err *err);
void task_close(struct task *t); /* NULL is fine */
const char *task_name(const struct task *t);
/* Return the number of items; SIZE_MAX for milli, which makes as many as are wanted. */
size_t task_size(const struct task *t);
/* Return the SHA-256 of the file in hexadecimal; "" for milli. */
const char *task_digest(const struct task *t);
enum task_form task_form(const struct task *t);
/* Return what the prompts are, for people and to compare: "citer" or "chat"; a form of one's own as
 * "chat @" or "plain @" and its SHA-256. */
const char *task_form_name(const struct task *t);
/* Choose the form for a model, if none is given. False: without the chat template, and *note says
 * why. */
bool task_settle(struct task *t, const struct chat *chat, struct err *note);
/* Return the strings at which an answer ends, NULL-terminated; NULL: none. */
const char *const *task_stops(const struct task *t);
/* Cut a text before the first of them. */
void task_cut(const struct task *t, char *text);
/* Set *out to item i < task_size. ERR_NOMEM. */
int task_item(struct task_item *out, struct task *t, size_t i, struct err *err);
/* Encode the item's prompt, without special tokens but for those of form chat (model/text/chat.h).
 * *ids is malloc'ed. chat may be NULL for other forms. ERR_FORMAT when the model cannot chat;
 * ERR_NOMEM. */
int task_encode(uint32_t **ids, size_t *n, const struct task *t, const struct task_item *item,
                const struct tokenizer *tok, const struct chat *chat, struct err *err);

/* Find the final answer in a generated text and write it in the form of `key`; false when there is
 * none. */
bool task_extract(char out[TASK_ANSWER], const struct task *t, const struct task_item *item,
                  const char *text);
/* True when the final answer of the text is right, whether letters are capital or not. */
bool task_right(const struct task *t, const struct task_item *item, const char *text);
/* True when nothing that follows can change the final answer, as the text runs on to another
 * question. What states an answer does not decide it: the last statement counts, and a box counts
 * more. False for milli, whose answers others end, and in thoughts that the text has begun; one
 * whose prompt has begun them must not be asked about. */
bool task_decided(const struct task *t, const char *text);
/* True when it is right by CITER's rule: the same letter as the key or, of gsm8k, the same text in
 * the box as in that of the reference answer, as CITER compares them. milli: never. */
bool task_right_citer(const struct task *t, const struct task_item *item, const char *text);

#endif
