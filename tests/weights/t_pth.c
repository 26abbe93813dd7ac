/* t_pth.c - PyTorch files: small ones made here in both forms, every refusal of the pickle machine,
 * and fuzzing. t_pth_data.c reads real ones. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "tests/support/files.h"
#include "tests/support/torture.h"
#include "weights/pickle.h"
#include "weights/pth.h"
#include "weights/table.h"
#include "weights/zip.h"

enum { FUZZ_ROUNDS = 20000 };

static struct err err;
static const char *path;

struct buffer {
    unsigned char p[8192];
    size_t n;
};

static void add(struct buffer *b, const void *p, size_t n)
{
    CHECK(b->n + n <= sizeof(b->p));
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void add_number(struct buffer *b, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        add(b, &(unsigned char){ (unsigned char)(v >> (8 * i)) }, 1);
}

#define ADD(b, text) add(b, text, sizeof(text) - 1)

/* The pickle of a [2][2] float tensor "w" on storage "0" of four values. `tail` is what the legacy
 * form appends to a persistent id. */
#define TENSOR_PICKLE(tail)                                            \
    "\x80\x02}(X\x08\0\0\0module.wctorch._utils\n_rebuild_tensor_v2\n" \
    "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"            \
    "0X\x03\0\0\0cpuK\x04" tail "tQK\0K\x02K\x02\x86K\x02K\x01\x86"    \
    "\x89"                                                             \
    "ccollections\nOrderedDict\n)RtRu."

static const float values[4] = { 1, -2, 3, 0.5f };

/* Write a legacy file with that tensor. */
static void make_legacy(struct buffer *b)
{
    b->n = 0;
    ADD(b, "\x80\x02\x8a\x0al\xfc\x9c"
           "F\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}(X\x0d\0\0\0little_endian\x88u.");
    ADD(b, TENSOR_PICKLE("N"));
    ADD(b, "\x80\x02](X\x01\0\0\0"
           "0e.");
    add_number(b, 4, 8);
    add(b, values, sizeof(values));
}

