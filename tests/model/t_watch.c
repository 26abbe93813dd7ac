/* t_watch.c - what batch_watch shows are the inputs of the products and the residual stream: each
 * is computed again from the one before, in double. Operations begin and end in order, and who
 * watches changes no bit. Attention computed anew gives the output of the heads, and the lens of
 * what the last layer leaves is the logits. */
#include "model/batch_internal.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "weights/weights.h"

enum { HIDDEN = 32, FFN = 48, TOKENS = 7, WIDE = 64, LEFT = ADDED_FFN + 1, VALUES };

static const uint32_t ids[TOKENS] = { 72, 3, 256, 0, 255, 3, 100 };

static struct batch *watched;

/* Return element d of a cached value. */
static double cached(enum kvcache kv, const unsigned char *value, size_t d)
{
    const float *scale = (const float *)(const void *)value;
    const uint16_t *half = (const uint16_t *)(const void *)value;
    const int8_t *q = (const int8_t *)(scale + (watched->hd16 + GROUP - 1) / GROUP);
    return kv == KVCACHE_F32   ? (double)scale[d]
           : kv == KVCACHE_F16 ? (double)f32_from_f16(half[d])
                               : (double)((float)q[d] * scale[d / GROUP]);
}

/* Compare the outputs of all heads of row t of the pass with those of attention computed anew, with
 * the values that the row's text has had so far. */
static void check_attention(size_t t, const float *out)
{
    const struct model_config *c = &watched->m->config;
    const struct session *s = watched->of[t];
    double weights[TINY_CONTEXT];
    for (size_t h = 0; h < c->heads; h++) {
        double sum = 0;
        size_t g = h / (c->heads / c->kv_heads), n = watched->pos[t] + 1;
        batch_attention(watched, 0, h, t, weights);
        for (size_t p = 0; p < n; p++)
            sum += weights[p];
        CHECK(fabs(sum - 1) < 1e-12);
        for (size_t d = 0; d < c->head_dim; d++) {
            double y = 0;
            for (size_t p = 0; p < n; p++) {
                const unsigned char *value =
                    s->cache + s->cache_half + (g * s->context16 + p) * s->value_bytes;
                y += weights[p] * cached(s->kv, value, d);
            }
            CHECK(fabs(y - (double)out[h * c->head_dim + d]) < 1e-5);
        }
    }
}

/* Everything shown: [value][row][column]. LEFT is the stream that the one layer leaves. */
static struct {
    float x[VALUES][TOKENS][WIDE];
    size_t cols[VALUES], rows[VALUES];
    char ops[64]; /* a letter for each operation that has ended */
    size_t nops;
    bool open;
} seen;

static void watch_see(void *arg, size_t layer, enum batch_value value, const float *x, size_t ld,
                      size_t cols, size_t n)
{
    size_t at = value == STREAM && layer == 1 ? (size_t)LEFT : (size_t)value;
    CHECK(arg == &seen && value <= ADDED_FFN && cols <= ld && !seen.open);
    CHECK(layer == (at == INPUT_HEAD || at == LEFT));
    CHECK(cols <= WIDE && seen.rows[at] + n <= TOKENS);
    for (size_t t = 0; t < n; t++)
        memcpy(seen.x[at][seen.rows[at] + t], x + t * ld, cols * sizeof(*x));
    for (size_t t = 0; value == INPUT_O && t < n; t++)
        check_attention(t, x + t * ld);
    seen.cols[at] = cols;
    seen.rows[at] += n;
}

static void watch_op(void *arg, enum batch_op op, size_t layer, size_t n, bool ends)
{
    CHECK(arg == &seen && op < BATCH_OPS && layer <= 1 && n && seen.open == ends);
    CHECK(op != OP_HEAD || layer == 1);
    seen.open = !ends;
    if (ends) {
        CHECK(seen.nops + 1 < sizeof(seen.ops));
        seen.ops[seen.nops++] = "enqaofdh"[op];
    }
}

/* Return a tensor of the file as floats; the next call reuses the memory. */
static const float *values(const struct weights *w, const char *name, size_t count)
{
    static float x[TINY_VOCAB * HIDDEN];
    const struct tensor *t = weights_find(w, name);
    CHECK(t && count <= sizeof(x) / sizeof(*x) &&
          weights_floats(x, t, 0, count, "f.gguf", NULL) == OK);
    return x;
}

/* y[rows] += W x. */
static void product(double *y, const struct weights *w, const char *name, size_t rows,
                    const double *x, size_t cols)
{
    const float *m = values(w, name, rows * cols);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            y[r] += (double)m[r * cols + c] * x[c];
}

static void norm(double *y, const struct weights *w, const char *name, const double *x, double eps)
{
    double sum = 0;
    const float *scale = values(w, name, HIDDEN);
    for (size_t i = 0; i < HIDDEN; i++)
        sum += x[i] * x[i];
    for (size_t i = 0; i < HIDDEN; i++)
        y[i] = x[i] / sqrt(sum / HIDDEN + eps) * (double)scale[i];
}

/* Compare row t of a value with what it must be. */
static void check_input(size_t input, size_t t, const double *want, size_t cols)
{
    CHECK(seen.cols[input] == cols && seen.rows[input] == TOKENS);
    for (size_t i = 0; i < cols; i++)
        CHECK(fabs((double)seen.x[input][t][i] - want[i]) < 1e-4 * (1 + fabs(want[i])));
}

