/* t_safetensors.c - headers that must be read, deep ones, the writer, torture.
 * t_malformed_folder.c has those that are refused, fuzz/fuzz_safetensors.c any others. */
#include "tests/weights/opening.h"
#include "router/learn/safetensors_write.h"
#include "weights/table.h"

static struct err err;

/* Read a file from memory; on success *out (if out is not NULL) owns it. */
static int read_memory(struct weights **out, const unsigned char *p, size_t n)
{
    struct weights *w = table_new("file", "safetensors");
    CHECK(w);
    struct mapping m = { .p = p, .n = n };
    int code = safetensors_read(w, &m, "file", &err);
    if (code == OK)
        code = table_index(w, &err);
    CHECK(code == OK || (code == ERR_FORMAT && err.msg[0] && !strchr(err.msg, '\n')));
    if (code == OK && out)
        *out = w;
    else
        weights_close(w);
    return code;
}

/* Read a header with `bytes` bytes of data after it, in memory of exactly their size. */
static int read_text(struct weights **out, unsigned char **memory, const char *header, size_t bytes)
{
    size_t n = strlen(header);
    unsigned char *p = malloc(8 + n + bytes);
    CHECK(p);
    for (size_t i = 0; i < 8; i++)
        p[i] = (unsigned char)((uint64_t)n >> (8 * i));
    memcpy(p + 8, header, n);
    for (size_t i = 0; i < bytes; i++)
        p[8 + n + i] = (unsigned char)i;
    int code = read_memory(out, p, 8 + n + bytes);
    if (memory)
        *memory = p;
    else
        free(p);
    return code;
}

#define T(shape, a, b) "{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":[" a "," b "]}"

static void test_good(void)
{
    static const struct {
        const char *header;
        size_t bytes, tensors;
        const char *name; /* of a tensor; what is its first byte */
        unsigned char first;
    } cases[] = {
        { "{}", 0, 0, NULL, 0 },
        { " {\n} ", 0, 0, NULL, 0 },
        { "{\"__metadata__\":{}}", 0, 0, NULL, 0 },
        { "{\"a\":" T("[]", "0", "1") "}", 1, 1, "a", 0 },
        { "{\"a\":" T("[2,0]", "0", "0") "}", 0, 1, NULL, 0 },
        { "{\"b\":" T("[2]", "3", "5") ",\"a\":" T("[3]", "0", "3") "}", 5, 2, "b", 3 },
        { "{\"\\u00e9\\ud83d\\ude00\\n\":" T("[1]", "0", "1") "}", 1, 1,
          "\xc3\xa9\xf0\x9f\x98\x80\n", 0 },
        { "{\"a\":{\"data_offsets\":[0,4],\"shape\":[2],\"dtype\":\"F16\"}}", 4, 1, "a", 0 },
        { "{\"a\":" T("[1,1,1,1,1,1,1,1]", "0", "1") "}", 1, 1, "a", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *name = cases[i].name;
        struct weights *w;
        unsigned char *p;
        CHECK(read_text(&w, &p, cases[i].header, cases[i].bytes) == OK);
        CHECK(weights_ntensors(w) == cases[i].tensors);
        const struct tensor *t = name ? weights_find(w, name) : NULL;
        CHECK(!name || (t && *(const unsigned char *)t->data == cases[i].first));
        weights_close(w);
        free(p);
    }
}

/* Deep nesting and long runs must cost neither stack nor memory. */
static void test_deep(void)
{
    static char text[1 << 20];
    memset(text, '[', sizeof(text) - 1);
    CHECK(read_text(NULL, NULL, text, 0) == ERR_FORMAT);
    memcpy(text, "{\"a\":", 5);
    CHECK(read_text(NULL, NULL, text, 0) == ERR_FORMAT);
    memset(text, ' ', sizeof(text) - 1);
    CHECK(read_text(NULL, NULL, text, 0) == ERR_FORMAT);
}

static const float values[6] = { 1, 2, 3, 4, 5, 6 };

static int write_sample(const void *path)
{
    const struct tensor t[3] = {
        { .name = "b\"\n",
          .type = W_F32,
          .ndim = 2,
          .shape = { 2, 3 },
          .data = values,
          .bytes = 24 },
        { .name = "a", .type = W_F32, .ndim = 1, .shape = { 0 } },
        { .name = "c", .type = W_F16, .ndim = 0, .data = values, .bytes = 2 },
    };
    const char *const meta[] = { "kind", "router", "x", "\xc3\xa9", NULL };
    int code = safetensors_write(path, t, 3, meta, &err);
    return code == ERR_IO ? ERR_NOMEM : code; /* what the C library says of its own memory */
}

static void test_writer(const char *path)
{
    struct weights *w;
    struct str s;
    CHECK(write_sample(path) == OK);
    CHECK(weights_open(&w, path, &err) == OK && strcmp(weights_format(w), "safetensors") == 0);
    CHECK(weights_ntensors(w) == 3 && weights_str(w, "kind", &s) && s.n == 6);
    const struct tensor *b = weights_want(w, "b\"\n", 2, 3, &err);
    CHECK(b && (uintptr_t)b->data % 8 == 0 && memcmp(b->data, values, 24) == 0);
    CHECK(weights_find(w, "c")->ndim == 0 && weights_find(w, "a")->bytes == 0);
    weights_close(w);
    CHECK(safetensors_write("/nonexistent/x", NULL, 0, NULL, &err) == ERR_IO);
    CHECK(safetensors_write(path, NULL, 0, NULL, &err) == OK);
    CHECK(weights_open(&w, path, &err) == OK && !weights_ntensors(w) && !weights_nkv(w));
    weights_close(w);
}

int main(void)
{
    const char *path = in_scratch("a.safetensors");
    test_good();
    test_deep();
    test_writer(path);
    torture_some(write_sample, path);
    torture_each(open_weights, path);
    return 0;
}
