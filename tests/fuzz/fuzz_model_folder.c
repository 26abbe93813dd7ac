/* fuzz_model_folder.c - all of a model in a Hugging Face folder: config.json, its weights and its
 * tokenizer. */
#include "tests/fuzz/fuzz.h"

static const char *const files[FUZZ_PARTS] = { "config.json", "vocab.json", "merges.txt",
                                               "model.safetensors" };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    fuzz_files(files, FUZZ_PARTS, p, n);
    fuzz_open(fuzz_folder());
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    static uint8_t file[FUZZ_ROOM];
    size_t n = 0;
    for (size_t k = 0; i == 0 && k < FUZZ_PARTS; k++)
        n = fuzz_join(out, n, room, file, fuzz_tiny_file(file, sizeof(file), files[k]));
    return n;
}