/* Append one member; its row of the central directory goes to dir. */
static void add_member(struct buffer *b, struct buffer *dir, const char *name, const void *p,
                       size_t n, bool deflated)
{
    unsigned char packed[4096];
    size_t at = b->n, m = n;
    memcpy(packed, p, n);
    if (deflated) {
        z_stream s = { .next_in = (unsigned char *)(uintptr_t)p, .avail_in = (uInt)n };
        CHECK(deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
        s.next_out = packed;
        s.avail_out = sizeof(packed);
        CHECK(deflate(&s, Z_FINISH) == Z_STREAM_END);
        m = s.total_out;
        deflateEnd(&s);
    }
    struct buffer common = { .n = 0 };
    add_number(&common, 20, 2);
    add_number(&common, 0, 2);
    add_number(&common, deflated ? 8 : 0, 2);
    add_number(&common, 0, 4);
    add_number(&common, crc32(0, p, (uInt)n), 4);
    add_number(&common, m, 4);
    add_number(&common, n, 4);
    add_number(&common, strlen(name), 2);
    add_number(&common, 0, 2);
    ADD(b, "PK\3\4");
    add(b, common.p, common.n);
    add(b, name, strlen(name));
    add(b, packed, m);
    ADD(dir, "PK\1\2\x14\0");
    add(dir, common.p, common.n);
    add_number(dir, 0, 8);
    add_number(dir, 0, 2);
    add_number(dir, at, 4);
    add(dir, name, strlen(name));
}

/* Write a zip file with this pickle and one storage. */
static void make_zip(struct buffer *b, const void *pickle, size_t n, bool deflated)
{
    static struct buffer dir;
    b->n = dir.n = 0;
    add_member(b, &dir, "x/data.pkl", pickle, n, deflated);
    add_member(b, &dir, "x/byteorder", "little", 6, false);
    add_member(b, &dir, "x/data/0", values, sizeof(values), deflated);
    size_t at = b->n;
    add(b, dir.p, dir.n);
    ADD(b, "PK\5\6\0\0\0\0");
    add_number(b, 3, 2);
    add_number(b, 3, 2);
    add_number(b, dir.n, 4);
    add_number(b, at, 4);
    add_number(b, 0, 2);
}

static int open_bytes(struct weights **out, const struct buffer *b)
{
    spill(path, b->p, b->n);
    int code = pth_open(out, path, &err);
    CHECK((code == OK) == (*out != NULL) && (code == OK || !strchr(err.msg, '\n')));
    return code;
}

static void test_small(void)
{
    static struct buffer b;
    struct weights *p;
    for (int form = 0; form < 3; form++) {
        if (form == 0)
            make_legacy(&b);
        else
            make_zip(&b, TENSOR_PICKLE(""), sizeof(TENSOR_PICKLE("")) - 1, form == 2);
        CHECK(open_bytes(&p, &b) == OK && weights_ntensors(p) == 1);
        const struct tensor *t = weights_find(p, "w"); /* without "module." */
        CHECK(t && t == weights_tensor(p, 0) && t->type == W_F32 && t->ndim == 2 &&
              t->shape[0] == 2);
        CHECK(memcmp(t->data, values, sizeof(values)) == 0);
        weights_close(p);
        for (size_t n = b.n, cut = 0; cut < n; cut += cut < 64 ? 1 : 13) {
            b.n = cut;
            CHECK(open_bytes(&p, &b) == ERR_FORMAT);
        }
    }
}

/* A key that occurs twice in a legacy file's list is refused, because each occurrence would be
 * looked up again. */
static void test_twice(void)
{
    static struct buffer b, once;
    struct weights *p;
    make_legacy(&once);
    size_t list = once.n - sizeof(values) - 8 - 2; /* after the key, before "e." */
    CHECK(memcmp(once.p + list, "e.", 2) == 0);
    b.n = 0;
    add(&b, once.p, list);
    ADD(&b, "X\x01\0\0\0"
            "0");
    add(&b, once.p + list, once.n - list);
    add_number(&b, 4, 8);
    add(&b, values, sizeof(values));
    CHECK(open_bytes(&p, &b) == ERR_FORMAT && strstr(err.msg, "twice"));
}

/* A member is inflated and verified once, however often a pickle names it. */
static void test_member_once(void)
{
    static struct buffer b;
    const unsigned char *first, *again;
    size_t n;
    struct zip z;
    make_zip(&b, TENSOR_PICKLE(""), sizeof(TENSOR_PICKLE("")) - 1, true);
    struct weights *w = table_new("file", "pth");
    struct mapping m = { .p = b.p, .n = b.n };
    CHECK(w && zip_open(&z, w, &m, &err) == OK);
    CHECK(zip_read(&z, zip_find(&z, "x/data/0", 8), &first, &n, 64, &err) == OK);
    CHECK(zip_read(&z, zip_find(&z, "x/data/0", 8), &again, &n, 64, &err) == OK);
    CHECK(first == again && n == sizeof(values) && memcmp(again, values, n) == 0);
    weights_close(w);
}

/* Run a pickle in memory of exactly its size, so that a sanitizer sees any byte read beyond it. */
static int run(const void *text, size_t n)
{
    struct weights *w = table_new("file", "pth");
    unsigned char *p = malloc(n ? n : 1);
    struct pval *v, *storages;
    size_t used;
    CHECK(w && p);
    memcpy(p, text, n);
    int code = pickle_run(&v, &storages, &used, w, p, n, "file", &err);
    CHECK(code == OK || (code == ERR_FORMAT && !strchr(err.msg, '\n')));
    CHECK(code != OK || used <= n);
    free(p);
    weights_close(w);
    return code;
}

#define RUN(text) run(text, sizeof(text) - 1)

static const struct {
    const char *text;
    size_t n;
} bad_pickles[] = {
#define BAD(text)              \
    {                          \
        text, sizeof(text) - 1 \
    }
    BAD(""),
    BAD("."),
    BAD("N"),
    BAD("NN."),
    BAD("(."),
    BAD("a."),
    BAD("Na."),
    BAD("]a."),
    BAD("NNa."),
    BAD("e."),
    BAD("](Ns."),
    BAD("}(Nu."),
    BAD("}Ns."),
    BAD("NNNs."),
    BAD("t."),
    BAD("\x85."),
    BAD("N\x87."),
    BAD("(\x85."),
    BAD("q\0."),
    BAD("h\0."),
    BAD("j\0\0\0\1"),
    BAD("Nr\0\0\0\1h\0."),
    BAD("Nr\xff\xff\xff\xff."),
    BAD("Nq"),
    BAD("X\1\0\0\0"),
    BAD("X\xff\xff\xff\xff"
        "a."),
    BAD("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
        "a."),
    BAD("\x8a\xff."),
    BAD("\x8a"),
    BAD("K"),
    BAD("M\0"),
    BAD("J\0\0\0"),
    BAD("0."),
    BAD("1."),
    BAD("2."),
    BAD("(0."),
    BAD("Q."),
    BAD("NQ."),
    BAD(")Q."),
    BAD("NNR."),
    BAD("N)R."),
    BAD("R."),
    BAD("NNb."),
    BAD("]Nb."),
    BAD("c"),
    BAD("ca\n"),
    BAD("\x93."),
    BAD("NN\x93."),
    BAD("\x80\x09N."),
    BAD("i"),
    BAD("o"),
    BAD("\x81"),
    BAD("\x92"),
    BAD("\x82\1"),
    BAD("P0\n."),
    BAD("\xff"),
    BAD("(K\1d."),
    BAD("ctorch\nFloatStorage\n)R."),
    BAD("ctorch\nSize\n)R."),
    BAD("ctorch._utils\n_rebuild_parameter\n)R."),
    BAD("ctorch._utils\n_rebuild_tensor_v2\n)R."),
    BAD("ccollections\nOrderedDict\nN\x85R."),
#undef BAD
};

static void test_machine(void)
{
    CHECK(RUN("N.") == OK && RUN("(K\1K\2l.") == OK && RUN("]q\0h\0a.") == OK);
    CHECK(RUN("]q\0(h\0h\0e.") == OK); /* a list that contains itself is not followed */
    CHECK(RUN("\x80\x04\x95\0\0\0\0\0\0\0\0\x8c\1a\x94\x8c\1b\x94\x86\x94.") == OK);
    CHECK(RUN("\x8a\1\xff.") == OK && RUN("G\0\0\0\0\0\0\0\0.") == OK && RUN("NN0.") == OK);
    for (size_t i = 0; i < sizeof(bad_pickles) / sizeof(*bad_pickles); i++)
        CHECK(run(bad_pickles[i].text, bad_pickles[i].n) == ERR_FORMAT);
    static const char *const evil[] = { "os\nsystem\n",
                                        "posix\nsystem\n",
                                        "builtins\neval\n",
                                        "__builtin__\nprint\n",
                                        "torch\nload\n",
                                        "collections\nOrderedDict2\n",
                                        "torch.storage\n_load_from_bytes\n" };
    for (size_t i = 0; i < sizeof(evil) / sizeof(*evil); i++) {
        char text[128];
        int n = snprintf(text, sizeof(text), "c%s(X%c%c%c%cecho tR.", evil[i], 5, 0, 0, 0);
        CHECK(run(text, (size_t)n) == ERR_FORMAT && strstr(err.msg, "is not allowed"));
        CHECK(strncmp(strstr(err.msg, "global ") + 7, evil[i], strcspn(evil[i], "\n")) == 0);
    }
    CHECK(RUN("X\2\0\0\0osX\6\0\0\0system\x93.") == ERR_FORMAT && strstr(err.msg, "os.system"));
    CHECK(strstr(err.msg, "save its state_dict() instead"));
}

/* Run a megabyte of each opcode: the object budget stops it before memory runs out. */
static void test_budget(void)
{
    static const char ops[] = "N(])}2N\x88t\x94\x85";
    size_t n = 1 << 20;
    char *p = malloc(n);
    CHECK(p);
    for (size_t i = 0; i + 1 < sizeof(ops); i++) {
        memset(p, ops[i], n);
        p[0] = 'N';
        CHECK(run(p, n) == ERR_FORMAT);
    }
    for (size_t i = 0; i < n; i++) /* a list that doubles itself through the memo */
        p[i] = "]q\0(h\0h\0h\0e"[i % 11];
    CHECK(run(p, n) == ERR_FORMAT);
    free(p);
}

/* Change sizes, strides, counts, keys and names in the pickle of a good file. */
static void test_shapes(void)
{
    static struct buffer b;
    static const struct {
        const char *from, *to;
        size_t n;
        const char *says;
    } changes[] = {
        { "K\x02K\x02\x86K\x02K\x01", "K\x02K\x02\x86K\x01K\x02", 9, "in a row" },
        { "K\x02K\x02\x86K\x02K\x01", "K\x02K\x03\x86K\x03K\x01", 9, "fit" },
        { "K\0K\x02K\x02", "K\x01K\x02K\x02", 6, "fit" },
        { "cpuK\x04", "cpuK\x05", 5, "fewer" },
        { "cpuK\x04", "cpuK\x03", 5, "fit" },
        { "X\x01\0\0\0"
          "0",
          "X\x01\0\0\0"
          "1",
          6, "not in the file" },
        { "module.w", "module.\xff", 8, "no text" },
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        struct weights *p;
        unsigned char pickle[sizeof(TENSOR_PICKLE("")) - 1];
        size_t at = 0;
        memcpy(pickle, TENSOR_PICKLE(""), sizeof(pickle));
        while (memcmp(pickle + at, changes[i].from, changes[i].n) != 0)
            at++;
        memcpy(pickle + at, changes[i].to, changes[i].n);
        make_zip(&b, pickle, sizeof(pickle), false);
        CHECK(open_bytes(&p, &b) == ERR_FORMAT);
        CHECK(strstr(err.msg, changes[i].says) || strstr(err.msg, "more than expected"));
    }
}

/* Read every member of a possibly damaged archive. */
static void read_members(unsigned char *p, size_t n)
{
    struct weights *w = table_new("file", "pth");
    struct mapping m = { .p = p, .n = n };
    struct zip z;
    CHECK(w);
    if (zip_open(&z, w, &m, &err) == OK)
        for (size_t i = 0; i < z.n; i++) {
            const unsigned char *q;
            size_t got;
            unsigned sum = 0;
            if (zip_read(&z, &z.entries[i], &q, &got, 1 << 20, &err) == OK)
                for (size_t k = 0; k < got; k++)
                    sum += q[k];
            CHECK(sum < UINT32_MAX);
        }
    weights_close(w);
}

/* Write a letter and two digits into `name`; return it. */
static const char *facts_name(char name[3], char letter, size_t i)
{
    name[0] = letter;
    name[1] = (char)('0' + i / 10);
    name[2] = (char)('0' + i % 10);
    return name;
}

/* Write {"state_dict": TENSORS, "a00": D, "a01": D, ...} with `many` times the same dict of as many
 * numbers; return its size. */
static size_t facts_pickle(unsigned char *to, const char *tensors, size_t n, size_t many)
{
    size_t at = 0;
    char name[3];
#define PUT(text) (memcpy(to + at, text, sizeof(text) - 1), at += sizeof(text) - 1)
    PUT("\x80\x02}(X\x0a\0\0\0state_dict");
    memcpy(to + at, tensors + 2, n - 3); /* without its protocol and its end */
    at += n - 3;
    for (size_t i = 0; i < many; i++) {
        PUT("X\3\0\0\0");
        memcpy(to + at, facts_name(name, 'a', i), 3);
        at += 3;
        if (i) {
            PUT("h\xc8");
            continue;
        }
        PUT("}(");
        for (size_t k = 0; k < many; k++) {
            PUT("X\3\0\0\0");
            memcpy(to + at, facts_name(name, 'b', k), 3);
            at += 3;
            PUT("K\x07");
        }
        PUT("uq\xc8");
    }
    PUT("u.");
    return at;
}

/* What stands beside the tensors are keys; a dict that is named again and again is not read without
 * end. */
static void test_facts(const char *tensors, size_t n)
{
    static struct buffer zip;
    static unsigned char pickle[1 << 14];
    struct weights *w;
    uint64_t seven = 0;
    make_zip(&zip, pickle, facts_pickle(pickle, tensors, n, 60), true);
    CHECK(open_bytes(&w, &zip) == OK && weights_u64(w, "a01.b59", &seven) && seven == 7);
    weights_close(w);
    make_zip(&zip, pickle, facts_pickle(pickle, tensors, n, 70), true);
    CHECK(open_bytes(&w, &zip) == ERR_FORMAT && strstr(err.msg, "4096 values beside the tensors"));
}

/* Fuzz the pickle machine and the zip reader. */
static void test_fuzz(const void *pickle, size_t n)
{
    static struct buffer b;
    make_zip(&b, TENSOR_PICKLE(""), sizeof(TENSOR_PICKLE("")) - 1, true);
    unsigned char *q = malloc(n);
    CHECK(q);
    for (uint64_t round = 0; round < FUZZ_ROUNDS; round++) {
        memcpy(q, pickle, n);
        for (uint64_t k = 0; k < 1 + round % 4; k++)
            q[rand_below(1, round * 8 + k, n)] =
                k % 2 ? (unsigned char)rand_u64(2, round * 8 + k)
                      : ((const unsigned char *)pickle)[rand_below(3, round * 8 + k, n)];
        run(q, round % 3 ? n : rand_below(4, round, n));
        unsigned char *z = malloc(b.n);
        CHECK(z);
        memcpy(z, b.p, b.n);
        for (uint64_t k = 0; k < 1 + round % 3; k++)
            z[rand_below(5, round * 8 + k, b.n)] = (unsigned char)rand_u64(6, round * 8 + k);
        read_members(z, round % 3 ? b.n : rand_below(7, round, b.n));
        free(z);
    }
    free(q);
}

static int open_once(const void *arg)
{
    struct weights *p;
    int code = pth_open(&p, path, &err);
    (void)arg;
    weights_close(p);
    return code;
}

static void test_torture(void)
{
    static struct buffer b;
    for (int form = 0; form < 2; form++) {
        struct weights *p;
        make_legacy(&b);
        if (form)
            make_zip(&b, TENSOR_PICKLE(""), sizeof(TENSOR_PICKLE("")) - 1, true);
        CHECK(open_bytes(&p, &b) == OK);
        weights_close(p);
        torture_each(open_once, NULL);
    }
}

int main(void)
{
    path = in_scratch("a.pth");
    test_small();
    test_twice();
    test_member_once();
    test_machine();
    test_budget();
    test_shapes();
    test_facts(TENSOR_PICKLE(""), sizeof(TENSOR_PICKLE("")) - 1);
    test_fuzz(TENSOR_PICKLE(""), sizeof(TENSOR_PICKLE("")) - 1);
    test_torture();
    return 0;
}
