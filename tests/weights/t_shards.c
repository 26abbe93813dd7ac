/* t_shards.c - a GGUF file in parts is the file that was split, from whichever part it is opened,
 * and parts that do not fit together are refused. */
#include <sys/stat.h>

#include "tests/weights/opening.h"
#include "weights/gguf_write.h"

enum { PARTS = 3, TENSORS = 7, ROWS = 4, COLS = 32 };

static struct err err;

/* What a part says about itself, and what is wrong with it. */
struct part {
    uint64_t no, count, total;
    enum kvtype type;        /* of the three keys */
    size_t first, last;      /* tensors */
    bool bare;               /* no keys split.* */
    bool own_keys;           /* a later part with more keys of its own */
    const char *rename_last; /* name of its last tensor, or NULL */
    const char *twice;       /* a key that it has once more, or NULL */
    unsigned align;          /* its general.alignment; 0: none */
};

/* Return the path of part i (from 1) of n, or of a whole file if n is 0. */
static const char *part_path(unsigned i, unsigned n)
{
    return n ? in_scratch("m-%05u-of-%05u.gguf", i, n) : in_scratch("m.gguf");
}

static void add_number(struct ggufw *g, const char *key, enum kvtype type, uint64_t v)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    struct kv kv = { { key, strlen(key) }, type, type, 1, bytes, NULL };
    ggufw_kv(g, &kv);
}

/* Write one part, or the whole file if p is NULL. */
static void write_part(const char *path, const struct part *p)
{
    float values[ROWS * COLS];
    struct ggufw *g;
    size_t first = p ? p->first : 0, last = p ? p->last : TENSORS;
    CHECK(ggufw_open(&g, path, &err) == OK);
    if (!first || (p && p->own_keys)) {
        ggufw_str(g, "general.architecture", "qwen2");
        ggufw_str(g, "general.name", first ? "another" : "split");
    }
    if (p && !p->bare) {
        add_number(g, "split.no", p->type, p->no);
        add_number(g, "split.tensors.count", p->type == KV_U16 ? KV_I32 : p->type, p->total);
        add_number(g, "split.count", p->type, p->count);
    }
    if (p && p->twice)
        add_number(g, p->twice, KV_U16, p->count);
    if (p && p->align)
        ggufw_u32(g, "general.alignment", p->align);
    for (size_t i = first; i < last; i++) {
        char name[32];
        snprintf(name, sizeof(name), "t%zu", i);
        ggufw_tensor(g, p && p->rename_last && i + 1 == last ? p->rename_last : name, W_F32, 2,
                     (const size_t[]){ ROWS, COLS });
    }
    for (size_t i = first; i < last; i++) {
        for (size_t k = 0; k < ROWS * COLS; k++)
            values[k] = (float)(i * 1000 + k);
        ggufw_data(g, values, sizeof(values));
    }
    CHECK(ggufw_close(g, true, &err) == OK);
}

static const struct part good[PARTS] = {
    { .no = 0, .count = PARTS, .total = TENSORS, .type = KV_U16, .first = 0, .last = 3 },
    { .no = 1, .count = PARTS, .total = TENSORS, .type = KV_U16, .first = 3, .last = 3 },
    { .no = 2, .count = PARTS, .total = TENSORS, .type = KV_U16, .first = 3, .last = TENSORS },
};

static void write_good(void)
{
    for (unsigned i = 0; i < PARTS; i++)
        write_part(part_path(i + 1, PARTS), &good[i]);
}

/* Require the same keys and tensors as in the whole file, in the same order. */
static void check_same(const char *path)
{
    struct weights *w, *all;
    CHECK_MSG(weights_open(&w, path, &err) == OK && weights_open(&all, part_path(0, 0), &err) == OK,
              "%s", err.msg);
    CHECK(weights_nkv(w) == weights_nkv(all) && weights_ntensors(w) == TENSORS);
    CHECK(weights_shards(w) == PARTS && weights_shards(all) == 1);
    for (size_t i = 0; i < weights_nkv(w); i++)
        CHECK(strcmp(weights_kv(w, i)->key.p, weights_kv(all, i)->key.p) == 0);
    for (size_t i = 0; i < TENSORS; i++) {
        const struct tensor *a = weights_tensor(w, i), *b = weights_tensor(all, i);
        CHECK(strcmp(a->name, b->name) == 0 && a->bytes == b->bytes);
        CHECK(memcmp(a->data, b->data, a->bytes) == 0 && weights_find(w, a->name) == a);
    }
    weights_close(w);
    weights_close(all);
}

static void test_good(void)
{
    write_good();
    write_part(part_path(0, 0), NULL);
    for (unsigned i = 1; i <= PARTS; i++)
        check_same(part_path(i, PARTS));
    struct part own = good[1]; /* keys that later parts repeat are not the model's */
    own.own_keys = true;
    own.type = KV_U64;
    write_part(part_path(2, PARTS), &own);
    check_same(part_path(1, PARTS));
}

/* Require a refusal that names the part and says this. */
static void refused(unsigned part, const char *text)
{
    struct weights *w;
    const char *name = strrchr(part_path(part, PARTS), '/') + 1;
    int code = weights_open(&w, part_path(2, PARTS), &err);
    CHECK_MSG((code == ERR_FORMAT || code == ERR_IO) && !w && strstr(err.msg, text),
              "expected \"%s\", found \"%s\"", text, code == OK ? "" : err.msg);
    CHECK(!part || strstr(err.msg, name));
}

