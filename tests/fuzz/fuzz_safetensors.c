/* fuzz_safetensors.c - the header of a safetensors file, in memory. */
#include "tests/fuzz/fuzz.h"
#include "weights/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err err = { "" };
    struct mapping m = { .p = p, .n = n };
    fuzz_begin();
    struct weights *w = table_new("file", "safetensors");
    CHECK(w);
    fuzz_table(w, safetensors_read(w, &m, "file", &err), &err);
    return 0;
}

static const char *const headers[] = {
    "{}",
    "{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}",
    "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\\u00e9\\n\"},"
    "\"b\":{\"dtype\":\"U8\",\"shape\":[1,2],\"data_offsets\":[3,5]},"
    "\"a\":{\"shape\":[3],\"data_offsets\":[0,3],\"dtype\":\"BOOL\"}}",
    ("{ \"\\ud83d\\ude00\" : {\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}, "
     "\"none\":{\"dtype\":\"I64\",\"shape\":[0,7],\"data_offsets\":[4,4]} } "),
};
static const size_t sizes[] = { 0, 4, 5, 4 };

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    if (i >= sizeof(headers) / sizeof(*headers))
        return 0;
    size_t n = strlen(headers[i]);
    CHECK(8 + n + sizes[i] <= room);
    memset(out, 0, 8 + n + sizes[i]);
    out[0] = (uint8_t)n;
    out[1] = (uint8_t)(n >> 8);
    memcpy(out + 8, headers[i], n);
    return 8 + n + sizes[i];
}
