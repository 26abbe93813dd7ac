/* t_imatrix.c - importance matrices: both forms by hand, what is refused, every cut and every
 * failing allocation. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "tests/support/torture.h"
#include "weights/gguf_write.h"
#include "weights/imatrix.h"

static char path[64];

/* A file in the older form. */
static struct {
    unsigned char p[1024];
    size_t n;
} old;

static void put_number(uint32_t v)
{
    memcpy(old.p + old.n, &v, sizeof(v)); /* these tests run on little-endian machines, as all do */
    old.n += sizeof(v);
}

static void put_entry(const char *name, uint32_t calls, const float *x, uint32_t n)
{
    put_number((uint32_t)strlen(name));
    memcpy(old.p + old.n, name, strlen(name));
    old.n += strlen(name);
    put_number(calls);
    put_number(n);
    memcpy(old.p + old.n, x, n * sizeof(*x));
    old.n += n * sizeof(*x);
}

static const float two[2] = { 1, 3 }, zeros[2], four[4] = { 0, 0, 8, 0 };

static void make_old(void)
{
    old.n = 0;
    put_number(3);
    put_entry("b.weight", 7, two, 2);
    put_entry("zero", 1, zeros, 2);
    put_entry("a.weight", 7, four, 4);
}

static int open_bytes(struct imatrix **m, struct err *err)
{
    spill(path, old.p, old.n);
    return imatrix_open(m, path, err);
}

/* Averages are 2 and 2; zeros rise to 1/1000. */
static void check_contents(const struct imatrix *m)
{
    const struct imatrix_entry *a = imatrix_find(m, "a.weight"), *b = imatrix_find(m, "b.weight");
    CHECK(imatrix_count(m) == 2 && a && b && a->n == 4 && b->n == 2);
    CHECK(b->weights[0] == 0.5f && b->weights[1] == 1.5f);
    CHECK(a->weights[0] == 0.001f && a->weights[2] == 4);
    CHECK(!imatrix_find(m, "zero") && !imatrix_find(m, "") && !imatrix_find(m, "c"));
}

static void test_old(void)
{
    struct imatrix *m;
    struct err err;
    make_old();
    CHECK(open_bytes(&m, &err) == OK && imatrix_chunks(m) == 0 && !imatrix_texts(m));
    check_contents(m);
    imatrix_close(m);
    size_t without = old.n;
    put_number(42);
    put_number(4);
    memcpy(old.p + old.n, "text", 4);
    old.n += 4;
    CHECK(open_bytes(&m, &err) == OK && imatrix_chunks(m) == 42 && !imatrix_chunk_size(m));
    CHECK(imatrix_texts(m) == 1 && imatrix_text(m, 0).n == 4 && !imatrix_is_gguf(m));
    CHECK(!strcmp(imatrix_at(m, 1)->name, "b.weight"));
    check_contents(m);
    imatrix_close(m);
    while (old.n-- > 0) { /* every cut, except that before the optional end */
        if (old.n == without)
            continue;
        CHECK(open_bytes(&m, &err) == ERR_FORMAT && !m && strstr(err.msg, path));
    }
}

