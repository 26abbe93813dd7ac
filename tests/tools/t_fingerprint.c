/* Tests the model's fingerprint: it is the same for all file forms of one model, and another for
 * other weights or another shape. The exact one is another for every other bit of the weights. */
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/sys/pool.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/train/random.h"
#include "model/text/tokenizer.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/command.h"
#include "weights/weights.h"

/* Open a model. */
static struct model *open_model(struct weights **w, const char *path)
{
    struct model *m;
    struct kernels k;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    CHECK(weights_open(w, path, NULL) == OK);
    CHECK(model_open(&m, *w, &k, NULL, NULL, NULL, NULL) == OK);
    return m;
}

/* Return the fingerprint of a file; check its name and the type of its matrices. */
static uint64_t fingerprint(const char *path, const char *name, const char *type, bool tokens)
{
    struct weights *w;
    struct tokenizer *t;
    struct model *m = open_model(&w, path);
    char found[MODEL_NAME];
    CHECK(tokenizer_open(&t, w, NULL) == OK);
    model_file_name(found, w);
    CHECK(!strcmp(found, name) && !strcmp(model_file_type(w), type));
    uint64_t h = model_fingerprint(m, tokens ? t : NULL);
    tokenizer_close(t);
    model_close(m);
    weights_close(w);
    return h;
}

/* Convert a model to folder.gguf, in static storage. */
static const char *converted(const char *folder, char *type)
{
    static char from[64], to[80];
    snprintf(from, sizeof(from), "%s", folder);
    snprintf(to, sizeof(to), "%s.gguf", folder);
    char *args[] = { "convert", from, to, "--type", type, "-q", NULL };
    CHECK(command_run(&cmd_convert, 6, args) == EXIT_FINE);
    return to;
}

/* All forms of a model have one fingerprint, which is returned. */
static uint64_t check_forms(unsigned seed)
{
    static char *const types[] = { "F32", "F16", "BF16", "Q8_0", "Q4_0" };
    const char *folder = tiny_make_seed(seed), *name = strrchr(folder, '/') + 1;
    uint64_t h = fingerprint(folder, name, "F32", true);
    CHECK(h == fingerprint(folder, name, "F32", true));
    CHECK(h != fingerprint(folder, name, "F32", false));
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const char *to = converted(folder, types[i]);
        /* 48 columns do not suit groups of 32, so ffn_down falls back to F16; the name stays. */
        CHECK(h == fingerprint(to, name, types[i], true));
        unlink(to);
    }
    return h;
}

/* Another shape: one more row in the vocabulary, or one head more or less, changes it. */
static void check_shapes(void)
{
    const struct model_config base = {
        2, 32, 2, 1, 16, 64, 100, 64, 1e-6f, 1e4f, true, false, { 0 }
    };
    uint64_t seen[4];
    struct kernels k;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    for (size_t i = 0; i < 4; i++) {
        struct model_config c = base;
        struct model *m;
        c.layers += i == 1;
        c.vocab += i == 2;
        c.ffn += i == 3 ? 32 : 0;
        CHECK(model_random(&m, &c, P_F32, &k, NULL, 1, NULL) == OK);
        seen[i] = model_fingerprint(m, NULL);
        model_close(m);
        for (size_t j = 0; j < i; j++)
            CHECK(seen[i] != seen[j]);
    }
}

/* A file without a name is named after its path. */
static void check_name(void)
{
    char path[96], found[MODEL_NAME];
    struct weights *w;
    snprintf(path, sizeof(path), "%s/model.safetensors", tiny_make());
    CHECK(weights_open(&w, path, NULL) == OK);
    model_file_name(found, w);
    CHECK(!strcmp(found, "model.safetensors") && !strcmp(model_file_type(w), "F32"));
    weights_close(w);
}

/* Return the exact fingerprint of a file; it is the same with other threads. */
static uint64_t exact(const char *path)
{
    struct weights *w;
    struct pool *pool;
    struct model *m = open_model(&w, path);
    CHECK(pool_open(&pool, 3, NULL) == OK);
    uint64_t h = model_exact_fingerprint(m, NULL);
    CHECK(model_exact_fingerprint(m, pool) == h);
    model_close(m);
    weights_close(w);
    pool_close(pool);
    return h;
}

/* The exact fingerprint is that of the packed weights: not of the file form, but of every type and
 * of every tensor's bits. */
static void check_exact(void)
{
    static char *const types[] = { "F32", "BF16", "Q8_0", "Q4_0" };
    static unsigned char bytes[300000];
    uint64_t seen[32];
    size_t n = 0, at[32], size, header = 0;
    char name[96];
    struct weights *w;
    const char *folder = tiny_make();
    seen[n++] = exact(folder);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const char *to = converted(folder, types[i]);
        seen[n] = exact(to);
        CHECK((seen[n] == seen[0]) == (i == 0));
        n += i > 0;
        unlink(to);
    }
    /* The lowest bit of one value of each tensor. */
    snprintf(name, sizeof(name), "%s/model.safetensors", folder);
    size = slurp(name, bytes, sizeof(bytes));
    memcpy(&header, bytes, 8);
    CHECK(weights_open(&w, folder, NULL) == OK);
    size_t tensors = weights_ntensors(w);
    const char *first = NULL;
    for (size_t i = 0; i < tensors; i++) {
        const char *data = weights_tensor(w, i)->data;
        first = !first || data < first ? data : first;
    }
    for (size_t i = 0; i < tensors; i++)
        at[i] = 8 + header + (size_t)((const char *)weights_tensor(w, i)->data - first) +
                weights_tensor(w, i)->bytes / 8 * 4;
    weights_close(w);
    for (size_t i = 0; i < tensors; i++) {
        bytes[at[i]] ^= 1;
        spill(name, bytes, size);
        bytes[at[i]] ^= 1;
        seen[n++] = exact(folder);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            CHECK(seen[i] != seen[j]);
    CHECK(n == 4 + 14);
}

int main(void)
{
    check_name();
    CHECK(check_forms(1) != check_forms(2));
    check_shapes();
    check_exact();
    return 0;
}
