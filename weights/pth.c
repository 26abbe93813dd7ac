#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "weights/pickle.h"
#include "weights/pth.h"
#include "weights/table.h"
#include "weights/zip.h"

/* A pickle holds names and shapes, not values: a few hundred bytes per tensor. Dicts beside the
 * tensors may be named again and again, so what is taken from them is counted. */
enum { PICKLE_MAX = 4 << 20, LEVELS_MAX = 4, FACTS_MAX = 4096, LEGACY_VERSION = 1001 };

/* A checkpoint while it is read. */
struct pth {
    struct weights *w;
    struct mapping file;
    struct zip zip;
    bool zipped;
    struct str prefix; /* common start of the members' names, slash included */
    size_t facts;      /* texts and numbers looked at beside the tensors */
};

/* Compute the bytes that a storage needs; false on overflow. */
static bool storage_bytes(const struct pval *s, size_t *out)
{
    size_t values, bytes;
    return wtype_block(s->u.storage.type, &values, &bytes) &&
           size_mul(out, s->u.storage.count, bytes);
}

/* Set ERR_FORMAT with the storage's key, size and type. */
static int storage_fail(const struct pth *p, const struct pval *s, const char *what,
                        struct err *err)
{
    size_t n = s->u.storage.key.n < 60 ? s->u.storage.key.n : 60;
    return err_set(err, ERR_FORMAT, "%s: storage %.*s of %zu values of %s: %s", p->w->path, (int)n,
                   s->u.storage.key.p, s->u.storage.count, wtype_name(s->u.storage.type), what);
}

/* Return the member called prefix + folder + tail, or NULL. */
static struct zip_entry *pth_member(struct pth *p, const char *folder, struct str tail)
{
    char name[512];
    int n = snprintf(name, sizeof(name), "%.*s%s%.*s", (int)p->prefix.n, p->prefix.p, folder,
                     (int)(tail.n < 256 ? tail.n : 256), tail.p);
    return n > 0 && (size_t)n < sizeof(name) ? zip_find(&p->zip, name, (size_t)n) : NULL;
}

/* All members lie in one folder, named after the file; its data.pkl is the pickle. Sets
 * p->prefix. */
static struct zip_entry *find_pickle(struct pth *p)
{
    static const char tail[] = "data.pkl";
    for (size_t i = 0; i < p->zip.n; i++) {
        struct zip_entry *e = &p->zip.entries[i];
        const char *slash = e->name.n ? memchr(e->name.p, '/', e->name.n) : NULL;
        size_t prefix = slash ? (size_t)(slash - e->name.p) + 1 : 0;
        if (prefix && prefix < 256 && e->name.n == prefix + sizeof(tail) - 1 &&
            memcmp(e->name.p + prefix, tail, sizeof(tail) - 1) == 0) {
            p->prefix = (struct str){ e->name.p, prefix };
            return e;
        }
    }
    return NULL;
}

/* Run data.pkl. Storages are read later, when a tensor needs them. */
static int open_zip(struct pth *p, struct pval **root, struct err *err)
{
    const unsigned char *bytes;
    size_t n, used;
    struct pval *storages;
    int code = zip_open(&p->zip, p->w, &p->file, err);
    if (code != OK)
        return code;
    p->zipped = true;
    struct zip_entry *e = find_pickle(p);
    if (!e)
        return err_set(err, ERR_FORMAT, "%s: expected a member NAME/data.pkl, found none",
                       p->w->path);
    code = zip_read(&p->zip, e, &bytes, &n, PICKLE_MAX, err);
    if (code != OK)
        return code;
    code = pickle_run(root, &storages, &used, p->w, bytes, n, p->w->path, err);
    struct zip_entry *order = pth_member(p, "", (struct str){ "byteorder", 9 });
    if (code == OK && order) {
        code = zip_read(&p->zip, order, &bytes, &n, 64, err);
        if (code == OK && (n != 6 || memcmp(bytes, "little", 6) != 0))
            code = err_set(err, ERR_FORMAT, "%s: byteorder: expected little", p->w->path);
    }
    return code;
}

