/* t_watch.c - what batch_watch shows are the inputs of the products: each is computed again from
 * the one before, in double, with the weights of the file. */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/model.h"
#include "model/session.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "weights/weights.h"

enum { HIDDEN = 32, FFN = 48, TOKENS = 7, WIDE = 64 };

static const uint32_t ids[TOKENS] = { 72, 3, 256, 0, 255, 3, 100 };

/* Everything shown: [input][row][column]. */
static struct {
    float x[INPUT_HEAD + 1][TOKENS][WIDE];
    size_t cols[INPUT_HEAD + 1], rows[INPUT_HEAD + 1];
} seen;

static void watch_see(void *arg, size_t layer, enum batch_input input, const float *x, size_t ld,
                      size_t cols, size_t n)
{
    CHECK(arg == &seen && layer == (input == INPUT_HEAD) && input <= INPUT_HEAD && cols <= ld);
    CHECK(cols <= WIDE && seen.rows[input] + n <= TOKENS);
    for (size_t t = 0; t < n; t++)
        memcpy(seen.x[input][seen.rows[input] + t], x + t * ld, cols * sizeof(*x));
    seen.cols[input] = cols;
    seen.rows[input] += n;
}

/* Return a tensor of the file as floats; the next call reuses the memory. */
static const float *values(const struct weights *w, const char *name, size_t count)
{
    static float x[TINY_VOCAB * HIDDEN];
    struct err err;
    const struct tensor *t = weights_find(w, name);
    CHECK(t && count <= sizeof(x) / sizeof(*x) && weights_floats(x, t, 0, count, &err) == OK);
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

/* Compare row t of an input with what it must be. */
static void check_input(enum batch_input input, size_t t, const double *want, size_t cols)
{
    CHECK(seen.cols[input] == cols && seen.rows[input] == TOKENS);
    for (size_t i = 0; i < cols; i++)
        CHECK(fabs((double)seen.x[input][t][i] - want[i]) < 1e-4 * (1 + fabs(want[i])));
}

static void copy_input(double *x, enum batch_input input, size_t t)
{
    for (size_t i = 0; i < seen.cols[input]; i++)
        x[i] = (double)seen.x[input][t][i];
}

/* Follow token t through the one layer. */
static void check_token(const struct weights *w, size_t t, double eps)
{
    double x[HIDDEN], y[WIDE], in[WIDE], gate[FFN] = { 0 }, up[FFN] = { 0 };
    const float *embedding = values(w, "token_embd.weight", TINY_VOCAB * HIDDEN);
    for (size_t i = 0; i < HIDDEN; i++)
        x[i] = (double)embedding[ids[t] * HIDDEN + i];
    norm(y, w, "blk.0.attn_norm.weight", x, eps);
    check_input(INPUT_QKV, t, y, HIDDEN);
    copy_input(in, INPUT_O, t);
    product(x, w, "blk.0.attn_output.weight", HIDDEN, in, seen.cols[INPUT_O]);
    norm(y, w, "blk.0.ffn_norm.weight", x, eps);
    check_input(INPUT_FFN, t, y, HIDDEN);
    product(gate, w, "blk.0.ffn_gate.weight", FFN, y, HIDDEN);
    product(up, w, "blk.0.ffn_up.weight", FFN, y, HIDDEN);
    for (size_t i = 0; i < FFN; i++)
        in[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    check_input(INPUT_DOWN, t, in, FFN);
    product(x, w, "blk.0.ffn_down.weight", HIDDEN, in, FFN);
    norm(y, w, "output_norm.weight", x, eps);
    check_input(INPUT_HEAD, t, y, HIDDEN);
}

static void check_model(const char *path, size_t wide)
{
    struct err err;
    struct kernels k;
    struct weights *w;
    struct model *m;
    struct batch *b;
    struct session *s;
    CHECK(kernels_pick(&k, "scalar", 0, &err) == OK);
    CHECK(weights_open(&w, path, &err) == OK && model_open(&m, w, &k, NULL, &err) == OK);
    CHECK(batch_open(&b, m, NULL, &err) == OK);
    CHECK(session_open(&s, b, TINY_CONTEXT, KVCACHE_F32, &err) == OK);
    memset(&seen, 0, sizeof(seen));
    batch_watch(b, watch_see, &seen);
    CHECK(session_eval(s, ids, TOKENS - 1, NULL, &err) == OK);
    CHECK(session_eval(s, ids + TOKENS - 1, 1, NULL, &err) == OK);
    CHECK(seen.cols[INPUT_O] == wide);
    for (size_t t = 0; t < TOKENS; t++)
        check_token(w, t, (double)model_config(m)->eps);
    batch_watch(b, NULL, NULL);
    CHECK(session_eval(s, ids, 2, NULL, &err) == OK && seen.rows[INPUT_FFN] == TOKENS);
    session_close(s);
    batch_close(b);
    model_close(m);
    weights_close(w);
    tiny_remove();
}

int main(void)
{
    check_model(tiny_make(), 32);
    check_model(tiny_make_qwen3(), 48); /* heads together wider than the hidden state */
    return 0;
}
