/* fuzz_model_gguf.c - all of a model in a GGUF file. */
#include "tests/fuzz/fuzz.h"
#include "weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    fuzz_write("a.gguf", p, n);
    fuzz_open(fuzz_path("a.gguf"));
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    static const int types[] = { W_F32, W_F16, W_BF16, W_Q8_0, W_Q4_0, W_Q4_1, W_Q5_0, W_Q5_1 };
    static const char *const names[] = { "q2_k", "iq4_xs" }; /* rows of 256 are no tiny model */
    size_t n = sizeof(types) / sizeof(*types);
    char name[64];
    if (i < n)
        return fuzz_tiny_gguf(out, room, types[i]);
    if (i - n >= sizeof(names) / sizeof(*names))
        return 0;
    snprintf(name, sizeof(name), "weights/kquants/%s.gguf", names[i - n]);
    return fuzz_data(out, room, name);
}
