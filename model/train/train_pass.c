/* train_pass.c - one shard through the model and back. Loops over floats are written so that the
 * compiler vectorises them; none of them sums across its elements except in fixed lanes. */
#include <math.h>
#include <string.h>

#include "kernels/math.h"
#include "model/train/train_internal.h"

struct panels train_panels(const float *data, size_t rows, size_t cols)
{
    return (struct panels){
        P_F32, rows, cols, cols * PANEL * sizeof(float), (const unsigned char *)data, NULL
    };
}

void train_strips(float *out, const float *x, size_t ldx, size_t n, size_t rows)
{
    for (size_t r = 0; r < rows; r += PANEL)
        for (size_t i = 0; i < n; i++, out += PANEL)
            memcpy(out, x + i * ldx + r, PANEL * sizeof(float));
}

void train_transpose(float *out, size_t ldo, const float *x, size_t ldx, size_t n, size_t cols)
{
    for (size_t i0 = 0; i0 < n; i0 += PANEL) {
        size_t i1 = i0 + PANEL < n ? i0 + PANEL : n;
        for (size_t c = 0; c < cols; c++)
            for (size_t i = i0; i < i1; i++)
                out[c * ldo + i] = x[i * ldx + c];
    }
}

void train_pack(float *out, const float *x, size_t ldx, size_t n, size_t cols)
{
    for (size_t i0 = 0; i0 < n; i0 += PANEL, out += PANEL * cols) {
        size_t rows = i0 + PANEL < n ? PANEL : n - i0;
        if (rows < PANEL)
            memset(out, 0, PANEL * cols * sizeof(float));
        train_transpose(out, PANEL, x + i0 * ldx, ldx, rows, cols);
    }
}

/* The polynomial of exp_f32 without fused operations. Adding and subtracting 3 * 2^22 rounds to an
 * integer. */
void train_exp(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float c = x[i] > -87.0f ? x[i] : -87.0f;
        float k = (c * 0x1.715476p+0f + 0x1.8p23f) - 0x1.8p23f;
        float r = (c - k * 0x1.62ep-1f) - k * 0x1.0bfbe8p-15f; /* ln 2 in two parts */
        float p = 0x1.6a21acp-10f * r + 0x1.123b6ap-7f;
        p = p * r + 0x1.5558fap-5f;
        p = p * r + 0x1.55549p-3f;
        p = p * r + 0x1.fffffcp-2f;
        p = (p * r + 1.0f) * r + 1.0f;
        uint32_t bits = (uint32_t)((int32_t)k + 127) << 23;
        float power;
        memcpy(&power, &bits, sizeof(power));
        x[i] = p * power;
    }
}

/* Multiply n rows of x by packed weights. */
static void train_pass_matmul(const struct train *t, float *y, size_t ldy, const float *packed,
                              size_t rows, size_t cols, const float *x, size_t ldx, size_t n)
{
    struct panels w = train_panels(packed, rows, cols);
    if (n) /* a shard may have no targets */
        t->k->matmul_f32(y, ldy, &w, x, ldx, n, 0, rows / PANEL);
}

/* Return the dot product in 16 fixed lanes, which are added in ascending order. */
static float dot_lanes(const float *a, const float *b, size_t n)
{
    float lane[PANEL] = { 0 }, sum = 0;
    for (size_t j = 0; j < n; j += PANEL)
        for (size_t i = 0; i < PANEL; i++)
            lane[i] += a[j + i] * b[j + i];
    for (size_t i = 0; i < PANEL; i++)
        sum += lane[i];
    return sum;
}

