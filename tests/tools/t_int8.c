/* t_int8.c - what rounding the inputs of products to int8 does to logits, on the demo cloud in Q8_0
 * and Q4_0 (all columns are 256, so no matrix falls back to another type). The reference has the
 * same weights in F32 and rounds no input, so the weights' own error has no part.
 *
 * The bound. A group of 32 inputs is rounded to multiples of s = amax / 127. Take the errors as
 * uniform and independent: each has the variance s^2 / 12. Relative to the whole input, the error
 * of a product is e, with e^2 = sum(s^2 / 12) / sum(x^2).
 *
 * In the output head, logit r gets the variance sum(w[r][k]^2 * s^2 / 12).
 *
 * Every other product passes its e on. Take what a layer adds to the residual stream as no larger
 * than the stream, and its errors as independent and of random direction. The final hidden state h
 * then has an error of |h| * E, E^2 being the sum of e^2 over the inputs of all layers, spread
 * evenly over its dimensions. From that, logit r gets the variance E^2 * |h|^2 / hidden * |w[r]|^2.
 *
 * sigma^2 is the sum of both. For the difference of two logits, w is the difference of two rows.
 *
 * Sigma is a unit, not yet a bound: at some positions the layers multiply an error, and they turn
 * errors into a few directions. So the same F32 model is evaluated once more, with independent
 * uniform noise of width s added to each input. That is what the error above is taken for, through
 * the layers as they are. What int8 does must look like it: in root mean square, and at the far
 * end. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "tests/support/files.h"
#include "tools/command.h"
#include "tools/lab/demo/world.h"
#include "weights/weights.h"

enum { POSITIONS = 600, HIDDEN = 256, VOCAB = 1008, INPUTS = 32, GROUPS = HIDDEN / INPUTS };

/* The largest difference of both types may be this many times the largest that noise makes. Both
 * are draws from one distribution, and over 48 seeds of the noise the largest of a type had the
 * mean 5.0 and the deviation 1.1, nearly that of largest values whose tail falls to 1/e each 0.85
 * sigma. So two draws exceed two others so far with a chance of 6 %. */
#define FAR_MOST 1.5

/* The root mean squares of a type, of int8 and of noise, differ by no more than this part. Over the
 * same seeds it had a deviation of 1.5 %, so a difference has 2.1 %; this is four times that. One
 * binary digit more or less in the inputs would make it 50 % or 100 %. */
#define RMS_APART 0.085

#define CLOUD "weights/milli/cloud.gguf"

/* Ids of whole texts, one after the other; begin[i] is true at the first of each. */
static struct {
    uint32_t id[POSITIONS];
    bool begin[POSITIONS];
} text;

/* What a model computes at each position. */
struct answers {
    float logits[POSITIONS][VOCAB], hidden[POSITIONS][HIDDEN];
    double layers[POSITIONS];       /* E^2 */
    double head[POSITIONS][GROUPS]; /* s^2 / 12 of the head's input */
    size_t at;                      /* the first position that is being computed */
};

/* Read questions of the test stream with their answers. */
static void int8_texts(void)
{
    struct err err;
    struct world *world;
    struct weights *w;
    struct tokenizer *t;
    CHECK(world_open(&world, WORLD_SEED, &err) == OK && weights_open(&w, CLOUD, &err) == OK);
    CHECK(tokenizer_open(&t, w, &err) == OK);
    const struct world_filter all = { WORLD_TOPICS, WORLD_WORDINGS };
    for (size_t i = 0, n = 0; n < POSITIONS; i++) {
        struct world_question q;
        char both[WORLD_PROMPT + WORLD_ANSWER];
        uint32_t *ids;
        size_t count;
        world_question(&q, world, all, world_test_stream(1), i);
        snprintf(both, sizeof(both), "%s%s", q.prompt, q.answer);
        CHECK(tokenizer_encode(t, &ids, &count, both, strlen(both), false, &err) == OK);
        text.begin[n] = true;
        for (size_t j = 0; j < count && n < POSITIONS; j++)
            text.id[n++] = ids[j];
        free(ids);
    }
    tokenizer_close(t);
    weights_close(w);
    world_close(world);
}