/* Order storages by key length, then by key. */
static int by_key(const void *a, const void *b)
{
    const struct pval *const *x = a, *const *y = b;
    struct str s = (*x)->u.storage.key, t = (*y)->u.storage.key;
    if (s.n != t.n)
        return s.n < t.n ? -1 : 1;
    return s.n ? memcmp(s.p, t.p, s.n) : 0;
}

/* Run the next pickle of a legacy file. */
static int next_pickle(struct pth *p, struct pval **out, struct pval **storages, size_t *at,
                       struct err *err)
{
    size_t n = p->file.n - *at, used;
    int code = pickle_run(out, storages, &used, p->w, p->file.p + *at,
                          n < PICKLE_MAX ? n : PICKLE_MAX, p->w->path, err);
    if (code == OK)
        *at += used;
    return code;
}

/* Behind the pickles come, for each key of the list, its count as 8 bytes and its values. The
 * pickle may name a storage several times, but the list only once; otherwise the loops below could
 * take quadratic time. */
static int legacy_data(struct pth *p, const struct pval *keys, struct pval *storages, size_t at,
                       struct err *err)
{
    struct pval **s = storages->u.seq.v;
    size_t n = storages->u.seq.n;
    if (n)
        qsort(s, n, sizeof(*s), by_key);
    for (size_t i = 0; i < keys->u.seq.n; i++) {
        struct pval want = { .kind = P_STORAGE }, *key = &want;
        if (keys->u.seq.v[i]->kind != P_STR)
            return err_set(err, ERR_FORMAT, "%s: a storage key is no string", p->w->path);
        want.u.storage.key = keys->u.seq.v[i]->u.s;
        struct pval **hit = n ? bsearch(&key, s, n, sizeof(*s), by_key) : NULL;
        size_t bytes;
        uint64_t count;
        if (!hit || p->file.n - at < 8)
            return err_set(err, ERR_FORMAT, "%s: the storages do not match their list", p->w->path);
        if ((*hit)->u.storage.data)
            return storage_fail(p, *hit, "its key is twice in the list", err);
        count = le_get(p->file.p + at, 8);
        at += 8;
        if (count != (*hit)->u.storage.count || !storage_bytes(*hit, &bytes) ||
            !size_within(at, bytes, p->file.n))
            return storage_fail(p, *hit, "the file holds another count or is cut off", err);
        while (hit > s && by_key(hit - 1, &key) == 0)
            hit--;
        int type = (*hit)->u.storage.type;
        for (; hit < s + n && by_key(hit, &key) == 0; hit++) {
            if ((*hit)->u.storage.type != type || (*hit)->u.storage.count != count)
                return storage_fail(p, *hit, "named with different types", err);
            (*hit)->u.storage.data = p->file.p + at;
        }
        at += bytes;
    }
    return OK;
}

/* The legacy form is a series of pickles: magic number, protocol, facts about the machine that
 * wrote it, the object, the list of storages. */
static int open_legacy(struct pth *p, struct pval **root, struct err *err)
{
    static const unsigned char magic[10] = { 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                             0x20, 0x6a, 0xa8, 0x50, 0x19 };
    struct pval *v, *storages, *none, *keys;
    size_t at = 0;
    int code = next_pickle(p, &v, &none, &at, err);
    if (code != OK || v->kind != P_BYTES || v->u.s.n != sizeof(magic) ||
        memcmp(v->u.s.p, magic, sizeof(magic)) != 0)
        return code == ERR_NOMEM
                   ? code
                   : err_set(err, ERR_FORMAT,
                             "%s: expected a zip archive or torch.save's magic number, found "
                             "neither",
                             p->w->path);
    code = next_pickle(p, &v, &none, &at, err);
    if (code == OK && (v->kind != P_INT || v->u.i != LEGACY_VERSION))
        return err_set(err, ERR_FORMAT, "%s: expected protocol version %d", p->w->path,
                       LEGACY_VERSION);
    if (code == OK)
        code = next_pickle(p, &v, &none, &at, err);
    const struct pval *little = code == OK ? pickle_item(v, "little_endian") : NULL;
    if (code == OK && (!little || little->kind != P_BOOL || !little->u.i))
        return err_set(err, ERR_FORMAT, "%s: little_endian: expected True", p->w->path);
    if (code == OK)
        code = next_pickle(p, root, &storages, &at, err);
    if (code == OK)
        code = next_pickle(p, &keys, &none, &at, err);
    if (code != OK)
        return code;
    if (keys->kind != P_LIST)
        return err_set(err, ERR_FORMAT, "%s: expected a list of storages, found %s", p->w->path,
                       pickle_kind(keys->kind));
    return legacy_data(p, keys, storages, at, err);
}

