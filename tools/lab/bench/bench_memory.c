/* bench_memory.c - what a model of a known shape takes in memory, computed: the same numbers on
 * every machine, also where it would not fit. */
#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "model/model.h"
#include "model/train/random.h"
#include "model/session.h"
#include "router/router.h"
#include "tools/lab/bench/bench_model.h"
#include "tools/lab/bench/row.h"
#include "tools/cli/setup.h"

enum { COLUMNS = 5 };
static const char *const names[COLUMNS] = { "weights", "kv_cache", "work", "router", "sum" };
static const char *const titles[COLUMNS] = { "weights MiB", "KV cache MiB", "work MiB",
                                             "router MiB", "sum MiB" };

/* One row: bytes. work is what a pass and a session take beside the KV cache. */
struct memory_row {
    const char *shape, *type, *kv;
    size_t context, bytes[COLUMNS];
};

/* Return the bytes that the numbers of an open network of these sizes take. */
static size_t memory_router(size_t dim, size_t width)
{
    size_t panel, w1 = 0, w2 = 0;
    panels_bytes(&panel, &w1, P_F32, width, dim);
    panels_bytes(&panel, &w2, P_F32, 1, width);
    return w1 + w2 + width * sizeof(float);
}

/* Compute the bytes of a row. Work memory is that of one thread; each further one adds little. */
static int memory_compute(struct memory_row *row, const struct model_config *c, unsigned type,
                          enum kvcache kv, struct err *err)
{
    size_t batch = 0, session = 0, cache = 0;
    int rc = model_random_size(&row->bytes[0], c, type, err);
    if (rc == OK)
        rc = session_size(&session, &cache, c, row->context, kv, err);
    if (rc == OK)
        rc = batch_size(&batch, c, 1, row->context, err);
    row->bytes[1] = cache;
    row->bytes[2] = batch + session - cache;
    row->bytes[3] = memory_router(c->hidden, 2 * c->hidden); /* CITER's width */
    row->bytes[4] = row->bytes[0] + batch + session + row->bytes[3];
    return rc;
}

static int memory_print(struct row *out, const struct memory_row *r, struct err *err)
{
    row_text(out, "shape", "shape", r->shape);
    row_text(out, "type", "type", r->type);
    row_text(out, "kv", "kv", r->kv);
    row_named(out, "context", "context", (double)r->context, 0);
    for (size_t i = 0; i < COLUMNS; i++) {
        row_named(out, names[i], NULL, (double)r->bytes[i], 0);
        row_named(out, NULL, titles[i], (double)r->bytes[i] / (1 << 20), 1);
    }
    return row_print(out, err);
}

int bench_memory(const struct bench_options *o, struct err *err)
{
    struct memory_row rows[BENCH_LIST];
    struct bench_list contexts;
    struct model_config c;
    unsigned type;
    enum kvcache kv;
    const char *shape = o->shape ? o->shape : "qwen2.5-0.5b";
    int rc = bench_list(&contexts, "-c", o->context, err);
    if (rc == OK)
        rc = bench_model_shape(&c, &type, shape, o->type, err);
    if (rc == OK)
        rc = setup_kv(&kv, KVCACHE_F16, err);
    for (size_t i = 0; rc == OK && i < contexts.n; i++) {
        rows[i] = (struct memory_row){ .shape = shape,
                                       .type = model_random_type(type),
                                       .kv = kvcache_name(kv),
                                       .context = contexts.at[i] };
        rc = memory_compute(&rows[i], &c, type, kv, err);
    }
    if (rc != OK)
        return rc;
    struct row out = { .format = o->format };
    for (size_t i = 0; rc == OK && i < contexts.n; i++)
        rc = memory_print(&out, &rows[i], err);
    row_end(&out);
    return rc;
}
