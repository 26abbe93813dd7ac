/* bench_open.c - the model of a benchmark: a file, or random weights of a published shape. */
#include <string.h>
#include <strings.h>

#include "kernels/sys/base.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/train/random.h"
#include "router/engine.h"
#include "tools/lab/bench/bench_model.h"
#include "tools/cli/setup.h"

/* Published shapes. */
static const struct {
    const char *name;
    struct model_config config;
} shapes[] = {
    { "qwen2.5-0.5b",
      { 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e-6f, 1e6f, true, false, { 0 } } },
    { "qwen2.5-1.5b",
      { 28, 1536, 12, 2, 128, 8960, 151936, 32768, 1e-6f, 1e6f, true, false, { 0 } } },
    { "qwen2.5-3b",
      { 36, 2048, 16, 2, 128, 11008, 151936, 32768, 1e-6f, 1e6f, true, false, { 0 } } },
    { "qwen2.5-7b",
      { 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e-6f, 1e6f, false, false, { 0 } } },
    { "qwen3-0.6b", { 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1e-6f, 1e6f, true, true, { 0 } } },
    { "qwen3-1.7b", { 28, 2048, 16, 8, 128, 6144, 151936, 40960, 1e-6f, 1e6f, true, true, { 0 } } },
    { "qwen3-4b", { 36, 2560, 32, 8, 128, 9728, 151936, 40960, 1e-6f, 1e6f, true, true, { 0 } } },
    { "qwen3-8b", { 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1e-6f, 1e6f, false, true, { 0 } } },
};

int bench_model_shape(struct model_config *out, unsigned *type, const char *shape, const char *name,
                      struct err *err)
{
    enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };
    size_t i = 0;
    while (i < SHAPES && strcmp(shape, shapes[i].name) != 0)
        i++;
    if (i == SHAPES)
        return err_set(err, ERR_ARG,
                       "--shape: expected qwen2.5-0.5b, -1.5b, -3b, -7b, qwen3-0.6b, -1.7b, "
                       "-4b or -8b, found %s",
                       shape);
    *out = shapes[i].config;
    for (*type = 0; *type < MODEL_TYPES; ++*type)
        if (!strcasecmp(name, model_random_type(*type)))
            return OK;
    return err_set(err, ERR_ARG, "--type: expected f32, bf16, a type of GGUF or q4_k_m, found %s",
                   name);
}

/* Open a model of a known shape with random weights instead of a file. */
static int open_shape(struct engine *e, const struct bench_options *m, struct err *err)
{
    struct model_config c;
    unsigned type;
    int rc = bench_model_shape(&c, &type, m->shape, m->type, err);
    if (!rc)
        rc = setup_kernels(&e->kernels, err);
    if (!rc)
        rc = pool_open(&e->pool, shared_options.engine.threads, err);
    struct progress *progress = setup_open_begin("making", m->shape);
    if (!rc)
        rc = model_random(&e->model, &c, type, &e->kernels, e->pool, 1, err);
    setup_open_end(progress);
    if (!rc)
        rc = batch_open(&e->batch, e->model, e->pool, err);
    return rc;
}

int bench_model_open(struct engine *e, const struct bench_options *m, struct err *err)
{
    return m->shape ? open_shape(e, m, err) : setup_engine(e, false, err);
}