static void copy_input(double *x, size_t input, size_t t)
{
    for (size_t i = 0; i < seen.cols[input]; i++)
        x[i] = (double)seen.x[input][t][i];
}

/* Follow token t through the one layer. */
static void check_token(const struct weights *w, size_t t, double eps)
{
    double x[HIDDEN], y[WIDE], in[WIDE], gate[FFN] = { 0 }, up[FFN] = { 0 };
    double added[HIDDEN] = { 0 };
    const float *embedding = values(w, "token_embd.weight", TINY_VOCAB * HIDDEN);
    for (size_t i = 0; i < HIDDEN; i++)
        x[i] = (double)embedding[ids[t] * HIDDEN + i];
    check_input(STREAM, t, x, HIDDEN);
    norm(y, w, "blk.0.attn_norm.weight", x, eps);
    check_input(INPUT_QKV, t, y, HIDDEN);
    copy_input(in, INPUT_O, t);
    product(added, w, "blk.0.attn_output.weight", HIDDEN, in, seen.cols[INPUT_O]);
    check_input(ADDED_ATTN, t, added, HIDDEN);
    for (size_t i = 0; i < HIDDEN; i++)
        x[i] += added[i];
    check_input(STREAM_MIDDLE, t, x, HIDDEN);
    norm(y, w, "blk.0.ffn_norm.weight", x, eps);
    check_input(INPUT_FFN, t, y, HIDDEN);
    product(gate, w, "blk.0.ffn_gate.weight", FFN, y, HIDDEN);
    product(up, w, "blk.0.ffn_up.weight", FFN, y, HIDDEN);
    for (size_t i = 0; i < FFN; i++)
        in[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    check_input(INPUT_DOWN, t, in, FFN);
    memset(added, 0, sizeof(added));
    product(added, w, "blk.0.ffn_down.weight", HIDDEN, in, FFN);
    check_input(ADDED_FFN, t, added, HIDDEN);
    for (size_t i = 0; i < HIDDEN; i++)
        x[i] += added[i];
    check_input(LEFT, t, x, HIDDEN);
    norm(y, w, "output_norm.weight", x, eps);
    check_input(INPUT_HEAD, t, y, HIDDEN);
}

/* Check what the lens makes of the streams of the latest pass, which had one row. */
static void check_lens(struct batch *b, const float *logits)
{
    float x[3][WIDE];
    for (size_t i = 0; i < 3; i++)
        memcpy(x[i], seen.x[i == 1 ? (size_t)LEFT : (size_t)STREAM][TOKENS - 1], sizeof(x[i]));
    CHECK(batch_lens(b, x[0], WIDE, 3, NULL) == OK && !batch_logits_at(b, 0));
    CHECK(memcmp(batch_lens_at(b, 1), logits, TINY_VOCAB * sizeof(*logits)) == 0);
    CHECK(memcmp(batch_lens_at(b, 0), logits, TINY_VOCAB * sizeof(*logits)) != 0);
    CHECK(memcmp(batch_lens_at(b, 0), batch_lens_at(b, 2), TINY_VOCAB * sizeof(*logits)) == 0);
}

static void check_model(const char *path, size_t wide, enum kvcache kv)
{
    struct kernels k;
    struct weights *w;
    struct model *m;
    struct batch *b;
    struct session *s;
    const struct batch_watch watch = { watch_op, watch_see, &seen };
    float logits[TINY_VOCAB];
    CHECK(kernels_pick(&k, "scalar", 0, NULL) == OK);
    CHECK(weights_open(&w, path, NULL) == OK &&
          model_open(&m, w, &k, NULL, NULL, NULL, NULL) == OK);
    CHECK(batch_open(&b, m, NULL, NULL) == OK);
    CHECK(session_open(&s, b, TINY_CONTEXT, kv, NULL) == OK);
    memset(&seen, 0, sizeof(seen));
    watched = b;
    batch_watch(b, &watch);
    CHECK(session_eval(s, ids, TOKENS - 1, NULL, NULL) == OK);
    CHECK(session_eval(s, ids + TOKENS - 1, 1, NULL, NULL) == OK);
    memcpy(logits, session_logits(s, 0), sizeof(logits));
    CHECK(seen.cols[INPUT_O] == wide && strcmp(seen.ops, "enqaonfdnenqaonfdnh") == 0);
    check_lens(b, logits);
    for (size_t t = 0; t < TOKENS; t++)
        check_token(w, t, (double)m->config.eps);
    batch_watch(b, NULL);
    session_rewind(s, 0);
    CHECK(session_eval(s, ids, TOKENS, NULL, NULL) == OK && seen.rows[INPUT_FFN] == TOKENS);
    CHECK(memcmp(logits, session_logits(s, 0), sizeof(logits)) == 0);
    session_close(s);
    batch_close(b);
    model_close(m);
    weights_close(w);
}

int main(void)
{
    check_model(tiny_make(), 32, KVCACHE_F32);
    check_model(tiny_make(), 32, KVCACHE_F16);
    check_model(tiny_make_qwen3(), 48, KVCACHE_Q8); /* heads together wider than the hidden state */
    return 0;
}
