#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/train/bpe_train.h"
#include "tools/demo/pretrain_save.h"
#include "weights/gguf_write.h"
#include "kernels/sys/atomic_file.h"
#include "weights/quant.h"

enum { ROW_FLOATS = 4, MOSTLY_Q8_0 = 7, Q8_BLOCK = 32, Q8_BYTES = 34 };

#define KEY "mizzle.pretrain."

int pretrain_add_row(struct pretrain_state *s, const struct pretrain_row *row, struct err *err)
{
    if (s->nrows == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct pretrain_row *rows = realloc(s->rows, room * sizeof(*rows));
        if (!rows)
            return err_set(err, ERR_NOMEM, "pretrain: out of memory");
        s->rows = rows;
        s->room = room;
    }
    s->rows[s->nrows++] = *row;
    return OK;
}

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
                           const struct pretrain_state *s)
{
    ggufw_str(g, KEY "size", p->size);
    ggufw_u32(g, KEY "seed_low", (uint32_t)s->seed);
    ggufw_u32(g, KEY "seed_high", (uint32_t)(s->seed >> 32));
    ggufw_u32(g, KEY "steps", (uint32_t)train_steps(t));
    ggufw_u32(g, KEY "tokens", (uint32_t)s->read);
}

int pretrain_save_vocab(const char *path, const struct bpe_vocab *v, struct err *err)
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

/* Declare a tensor under its name with a suffix; vectors have one dimension. */
static void pretrain_save_header(struct ggufw *g, const struct train_tensor *x, const char *suffix,
                                 int type)
{
    char name[64];
    size_t shape[2] = { x->rows, x->cols };
    snprintf(name, sizeof(name), "%s%s", x->name, suffix);
    ggufw_tensor(g, name, type, is_matrix(x) ? 2 : 1, is_matrix(x) ? shape : shape + 1);
}

