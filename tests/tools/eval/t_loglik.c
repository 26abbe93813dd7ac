/* t_loglik.c - log-likelihoods of choices against a plain computation: a new session, one token at
 * a time, a softmax with libm's functions. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tests/support/torture.h"
#include "tools/eval/loglik.h"
#include "weights/weights.h"

static const char path[] = "build/t_loglik.jsonl";

static struct kernels kernels;
static struct model *model;
static struct batch *batch;
static struct tokenizer *tokenizer;

static struct session *new_session(size_t context)
{
    struct session *s;
    struct err err = { "" };
    CHECK(session_open(&s, batch, context, KVCACHE_F32, &err) == OK);
    return s;
}

/* Without "qz" the ids of a text are its bytes. */
static double plainly(const char *text, size_t from)
{
    struct session *s = new_session(TINY_CONTEXT);
    struct err err = { "" };
    double nats = 0;
    for (size_t i = 0; text[i + 1]; i++) {
        uint32_t id = (unsigned char)text[i];
        CHECK(session_eval(s, &id, 1, NULL, &err) == OK);
        if (i + 1 < from)
            continue;
        const float *x = session_logits(s, 0);
        double sum = 0;
        for (size_t v = 0; v < TINY_VOCAB; v++)
            sum += exp((double)x[v]);
        nats += (double)x[(unsigned char)text[i + 1]] - log(sum);
    }
    session_close(s);
    return nats;
}

/* Prompts with and without blanks at the end, in one session, so that a prompt is computed once,
 * partly, or not at all. */
static void texts(void)
{
    static const struct {
        const char *prompt, *continuation;
        size_t blanks;
    } rows[] = {
        { "Question: a?\nAnswer:", " A", 0 },     { "Question: a?\nAnswer:", " B", 0 },
        { "Question: a?\nAnswer:", " a fog", 0 }, { "Question: a?\nAnswer:", " a f", 0 },
        { "Question: a?\nAnswer: ", "A", 1 },     { "Question: a?\nAnswer: \n", "A", 2 },
        { "Question: b?\nAnswer:", " A", 0 },     { "Q", " A", 0 },
        { "Question: b?\nAnswer:", "", 0 },       { "Question: b?\nAnswer:", " Ab", 0 },
    };
    struct session *s = new_session(TINY_CONTEXT);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct loglik_text got;
        struct err err = { "" };
        char text[128];
        size_t from = strlen(rows[i].prompt) - rows[i].blanks;
        snprintf(text, sizeof(text), "%s%s", rows[i].prompt, rows[i].continuation);
        CHECK(loglik_text(&got, s, tokenizer, rows[i].prompt, rows[i].continuation, NULL, &err) ==
              OK);
        double want = plainly(text, from);
        if (!(fabs(got.nats - want) < 1e-9))
            fprintf(stderr, "row %zu: expected %.12g, found %.12g\n", i, want, got.nats);
        CHECK(fabs(got.nats - want) < 1e-9 && got.tokens == strlen(text) - from && !got.left_out);
    }
    struct loglik_text got;
    struct err err = { "" };
    CHECK(strlen("Question: b?\nAnswer:") == 20 && session_length(s) > 20);
    session_rewind(s, 20); /* the logits after the prompt are gone */
    CHECK(loglik_text(&got, s, tokenizer, "Question: b?\nAnswer:", " A", NULL, &err) == OK);
    CHECK(fabs(got.nats - plainly("Question: b?\nAnswer: A", 20)) < 1e-9);
    CHECK(loglik_text(&got, s, tokenizer, " \n", "A", NULL, &err) == ERR_ARG);
    session_close(s);
}

/* Give the vocabulary one merge, "qz". */
static void add_merge(const char *folder)
{
    char file[128];
    snprintf(file, sizeof(file), "%s/vocab.json", folder);
    json_t *vocab = json_load_file(file, 0, NULL);
    CHECK(json_object_set_new(vocab, "qz", json_integer(258)) == 0);
    CHECK(json_dump_file(vocab, file, 0) == 0);
    json_decref(vocab);
    snprintf(file, sizeof(file), "%s/merges.txt", folder);
    FILE *f = fopen(file, "a");
    CHECK(f && fputs("q z\n", f) >= 0 && fclose(f) == 0);
}

/* A merge across the end of the prompt hides a token of the continuation, as in the harness. */
static void merges(void)
{
    struct session *s = new_session(TINY_CONTEXT);
    struct loglik_text got;
    struct err err = { "" };
    CHECK(loglik_text(&got, s, tokenizer, "aq", "zb", NULL, &err) == OK && got.tokens == 1);
    CHECK(fabs(got.nats - plainly("aqb", 2)) < 1e-9);
    CHECK(loglik_text(&got, s, tokenizer, "aq", "z", NULL, &err) == OK);
    CHECK(got.tokens == 0 && !(got.nats < 0) && !got.left_out);
    session_close(s);
}

/* A prompt longer than a chunk, and the longest that fits: the last token is never evaluated. */
static void lengths(void)
{
    char prompt[TINY_CONTEXT + 1];
    struct session *s = new_session(TINY_CONTEXT);
    struct loglik_text got;
    struct err err = { "" };
    memset(prompt, 'x', sizeof(prompt));
    prompt[TINY_CONTEXT - 4] = 0;
    CHECK(loglik_text(&got, s, tokenizer, prompt, "abcde", NULL, &err) == OK && !got.left_out);
    char text[TINY_CONTEXT + 8];
    snprintf(text, sizeof(text), "%sabcde", prompt);
    CHECK(fabs(got.nats - plainly(text, strlen(prompt))) < 1e-9 && got.tokens == 5);
    CHECK(loglik_text(&got, s, tokenizer, prompt, "abcdef", NULL, &err) == OK);
    CHECK(got.left_out && got.tokens == 0);
    _Atomic int stop = 1;
    CHECK(loglik_text(&got, s, tokenizer, "new", " a", &stop, &err) == ERR_STOP);
    session_close(s);
}

