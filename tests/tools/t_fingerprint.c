/* Tests the model's fingerprint: it is the same for all file forms of one model, and another for
 * other weights or another shape. The exact one is another for every other bit of the weights. */
#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "model/train/random.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/command.h"
#include "weights/weights.h"

static struct kernels kernels;
static struct pool *pool;

struct sign {
    uint64_t text, plain, exact; /* plain: without the tokenizer */
};

/* Return the fingerprints of a file, the same with other threads; check its name and its type. */
static struct sign sign_of(const char *path, const char *name, const char *type)
{
    struct weights *w;
    struct tokenizer *t;
    struct model *m;
    char found[MODEL_NAME];
    CHECK(weights_open(&w, path, NULL) == OK && tokenizer_open(&t, w, NULL) == OK);
    CHECK(model_open(&m, w, &kernels, NULL, NULL, NULL, NULL) == OK);
    model_file_name(found, w);
    CHECK(!strcmp(found, name) && !strcmp(model_file_type(w), type));
    const struct sign s = { model_fingerprint(m, t), model_fingerprint(m, NULL),
                            model_exact_fingerprint(m, NULL) };
    CHECK(model_exact_fingerprint(m, pool) == s.exact && s.text != s.plain);
    tokenizer_close(t);
    model_close(m);
    weights_close(w);
    return s;
}

/* No two are the same. */
static void check_others(const uint64_t *seen, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            CHECK(seen[i] != seen[j]);
}

/* All forms of a model have one fingerprint, which is returned. The exact one is that of the packed
 * weights: not of the file form, but of every type. */
static uint64_t check_forms(unsigned seed)
{
    static char *const types[] = { "F32", "F16", "BF16", "Q8_0", "Q4_0" };
    const char *name = strrchr(tiny_make_seed(seed), '/') + 1;
    char folder[64], to[80];
    uint64_t exact[5];
    snprintf(folder, sizeof(folder), "%s", tiny_make_seed(seed));
    snprintf(to, sizeof(to), "%s.gguf", folder);
    const struct sign s = sign_of(folder, name, "F32");
    for (size_t i = 0; i < 5; i++) {
        char *args[] = { "convert", folder, to, "--type", types[i], "-q", NULL };
        CHECK(command_run(&cmd_convert, 6, args) == EXIT_FINE);
        /* 48 columns do not suit groups of 32, so ffn_down falls back to F16; the name stays. */
        const struct sign as = sign_of(to, name, types[i]);
        CHECK(as.text == s.text && (as.exact == s.exact) == (i == 0));
        exact[i] = as.exact;
        unlink(to);
    }
    check_others(exact, 5);
    return s.text;
}

/* Another shape: one more row in the vocabulary, or one head more or less, changes it. */
static void check_shapes(void)
{
    uint64_t seen[4];
    for (size_t i = 0; i < 4; i++) {
        struct model_config c = { 2, 32, 2, 1, 16, 64, 100, 64, 1e-6f, 1e4f, true, false, { 0 } };
        struct model *m;
        c.layers += i == 1;
        c.vocab += i == 2;
        c.ffn += i == 3 ? 32 : 0;
        CHECK(model_random(&m, &c, P_F32, &kernels, NULL, 1, NULL) == OK);
        seen[i] = model_fingerprint(m, NULL);
        model_close(m);
    }
    check_others(seen, 4);
}

/* The lowest bit of one value of each tensor changes the exact fingerprint. A file without a name
 * is named after its path. */
static void check_bits(void)
{
    enum { TENSORS = 14 };
    static unsigned char bytes[300000];
    const char *folder = tiny_make(), *name = strrchr(folder, '/') + 1, *first = NULL;
    char path[96], found[MODEL_NAME];
    uint64_t seen[TENSORS + 1] = { sign_of(folder, name, "F32").exact };
    size_t at[TENSORS], header = 0;
    struct weights *w;
    snprintf(path, sizeof(path), "%s/model.safetensors", folder);
    size_t size = slurp(path, bytes, sizeof(bytes));
    memcpy(&header, bytes, 8);
    CHECK(weights_open(&w, path, NULL) == OK && weights_ntensors(w) == TENSORS);
    model_file_name(found, w);
    CHECK(!strcmp(found, "model.safetensors") && !strcmp(model_file_type(w), "F32"));
    for (size_t i = 0; i < TENSORS; i++) {
        const char *data = weights_tensor(w, i)->data;
        first = !first || data < first ? data : first;
    }
    for (size_t i = 0; i < TENSORS; i++)
        at[i] = 8 + header + (size_t)((const char *)weights_tensor(w, i)->data - first) +
                weights_tensor(w, i)->bytes / 8 * 4;
    weights_close(w);
    for (size_t i = 0; i < TENSORS; i++) {
        bytes[at[i]] ^= 1;
        spill(path, bytes, size);
        bytes[at[i]] ^= 1;
        seen[i + 1] = sign_of(folder, name, "F32").exact;
    }
    check_others(seen, TENSORS + 1);
}

int main(void)
{
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK &&
          pool_open(&pool, 3, NULL) == OK);
    CHECK(check_forms(1) != check_forms(2));
    check_shapes();
    check_bits();
    pool_close(pool);
    return 0;
}
