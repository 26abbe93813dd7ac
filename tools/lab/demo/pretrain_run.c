#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/atomic_file.h"
#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "model/train/bpe_train.h"
#include "model/text/tokenizer.h"
#include "tools/lab/demo/pretrain_run.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/demo/world.h"
#include "weights/gguf_write.h"
#include "weights/quant.h"

enum {
    VOCAB_STREAM = 2,
    VOCAB_TEXTS = 6000,
    VOCAB_LEXICON = 8, /* the lexicon comes once in so many texts */
    LEXICON_MAX = 4096,
    TEXT_MAX = WORLD_PROMPT + WORLD_ANSWER,
    ROW_STEPS = 20,
    BATCH = 2048,
    PIECES = 1008,
    WARMUP = 100,
    CONTEXT = 1024
};

const struct pretrain_plan pretrain_plans[PRETRAIN_SIZES] = {
    { "0.1", "edge-0.1", 3, 64, 4, 2, 128, 6000, 400, 2000, 2, 3e-3f, { .30, false, true } },
    { "0.5", "edge-0.5", 3, 128, 8, 4, 256, 6000, 400, 2000, 5, 2.5e-3f, { .36, false, true } },
    { "1", "edge-1", 4, 160, 10, 5, 320, 6000, 400, 2000, 5, 2.5e-3f, { .60, false, true } },
    { "cloud", "cloud", 4, 256, 16, 8, 256, 4000, 250, 800, 2, 1.2e-3f, { 1, true, false } },
};

const struct pretrain_plan *pretrain_plan_find(const char *name)
{
    for (size_t i = 0; i < PRETRAIN_SIZES; i++)
        if (!strcmp(name, pretrain_plans[i].size) || !strcmp(name, pretrain_plans[i].name))
            return &pretrain_plans[i];
    return NULL;
}

/* Set the model configuration of a plan. */
static void pretrain_run_config(struct model_config *out, const struct pretrain_plan *p,
                                size_t vocab)
{
    *out = (struct model_config){ .layers = p->layers,
                                  .hidden = p->hidden,
                                  .heads = p->heads,
                                  .kv_heads = p->kv_heads,
                                  .head_dim = p->hidden / p->heads,
                                  .ffn = p->ffn,
                                  .vocab = vocab,
                                  .context = CONTEXT,
                                  .eps = 1e-6f,
                                  .rope_theta = 10000,
                                  .tied = true };
}

/* Set the learning rate of a step, counted from 0: linear warmup, then a cosine from the peak to a
 * fiftieth of it. */
static void pretrain_run_rate(struct train_rate *out, const struct pretrain_plan *p, size_t step)
{
    *out = (struct train_rate){ p->rate, 0.9f, 0.99f, 1e-8f, 0, 1 };
    if (step < WARMUP) {
        out->lr = p->rate * (float)(step + 1) / WARMUP;
    } else {
        double sin, cos, done = (double)(step - WARMUP) / (double)(p->steps - WARMUP);
        sincos_f64(&sin, &cos, 3.141592653589793 * done);
        out->lr = p->rate * (float)(0.02 + 0.49 * (1 + cos));
    }
}

/* Return the share of practice among the texts of a step, and set *lists of world_practice. */
static double pretrain_run_practice(size_t *lists, const struct pretrain_plan *p, size_t step)
{
    *lists = step < p->easy ? 0 : p->lists;
    return step < p->easy ? 1 : step < p->mixed ? 0.5 : 0.1;
}

/* A training in progress. */
struct run {
    const struct pretrain_job *job;
    const struct pretrain_plan *plan;
    struct train *train;
    struct pretrain_data data;
    struct atomic_file curve; /* the loss curve as CSV: step,tokens,loss,lr */
    uint64_t read;            /* tokens */
    double sum;               /* of losses since the last row of the curve */
    size_t summed;
    float loss; /* of the last row */
    struct progress_count shown;
    uint64_t begin_ns;
    char model[PRETRAIN_PATH];
};

/* ---- files ---- */

enum { MOSTLY_Q8_0 = 7, Q8_BLOCK = 32, Q8_BYTES = 34 };

#define KEY "mizzle.pretrain."

static void write_tokenizer(struct ggufw *g, const struct bpe_vocab *v)
{
    ggufw_str(g, "tokenizer.ggml.model", "gpt2");
    ggufw_str(g, "tokenizer.ggml.pre", "qwen2");
    ggufw_strs(g, "tokenizer.ggml.tokens", v->pieces, v->npieces);
    ggufw_i32s(g, "tokenizer.ggml.token_type", v->types, v->npieces);
    ggufw_strs(g, "tokenizer.ggml.merges", v->merges, v->nmerges);
    ggufw_u32(g, "tokenizer.ggml.eos_token_id", v->eot);
    ggufw_u32(g, "tokenizer.ggml.padding_token_id", v->eot);
    ggufw_bool(g, "tokenizer.ggml.add_bos_token", false);
}