/* Note what rounding would do to the inputs of n positions from a->at on. */
static void see_input(void *arg, size_t layer, enum batch_value input, const float *x, size_t ld,
                      size_t cols, size_t n)
{
    struct answers *a = arg;
    (void)layer;
    if (input > INPUT_HEAD)
        return;
    CHECK(cols == HIDDEN);
    for (size_t at = a->at; at < a->at + n; at++, x += ld) {
        double errors = 0, squares = 0;
        for (size_t g = 0; g < cols / INPUTS; g++) {
            double amax = 0;
            for (size_t k = g * INPUTS; k < (g + 1) * INPUTS; k++) {
                amax = fmax(amax, fabs((double)x[k]));
                squares += (double)x[k] * (double)x[k];
            }
            double variance = amax / 127 * (amax / 127) / 12;
            errors += INPUTS * variance;
            if (input == INPUT_HEAD)
                a->head[at][g] = variance;
        }
        if (input != INPUT_HEAD)
            a->layers[at] += errors / squares;
    }
}

/* Add to each input uniform noise as wide as the steps to which int8 would round it. The watched
 * memory is the batch's own, and the products read it after this call. */
static void add_noise(void *arg, size_t layer, enum batch_value value, const float *x, size_t ld,
                      size_t cols, size_t n)
{
    static uint64_t state = 1;
    (void)arg, (void)layer;
    if (value > INPUT_HEAD)
        return;
    CHECK(cols == HIDDEN);
    for (size_t at = 0; at < n * cols; at += INPUTS) {
        float *group = (float *)(uintptr_t)x + at / cols * ld + at % cols, amax = 0;
        for (size_t k = 0; k < INPUTS; k++)
            amax = fabsf(group[k]) > amax ? fabsf(group[k]) : amax;
        for (size_t k = 0; k < INPUTS; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            group[k] += amax / 127 * ((float)(state >> 40) / (float)(1 << 24) - 0.5f);
        }
    }
}

/* Evaluate all texts, with noise or not; *m is left open. */
static void int8_answers(struct answers *a, struct model **m, const struct kernels *k,
                         const char *path, bool noise)
{
    struct err err;
    struct weights *w;
    struct batch *b;
    struct session *s;
    CHECK(weights_open(&w, path, &err) == OK && model_open(m, w, k, NULL, NULL, NULL, &err) == OK);
    weights_close(w);
    CHECK(model_config(*m)->hidden == HIDDEN && model_config(*m)->vocab == VOCAB);
    CHECK(batch_open(&b, *m, NULL, &err) == OK);
    CHECK(session_open(&s, b, POSITIONS, KVCACHE_F32, &err) == OK);
    const struct batch_watch watch = { .see = noise ? add_noise : see_input, .arg = a };
    batch_watch(b, &watch);
    for (size_t first = 0, end; first < POSITIONS; first = end) {
        for (end = first + 1; end < POSITIONS && !text.begin[end]; end++)
            ;
        session_rewind(s, 0);
        a->at = first;
        CHECK(end - first <= BATCH_ROWS);
        CHECK(session_eval(s, &text.id[first], end - first, NULL, &err) == OK);
        for (; a->at < end; a->at++) {
            size_t back = end - 1 - a->at;
            memcpy(a->logits[a->at], session_logits(s, back), sizeof(a->logits[0]));
            memcpy(a->hidden[a->at], session_hidden(s, TAP_FINAL, back), sizeof(a->hidden[0]));
        }
    }
    session_close(s);
    batch_close(b);
}

/* Return the sigma of a logit at a position, or of the difference of two; w [HIDDEN] is the row of
 * the head, or the difference of two. */
static double int8_sigma(const struct answers *a, size_t at, const float *w)
{
    double hidden = 0, row = 0, head = 0;
    for (size_t k = 0; k < HIDDEN; k++) {
        double square = (double)w[k] * (double)w[k];
        hidden += (double)a->hidden[at][k] * (double)a->hidden[at][k];
        row += square;
        head += square * a->head[at][k / INPUTS];
    }
    return sqrt(head + a->layers[at] * hidden / HIDDEN * row);
}

static size_t int8_best(const float *x)
{
    size_t best = 0;
    for (size_t r = 1; r < VOCAB; r++)
        best = x[r] > x[best] ? r : best;
    return best;
}

