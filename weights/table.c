#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "weights/find.h"
#include "weights/table.h"

/* A block of the arena; allocations are never freed one by one. */
struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

/* Blocks double in size up to 1 MiB, so that small files stay small. */
void *table_alloc(struct weights *w, size_t n)
{
    size_t need;
    if (!size_align(&need, n, 16))
        return NULL;
    struct arena_block *b = w->blocks;
    if (!b || b->size - b->used < need) {
        size_t size = b ? b->size * 2 : 4096;
        if (size > 1u << 20)
            size = 1u << 20;
        if (size < need)
            size = need;
        size_t total;
        if (!size_add(&total, size, sizeof(*b)))
            return NULL;
        b = calloc(1, total);
        if (!b)
            return NULL;
        b->size = size;
        b->next = w->blocks;
        w->blocks = b;
    }
    void *p = b->bytes + b->used;
    b->used += need;
    return p;
}

struct weights *table_new(const char *path, const char *format)
{
    struct weights *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->format = format;
    w->path = table_copy(w, path, strlen(path));
    if (w->path)
        return w;
    free(w);
    return NULL;
}

void table_free(struct weights *w)
{
    while (w->blocks) {
        struct arena_block *next = w->blocks->next;
        free(w->blocks);
        w->blocks = next;
    }
}

char *table_copy(struct weights *w, const void *p, size_t n)
{
    size_t total;
    char *s = size_add(&total, n, 1) ? table_alloc(w, total) : NULL;
    if (s && n)
        memcpy(s, p, n);
    return s;
}

struct tensor *table_tensor(struct weights *w)
{
    struct tensor *p = array_grow(w->tensors, &w->ctensors, w->ntensors, sizeof(*p));
    if (!p)
        return NULL;
    w->tensors = p;
    p += w->ntensors++;
    memset(p, 0, sizeof(*p));
    return p;
}

struct kv *table_kv(struct weights *w)
{
    struct kv *p = array_grow(w->kvs, &w->ckvs, w->nkvs, sizeof(*p));
    if (!p)
        return NULL;
    w->kvs = p;
    p += w->nkvs++;
    memset(p, 0, sizeof(*p));
    return p;
}

/* The mappings of this process, for signal handlers: `p` is set last and cleared first. There is
 * room for the largest number of parts that a model may have; `unlisted` counts further ones. */
enum { MAPPINGS_MAX = 1024 };
static _Atomic size_t unlisted;
static struct {
    _Atomic bool taken;
    _Atomic(const unsigned char *) p;
    _Atomic size_t n;
    _Atomic(const char *) path;
} mappings[MAPPINGS_MAX];

/* List a mapping for weights_mapped, or count it when the list is full. */
static void map_list(const struct mapping *m, const char *path)
{
    for (size_t i = 0; i < MAPPINGS_MAX; i++)
        if (!atomic_exchange(&mappings[i].taken, true)) {
            mappings[i].path = path;
            mappings[i].n = m->n;
            mappings[i].p = m->p;
            return;
        }
    unlisted++;
}

/* Take a mapping off the list before it is unmapped. */
static void map_unlist(const struct mapping *m)
{
    for (size_t i = 0; i < MAPPINGS_MAX; i++)
        if (mappings[i].p == m->p) {
            mappings[i].p = NULL;
            mappings[i].taken = false;
            return;
        }
    unlisted--;
}

const char *weights_mapped(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    for (size_t i = 0; i < MAPPINGS_MAX; i++) {
        const unsigned char *p = mappings[i].p;
        if (p && at >= (uintptr_t)p && at - (uintptr_t)p < mappings[i].n)
            return mappings[i].path;
    }
    return unlisted ? "a file of a model" : NULL;
}

void table_unmap(struct weights *w)
{
    for (size_t i = 0; i < w->nmaps; i++)
        if (w->maps[i].n) {
            map_unlist(&w->maps[i]);
            munmap((void *)(uintptr_t)w->maps[i].p, w->maps[i].n);
        }
    free(w->maps);
}