static void pretrain_save_write_config(struct ggufw *g, const struct model_config *c)
{
    ggufw_u32(g, "qwen2.block_count", (uint32_t)c->layers);
    ggufw_u32(g, "qwen2.context_length", (uint32_t)c->context);
    ggufw_u32(g, "qwen2.embedding_length", (uint32_t)c->hidden);
    ggufw_u32(g, "qwen2.feed_forward_length", (uint32_t)c->ffn);
    ggufw_u32(g, "qwen2.attention.head_count", (uint32_t)c->heads);
    ggufw_u32(g, "qwen2.attention.head_count_kv", (uint32_t)c->kv_heads);
    ggufw_f32(g, "qwen2.attention.layer_norm_rms_epsilon", c->eps);
    ggufw_f32(g, "qwen2.rope.freq_base", c->rope_theta);
}

/* Write the keys that tell how far the training is. */
static void write_progress(struct ggufw *g, const struct train *t, const struct pretrain_plan *p,
                           uint64_t seed, uint64_t tokens)
{
    ggufw_str(g, KEY "size", p->size);
    ggufw_u32(g, KEY "seed_low", (uint32_t)seed);
    ggufw_u32(g, KEY "seed_high", (uint32_t)(seed >> 32));
    ggufw_u32(g, KEY "steps", (uint32_t)train_look(t).steps);
    ggufw_u32(g, KEY "tokens", (uint32_t)tokens);
}

/* Write a GGUF file that holds only the tokenizer's keys. */
static int pretrain_save_vocab(const char *path, const struct bpe_vocab *v, struct err *err)
{
    struct ggufw *g;
    int rc = ggufw_open(&g, path, err);
    if (rc)
        return rc;
    ggufw_str(g, "general.architecture", "qwen2");
    ggufw_str(g, "general.name", "Mizzle milli vocabulary");
    write_tokenizer(g, v);
    ggufw_checksum(g);
    return ggufw_close(g, true, err);
}

static bool is_matrix(const struct train_tensor *x)
{
    return x->rows > 1;
}

/* Declare all tensors, then write their data, matrices quantised to Q8_0. */
static int write_tensors(struct ggufw *g, const struct train *t, struct err *err)
{
    size_t n = train_look(t).ntensors, most = 0;
    for (size_t i = 0; i < n; i++) {
        const struct train_tensor *x = &train_look(t).tensors[i];
        const size_t shape[2] = { x->rows, x->cols };
        if (is_matrix(x))
            ggufw_tensor(g, x->name, W_Q8_0, 2, shape);
        else /* a vector has one dimension */
            ggufw_tensor(g, x->name, W_F32, 1, shape + 1);
        most = x->rows * x->cols > most ? x->rows * x->cols : most;
    }
    unsigned char *bytes = malloc(most / Q8_BLOCK * Q8_BYTES + 1);
    if (!bytes)
        return err_set(err, ERR_NOMEM, "pretrain: out of memory");
    for (size_t i = 0; i < n; i++) {
        const struct train_tensor *x = &train_look(t).tensors[i];
        size_t count = x->rows * x->cols;
        if (!is_matrix(x)) {
            ggufw_data(g, x->value, count * sizeof(float));
            continue;
        }
        quant_encode(bytes, W_Q8_0, x->value, count);
        ggufw_data(g, bytes, count / Q8_BLOCK * Q8_BYTES);
    }
    free(bytes);
    return OK;
}

/* Write the model for the engine: matrices in Q8_0, vectors in F32, with a checksum. tokens: that
 * it has read. */
static int pretrain_save_model(const char *path, const struct train *t,
                               const struct pretrain_plan *p, uint64_t seed, uint64_t tokens,
                               const struct bpe_vocab *v, struct err *err)
{
    struct ggufw *g;
    int rc = ggufw_open(&g, path, err);
    if (rc)
        return rc;
    char name[64];
    snprintf(name, sizeof(name), "Mizzle milli %s", p->name);
    ggufw_str(g, "general.architecture", "qwen2");
    ggufw_str(g, "general.name", name);
    ggufw_str(g, "general.description",
              "Small demo model, trained from scratch by `mizzle pretrain` on an invented world; "
              "it knows nothing else.");
    ggufw_str(g, "general.license", "mit");
    ggufw_u32(g, "general.file_type", MOSTLY_Q8_0);
    ggufw_u32(g, "general.quantization_version", 2);
    pretrain_save_write_config(g, train_look(t).config);
    write_tokenizer(g, v);
    write_progress(g, t, p, seed, tokens);
    ggufw_checksum(g);
    rc = write_tensors(g, t, err);
    int closed = ggufw_close(g, rc == OK, rc == OK ? err : NULL);
    return rc ? rc : closed;
}

/* ---- training ---- */

int pretrain_path(char path[PRETRAIN_PATH], const char *out, const char *name, const char *suffix,
                  struct err *err)
{
    int n = snprintf(path, PRETRAIN_PATH, "%s/%s%s", out, name, suffix);
    if (n < 0 || n >= PRETRAIN_PATH)
        return err_set(err, ERR_ARG, "--out: %s: too long", out);
    return OK;
}

