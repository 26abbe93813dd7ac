#include "weights/find_gguf.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "kernels/sys/base.h"

enum { LIST_MAX = 2000, ENTRIES_MAX = 100000, DEPTH_MAX = 3 };

static const char suffix[] = ".gguf";

/* True for a letter or digit of ASCII, whatever the locale. */
static bool find_gguf_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* True for the name of a GGUF file that may be a model. */
static bool find_gguf_name(const char *s)
{
    size_t n = strlen(s);
    if (*s == '.' || n <= strlen(suffix) || strcasecmp(s + n - strlen(suffix), suffix) != 0)
        return false;
    for (size_t i = 0; s[i]; i++)
        if (strncasecmp(s + i, "imatrix", 7) == 0)
            return false;
    return strncasecmp(s, "mmproj", 6) != 0;
}

/* Append a copy of "dir/name", or of name if dir is empty. */
static int find_gguf_add(struct gguf_list *l, const char *dir, const char *name, struct err *err)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char **names = array_grow(l->names, &l->room, l->n, sizeof(*names));
    char *copy = names ? malloc(n) : NULL;
    l->names = names ? names : l->names;
    if (!copy)
        return err_set(err, ERR_NOMEM, "%s: out of memory", name);
    snprintf(copy, n, "%s%s%s", dir, *dir ? "/" : "", name);
    l->names[l->n++] = copy;
    return OK;
}

/* One walk through a folder. */
struct walk {
    struct gguf_list *list;
    const char *folder;
    size_t entries; /* seen so far */
    struct err *err;
};

static int find_gguf_walk(struct walk *w, const char *dir, unsigned depth);

/* Take one entry of a folder: a file or a link whose name ends in .gguf, or a sub-folder. Links to
 * folders are not entered, so that no loop is walked. */
static int find_gguf_entry(struct walk *w, const char *dir, const char *name, unsigned depth)
{
    char path[FIND_PATH], sub[FIND_PATH];
    struct stat st;
    if (++w->entries > ENTRIES_MAX || w->list->n >= LIST_MAX)
        return err_set(w->err, ERR_FORMAT,
                       "%s: expected the folder of a model, found too many files", w->folder);
    int n = snprintf(sub, sizeof(sub), "%s%s%s", dir, *dir ? "/" : "", name);
    int m = snprintf(path, sizeof(path), "%s/%s", w->folder, sub);
    if (*name == '.' || n >= (int)sizeof(sub) || m >= (int)sizeof(path) || lstat(path, &st) != 0)
        return OK;
    if (S_ISDIR(st.st_mode))
        return depth < DEPTH_MAX ? find_gguf_walk(w, sub, depth + 1) : OK;
    if ((S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) && find_gguf_name(name))
        return find_gguf_add(w->list, dir, name, w->err);
    return OK;
}

/* Walk one folder; `dir` is relative to the first. A sub-folder that cannot be read is skipped. */
static int find_gguf_walk(struct walk *w, const char *dir, unsigned depth)
{
    char path[FIND_PATH];
    int n = snprintf(path, sizeof(path), "%s%s%s", w->folder, *dir ? "/" : "", dir), code = OK;
    DIR *d = n < (int)sizeof(path) ? opendir(path) : NULL;
    struct dirent *e;
    if (!d)
        return *dir ? OK : err_set(w->err, ERR_IO, "%s: %s", w->folder, strerror(errno));
    while (code == OK && (e = readdir(d)))
        code = find_gguf_entry(w, dir, e->d_name, depth);
    closedir(d);
    return code;
}

static int find_gguf_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* True if both are parts of one sharded file. */
static bool find_gguf_same(const char *a, const char *b)
{
    size_t na, nb;
    unsigned number, ca, cb;
    return find_shard(a, &na, &number, &ca) && find_shard(b, &nb, &number, &cb) && na == nb &&
           ca == cb && memcmp(a, b, na) == 0;
}

int gguf_list_read(struct gguf_list *l, const char *folder, bool deep, struct err *err)
{
    *l = (struct gguf_list){ 0 };
    struct walk w = { .list = l, .folder = folder, .err = err };
    int code = find_gguf_walk(&w, "", deep ? 1 : DEPTH_MAX);
    if (code != OK || !l->n)
        return code;
    qsort(l->names, l->n, sizeof(*l->names), find_gguf_compare);
    size_t kept = 1;
    for (size_t i = 1; i < l->n; i++)
        if (find_gguf_same(l->names[kept - 1], l->names[i]))
            free(l->names[i]);
        else
            l->names[kept++] = l->names[i];
    l->n = kept;
    return OK;
}

void gguf_list_free(struct gguf_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->names[i]);
    free(l->names);
}

/* Return the length of a file's name without .gguf and without the part's number. */
static size_t find_gguf_stem(const char *name)
{
    size_t n;
    unsigned number, count;
    return find_shard(name, &n, &number, &count) ? n : strlen(name) - strlen(suffix);
}