/* dx += the gradient of y = x * inv * w, and g_w += dy * x * inv. dy is overwritten. */
static void rmsnorm_backward(float *restrict dx, float *restrict g_w, float *restrict dy,
                             const float *restrict x, const float *restrict w, size_t n, float eps)
{
    float inv = 1.0f / sqrtf(dot_lanes(x, x, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        g_w[i] += dy[i] * (x[i] * inv);
    for (size_t i = 0; i < n; i++)
        dy[i] *= w[i];
    float mean = dot_lanes(dy, x, n) * (inv * inv * inv) / (float)n;
    for (size_t i = 0; i < n; i++)
        dx[i] += dy[i] * inv - x[i] * mean;
}

/* Compute d_gu [2n] from d_act [n] and gu, for act = g / (1 + e^-g) * u. */
static void swiglu_backward(float *restrict d_gu, const float *restrict d_act,
                            const float *restrict gu, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float g = -gu[i];
        d_gu[i] = g < 88.0f ? g : 88.0f;
    }
    train_exp(d_gu, n);
    for (size_t i = 0; i < n; i++) {
        float s = 1.0f / (1.0f + d_gu[i]), silu = gu[i] * s;
        d_gu[n + i] = d_act[i] * silu;
        d_gu[i] = d_act[i] * gu[n + i] * (s + silu * (1.0f - s));
    }
}

/* Rotate q and k in n rows of qkv columns; sin, negated or not, decides the direction. */
static void train_pass_rotate(const struct train *t, float *x, size_t n, const float *sin)
{
    size_t hd = t->c.head_dim, heads = t->c.heads + t->c.kv_heads;
    for (size_t i = 0; i < n; i++)
        for (size_t h = 0; h < heads; h++)
            t->k->rope_f32(x + i * t->qkv + h * hd, t->cos + i * hd / 2, sin + i * hd / 2, hd / 2);
}

/* Return where document d begins. */
static size_t doc_begin(const struct train *t, size_t d)
{
    return d ? t->batch->ends[d - 1] : 0;
}

/* Run one layer forward; `next` receives its output. */
static void layer_forward(struct train *t, struct train_layer *l, const struct train_shard *s,
                          float *next, struct train_scratch *z)
{
    size_t h = t->c.hidden, f = t->c.ffn, n = s->t1 - s->t0, at = s->t0;
    const struct kernels *k = t->k;
    float *x0 = l->x0 + at * h, *x1 = l->x1 + at * h, *qkv = l->qkv_out + at * t->qkv;
    for (size_t i = 0; i < n; i++)
        k->rmsnorm_f32(l->n1 + (at + i) * h, x0 + i * h, t->value + l->norm1, h, t->c.eps);
    train_pass_matmul(t, qkv, t->qkv, t->packed + l->qkv, t->qkv, h, l->n1 + at * h, h, n);
    for (size_t i = 0; i < n; i++)
        k->add_f32(qkv + i * t->qkv, t->value + l->bias, t->qkv);
    float *p = l->p + s->p0;
    for (size_t d = s->doc0; d < s->doc1; d++) {
        size_t d0 = doc_begin(t, d), len = t->batch->ends[d] - d0;
        train_pass_rotate(t, l->qkv_out + d0 * t->qkv, len, t->sin);
        train_attn_forward(t, l, d0, len, p, z->att);
        p += train_attn_size(t, len);
    }
    train_pass_matmul(t, x1, h, t->packed + l->o, h, t->q, l->att + at * t->q, t->q, n);
    k->add_f32(x1, x0, n * h);
    for (size_t i = 0; i < n; i++)
        k->rmsnorm_f32(l->n2 + (at + i) * h, x1 + i * h, t->value + l->norm2, h, t->c.eps);
    train_pass_matmul(t, l->gu_out + at * 2 * f, 2 * f, t->packed + l->gu, 2 * f, h, l->n2 + at * h,
                      h, n);
    for (size_t i = at; i < at + n; i++)
        k->swiglu_f32(l->act + i * f, l->gu_out + i * 2 * f, l->gu_out + i * 2 * f + f, f);
    train_pass_matmul(t, next, h, t->packed + l->down, h, f, l->act + at * f, f, n);
    k->add_f32(next, x1, n * h);
}

/* Run one layer backward. z->dx holds the gradient of its output, then of its input; the output
 * gradients of its matrices are stored transposed. */
static void layer_backward(struct train *t, struct train_layer *l, size_t shard,
                           struct train_scratch *z)
{
    const struct train_shard *s = &t->shards[shard];
    size_t h = t->c.hidden, f = t->c.ffn, n = s->t1 - s->t0, at = s->t0, ld = t->tokens;
    float *g_norm1 = l->g_norm1 + shard * h, *g_norm2 = l->g_norm2 + shard * h;
    float *g_bias = l->g_bias + shard * t->qkv;
    memset(g_norm1, 0, h * sizeof(float));
    memset(g_norm2, 0, h * sizeof(float));
    memset(g_bias, 0, t->qkv * sizeof(float));

    train_transpose(l->d_down + at, ld, z->dx, h, n, h);
    train_pass_matmul(t, z->small, f, t->packed_t + l->down, f, h, z->dx, h, n);
    for (size_t i = 0; i < n; i++)
        swiglu_backward(z->wide + i * 2 * f, z->small + i * f, l->gu_out + (at + i) * 2 * f, f);
    train_transpose(l->d_gu + at, ld, z->wide, 2 * f, n, 2 * f);
    train_pass_matmul(t, z->dn, h, t->packed_t + l->gu, h, 2 * f, z->wide, 2 * f, n);
    for (size_t i = 0; i < n; i++)
        rmsnorm_backward(z->dx + i * h, g_norm2, z->dn + i * h, l->x1 + (at + i) * h,
                         t->value + l->norm2, h, t->c.eps);

    train_transpose(l->d_o + at, ld, z->dx, h, n, h);
    train_pass_matmul(t, z->small, t->q, t->packed_t + l->o, t->q, h, z->dx, h, n);
    const float *p = l->p + s->p0;
    for (size_t d = s->doc0; d < s->doc1; d++) {
        size_t d0 = doc_begin(t, d), len = t->batch->ends[d] - d0, in = d0 - at;
        float *d_qkv = z->wide + in * t->qkv;
        train_attn_backward(t, l, d0, len, p, z->small + in * t->q, d_qkv, z->att);
        train_pass_rotate(t, d_qkv, len, t->nsin);
        p += train_attn_size(t, len);
    }
    for (size_t i = 0; i < n; i++)
        t->k->add_f32(g_bias, z->wide + i * t->qkv, t->qkv);
    train_transpose(l->d_qkv + at, ld, z->wide, t->qkv, n, t->qkv);
    train_pass_matmul(t, z->dn, h, t->packed_t + l->qkv, h, t->qkv, z->wide, t->qkv, n);
    for (size_t i = 0; i < n; i++)
        rmsnorm_backward(z->dx + i * h, g_norm1, z->dn + i * h, l->x0 + (at + i) * h,
                         t->value + l->norm1, h, t->c.eps);
}

/* Return the loss of one row of logits, and turn the row into (softmax - one-hot) * scale. */
static double cross_entropy(float *row, size_t n, uint32_t target, float scale)
{
    float max = row[0], lane[PANEL] = { 0 };
    for (size_t j = 1; j < n; j++)
        max = row[j] > max ? row[j] : max;
    double wanted = (double)row[target] - (double)max;
    for (size_t j = 0; j < n; j++)
        row[j] -= max;
    train_exp(row, n);
    for (size_t j = 0; j < n; j += PANEL)
        for (size_t i = 0; i < PANEL; i++)
            lane[i] += row[j + i];
    double sum = 0;
    for (size_t i = 0; i < PANEL; i++)
        sum += (double)lane[i];
    float inv = scale / (float)sum;
    for (size_t j = 0; j < n; j++)
        row[j] *= inv;
    row[target] -= scale;
    return log_f64(sum) - wanted;
}

/* Run the head for the tokens that have targets: loss, and dx of the whole shard. */
static void head_pass(struct train *t, size_t shard, struct train_scratch *z)
{
    struct train_shard *s = &t->shards[shard];
    size_t h = t->c.hidden, v = t->c.vocab, m = 0;
    const float *x = t->x_last;
    const uint32_t *target = t->batch->target;
    float *xh = t->xh + s->target0 * h, *logits = z->wide;
    for (size_t i = s->t0; i < s->t1; i++)
        if (target[i] != TRAIN_NO_TARGET)
            t->k->rmsnorm_f32(xh + m++ * h, x + i * h, t->value + t->final_norm, h, t->c.eps);
    train_pass_matmul(t, logits, v, t->packed, v, h, xh, h, m);
    s->loss = 0;
    m = 0;
    for (size_t i = s->t0; i < s->t1; i++)
        if (target[i] != TRAIN_NO_TARGET)
            s->loss += cross_entropy(logits + m++ * v, v, target[i], 1.0f / (float)t->targets);
    train_transpose(t->d_logits + s->target0, t->tokens, logits, v, m, v);
    train_pass_matmul(t, z->dn, h, t->packed_t, h, v, logits, v, m);
    memset(z->dx, 0, (s->t1 - s->t0) * h * sizeof(float));
    float *g = t->g_final + shard * h;
    memset(g, 0, h * sizeof(float));
    m = 0;
    for (size_t i = s->t0; i < s->t1; i++)
        if (target[i] != TRAIN_NO_TARGET)
            rmsnorm_backward(z->dx + (i - s->t0) * h, g, z->dn + m++ * h, x + i * h,
                             t->value + t->final_norm, h, t->c.eps);
}

void train_shard_run(struct train *t, size_t thread, size_t i)
{
    const struct train_shard *s = &t->shards[i];
    struct train_scratch *z = &t->scratch[thread];
    size_t h = t->c.hidden, layers = t->c.layers;
    for (size_t j = s->t0; j < s->t1; j++)
        memcpy(t->layers[0].x0 + j * h, t->value + t->batch->ids[j] * h, h * sizeof(float));
    for (size_t l = 0; l < layers; l++)
        layer_forward(t, &t->layers[l], s,
                      (l + 1 < layers ? t->layers[l + 1].x0 : t->x_last) + s->t0 * h, z);
    head_pass(t, i, z);
    for (size_t l = layers; l-- > 0;)
        layer_backward(t, &t->layers[l], i, z);
    memcpy(t->d_emb + s->t0 * h, z->dx, (s->t1 - s->t0) * h * sizeof(float));
}