int pretrain_vocab(struct bpe_vocab **vocab, struct tokenizer **tokenizer, const struct world *w,
                   const char *out, struct err *err)
{
    char path[PRETRAIN_PATH];
    size_t n = 0;
    char *text = malloc((size_t)VOCAB_TEXTS * (TEXT_MAX + LEXICON_MAX));
    /* Names are strangers here, so that no thing gets pieces of its own. */
    const struct world_reader reader = { .recent = true };
    *vocab = NULL;
    *tokenizer = NULL;
    if (!text)
        return err_set(err, ERR_NOMEM, "pretrain: out of memory");
    for (uint64_t i = 0; i < VOCAB_TEXTS; i++) {
        n += i % 10 ? world_text(text + n, NULL, TEXT_MAX, w, &reader, VOCAB_STREAM, i)
                    : world_practice(text + n, NULL, TEXT_MAX, w, 2, VOCAB_STREAM, i);
        text[n++] = '\n';
        if (i % VOCAB_LEXICON == 0) {
            n += world_lexicon(text + n, LEXICON_MAX);
            text[n++] = '\n';
        }
    }
    int rc = bpe_train(vocab, text, n, PIECES, err);
    free(text);
    if (rc == OK)
        rc = pretrain_path(path, out, "vocabulary", ".gguf", err);
    if (rc == OK)
        rc = pretrain_save_vocab(path, *vocab, err);
    if (rc == OK)
        rc = tokenizer_open_path(tokenizer, path, err);
    return rc;
}

/* Train on one batch, and add a row to the loss curve every ROW_STEPS steps. */
static int one_step(struct run *r, struct err *err)
{
    struct train_rate rate;
    double loss;
    size_t step = train_look(r->train).steps;
    r->data.practice = pretrain_run_practice(&r->data.lists, r->plan, step);
    pretrain_run_rate(&rate, r->plan, step);
    int rc = pretrain_data_next(&r->data, &r->read, err);
    if (rc == OK)
        rc = train_gradient(&loss, r->train, &r->data.batch, err);
    if (rc)
        return rc;
    train_update(r->train, &rate);
    r->sum += loss;
    r->summed++;
    step++;
    if (step % ROW_STEPS && step != r->plan->steps)
        return OK;
    r->loss = (float)(r->sum / (double)r->summed);
    if (!r->job->quiet)
        progress_counted(&r->shown, step, r->plan->steps);
    r->sum = 0;
    r->summed = 0;
    fprintf(r->curve.f, "%zu,%llu,%.5f,%.4g\n", step, (unsigned long long)r->read, (double)r->loss,
            (double)rate.lr);
    return OK;
}

/* Save the model, and print its row. */
static int pretrain_run_finish(struct run *r, struct err *err)
{
    double minutes = (double)(os_now_ns() - r->begin_ns) / 60e9;
    int rc = atomic_file_close(&r->curve, true, err);
    if (rc == OK)
        rc = pretrain_save_model(r->model, r->train, r->plan, r->job->seed, r->read, r->job->vocab,
                                 err);
    if (rc == OK)
        printf("%-9s %10zu %6zu %10llu %8.4f %8.1f\n", r->plan->name, train_look(r->train).params,
               train_look(r->train).steps, (unsigned long long)r->read, (double)r->loss, minutes);
    fflush(stdout);
    return rc;
}

int pretrain_run(const struct pretrain_job *job, const struct pretrain_plan *plan, uint64_t number,
                 struct err *err)
{
    struct run r = { .job = job, .plan = plan };
    r.shown = (struct progress_count){ .what = plan->name, .since = os_now_ns() };
    struct model_config c;
    char curve[PRETRAIN_PATH];
    int rc = pretrain_path(r.model, job->out, plan->name, ".gguf", err);
    if (rc == OK)
        rc = pretrain_path(curve, job->out, plan->name, ".loss.csv", err);
    if (rc == OK)
        rc = atomic_file_open(&r.curve, curve, err);
    if (rc)
        return rc;
    fprintf(r.curve.f, "step,tokens,loss,lr\n");
    pretrain_run_config(&c, plan, (job->vocab->npieces + 15) / 16 * 16);
    rc = pretrain_data_open(&r.data, job->world, job->tokenizer, BATCH, err);
    if (rc == OK)
        rc = train_open(&r.train, &c, job->kernels, job->pool, BATCH, PRETRAIN_DOC,
                        rand_u64(job->seed, number), err);
    r.data.reader = &plan->reader;
    r.begin_ns = os_now_ns();
    while (rc == OK && train_look(r.train).steps < plan->steps)
        rc = interrupted ? err_set(err, ERR_STOP, "interrupted") : one_step(&r, err);
    progress_wipe(&r.shown);
    if (rc == OK)
        rc = pretrain_run_finish(&r, err);
    atomic_file_close(&r.curve, false, NULL);
    train_close(r.train);
    pretrain_data_close(&r.data);
    return rc;
}