static const char *find_gguf_base(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* True if type is a part of the name: other letters, digits or a _ on its right make it another
 * type, as in Q4_K and Q4_K_M. */
static bool find_gguf_has(const char *name, const char *type)
{
    size_t n = find_gguf_stem(name), t = strlen(type);
    for (size_t i = 0; i + t <= n; i++)
        if (strncasecmp(name + i, type, t) == 0 && (!i || !find_gguf_word(name[i - 1])) &&
            (i + t == n || (!find_gguf_word(name[i + t]) && name[i + t] != '_')))
            return true;
    return false;
}

/* True if this is the whole name of the file, perhaps without folders, .gguf or a part's number. */
static bool find_gguf_is(const char *name, const char *type)
{
    const char *base = find_gguf_base(name);
    size_t n = find_gguf_stem(name), skip = (size_t)(base - name), t = strlen(type);
    return strcasecmp(name, type) == 0 || strcasecmp(base, type) == 0 ||
           (t == n && strncasecmp(name, type, t) == 0) ||
           (t == n - skip && strncasecmp(base, type, t) == 0);
}

/* True if a type picks this file. Qwen's own files say fp16 for F16. */
static bool find_gguf_picks(const char *name, const char *type, bool whole)
{
    if (!type)
        return true;
    if (whole)
        return find_gguf_is(name, type);
    return find_gguf_has(name, type) ||
           (strcasecmp(type, "f16") == 0 && find_gguf_has(name, "fp16")) ||
           (strcasecmp(type, "f32") == 0 && find_gguf_has(name, "fp32"));
}

/* True if a type is the whole name of one of the files, which is stronger than a part. */
static bool find_gguf_whole(const struct gguf_list *l, const char *type)
{
    for (size_t i = 0; type && i < l->n; i++)
        if (find_gguf_is(l->names[i], type))
            return true;
    return false;
}

void gguf_list_pick(const struct gguf_list *l, const char *type, size_t *at, size_t *found)
{
    bool whole = find_gguf_whole(l, type);
    *found = *at = 0;
    for (size_t i = 0; i < l->n; i++)
        if (find_gguf_picks(l->names[i], type, whole) && !(*found)++)
            *at = i;
}

/* Return the bytes of a type at the beginning of s, as people write it: F16, BF16, FP16, Q8_0,
 * Q4_K_M, IQ4_XS, TQ1_0, MXFP4. 0 if there is none. */
static size_t find_gguf_type_bytes(const char *s, size_t n)
{
    static const char *const plain[] = { "F32", "F16", "FP32", "FP16", "BF16", "MXFP4" };
    size_t at = 0;
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain) && !at; i++)
        if (strlen(plain[i]) <= n && strncasecmp(s, plain[i], strlen(plain[i])) == 0)
            at = strlen(plain[i]);
    size_t q = n && strchr("iItT", s[0]) ? 1 : 0;
    if (!at && q + 2 <= n && (s[q] == 'q' || s[q] == 'Q') && s[q + 1] >= '0' && s[q + 1] <= '9') {
        at = q + 2;
        for (size_t end; at < n && s[at] == '_'; at = end) { /* parts such as _K and _XL */
            for (end = at + 1; end < n && find_gguf_word(s[end]); end++)
                ;
            if (end == at + 1 || end > at + 4)
                break;
        }
    }
    return at && (at == n || !find_gguf_word(s[at])) ? at : 0;
}

/* Write the type in a file's name, in capitals: the last one that is there. The name itself if
 * there is none. */
static void find_gguf_type(char *out, size_t room, const char *name)
{
    size_t n = find_gguf_stem(name), found = 0, bytes = 0, some;
    for (size_t i = 0; i < n; i++)
        if ((!i || !find_gguf_word(name[i - 1])) &&
            (some = find_gguf_type_bytes(name + i, n - i)) > 0) {
            found = i;
            bytes = some;
        }
    snprintf(out, room, "%.*s", bytes ? (int)bytes : -1, bytes ? name + found : name);
    for (size_t i = 0; bytes && out[i]; i++)
        out[i] = (char)toupper((unsigned char)out[i]);
}

void gguf_list_text(char out[GGUF_LIST_TEXT], const struct gguf_list *l, const char *type)
{
    bool whole = find_gguf_whole(l, type), names = type != NULL;
    char a[128], b[128];
    size_t at = 0;
    for (size_t i = 0; !names && i < l->n; i++) /* two of one type: the names tell them apart */
        for (size_t k = 0; !names && k < i; k++) {
            find_gguf_type(a, sizeof(a), l->names[i]);
            find_gguf_type(b, sizeof(b), l->names[k]);
            names = strcmp(a, b) == 0;
        }
    *out = '\0';
    for (size_t i = 0; i < l->n; i++) {
        if (!find_gguf_picks(l->names[i], type, whole))
            continue;
        find_gguf_type(a, sizeof(a), l->names[i]);
        const char *text = names ? find_gguf_base(l->names[i]) : a;
        bool fits = at + strlen(text) + 8 < GGUF_LIST_TEXT;
        at += (size_t)snprintf(out + at, GGUF_LIST_TEXT - at, "%s%s", at ? ", " : "",
                               fits ? text : "...");
        if (!fits)
            return;
    }
}
