/* fuzz_session_file.c - the evaluated beginning of a text, as `mizzle run --prompt-cache` keeps it.
 */
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "model/batch.h"
#include "model/model.h"
#include "model/session.h"
#include "model/session_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/files.h"

const bool fuzz_whole = false;

enum { TOKENS = 20, CONTEXT = 32, WEIGHTS = 7 };

static struct session *session;
static uint32_t ids[TOKENS];

/* Open a session of a small random model; they live as long as the program. */
static void fuzz_session_make(void)
{
    static struct model *model;
    static struct batch *batch;
    struct model_config c;
    struct err err;
    CHECK(model_shape(&c, "qwen2.5-0.5b"));
    c.layers = 1;
    c.hidden = 32;
    c.heads = 2;
    c.kv_heads = 1;
    c.head_dim = 16;
    c.ffn = 32;
    c.vocab = 64;
    CHECK(model_random(&model, &c, P_F32, &kernels_scalar, NULL, 1, &err) == OK);
    CHECK(batch_open(&batch, model, NULL, &err) == OK);
    CHECK(session_open(&session, batch, CONTEXT, KVCACHE_F16, &err) == OK);
    for (uint32_t i = 0; i < TOKENS; i++)
        ids[i] = i * 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err err = { "" };
    size_t shared;
    if (!session)
        fuzz_session_make();
    session_rewind(session, 0);
    fuzz_write("a.cache", p, n);
    fuzz_begin();
    int code =
        session_file_load(&shared, session, fuzz_path("a.cache"), WEIGHTS, ids, TOKENS, &err);
    CHECK(code == OK || !shared);
    CHECK(session_length(session) <= TOKENS && (code != OK || session_length(session) >= shared));
    CHECK(memcmp(session_ids(session), ids, session_length(session) * sizeof(*ids)) == 0);
    fuzz_end(code == ERR_ARG ? ERR_FORMAT : code, &err);
    return 0;
}

/* All of the ids, and some. */
size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    static const size_t lengths[] = { TOKENS, 7 };
    struct err err;
    if (i >= sizeof(lengths) / sizeof(*lengths))
        return 0;
    if (!session)
        fuzz_session_make();
    session_rewind(session, 0);
    CHECK(session_eval(session, ids, lengths[i], NULL, &err) == OK);
    CHECK(session_file_save(session, lengths[i], fuzz_path("seed.cache"), WEIGHTS, &err) == OK);
    return slurp(fuzz_path("seed.cache"), out, room);
}
