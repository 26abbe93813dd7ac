#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "kernels/kernels.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "model/text/vocabulary.h"
#include "tests/support/gguf_model.h"
#include "tests/support/letters.h"
#include "tests/support/tiny.h"
#include "weights/gguf_write.h"
#include "weights/table.h"

static char folder[64];
static struct {
    char path[160];
    const char *name;
    int fd;
} files[FUZZ_PARTS];

void fuzz_begin(void)
{
    torture_begin(0);
}

void fuzz_end(int code, const struct err *err)
{
    CHECK(code == OK || code == ERR_FORMAT || code == ERR_IO);
    CHECK(code == OK || (err->msg[0] && !strchr(err->msg, '\n')));
    CHECK(torture_live() == 0);
}

void fuzz_table(struct weights *w, int code, struct err *err)
{
    unsigned sum = 0;
    if (code == OK)
        code = table_index(w, err);
    for (size_t i = 0; code == OK && i < weights_ntensors(w); i++) {
        const struct tensor *t = weights_tensor(w, i);
        const unsigned char *p = t->data;
        sum += p && t->bytes ? (unsigned)p[0] + p[t->bytes - 1] : 0;
        CHECK(weights_find(w, t->name) == t);
    }
    for (size_t i = 0; code == OK && i < weights_nkv(w); i++) {
        const struct kv *kv = weights_kv(w, i);
        for (size_t k = 0; kv->strs && k < kv->count; k++)
            sum += kv->strs[k].n ? kv->strs[k].p[kv->strs[k].n - 1] == 'a' : 0;
    }
    CHECK(sum < UINT32_MAX);
    weights_close(w);
    fuzz_end(code, err);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static uint8_t seed[FUZZ_ROOM];
    char path[256];
    struct stat st;
    for (int i = 1; i < *argc; i++)
        for (size_t k = 0, n; stat((*argv)[i], &st) == 0 && S_ISDIR(st.st_mode); k++) {
            if ((n = fuzz_seed(k, seed, sizeof(seed))) == 0)
                break;
            snprintf(path, sizeof(path), "%s/seed-%zu", (*argv)[i], k);
            spill(path, seed, n);
        }
    return 0;
}

static const char separator[] = "\n====\n";

size_t fuzz_join(uint8_t *seed, size_t n, size_t room, const void *p, size_t bytes)
{
    size_t skip = n ? sizeof(separator) - 1 : 0;
    CHECK(n + skip + bytes <= room);
    memcpy(seed + n, separator, skip);
    if (bytes)
        memcpy(seed + n + skip, p, bytes);
    return n + skip + bytes;
}

static void fuzz_remove(void)
{
    for (size_t i = 0; i < FUZZ_PARTS; i++)
        if (files[i].name)
            unlink(files[i].path);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (*folder)
        return folder;
    snprintf(folder, sizeof(folder), "%s/mizzle-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "build");
    CHECK(mkdtemp(folder));
    atexit(fuzz_remove);
    return folder;
}

/* Return the number of a file, which is created at its first use. */
static size_t fuzz_number(const char *name)
{
    size_t i = 0;
    while (i < FUZZ_PARTS && files[i].name && strcmp(files[i].name, name) != 0)
        i++;
    CHECK(i < FUZZ_PARTS);
    if (!files[i].name) {
        files[i].name = name;
        snprintf(files[i].path, sizeof(files[i].path), "%s/%s", fuzz_folder(), name);
        files[i].fd = open(files[i].path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(files[i].fd >= 0);
    }
    return i;
}

const char *fuzz_path(const char *name)
{
    return files[fuzz_number(name)].path;
}

void fuzz_write(const char *name, const uint8_t *p, size_t n)
{
    int fd = files[fuzz_number(name)].fd;
    CHECK(ftruncate(fd, (off_t)n) == 0 && (!n || pwrite(fd, p, n, 0) == (ssize_t)n));
}

size_t fuzz_tiny_file(uint8_t *out, size_t room, const char *name)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", tiny_make(), name);
    size_t n = slurp(path, out, room);
    CHECK(n && n < room);
    return n;
}

/* The keys of a tokenizer: the bytes, and one more piece. */
static void fuzz_tokenizer(struct ggufw *g)
{
    static char letters[256][5];
    static int32_t kinds[257];
    struct str pieces[257] = { [256] = { "ab", 2 } };
    for (unsigned b = 0; b < 257; b++) {
        kinds[b] = PIECE_NORMAL;
        if (b < 256)
            pieces[b] = (struct str){ letters[b], letter_of(letters[b], b) };
    }
    ggufw_str(g, "tokenizer.ggml.model", "gpt2");
    ggufw_str(g, "tokenizer.ggml.pre", "qwen2");
    ggufw_strs(g, "tokenizer.ggml.tokens", pieces, 257);
    ggufw_i32s(g, "tokenizer.ggml.token_type", kinds, 257);
    ggufw_strs(g, "tokenizer.ggml.merges", &(struct str){ "a b", 3 }, 1);
}

size_t fuzz_tiny_gguf(uint8_t *out, size_t room, int type)
{
    const struct gguf_shape shape = { .layers = 1,
                                      .hidden = 32,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .head_dim = 16,
                                      .ffn = 64,
                                      .vocab = 257,
                                      .tied = true,
                                      .context = 64,
                                      .base = 1e4f };
    const char *path = fuzz_path("seed.gguf");
    gguf_model_write(path, &shape, type, fuzz_tokenizer);
    size_t n = slurp(path, out, room);
    CHECK(n && n < room);
    return n;
}

size_t fuzz_data(uint8_t *out, size_t room, const char *name)
{
    const char *path = test_data("%s", name);
    return access(path, R_OK) == 0 ? slurp(path, out, room) : 0;
}

void fuzz_files(const char *const *names, size_t count, const uint8_t *p, size_t n)
{
    size_t skip = sizeof(separator) - 1;
    for (size_t i = 0; i < count; i++) {
        size_t end = 0;
        while (end < n && (n - end < skip || memcmp(p + end, separator, skip) != 0))
            end++;
        fuzz_write(names[i], p, end);
        size_t used = end < n ? end + skip : n;
        p += used;
        n -= used;
    }
}

void fuzz_open(const char *path)
{
    struct err err = { "" }, no_text = { "" };
    struct weights *w;
    struct model *m = NULL;
    struct tokenizer *t = NULL;
    fuzz_begin();
    int code = weights_open(&w, path, &err);
    if (code == OK) {
        int text = tokenizer_open(&t, w, &no_text);
        CHECK(text == OK || text == ERR_FORMAT || text == ERR_IO);
        code = model_open(&m, w, &kernels_scalar, NULL, NULL, NULL, &err);
        if (m)
            model_fingerprint(m, t);
        model_close(m);
        tokenizer_close(t);
        weights_close(w);
    }
    fuzz_end(code, &err);
}

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