/* Point a storage to its bytes; the zip form reads its member on first use. */
static int load_storage(struct pth *p, struct pval *s, struct err *err)
{
    size_t bytes, n;
    if (s->u.storage.data)
        return OK;
    if (!storage_bytes(s, &bytes))
        return storage_fail(p, s, "the size overflows", err);
    struct zip_entry *e = p->zipped ? pth_member(p, "data/", s->u.storage.key) : NULL;
    if (!e)
        return storage_fail(p, s, "its data is not in the file", err);
    int code = zip_read(&p->zip, e, &s->u.storage.data, &n, bytes, err);
    if (code == OK && n != bytes)
        code = storage_fail(p, s, "the file holds fewer", err);
    return code;
}

/* Check one tensor against its storage and add it to the table. */
static int add_tensor(struct pth *p, struct str name, struct pval *v, struct err *err)
{
    static const char module[] = "module.";
    struct pval *s = v->u.tensor.storage;
    size_t cut = sizeof(module) - 1, values, bytes;
    if (name.n > cut && memcmp(name.p, module, cut) == 0)
        name = (struct str){ name.p + cut, name.n - cut };
    if (!name.n || !text_valid(name.p, name.n) || memchr(name.p, 0, name.n))
        return err_set(err, ERR_FORMAT, "%s: a tensor's name is no text", p->w->path);
    struct tensor *t = table_tensor(p->w);
    if (!t || !(t->name = table_copy(p->w, name.p, name.n)))
        return err_set(err, ERR_NOMEM, "%s: out of memory", p->w->path);
    t->type = s->u.storage.type;
    t->ndim = v->u.tensor.ndim;
    memcpy(t->shape, v->u.tensor.shape, sizeof(t->shape));
    if (!v->u.tensor.contiguous)
        return err_set(err, ERR_FORMAT, "%s: tensor %.80s: expected its values in a row",
                       p->w->path, t->name);
    wtype_block(t->type, &values, &bytes);
    if (!table_size(t) || !size_within(v->u.tensor.offset, t->bytes / bytes, s->u.storage.count))
        return err_set(err, ERR_FORMAT, "%s: tensor %.80s: it does not fit in its storage",
                       p->w->path, t->name);
    int code = t->bytes ? load_storage(p, s, err) : OK;
    if (code == OK && t->bytes)
        t->data = s->u.storage.data + v->u.tensor.offset * bytes;
    return code;
}

/* Return the state dict inside the usual wrappers. */
static struct pval *pth_unwrap(struct pval *v)
{
    static const char *const names[] = { "state_dict", "model_state_dict", "model" };
    for (int level = 0; level < LEVELS_MAX; level++) {
        struct pval *inner = NULL;
        for (size_t i = 0; i < 3 && (!inner || inner->kind != P_DICT); i++)
            inner = pickle_item(v, names[i]);
        if (!inner || inner->kind != P_DICT)
            break;
        v = inner;
    }
    return v;
}

/* Add a text or a number of a dict, called GROUP.KEY, as a key. */
static bool add_fact(struct pth *p, const char *group, struct str key, const struct pval *v)
{
    char name[128], text[128];
    if (!key.n || key.n >= 60 || memchr(key.p, 0, key.n))
        return true;
    snprintf(name, sizeof(name), "%s%s%.*s", group, *group ? "." : "", (int)key.n, key.p);
    if (!text_valid(name, strlen(name)))
        return true;
    if (v->kind == P_BOOL)
        return table_add_num(p->w, name, KV_BOOL, &(uint8_t){ v->u.i != 0 });
    if (v->kind == P_INT)
        return table_add_num(p->w, name, KV_I64, &v->u.i);
    if (v->kind == P_FLOAT)
        return table_add_num(p->w, name, KV_F64, &v->u.f);
    if (v->kind != P_STR || v->u.s.n >= sizeof(text) || memchr(v->u.s.p, 0, v->u.s.n))
        return true;
    memcpy(text, v->u.s.p, v->u.s.n);
    text[v->u.s.n] = '\0';
    return table_add_str(p->w, name, text);
}

