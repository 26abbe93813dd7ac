/* t_int8.c - what rounding the inputs of products to int8 does to logits, on the demo cloud in Q8_0
 * and Q4_0 (all columns are 256, so no matrix falls back to another type). The reference has the
 * same weights in F32 and rounds no input, so the weights' own error has no part.
 *
 * A group of 32 inputs is rounded to multiples of s = amax / 127. The same F32 model is evaluated
 * once more, with independent uniform noise of width s added to each input: that is what the
 * errors of int8 are taken for, through the layers as they are. What int8 does must look like it,
 * in root mean square and at the far end. */
#include <strings.h>

#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "tests/support/test.h"
#include "tools/command.h"
#include "tools/lab/demo/world.h"
#include "weights/weights.h"

enum { POSITIONS = 600, HIDDEN = 256, VOCAB = 1008, INPUTS = 32 };

/* The largest difference of both types may be this many times the largest that noise makes. */
#define FAR_MOST 1.5

/* The root mean squares of a type, of int8 and of noise, differ by no more than this part. One
 * binary digit more or less in the inputs would make it 50 % or 100 %. */
#define RMS_APART 0.085

#define CLOUD "weights/milli/cloud.gguf"

/* Ids of whole texts, one after the other; begin[i] is true at the first of each. */
static struct {
    uint32_t id[POSITIONS];
    bool begin[POSITIONS];
} text;

static float exact[POSITIONS][VOCAB], other[POSITIONS][VOCAB]; /* logits */

/* Read questions of the test stream with their answers. */
static void int8_texts(void)
{
    struct world *world;
    struct weights *w;
    struct tokenizer *t;
    CHECK(world_open(&world, WORLD_SEED, NULL) == OK && weights_open(&w, CLOUD, NULL) == OK);
    CHECK(tokenizer_open(&t, w, NULL) == OK);
    const struct world_filter all = { WORLD_TOPICS, WORLD_WORDINGS };
    for (size_t i = 0, n = 0; n < POSITIONS; i++) {
        struct world_question q;
        char both[WORLD_PROMPT + WORLD_ANSWER];
        uint32_t *ids;
        size_t count;
        world_question(&q, world, all, world_test_stream(1), i);
        snprintf(both, sizeof(both), "%s%s", q.prompt, q.answer);
        CHECK(tokenizer_encode(t, &ids, &count, both, strlen(both), false, NULL) == OK);
        text.begin[n] = true;
        for (size_t j = 0; j < count && n < POSITIONS; j++)
            text.id[n++] = ids[j];
        free(ids);
    }
    tokenizer_close(t);
    weights_close(w);
    world_close(world);
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

/* Evaluate all texts, with noise or not; the matrices of the model must be of this type. */
static void int8_logits(float logits[POSITIONS][VOCAB], const struct kernels *k, const char *path,
                        const char *type, bool noise)
{
    struct weights *w;
    struct model *m;
    struct batch *b;
    struct session *s;
    CHECK(weights_open(&w, path, NULL) == OK && model_open(&m, w, k, NULL, NULL, NULL, NULL) == OK);
    weights_close(w);
    const struct model_layer *l = &m->layers[0];
    const struct panels *all[] = { &l->q, &l->k, &l->v, &l->o, &l->up, &l->gate, &l->down };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        CHECK(!strcasecmp(panels_type_name(all[i]->type), type));
    CHECK(m->head.type == (strcmp(type, "f32") ? P_Q8 : P_F32));
    CHECK(m->config.hidden == HIDDEN && m->config.vocab == VOCAB);
    CHECK(batch_open(&b, m, NULL, NULL) == OK);
    CHECK(session_open(&s, b, POSITIONS, KVCACHE_F32, NULL) == OK);
    const struct batch_watch watch = { .see = add_noise };
    batch_watch(b, noise ? &watch : NULL);
    for (size_t first = 0, end; first < POSITIONS; first = end) {
        for (end = first + 1; end < POSITIONS && !text.begin[end]; end++)
            ;
        session_rewind(s, 0);
        CHECK(end - first <= BATCH_ROWS);
        CHECK(session_eval(s, &text.id[first], end - first, NULL, NULL) == OK);
        for (size_t at = first; at < end; at++)
            memcpy(logits[at], session_logits(s, end - 1 - at), sizeof(logits[0]));
    }
    session_close(s);
    batch_close(b);
    model_close(m);
}

static void int8_convert(char *from, char *to, char *type)
{
    char *args[] = { "convert", from, to, "--type", type, "-q", NULL };
    CHECK(command_run(&cmd_convert, 6, args) == EXIT_FINE);
}

/* How far logits are from the exact ones: all, in root mean square, and the furthest. */
struct distance {
    double rms, far;
};

static struct distance int8_compare(const char *type, const char *what)
{
    struct distance d = { 0, 0 };
    for (size_t i = 0; i < (size_t)POSITIONS * VOCAB; i++) {
        double off =
            fabs((double)other[i / VOCAB][i % VOCAB] - (double)exact[i / VOCAB][i % VOCAB]);
        d.far = !(off <= d.far) ? off : d.far; /* also if it is NaN */
        d.rms += off * off / ((double)POSITIONS * VOCAB);
    }
    d.rms = sqrt(d.rms);
    printf("%s, %s: logits differ by at most %.2g, rms %.4f\n", type, what, d.far, d.rms);
    return d;
}

/* Compare int8 and noise with exact inputs, and raise what is furthest. */
static void check_type(const struct kernels *k, char *type, double *int8, double *noise)
{
    char *quantised = in_scratch("m.gguf"), *f32 = in_scratch("f32.gguf");
    int8_convert(CLOUD, quantised, type);
    int8_convert(quantised, f32, "f32");
    int8_logits(exact, k, f32, "f32", false);
    int8_logits(other, k, quantised, type, false);
    const struct distance d = int8_compare(type, "int8");
    int8_logits(other, k, f32, "f32", true);
    const struct distance e = int8_compare(type, "noise");
    CHECK(fabs(d.rms / e.rms - 1) <= RMS_APART);
    *int8 = fmax(*int8, d.far);
    *noise = fmax(*noise, e.far);
}

int main(void)
{
    static char *const types[] = { "q8_0", "q4_0" };
    struct kernels k;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    double int8 = 0, noise = 0;
    int8_texts();
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        check_type(&k, types[i], &int8, &noise);
    CHECK(int8 <= FAR_MOST * noise);
    return 0;
}
