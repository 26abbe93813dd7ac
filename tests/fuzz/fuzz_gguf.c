/* fuzz_gguf.c - the header of a GGUF file, in memory. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/malformed.h"
#include "weights/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err err = { "" };
    struct mapping m = { .p = p, .n = n };
    fuzz_begin();
    struct weights *w = table_new("file.gguf", "gguf");
    CHECK(w);
    fuzz_table(w, gguf_read_alone(w, &m, true, &err), &err);
    return 0;
}

#define SPLIT "s'split.no' 4:2 2:0 s'split.count' 4:2 2:1 s'split.tensors.count' 4:5 4:1 "

static const char *const texts[] = {
    "'GGUF' 4:3 8:0 8:0",
    "'GGUF' 4:2 8:2 8:5 s'general.architecture' 4:8 s'qwen2' s'general.alignment' 4:4 4:64 "
    "s'list' 4:9 4:8 8:2 s'a' s'bc' s'numbers' 4:9 4:5 8:3 4:1 4:2 4:3 s'yes' 4:7 1:1 "
    "s't' 4:2 8:4 8:2 4:0 8:0 s'q' 4:2 8:32 8:1 4:8 8:64 a:64 z:98",
    "'GGUF' 4:3 8:1 8:13 s'a' 4:0 1:1 s'b' 4:1 1:1 s'c' 4:2 2:1 s'd' 4:3 2:1 s'e' 4:4 4:1 "
    "s'f' 4:5 4:1 s'g' 4:6 4:1 s'h' 4:7 1:1 s'i' 4:8 s'' s'j' 4:10 8:1 s'k' 4:11 8:1 "
    "s'l' 4:12 8:1 s'm' 4:9 4:12 8:1 8:1 s't' 4:1 8:256 4:12 8:0 a:32 z:144",
    "'GGUF' 4:3 8:1 8:3 " SPLIT "s't' 4:4 8:2 8:1 8:1 8:1 4:0 8:0",
};

/* Return the bytes of the header of a good file; 0 if there is none. */
static size_t fuzz_gguf_head(const uint8_t *p, size_t n)
{
    struct weights *w = table_new("file.gguf", "gguf");
    struct mapping m = { .p = p, .n = n };
    CHECK(w);
    const uint8_t *data = p;
    if (n && gguf_read_alone(w, &m, false, NULL) == OK)
        data = weights_tensor(w, 0)->data;
    weights_close(w);
    return (size_t)(data - p);
}

static const char *const heads[] = { "q4_k_m", "q2_k", "iq4_xs", "bf16" };

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    size_t n = sizeof(texts) / sizeof(*texts), nheads = sizeof(heads) / sizeof(*heads);
    char name[64];
    if (i < n)
        return malformed_assemble(out, room, texts[i]);
    if (i - n >= nheads)
        return 0;
    snprintf(name, sizeof(name), "weights/kquants/%s.gguf", heads[i - n]);
    return fuzz_gguf_head(out, fuzz_data(out, room, name));
}