/* Add the texts and numbers of a dict beside the state dict. */
static int add_group(struct pth *p, const char *group, const struct pval *d, struct err *err)
{
    for (size_t i = 0; d->kind == P_DICT && i + 1 < d->u.seq.n; i += 2) {
        if (++p->facts > FACTS_MAX)
            return err_set(err, ERR_FORMAT,
                           "%s: expected at most %d values beside the tensors, found more",
                           p->w->path, FACTS_MAX);
        if (d->u.seq.v[i]->kind == P_STR &&
            !add_fact(p, group, d->u.seq.v[i]->u.s, d->u.seq.v[i + 1]))
            return err_set(err, ERR_NOMEM, "%s: out of memory", p->w->path);
    }
    return OK;
}

/* Add the texts and numbers beside the state dict, and those of dicts there, as R2R has them. */
static int add_facts(struct pth *p, const struct pval *root, const struct pval *tensors,
                     struct err *err)
{
    int rc = add_group(p, "", root, err);
    for (size_t i = 0; rc == OK && root->kind == P_DICT && i + 1 < root->u.seq.n; i += 2) {
        const struct pval *key = root->u.seq.v[i], *v = root->u.seq.v[i + 1];
        char group[64];
        if (key->kind != P_STR || key->u.s.n >= sizeof(group) || v == tensors)
            continue;
        snprintf(group, sizeof(group), "%.*s", (int)key->u.s.n, key->u.s.p);
        rc = add_group(p, group, v, err);
    }
    return rc;
}

/* Add every tensor of the state dict; entries that are not tensors are skipped. */
static int add_all(struct pth *p, struct pval *root, struct err *err)
{
    const struct pval *d = pth_unwrap(root);
    int code = OK;
    if (d->kind != P_DICT)
        return err_set(err, ERR_FORMAT, "%s: expected a dict of tensors, found %s", p->w->path,
                       pickle_kind(d->kind));
    for (size_t i = 0; i + 1 < d->u.seq.n && code == OK; i += 2)
        if (d->u.seq.v[i]->kind == P_STR && d->u.seq.v[i + 1]->kind == P_TENSOR)
            code = add_tensor(p, d->u.seq.v[i]->u.s, d->u.seq.v[i + 1], err);
    if (code == OK && !p->w->ntensors)
        code = err_set(err, ERR_FORMAT, "%s: expected tensors, found none", p->w->path);
    if (code == OK && d != root)
        code = add_facts(p, root, d, err);
    return code == OK ? table_index(p->w, err) : code;
}

bool pth_is(const char *path)
{
    unsigned char b[9] = { 0 };
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK as in table_map */
    if (fd < 0)
        return false;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, b, sizeof(b)) : 0;
    close(fd);
    if (n == (ssize_t)sizeof(b) && b[8] == '{') /* a safetensors header follows its length */
        return false;
    return n >= 2 && (memcmp(b, "PK", 2) == 0 || b[0] == 0x80);
}

int pth_open(struct weights **out, const char *path, struct err *err)
{
    struct pth p = { .w = table_new(path, "pth") };
    struct pval *root;
    *out = NULL;
    if (!p.w)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    p.w->shards = 1;
    int code = table_map(p.w, &p.file, path, err);
    if (code == OK && !p.file.n)
        code = err_set(err, ERR_FORMAT, "%s: expected a PyTorch file, found an empty one", path);
    if (code == OK)
        code = zip_is(&p.file) ? open_zip(&p, &root, err) : open_legacy(&p, &root, err);
    if (code == OK)
        code = add_all(&p, root, err);
    if (code == OK)
        *out = p.w;
    else
        weights_close(p.w);
    return code;
}
