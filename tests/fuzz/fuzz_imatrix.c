/* fuzz_imatrix.c - importance matrices, in both forms. */
#include <math.h>

#include "kernels/sys/base.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/malformed.h"
#include "weights/imatrix.h"

const bool fuzz_whole = false;

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err err = { "" };
    struct imatrix *m;
    fuzz_write("a.imatrix", p, n);
    fuzz_begin();
    int code = imatrix_open(&m, fuzz_path("a.imatrix"), &err);
    CHECK((code == OK) == (m != NULL));
    const struct imatrix_entry *e = m ? imatrix_find(m, "a.weight") : NULL;
    for (size_t i = 0; e && i < e->n; i++)
        CHECK(e->weights[i] > 0 && isfinite(e->weights[i]));
    size_t bytes = 0;
    for (size_t i = 0; m && i < imatrix_texts(m); i++)
        for (size_t k = 0; k < imatrix_text(m, i).n; k++)
            bytes += imatrix_text(m, i).p[k] != 0;
    CHECK(bytes <= n);
    imatrix_close(m);
    fuzz_end(code, &err);
    return 0;
}

/* The older form with two matrices, the older form with what llama.cpp appends, and GGUF. */
static const char *const texts[] = {
    "4:2 4:8 'a.weight' 4:1 4:2 4:0x3f800000 4:0x40400000 "
    "4:8 'b.weight' 4:3 4:4 4:0 4:0 4:0x41000000 4:0",
    "4:1 4:8 'a.weight' 4:1 4:2 4:0x3f800000 4:0x40400000 4:5 4:8 'text.txt'",
    "'GGUF' 4:3 8:2 8:4 s'general.type' 4:8 s'imatrix' s'imatrix.datasets' 4:9 4:8 8:1 s'x' "
    "s'imatrix.chunk_count' 4:4 4:5 s'imatrix.chunk_size' 4:4 4:512 "
    "s'a.weight.in_sum2' 4:2 8:4 8:1 4:0 8:0 s'a.weight.counts' 4:2 8:1 8:1 4:0 8:32 a:32 "
    "4:0x3f800000 4:0x40400000 4:0 4:0x3f800000 a:32 4:0x41000000 a:32",
};

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    return i < sizeof(texts) / sizeof(*texts) ? malformed_assemble(out, room, texts[i]) : 0;
}
