/* fuzz_tokenizer_json.c - tokenizer.json of a folder. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    fuzz_write("tokenizer.json", p, n);
    fuzz_text_open(fuzz_folder());
    return 0;
}

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    static const char *const ends[] = {
        "\"merges\":[]},\"added_tokens\":[]}",
        "\"merges\":[\"a "
        "b\",[\"b\",\"c\"]]},\"added_tokens\":[{\"id\":258,\"content\":\"<|im_end|>\","
        "\"special\":true},{\"id\":259,\"content\":\"<x>\",\"lstrip\":true,\"rstrip\":true,"
        "\"normalized\":true}],\"post_processor\":{\"single\":[{\"SpecialToken\":{\"id\":\"<x>\"}}]"
        "}}",
    };
    static const char begin[] = "{\"version\":\"1.0\",\"model\":{\"type\":\"BPE\",\"vocab\":";
    if (i >= sizeof(ends) / sizeof(*ends))
        return 0;
    size_t n = strlen(begin);
    memcpy(out, begin, n);
    n += fuzz_text_vocab(out + n, room - n, ",\"ab\":256,\"bc\":257}");
    int rest = snprintf((char *)out + n, room - n, ",%s", ends[i]);
    CHECK(rest > 0 && (size_t)rest < room - n);
    return n + (size_t)rest;
}
