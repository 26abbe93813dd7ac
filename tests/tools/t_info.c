/* t_info.c - what `mizzle info` says a model takes is what it takes when it is opened, the
 * fingerprint is the one that routers are bound to, and a header alone is enough for all but that.
 */
#include "model/batch_internal.h"
#include "router/mizzle.h"
#include "tests/support/test.h"
#include "tools/info/info.h"

enum { ROOM = 1 << 20, HEADER = 24 };

static struct err err;
static const char demo[] = "weights/milli/edge-0.5.gguf";

static void read_info(struct info_model *m, struct weights **w, const char *path, size_t context)
{
    CHECK(weights_open_header(w, path, &err) == OK);
    CHECK(info_model_read(m, *w, context, &err) == OK);
}

/* Compare with the model itself, in each type of KV cache. */
static void check_model(const char *path, bool tokenizer)
{
    struct weights *w;
    struct info_model m;
    struct engine e;
    read_info(&m, &w, path, 300);
    CHECK(m.is && m.runs && m.has_sign && !m.no_model.msg[0] && m.context == 300);
    CHECK(!m.no_text.msg[0] == tokenizer && (m.ids > 0) == tokenizer);
    const struct engine_options o = { .model = path };
    CHECK(engine_open(&e, &o, false, &err) == OK);
    CHECK(m.weights == e.model->bytes);
    CHECK(m.fingerprint == model_fingerprint(e.model, e.tokenizer));
    for (int i = 0; i < INFO_CACHES; i++) {
        struct session *session;
        size_t batch;
        CHECK(session_open(&session, e.batch, 300, (enum kvcache)i, &err) == OK);
        CHECK(batch_size(&batch, &e.model->config, m.threads, 300, &err) == OK);
        CHECK(session->bytes + batch == m.work + m.cache[i]);
        session_close(session);
    }
    engine_close(&e);
    weights_close(w);
}

static void test_header(void)
{
    static unsigned char p[ROOM];
    const char *path = in_scratch("m.gguf");
    struct weights *w;
    struct info_model whole, m;
    read_info(&whole, &w, demo, 0);
    CHECK(whole.context == 1024); /* the model's maximum */
    const struct tensor *first = weights_tensor(w, 0), *last = NULL;
    for (size_t i = 0; i < weights_ntensors(w); i++)
        last = weights_tensor(w, i);
    size_t n = slurp(demo, p, ROOM);
    size_t data = (size_t)((const char *)last->data - (const char *)first->data) + last->bytes;
    weights_close(w);
    CHECK(data < n);
    memset(p + HEADER + 8, 'x', 1); /* the checksum's key, which would be wrong */
    spill(path, p, n - data);
    CHECK(weights_open(&w, path, &err) == ERR_FORMAT);
    read_info(&m, &w, path, 0);
    CHECK(info_without_data(w) && m.runs && !m.has_sign && m.weights == whole.weights);
    CHECK(m.work == whole.work && memcmp(m.cache, whole.cache, sizeof(m.cache)) == 0);
    weights_close(w);
}

static void test_refused(void)
{
    struct weights *w;
    struct info_model m;
    read_info(&m, &w, demo, 0);
    CHECK(info_model_read(&m, w, (size_t)1 << 40, &err) != OK && strstr(err.msg, "context: "));
    CHECK(info_model_read(&m, w, 1025, &err) == ERR_ARG &&
          strstr(err.msg, "context: expected at most 1024"));
    weights_close(w);
    read_info(&m, &w, "weights/milli/vocabulary.gguf", 0);
    CHECK(m.is && !m.runs && m.no_model.msg[0] && !m.no_text.msg[0]);
    weights_close(w);
    read_info(&m, &w, "weights/milli/edge-0.5.router.safetensors", 0);
    CHECK(!m.is);
    weights_close(w);
    const char *other = test_data("weights/stories260K/stories260K.gguf");
    if (access(other, R_OK) != 0) {
        puts("SKIP: no model of another architecture");
        return;
    }
    read_info(&m, &w, other, 0);
    CHECK(!m.runs && strstr(m.no_model.msg, "general.architecture") && m.no_text.msg[0]);
    weights_close(w);
    check_model(test_data("weights/stories260K_qwen2"), false);
}

int main(void)
{
    if (access(demo, R_OK) != 0)
        SKIP("no demo pair in weights/milli");
    check_model(demo, true);
    test_header();
    test_refused();
    return 0;
}