static void test_old_refused(void)
{
    struct imatrix *m;
    struct err err;
    static const float bad[] = { -1, NAN, INFINITY, -INFINITY };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        const float x[2] = { 1, bad[i] };
        old.n = 0;
        put_number(1);
        put_entry("w", 1, x, 2);
        CHECK(open_bytes(&m, &err) == ERR_FORMAT &&
              strstr(err.msg, ": w: expected sums of squares"));
    }
    old.n = 0;
    put_number(1);
    put_entry("zero", 1, zeros, 2);
    CHECK(open_bytes(&m, &err) == ERR_FORMAT && strstr(err.msg, "found no values"));
    old.n = 0;
    put_number(2);
    put_entry("w", 1, two, 2);
    put_entry("w", 1, two, 2);
    CHECK(open_bytes(&m, &err) == ERR_FORMAT && strstr(err.msg, "found two"));
    make_old();
    for (size_t i = 0; i < 8 * old.n; i++) { /* every flipped bit is read or refused */
        old.p[i / 8] ^= (unsigned char)(1 << i % 8);
        int code = open_bytes(&m, &err);
        CHECK(code == OK || (code == ERR_FORMAT && !m));
        imatrix_close(m);
        old.p[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    CHECK(imatrix_open(&m, "/nonexistent", &err) == ERR_IO && !m);
}

static int write_two(struct err *err)
{
    const struct imatrix_sums sums[] = { { "b.weight", two, 2, 1024 },
                                         { "zero", zeros, 2, 0 },
                                         { "a.weight", four, 4, 1024 } };
    return imatrix_write(path, sums, 3, "text", 2, 512, err);
}

static void test_gguf(void)
{
    struct imatrix *m;
    struct weights *w;
    struct err err;
    uint64_t size = 0;
    CHECK(write_two(&err) == OK && imatrix_open(&m, path, &err) == OK && imatrix_chunks(m) == 2);
    check_contents(m);
    CHECK(imatrix_is_gguf(m) && imatrix_chunk_size(m) == 512 && imatrix_texts(m) == 1);
    CHECK(imatrix_text(m, 0).n == 4 && memcmp(imatrix_text(m, 0).p, "text", 4) == 0);
    imatrix_close(m);
    CHECK(weights_open(&w, path, &err) == OK && weights_u64(w, "imatrix.chunk_size", &size));
    const struct kv *text = weights_key(w, "imatrix.datasets");
    const struct tensor *t = weights_find(w, "a.weight.in_sum2");
    const struct tensor *c = weights_find(w, "a.weight.counts");
    CHECK(size == 512 && text && text->count == 1 && text->strs[0].n == 4);
    CHECK(t && t->ndim == 1 && t->shape[0] == 4);
    CHECK(memcmp(t->data, four, sizeof(four)) == 0);
    CHECK(c && c->ndim == 1 && c->bytes == 4 && *(const float *)c->data == 1024);
    weights_close(w);
}

/* Write a GGUF file with the given type and the tensors "w.in_sum2" [parts][cols] and, unless
 * counts is 0, "w.counts" [counts][1]. */
static void write_gguf(const char *type, size_t parts, size_t cols, size_t counts, int kind)
{
    static const float x[8] = { 1, 3, 0, 0, 5, 5, 5, 5 };
    struct ggufw *g;
    struct err err;
    CHECK(ggufw_open(&g, path, &err) == OK);
    if (type)
        ggufw_str(g, "general.type", type);
    ggufw_tensor(g, "w.in_sum2", kind, 2, (const size_t[]){ parts, cols });
    if (counts)
        ggufw_tensor(g, "w.counts", W_F32, 2, (const size_t[]){ counts, 1 });
    ggufw_data(g, x, parts * cols * (kind == W_F32 ? 4 : 2));
    ggufw_data(g, x, counts * 4);
    CHECK(ggufw_close(g, true, &err) == OK);
}

static void test_gguf_kinds(void)
{
    struct imatrix *m;
    struct err err;
    write_gguf("imatrix", 3, 2, 3, W_F32); /* experts: each has an average of its own */
    CHECK(imatrix_open(&m, path, &err) == OK);
    const struct imatrix_entry *e = imatrix_find(m, "w");
    CHECK(e && e->n == 6 && e->weights[0] == 0.5f && e->weights[1] == 1.5f);
    CHECK(e->weights[2] == 1 && e->weights[3] == 1 && e->weights[4] == 1);
    imatrix_close(m);
    write_gguf("model", 1, 2, 1, W_F32);
    CHECK(imatrix_open(&m, path, &err) == ERR_FORMAT && strstr(err.msg, "imatrix, found model"));
    write_gguf(NULL, 1, 2, 1, W_F32);
    CHECK(imatrix_open(&m, path, &err) == ERR_FORMAT && strstr(err.msg, "found nothing"));
    write_gguf("imatrix", 1, 2, 0, W_F32);
    CHECK(imatrix_open(&m, path, &err) == ERR_FORMAT && strstr(err.msg, "w.counts"));
    write_gguf("imatrix", 1, 4, 3, W_F32);
    CHECK(imatrix_open(&m, path, &err) == ERR_FORMAT && strstr(err.msg, "w.in_sum2"));
    write_gguf("imatrix", 1, 4, 1, W_F16);
    CHECK(imatrix_open(&m, path, &err) == ERR_FORMAT && strstr(err.msg, "expected F32"));
}

/* Whatever allocation fails, nothing leaks and nothing is left beside the file. */
static void test_memory(void)
{
    struct imatrix *m;
    struct err err;
    make_old();
    spill(path, old.p, old.n);
    for (int form = 0; form < 3; form++) {
        int reached = 1, code;
        for (long n = 1; reached; n++) {
            torture_begin(n);
            m = NULL;
            code = form == 2 ? write_two(&err) : imatrix_open(&m, path, &err);
            reached = torture_end();
            CHECK(reached ? code == ERR_NOMEM && !m : code == OK);
            imatrix_close(m);
            CHECK(torture_live() == 0);
        }
        if (form == 0)
            CHECK(write_two(&err) == OK);
    }
}

int main(void)
{
    snprintf(path, sizeof(path), "/tmp/t_imatrix.%ld", (long)getpid());
    test_old();
    test_old_refused();
    test_gguf();
    test_gguf_kinds();
    test_memory();
    unlink(path);
    return 0;
}
