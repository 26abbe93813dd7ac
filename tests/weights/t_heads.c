/* t_heads.c - the heads of real files of each type: cut at every byte and changed in every bit,
 * each of them opens as a model or is refused. */
#include <stdint.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/model.h"
#include "tests/support/files.h"
#include "weights/table.h"

enum { HEAD = 2048 };

static const char *const names[] = {
    "weights/kquants/src-f32.gguf", "weights/kquants/f16.gguf",    "weights/kquants/bf16.gguf",
    "weights/kquants/q8_0.gguf",    "weights/kquants/q4_0.gguf",   "weights/kquants/q4_1.gguf",
    "weights/kquants/q5_0.gguf",    "weights/kquants/q5_1.gguf",   "weights/kquants/q2_k.gguf",
    "weights/kquants/q3_k_m.gguf",  "weights/kquants/q4_k_m.gguf", "weights/kquants/q5_k_m.gguf",
    "weights/kquants/q6_k.gguf",    "weights/kquants/iq4_nl.gguf", "weights/kquants/iq4_xs.gguf",
    "weights/qwen3/random.gguf",
};

static struct {
    size_t opened, models, refused;
} count;

/* Open p[n] as the file of a model. A message never breaks its line. */
static void try(const unsigned char *p, size_t n, bool header_only)
{
    struct err err = { "" };
    struct model *m = NULL;
    struct mapping map = { .p = p, .n = n };
    struct weights *w = table_new("file.gguf", "gguf");
    CHECK(w);
    int code = gguf_read_alone(w, &map, header_only, &err);
    if (code == OK)
        code = table_index(w, &err);
    if (code == OK) {
        count.opened++;
        int model = model_outline(&m, w, &err);
        CHECK((model == OK) == (m != NULL));
        if (m)
            count.models++;
        else
            CHECK(model == ERR_FORMAT);
        model_close(m);
    } else {
        count.refused++;
        CHECK(code == ERR_FORMAT);
    }
    CHECK(!strchr(err.msg, '\n'));
    weights_close(w);
}

/* Cut the head at every byte, in memory of exactly that size. */
static void cut_all(const unsigned char *p)
{
    for (size_t n = 0; n < HEAD; n++) {
        unsigned char *copy = malloc(n ? n : 1);
        CHECK(copy);
        memcpy(copy, p, n);
        try(copy, n, false);
        try(copy, n, true);
        free(copy);
    }
}

static void flip_all(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < HEAD * 8; i++) {
        p[i / 8] ^= (unsigned char)(1u << i % 8);
        try(p, n, false);
        p[i / 8] ^= (unsigned char)(1u << i % 8);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t n;
        unsigned char *p = (unsigned char *)slurp_all(test_data("%s", names[i]), &n);
        if (!p)
            SKIP("no %s", names[i]);
        CHECK(n > HEAD);
        size_t refused = count.refused;
        try(p, n, false);
        CHECK(count.refused == refused);
        cut_all(p);
        flip_all(p, n);
        free(p);
    }
    printf("%zu opened, %zu of them as models, %zu refused\n", count.opened, count.models,
           count.refused);
    return 0;
}
