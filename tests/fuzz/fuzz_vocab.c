/* fuzz_vocab.c - vocab.json, merges.txt and tokenizer_config.json of a folder. */
#include "tests/fuzz/fuzz.h"

static const char *const files[] = { "vocab.json", "merges.txt", "tokenizer_config.json" };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    fuzz_files(files, 3, p, n);
    fuzz_text_open(fuzz_folder());
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    static const char *const ends[][2] = {
        { "#version: 0.2\na b\nb c\n",
          "{\"added_tokens_decoder\":{\"258\":{\"content\":\"<|im_end|>\",\"special\":true},"
          "\"260\":{\"content\":\"<x>\"}},\"eos_token\":\"<|im_end|>\"}" },
        { "a b\n", "{\"chat_template\":[{\"name\":\"tool\",\"template\":\"x\"},"
                   "{\"name\":\"default\",\"template\":\"{{ messages }}\"}]}" },
    };
    if (i >= sizeof(ends) / sizeof(*ends))
        return 0;
    size_t n = fuzz_text_vocab(out, room, ",\"ab\":256,\"bc\":257}");
    for (size_t k = 0; k < 2; k++)
        n = fuzz_join(out, n, room, ends[i][k], strlen(ends[i][k]));
    return n;
}