static struct task *open_task(const char *name, enum task_form form, const char *text)
{
    struct task *t;
    struct err err = { "" };
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
    const struct task_options o = { .name = name, .data = path, .form = form };
    CHECK(task_open(&t, &o, &err) == OK);
    unlink(path);
    return t;
}

/* Find the picks from plain numbers; the length of a choice is in characters. */
static void check_item(struct loglik *got, struct task *t, const size_t length[], bool letters)
{
    struct session *s = new_session(TINY_CONTEXT);
    struct task_item item;
    struct err err = { "" };
    size_t best = 0, best_norm = 0;
    double nats[TASK_CHOICES];
    CHECK(task_item(&item, t, 0, &err) == OK);
    CHECK(loglik_item(got, s, tokenizer, t, &item, NULL, &err) == OK && !got->left_out);
    for (size_t i = 0; i < item.nchoices; i++) {
        char text[512];
        snprintf(text, sizeof(text), "%s %s", item.prompt,
                 letters ? item.labels[i] : item.choices[i]);
        nats[i] = plainly(text, strlen(item.prompt));
        CHECK(fabs(nats[i] - got->nats[i]) < 1e-9);
        best = nats[i] > nats[best] ? i : best;
        if (nats[i] / (double)length[i] > nats[best_norm] / (double)length[best_norm])
            best_norm = i;
    }
    CHECK(got->pick == best && got->pick_norm == best_norm);
    CHECK(got->acc == !strcmp(item.labels[best], item.key));
    CHECK(got->acc_norm == !strcmp(item.labels[best_norm], item.key));
    session_close(s);
}

/* The choices of arc are such that characters, bytes and no norm give three picks. */
static void items(void)
{
    struct loglik got;
    struct task *t = open_task("csqa", TASK_LM_EVAL,
                               "{\"question\":\"q?\",\"choices\":{\"label\":[\"A\",\"B\",\"C\"],"
                               "\"text\":[\"x\",\"yy\",\"z\"]},\"answerKey\":\"B\"}");
    check_item(&got, t, (const size_t[]){ 1, 1, 1 }, true);
    CHECK(got.tokens == 6 && got.pick == got.pick_norm);
    task_close(t);
    t = open_task("arc", TASK_LM_EVAL,
                  "{\"question\":\"q?\",\"choices\":{\"label\":[\"1\",\"2\",\"3\"],\"text\":[\"x\","
                  "\"yyy\",\"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\"]},\"answerKey\":\"2\"}");
    check_item(&got, t, (const size_t[]){ 1, 3, 3 }, false);
    CHECK(got.tokens == 2 + 4 + 10 && got.pick == 0 && got.pick_norm == 1 && got.acc_norm);
    CHECK(got.nats[2] / 9 > got.nats[1] / 3 && got.nats[2] / 9 > got.nats[0]);
    task_close(t);
}

static void refusals(void)
{
    static const char item_text[] = "{\"question\":\"q?\",\"choices\":{\"label\":[\"A\",\"B\"],"
                                    "\"text\":[\"x\",\"y\"]},\"answerKey\":\"B\"}";
    struct loglik got;
    struct task_item item;
    struct err err = { "" };
    struct session *s = new_session(16);
    struct task *t = open_task("csqa", TASK_CITER, item_text);
    CHECK(task_item(&item, t, 0, &err) == OK);
    CHECK(loglik_item(&got, s, tokenizer, t, &item, NULL, &err) == ERR_ARG);
    CHECK(strstr(err.msg, "found csqa with another prompt"));
    task_close(t);
    t = open_task("gsm8k", TASK_LM_EVAL, "{\"problem\":\"p\",\"answerKey\":\"3\"}");
    CHECK(task_item(&item, t, 0, &err) == OK);
    CHECK(loglik_item(&got, s, tokenizer, t, &item, NULL, &err) == ERR_ARG);
    task_close(t);
    t = open_task("csqa", TASK_LM_EVAL, item_text);
    CHECK(task_item(&item, t, 0, &err) == OK);
    CHECK(loglik_item(&got, s, tokenizer, t, &item, NULL, &err) == OK && got.left_out);
    session_close(s);
    s = new_session(TINY_CONTEXT);
    bool reached = true;
    for (long n = 1; reached; n++) { /* no allocation may fail unnoticed */
        torture_begin(n);
        int rc = loglik_item(&got, s, tokenizer, t, &item, NULL, &err);
        reached = torture_end();
        CHECK(torture_live() == 0 && rc == (reached ? ERR_NOMEM : OK));
    }
    session_close(s);
    task_close(t);
}

int main(void)
{
    struct weights *w;
    struct err err = { "" };
    const char *folder = tiny_make();
    add_merge(folder);
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), &err) == OK);
    CHECK(weights_open(&w, folder, &err) == OK &&
          model_open(&model, w, &kernels, NULL, &err) == OK &&
          batch_open(&batch, model, NULL, &err) == OK);
    CHECK(tokenizer_open(&tokenizer, w, &err) == OK);
    weights_close(w);
    texts();
    merges();
    lengths();
    items();
    refusals();
    tokenizer_close(tokenizer);
    batch_close(batch);
    model_close(model);
    tiny_remove();
    return 0;
}
