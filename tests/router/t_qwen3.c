/* t_qwen3.c - a Qwen3 model with YaRN under the whole library: tokenizer, router, decoding. */
#include "model/model.h"
#include "router/mizzle.h"
#include "router/learn/form_save.h"
#include "router/routing.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"

enum { WIDTH = 16, TOKENS = 20 };

static const char *router_path;
static struct err err, note;

/* Save a router with random weights, made for this engine. */
static void save_router(const struct engine *e)
{
    size_t dim = model_config(e->model)->hidden;
    struct router_form f;
    CHECK(router_form_open(&f, dim, WIDTH, &err) == OK);
    for (size_t i = 0; i < WIDTH * dim; i++)
        f.w1[i] = (float)rand_unit(1, i) - 0.5f;
    for (size_t i = 0; i < WIDTH; i++)
        f.w2[i] = (float)rand_unit(2, i) - 0.5f;
    f.about.has_model = true;
    f.about.model = model_fingerprint(e->model, e->tokenizer);
    CHECK(form_save(router_path, &f, &err) == OK);
    router_form_close(&f);
}

static bool on_token(void *arg, const struct mizzle_token *t)
{
    uint32_t **at = arg;
    *(*at)++ = t->id;
    return true;
}

/* Write an answer with the router in charge; the cloud is off. */
static void write_answer(uint32_t *ids, const char *folder, size_t threads)
{
    struct mizzle_options o;
    struct mizzle *m;
    struct mizzle_error e = { .size = sizeof(e) };
    const struct mizzle_prompt p = { .size = sizeof(p), .text = "a prompt" };
    mizzle_options_init(&o, sizeof(o));
    o.model = folder;
    o.threads = threads;
    o.router = router_path;
    o.policy = "mlp";
    o.cloud = "off";
    o.max_tokens = TOKENS;
    CHECK(mizzle_open(&m, &o, &e) == MIZZLE_OK);
    CHECK(mizzle_generate(m, &p, on_token, &ids, NULL, &e) == MIZZLE_OK);
    CHECK(mizzle_close(m) == MIZZLE_OK);
    o.context = TINY_CONTEXT_QWEN3 + 1;
    CHECK(mizzle_open(&m, &o, &e) == MIZZLE_ARG && !m);
    CHECK(strstr(e.message, "context: expected at most 1024 (64 by a YaRN factor of 16)"));
}

int main(void)
{
    const char *folder = tiny_make_qwen3();
    struct engine_options o = { .model = folder, .threads = 2 };
    uint32_t ids[2][TOKENS] = { { 0 } };
    struct engine e;
    struct router *r;
    router_path = in_scratch("router");
    CHECK(engine_open(&e, &o, true, &err) == OK);
    save_router(&e);
    engine_close(&e);
    write_answer(ids[0], folder, 1);
    write_answer(ids[1], folder, 3);
    CHECK(memcmp(ids[0], ids[1], sizeof(ids[0])) == 0);
    /* The Qwen2 model has hidden states of the same size, yet it is another model. */
    o.model = tiny_make();
    CHECK(engine_open(&e, &o, true, &err) == OK);
    CHECK(routing_router(&r, &e, router_path, &note, &err) == ERR_FORMAT && !r);
    CHECK(strstr(err.msg, "which runs here"));
    engine_close(&e);
    return 0;
}