/* One part at a time is wrong. */
static void test_bad(void)
{
    enum { NO, COUNT, TOTAL, LAST, TYPE, BARE, RENAME, TWICE, ALIGN };
    static const struct {
        unsigned part, what; /* what of it changes */
        uint64_t to;
        const char *name, *text;
    } rows[] = {
        { 1, NO, 1, NULL, "split.no: expected 0, found 1" },
        { 2, NO, 0, NULL, "split.no: expected 1, found 0" },
        { 3, NO, 1, NULL, "split.no: expected 2, found 1" },
        { 1, COUNT, 4, NULL, "split.count: expected 3, found 4" },
        { 3, COUNT, 0, NULL, "split.count: expected 3, found 0" },
        { 1, TOTAL, 8, NULL, "tensors.count: expected 7, found 8" },
        { 1, LAST, 2, NULL, "tensors.count: expected 6, found 7" },
        { 1, TYPE, KV_F32, NULL, "split.count: expected 3, found none" },
        { 1, TYPE, KV_BOOL, NULL, "expected 3, found none" },
        { 2, BARE, true, NULL, "split.count: expected 3, found none" },
        { 3, RENAME, 0, "t1", "two tensors are named t1" },
        { 3, TWICE, 0, "split.count", "split.count: expected 3, found 2 keys of this name" },
        { 1, TWICE, 0, "split.tensors.count",
          "split.tensors.count: expected 7, found 2 keys of this name" },
        { 2, NO, UINT64_MAX, NULL, "split.no: expected 1, found -1" },
        { 3, ALIGN, 48, NULL, "general.alignment" },
        { 3, ALIGN, 1024, NULL, "expected its data at" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct part p = good[rows[i].part - 1];
        uint64_t to = rows[i].to;
        p.no = rows[i].what == NO ? to : p.no;
        p.type = to == UINT64_MAX ? KV_I32 : rows[i].what == RENAME ? KV_I64 : p.type;
        p.type = rows[i].what == TYPE ? (enum kvtype)to : p.type;
        p.count = rows[i].what == COUNT ? to : p.count;
        p.total = rows[i].what == TOTAL ? to : p.total;
        p.last = rows[i].what == LAST ? (size_t)to : p.last;
        p.bare = rows[i].what == BARE;
        p.rename_last = rows[i].what == RENAME ? rows[i].name : NULL;
        p.twice = rows[i].what == TWICE ? rows[i].name : NULL;
        p.align = rows[i].what == ALIGN ? (unsigned)to : 0;
        write_good();
        write_part(part_path(rows[i].part, PARTS), &p);
        refused(rows[i].what == RENAME ? 0 : rows[i].part, rows[i].text);
    }
}

/* What is under the name of a part is no part, or no file. */
static void test_other_things(void)
{
    write_good();
    spill(part_path(3, PARTS), "GGUF", 4);
    refused(3, "inside the header");
    spill(part_path(3, PARTS), "", 0);
    refused(3, "expected the magic");
    CHECK(unlink(part_path(3, PARTS)) == 0 && mkfifo(part_path(3, PARTS), 0600) == 0);
    refused(3, "expected a regular file");
    CHECK(unlink(part_path(3, PARTS)) == 0 && mkdir(part_path(3, PARTS), 0700) == 0);
    refused(3, "expected a regular file");
    CHECK(rmdir(part_path(3, PARTS)) == 0);
    CHECK(symlink(strrchr(part_path(1, PARTS), '/') + 1, part_path(3, PARTS)) == 0);
    refused(3, "split.no: expected 2, found 0");
    CHECK(unlink(part_path(3, PARTS)) == 0 && symlink("nothing", part_path(3, PARTS)) == 0);
    refused(3, "missing m-00003-of-00003.gguf");
    CHECK(unlink(part_path(3, PARTS)) == 0);
}

/* Parts that are not there are all named, also the one that was asked for. */
static void test_missing(void)
{
    struct weights *w;
    write_good();
    CHECK(unlink(part_path(3, PARTS)) == 0);
    refused(3, "expected 3 parts, missing m-00003-of-00003.gguf");
    CHECK(unlink(part_path(2, PARTS)) == 0);
    refused(2, "missing m-00002-of-00003.gguf m-00003-of-00003.gguf");
    CHECK(unlink(part_path(1, PARTS)) == 0);
    refused(1, "missing m-00001-of-00003.gguf m-0000");
    CHECK(weights_open(&w, part_path(1, 99999), &err) == ERR_FORMAT);
    CHECK(strstr(err.msg, "at most 1000 parts"));
    CHECK(weights_open(&w, part_path(1, 1000), &err) == ERR_IO && strstr(err.msg, "..."));
    /* a part under another name */
    write_good();
    const char *renamed = in_scratch("first.gguf");
    CHECK(rename(part_path(1, PARTS), renamed) == 0);
    CHECK(weights_open(&w, renamed, &err) == ERR_FORMAT);
    CHECK(strstr(err.msg, "expected a name like STEM-00001-of-00003.gguf"));
    CHECK(unlink(renamed) == 0);
    /* one part that is all */
    struct part one = { .count = 1, .total = TENSORS, .type = KV_U16, .last = TENSORS };
    write_part(part_path(1, 1), &one);
    CHECK(weights_open(&w, part_path(1, 1), &err) == OK && weights_shards(w) == 1);
    CHECK(!weights_key(w, "split.count"));
    weights_close(w);
    CHECK(unlink(part_path(1, 1)) == 0);
    write_good();
}

int main(void)
{
    size_t open_before = descriptors();
    test_good();
    test_bad();
    test_other_things();
    test_missing();
    torture_each(open_weights, part_path(1, PARTS));
    CHECK(descriptors() == open_before);
    return 0;
}