int table_map(struct weights *w, struct mapping *out, const char *path, struct err *err)
{
    struct mapping *maps = array_grow(w->maps, &w->cmaps, w->nmaps, sizeof(*maps));
    const char *name = table_copy(w, path, strlen(path));
    if (maps)
        w->maps = maps;
    if (!maps || !name)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    /* O_NONBLOCK keeps open() from blocking on a FIFO. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        char hint[300] = "";
        int why = errno;
        if (why == ENOENT)
            find_hint(hint, sizeof(hint), path);
        return err_set(err, ERR_IO, "%s: %s%s", path, strerror(why), hint);
    }
    struct stat st;
    int code = OK;
    *out = (struct mapping){ .p = NULL };
    if (fstat(fd, &st) != 0)
        code = err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        code = err_set(err, ERR_FORMAT, "%s: expected a regular file", path);
    else if ((uintmax_t)st.st_size > SIZE_MAX)
        code = err_set(err, ERR_FORMAT, "%s: too large for this machine", path);
    else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            code = err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
        else {
            *out = (struct mapping){ .p = p, .n = (size_t)st.st_size };
            map_list(out, name);
        }
    }
    close(fd);
    if (code == OK) {
        out->dev = st.st_dev;
        out->ino = st.st_ino;
        w->maps[w->nmaps++] = *out;
        code = find_no_pointer(path, out->p, out->n, err);
    }
    return code;
}

/* True if this file is in the folder of w, or a link in the folder leads to it. A GGUF file does
 * not count, because it is a model of its own. False if the folder cannot be read. */
static bool table_in_folder(const struct weights *w, const struct stat *file)
{
    DIR *d = strcmp(w->format, "folder") == 0 ? opendir(w->path) : NULL;
    struct dirent *e;
    struct stat st;
    bool found = false;
    while (d && !found && (e = readdir(d)) != NULL) {
        found = !find_ends(e->d_name, ".gguf") && fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
                st.st_dev == file->st_dev && st.st_ino == file->st_ino;
    }
    if (d)
        closedir(d);
    return found;
}

bool weights_reads(const struct weights *w, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    for (size_t i = 0; i < w->nmaps; i++)
        if (w->maps[i].dev == st.st_dev && w->maps[i].ino == st.st_ino)
            return true;
    return table_in_folder(w, &st);
}

static struct kv *add_key(struct weights *w, const char *key, enum kvtype type)
{
    const char *copy = table_copy(w, key, strlen(key));
    struct kv *kv = copy ? table_kv(w) : NULL;
    if (kv) {
        kv->key = (struct str){ copy, strlen(key) };
        kv->type = kv->elem = type;
        kv->count = 1;
    }
    return kv;
}

bool table_add_str(struct weights *w, const char *key, const char *value)
{
    struct str *s = table_alloc(w, sizeof(*s));
    const char *copy = table_copy(w, value, strlen(value));
    struct kv *kv = s && copy ? add_key(w, key, KV_STR) : NULL;
    if (!kv)
        return false;
    *s = (struct str){ copy, strlen(value) };
    kv->strs = s;
    return true;
}

bool table_add_num(struct weights *w, const char *key, enum kvtype type, const void *value)
{
    const void *copy = table_copy(w, value, kvtype_size(type));
    struct kv *kv = copy ? add_key(w, key, type) : NULL;
    if (kv)
        kv->data = copy;
    return kv != NULL;
}

static int compare_tensors(const void *a, const void *b)
{
    const struct tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int compare_kvs(const void *a, const void *b)
{
    const struct kv *const *x = a, *const *y = b;
    return strcmp((*x)->key.p, (*y)->key.p);
}

int table_index(struct weights *w, struct err *err)
{
    w->by_name = calloc(w->ntensors + 1, sizeof(struct tensor *));
    w->by_key = calloc(w->nkvs + 1, sizeof(struct kv *));
    if (!w->by_name || !w->by_key)
        return err_set(err, ERR_NOMEM, "%s: out of memory", w->path);
    for (size_t i = 0; i < w->ntensors; i++)
        w->by_name[i] = &w->tensors[i];
    for (size_t i = 0; i < w->nkvs; i++)
        w->by_key[i] = &w->kvs[i];
    qsort(w->by_name, w->ntensors, sizeof(struct tensor *), compare_tensors);
    qsort(w->by_key, w->nkvs, sizeof(struct kv *), compare_kvs);
    for (size_t i = 1; i < w->ntensors; i++)
        if (compare_tensors(&w->by_name[i - 1], &w->by_name[i]) == 0)
            return err_set(err, ERR_FORMAT, "%s: two tensors are named %s", w->path,
                           w->by_name[i]->name);
    for (size_t i = 1; i < w->nkvs; i++)
        if (compare_kvs(&w->by_key[i - 1], &w->by_key[i]) == 0)
            return err_set(err, ERR_FORMAT, "%s: two keys are named %s", w->path,
                           w->by_key[i]->key.p);
    return OK;
}

size_t kvtype_size(enum kvtype type)
{
    static const unsigned char size[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return (unsigned)type < sizeof(size) ? size[type] : 0;
}

bool table_size(struct tensor *t)
{
    size_t values, bytes, n = 1;
    if (!wtype_block(t->type, &values, &bytes))
        return false;
    for (unsigned i = 0; i < t->ndim; i++)
        if (!size_mul(&n, n, t->shape[i]))
            return false;
    if (values > 1 && (!t->ndim || t->shape[t->ndim - 1] % values))
        return false;
    return size_mul(&t->bytes, n / values, bytes);
}