static void int8_convert(char *from, char *to, char *type)
{
    char *args[] = { "convert", from, to, "--type", type, "-q", NULL };
    CHECK(command_run(&cmd_convert, 6, args) == EXIT_FINE);
}

/* How far logits are from what is wanted, in sigma. */
struct distance {
    double rms, far; /* of all; the furthest, among it the distance between best ids that differ */
};

/* Compare all logits, and print what was found. */
static struct distance int8_compare(const struct answers *got, const struct answers *want,
                                    const struct model *f32, const char *type, const char *what)
{
    static float head[VOCAB][HIDDEN], pair[HIDDEN];
    double largest = 0, squares = 0, worst = 0, sigmas = 0, gap = 0, nearest = 0, errors = 0;
    size_t others = 0;
    for (size_t r = 0; r < VOCAB; r++)
        panels_row(head[r], model_head(f32), r);
    for (size_t at = 0; at < POSITIONS; at++) {
        const float *g = got->logits[at], *w = want->logits[at];
        for (size_t r = 0; r < VOCAB; r++) {
            double d = fabs((double)g[r] - (double)w[r]);
            double in_sigma = d / int8_sigma(want, at, head[r]);
            largest = d > largest ? d : largest;
            worst = !(in_sigma <= worst) ? in_sigma : worst; /* also if it is NaN */
            squares += d * d;
            sigmas += in_sigma * in_sigma;
        }
        errors += want->layers[at];
        size_t a = int8_best(w), b = int8_best(g);
        if (a == b)
            continue;
        for (size_t k = 0; k < HIDDEN; k++)
            pair[k] = head[a][k] - head[b][k];
        double apart = (double)w[a] - (double)w[b];
        double in_sigma = apart / int8_sigma(want, at, pair);
        gap = apart > gap ? apart : gap;
        nearest = !(in_sigma <= nearest) ? in_sigma : nearest;
        others++;
    }
    double n = (double)POSITIONS * VOCAB, rms = sqrt(sigmas / n);
    printf("%s, %s: E %.2g; logits differ by at most %.2g, rms %.2g; in sigma %.1f, rms %.3f; "
           "%zu of %d best ids differ, where they are at most %.2g apart, %.1f sigma\n",
           type, what, sqrt(errors / POSITIONS), largest, sqrt(squares / n), worst, rms, others,
           POSITIONS, gap, nearest);
    return (struct distance){ rms, fmax(worst, nearest) };
}

/* Compare int8 and noise with exact inputs, and raise what is furthest in *far. */
static void check_type(const struct kernels *k, char *type, struct distance *int8,
                       struct distance *noise)
{
    static struct answers got, want;
    char *quantised = in_scratch("m.gguf"), *f32 = in_scratch("f32.gguf");
    struct model *m;
    int8_convert(CLOUD, quantised, type);
    int8_convert(quantised, f32, "f32");
    memset(&want, 0, sizeof(want));
    int8_answers(&got, &m, k, quantised, false);
    const struct model_layer *l = model_layer(m, 0);
    const struct panels *all[] = { &l->q, &l->k, &l->v, &l->o, &l->up, &l->gate, &l->down };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        CHECK(!strcasecmp(panels_type_name(all[i]->type), type));
    CHECK(model_head(m)->type == P_Q8);
    model_close(m);
    int8_answers(&want, &m, k, f32, false);
    const struct distance d = int8_compare(&got, &want, m, type, "int8");
    model_close(m);
    int8_answers(&got, &m, k, f32, true);
    const struct distance e = int8_compare(&got, &want, m, type, "noise");
    model_close(m);
    CHECK(fabs(d.rms / e.rms - 1) <= RMS_APART);
    int8->far = fmax(int8->far, d.far);
    noise->far = fmax(noise->far, e.far);
}

int main(void)
{
    static char *const types[] = { "q8_0", "q4_0" };
    struct err err;
    struct kernels k;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), &err) == OK);
    struct distance int8 = { 0, 0 }, noise = { 0, 0 };
    int8_texts();
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        check_type(&k, types[i], &int8, &noise);
    printf("furthest: int8 %.2f sigma, noise %.2f\n", int8.far, noise.far);
    CHECK(int8.far <= FAR_MOST * noise.far);
    return 0;
}