/* Declare all tensors, then write their data, matrices quantised to Q8_0. */
static int write_tensors(struct ggufw *g, const struct train *t, struct err *err)
{
    size_t n = train_ntensors(t), most = 0;
    for (size_t i = 0; i < n; i++) {
        const struct train_tensor *x = train_tensor(t, i);
        pretrain_save_header(g, x, "", is_matrix(x) ? W_Q8_0 : W_F32);
        most = x->rows * x->cols > most ? x->rows * x->cols : most;
    }
    unsigned char *bytes = malloc(most / Q8_BLOCK * Q8_BYTES + 1);
    if (!bytes)
        return err_set(err, ERR_NOMEM, "pretrain: out of memory");
    for (size_t i = 0; i < n; i++) {
        const struct train_tensor *x = train_tensor(t, i);
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

int pretrain_save_model(const char *path, const struct train *t, const struct pretrain_plan *p,
                        const struct pretrain_state *s, const struct bpe_vocab *v, struct err *err)
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
    pretrain_save_write_config(g, train_config(t));
    write_tokenizer(g, v);
    write_progress(g, t, p, s);
    ggufw_checksum(g);
    rc = write_tensors(g, t, err);
    int closed = ggufw_close(g, rc == OK, rc == OK ? err : NULL);
    return rc ? rc : closed;
}

/* Write values and both moments of Adam (.m, .v) and the loss curve. */
static void checkpoint_tensors(struct ggufw *g, const struct train *t,
                               const struct pretrain_state *s)
{
    static const char *const suffix[] = { "", ".m", ".v" };
    size_t n = train_ntensors(t);
    for (size_t part = 0; part < 3; part++)
        for (size_t i = 0; i < n; i++)
            pretrain_save_header(g, train_tensor(t, i), suffix[part], W_F32);
    size_t shape[2] = { s->nrows, ROW_FLOATS };
    if (s->nrows)
        ggufw_tensor(g, "curve", W_F32, 2, shape);
    for (size_t part = 0; part < 3; part++)
        for (size_t i = 0; i < n; i++) {
            const struct train_tensor *x = train_tensor(t, i);
            const float *from = part == 0 ? x->value : part == 1 ? x->m : x->v;
            ggufw_data(g, from, x->rows * x->cols * sizeof(float));
        }
    if (s->nrows)
        ggufw_data(g, s->rows, s->nrows * sizeof(*s->rows));
}

int pretrain_save_checkpoint(const char *path, const struct train *t, const struct pretrain_plan *p,
                             const struct pretrain_state *s, struct err *err)
{
    struct ggufw *g;
    int rc = ggufw_open(&g, path, err);
    if (rc)
        return rc;
    uint64_t sum;
    memcpy(&sum, &s->sum, sizeof(sum));
    ggufw_str(g, "general.architecture", "mizzle-checkpoint");
    ggufw_str(g, "general.name", p->name);
    write_progress(g, t, p, s);
    ggufw_u32(g, KEY "length", (uint32_t)p->steps);
    ggufw_u32(g, KEY "next", (uint32_t)s->next);
    ggufw_u32(g, KEY "sum_low", (uint32_t)sum);
    ggufw_u32(g, KEY "sum_high", (uint32_t)(sum >> 32));
    ggufw_u32(g, KEY "summed", (uint32_t)s->summed);
    ggufw_checksum(g);
    checkpoint_tensors(g, t, s);
    return ggufw_close(g, true, err);
}

/* True if the file has this size and seed. */
static bool same_run(const struct weights *w, const struct pretrain_plan *p, uint64_t seed)
{
    struct str size;
    uint64_t low, high;
    return weights_str(w, KEY "size", &size) && size.n == strlen(p->size) &&
           !memcmp(size.p, p->size, size.n) && weights_u64(w, KEY "seed_low", &low) &&
           weights_u64(w, KEY "seed_high", &high) && (high << 32 | low) == seed;
}

/* Load values and moments into the trainer. */
static int load_tensors(struct train *t, const struct weights *w, struct err *err)
{
    static const char *const suffix[] = { "", ".m", ".v" };
    for (size_t part = 0; part < 3; part++)
        for (size_t i = 0; i < train_ntensors(t); i++) {
            const struct train_tensor *x = train_tensor(t, i);
            char name[64];
            snprintf(name, sizeof(name), "%s%s", x->name, suffix[part]);
            const struct tensor *from = weights_want(w, name, is_matrix(x) ? x->rows : x->cols,
                                                     is_matrix(x) ? x->cols : 0, err);
            if (!from)
                return ERR_FORMAT;
            float *to = part == 0 ? x->value : part == 1 ? x->m : x->v;
            int rc = weights_floats(to, from, 0, x->rows * x->cols, weights_path(w), err);
            if (rc)
                return rc;
        }
    return OK;
}

/* Load the rows of the loss curve, if there are any. */
static int load_curve(struct pretrain_state *s, const struct weights *w, struct err *err)
{
    const struct tensor *curve = weights_find(w, "curve");
    if (!curve)
        return OK;
    if (curve->ndim != 2 || curve->shape[1] != ROW_FLOATS)
        return err_set(err, ERR_FORMAT, "%s: tensor curve: expected 4 columns", weights_path(w));
    for (size_t i = 0; i < curve->shape[0]; i++) {
        float row[ROW_FLOATS];
        int rc = weights_floats(row, curve, i * ROW_FLOATS, ROW_FLOATS, weights_path(w), err);
        if (rc == OK)
            rc = pretrain_add_row(s, &(struct pretrain_row){ row[0], row[1], row[2], row[3] }, err);
        if (rc)
            return rc;
    }
    return OK;
}

/* Check that the checkpoint is of this run, and load it. The running sum of losses is stored as the
 * bits of a double. */
static int pretrain_save_load(struct train *t, const struct weights *w,
                              const struct pretrain_plan *p, struct pretrain_state *s,
                              struct err *err)
{
    uint64_t steps, length, low, high, summed;
    const char *path = weights_path(w);
    if (!weights_u64(w, KEY "steps", &steps) || !weights_u64(w, KEY "length", &length) ||
        !weights_u64(w, KEY "next", &s->next) || !weights_u64(w, KEY "tokens", &s->read) ||
        !weights_u64(w, KEY "sum_low", &low) || !weights_u64(w, KEY "sum_high", &high) ||
        !weights_u64(w, KEY "summed", &summed))
        return err_set(err, ERR_FORMAT, "%s: expected a checkpoint of `mizzle pretrain`", path);
    if (!same_run(w, p, s->seed) || length != p->steps || steps > length)
        return err_set(err, ERR_ARG, "%s: a checkpoint of another size, seed or number of steps",
                       path);
    high = high << 32 | low;
    memcpy(&s->sum, &high, sizeof(high));
    s->summed = (size_t)summed;
    train_set_steps(t, (size_t)steps);
    int rc = load_tensors(t, w, err);
    return rc ? rc : load_curve(s, w, err);
}

int pretrain_load_checkpoint(const char *path, struct train *t, const struct pretrain_plan *p,
                             struct pretrain_state *s, struct err *err)
{
    struct weights *w;
    int rc = weights_open(&w, path, err);
    if (rc)
        return rc;
    rc = pretrain_save_load(t, w, p, s, err);
    weights_close(w);
    return rc;
}

int pretrain_save_curve(const char *path, const struct pretrain_state *s, struct err *err)
{
    struct atomic_file part;
    int rc = atomic_file_open(&part, path, err);
    if (rc)
        return rc;
    FILE *f = part.f;
    fprintf(f, "step,tokens,loss,lr\n");
    for (size_t i = 0; i < s->nrows; i++)
        fprintf(f, "%.0f,%.0f,%.5f,%.4g\n", (double)s->rows[i].step, (double)s->rows[i].tokens,
                (double)s->rows[i].loss, (double)s->rows[i].rate);
    return atomic_file_close(&part, true, err);
}

bool pretrain_finished(const char *path, const struct pretrain_plan *p, uint64_t seed)
{
    struct weights *w;
    uint64_t steps;
    if (weights_open(&w, path, NULL))
        return false;
    bool done = same_run(w, p, seed) && weights_u64(w, KEY "steps", &steps) && steps == p->steps;
    weights_close(w);
    return done;
}
