#include "tests/fuzz/fuzz_text.h"

#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

void fuzz_text_open(const char *path)
{
    static const char text[] = "abc <|im_end|> <x>\n12 \xc3\xa9\xff aab bcc";
    struct err err = { "" };
    struct tokenizer *t;
    fuzz_begin();
    int code = tokenizer_open_path(&t, path, &err);
    if (code == OK) {
        uint32_t *ids;
        size_t n, sum = 0, bytes;
        CHECK(tokenizer_encode(t, &ids, &n, text, sizeof(text) - 1, true, &err) == OK);
        for (size_t i = 0; i < n; i++)
            CHECK(ids[i] < tokenizer_size(t) && tokenizer_bytes(t, ids[i], &bytes));
        for (uint32_t id = 0; id < tokenizer_size(t); id++)
            if (tokenizer_bytes(t, id, &bytes))
                sum += bytes;
        CHECK(sum < SIZE_MAX &&
              (!tokenizer_template(t) || strlen(tokenizer_template(t)) < SIZE_MAX));
        free(ids);
        tokenizer_close(t);
    }
    fuzz_end(code, &err);
}

size_t fuzz_text_vocab(uint8_t *out, size_t room, const char *end)
{
    size_t n = fuzz_tiny_file(out, room, "vocab.json"), bytes = strlen(end);
    while (n && out[n - 1] != '}')
        n--;
    CHECK(n && n + bytes < room);
    memcpy(out + n - 1, end, bytes);
    return n - 1 + bytes;
}
