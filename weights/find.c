#include "weights/find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"

enum { HALF_MAX = 96, HASH_MAX = 64, TEXT = 300, DEEP = 2 };

static const char prefix[] = "models--", snapshots[] = "/snapshots/";
static const char fetch[] = "; to fetch it in Mizzle's sources: sh tools/download.sh ";

struct find {
    const char *name;      /* as the user wrote it */
    const char *type;      /* its part after the colon, or NULL */
    bool cached;           /* it is ORG/NAME[:TYPE] in the cache */
    char path[FIND_PATH];  /* of the folder that is searched, or below it */
    size_t root;           /* bytes of that folder */
    bool whole;            /* it has Hugging Face's weights, or links to them */
    size_t found;          /* GGUF files of this type */
    char first[FIND_PATH]; /* path of the first */
    char text[TEXT];       /* as many of their names as fit */
    struct err *err;
};

bool find_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool find_ends(const char *s, const char *end)
{
    size_t a = strlen(s), b = strlen(end);
    return a >= b && strcmp(s + a - b, end) == 0;
}

bool find_shard(const char *path, size_t *stem, unsigned *number, unsigned *count)
{
    size_t n = strlen(path);
    char first[6], second[6];
    int m = 0;
    if (n <= 20 || path[n - 21] == '/' ||
        sscanf(path + n - 20, "-%5[0-9]-of-%5[0-9].gguf%n", first, second, &m) != 2 || m != 20)
        return false;
    *stem = n - 20;
    *number = (unsigned)strtoul(first, NULL, 10);
    *count = (unsigned)strtoul(second, NULL, 10);
    return *number >= 1 && *number <= *count;
}

/* True for bytes that need no quotes in a shell. */
static bool find_plain(const char *s)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    return !s[strspn(s, fine)];
}

/* True for ORG/NAME by Hugging Face's rules, which keep it in the cache. What ends like a file's
 * name is a path that does not exist. */
static bool find_is_name(const char *s)
{
    const char *slash = strchr(s, '/');
    return slash && slash > s && slash[1] && !strchr(slash + 1, '/') && find_plain(s) &&
           slash - s <= HALF_MAX && strlen(slash + 1) <= HALF_MAX && !strstr(s, "--") &&
           !strstr(s, "..") && !strchr("-.", *s) && !strchr("-.", slash[1]) &&
           !find_ends(s, ".gguf") && !find_ends(s, ".safetensors");
}

bool find_repository(char out[FIND_PATH], const char *path)
{
    const char *end = NULL;
    for (const char *p = path; (p = strstr(p, snapshots)) != NULL; p++)
        end = p;
    const char *commit = end ? end + strlen(snapshots) : "/";
    if (!*commit || *commit == '/' ||
        snprintf(out, FIND_PATH, "%.*s", (int)(end - path), path) >= FIND_PATH)
        return false;
    const char *slash = strrchr(out, '/');
    return strncmp(slash ? slash + 1 : out, prefix, strlen(prefix)) == 0;
}

void find_hint(char *out, size_t room, const char *path)
{
    char repository[FIND_PATH];
    *out = '\0';
    if (!find_repository(repository, path))
        return;
    const char *file = strchr(path + strlen(repository) + strlen(snapshots), '/');
    char *slash = strrchr(repository, '/');
    char *name = (slash ? slash + 1 : repository) + strlen(prefix), *half = strstr(name, "--");
    if (half) {
        *half = '/';
        memmove(half + 1, half + 2, strlen(half + 1));
    }
    bool plain = file && file[1] && find_plain(file);
    if (find_is_name(name))
        snprintf(out, room, "%s%s%s%s", fetch, name, plain ? " " : "", plain ? file + 1 : "");
}

int find_no_pointer(const char *path, const void *p, size_t n, struct err *err)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    char hint[TEXT];
    if (n < sizeof(begin) - 1 || memcmp(p, begin, sizeof(begin) - 1) != 0)
        return OK;
    find_hint(hint, sizeof(hint), path);
    return err_set(err, ERR_FORMAT, "%s: expected the file itself, found a Git LFS pointer%s", path,
                   *hint ? hint : "; to fetch it: git lfs pull in its folder, or hf download");
}

/* True if a file, named from the folder that is searched, is a model of this type; NULL is any. */
static bool find_picks(const char *name, const char *base, const char *type)
{
    size_t stem, n = strlen(name), t = type ? strlen(type) : 0;
    unsigned number = 1, count;
    if (!find_ends(base, ".gguf") || strncmp(base, "mmproj", 6) == 0 || strstr(base, "imatrix") ||
        (find_shard(base, &stem, &number, &count) && number > 1))
        return false;
    for (size_t i = 0; type && i + t <= n; i++)
        if (strncasecmp(name + i, type, t) == 0 && (!i || !isalnum((unsigned char)name[i - 1])) &&
            !isalnum((unsigned char)name[i + t]) && name[i + t] != '_')
            return true;
    return !type;
}

/* Add a file's name to the text, in order. What does not fit is cut off at the end. */
static void find_list(struct find *f, const char *name)
{
    char rest[TEXT], *at = f->text;
    for (; *at && strcmp(at, name) < 0; at += strspn(at, ", "))
        at += strcspn(at, ",");
    memcpy(rest, at, strlen(at) + 1);
    snprintf(at, (size_t)(f->text + TEXT - at), "%s, %s", name, rest);
}

/* Search the folder path[n] for files of f->type. Links to folders are not entered, so that no loop
 * is walked. A sub-folder that cannot be read is skipped. */
static int find_walk(struct find *f, size_t n, unsigned deep)
{
    struct stat st;
    DIR *d = opendir(f->path);
    if (!d)
        return n > f->root ? OK : err_set(f->err, ERR_IO, "%s: %s", f->path, strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        size_t m = n + 1 + strlen(e->d_name);
        snprintf(f->path + n, FIND_PATH - n, "/%s", e->d_name);
        if (*e->d_name == '.' || m >= FIND_PATH || lstat(f->path, &st) != 0)
            continue;
        if (n == f->root && strncmp(e->d_name, "model.safetensors", 17) == 0)
            f->whole = true; /* or model.safetensors.index.json */
        if (S_ISDIR(st.st_mode) && deep)
            find_walk(f, m, deep - 1);
        if (S_ISDIR(st.st_mode) || !find_picks(f->path + f->root + 1, e->d_name, f->type))
            continue;
        if (!f->found++)
            memcpy(f->first, f->path, m + 1);
        find_list(f, e->d_name);
    }
    closedir(d);
    f->path[n] = '\0';
    return OK;
}

/* Choose in the folder out: the folder itself, or one of its GGUF files. */
static int find_in_folder(char out[FIND_PATH], struct find *f)
{
    size_t n = f->root = strlen(out);
    memcpy(f->path, out, n + 1);
    int code = find_walk(f, n, f->type || f->cached ? DEEP : 0);
    bool folder = !f->type && (f->whole || !f->found); /* its reader says what is missing in it */
    if (code == OK && !folder && f->found == 1)
        memcpy(out, f->first, FIND_PATH);
    if (code != OK || folder || f->found == 1)
        return code;
    bool none = !f->found;
    if (none) {
        f->type = NULL;
        find_walk(f, n, DEEP);
    }
    const char *text = f->found ? f->text : "none, ";
    return err_set(f->err, none ? ERR_IO : ERR_FORMAT,
                   "%s: expected NAME:TYPE for one GGUF file, found %.*s%s%s", f->name,
                   (int)strlen(text) - 2, text, none && f->cached ? fetch : "",
                   none && f->cached ? f->name : "");
}

/* Choose in the snapshot that the cache has of ORG/NAME. */
static int find_in_cache(char out[FIND_PATH], struct find *f)
{
    static const char *const names[] = { "HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME" };
    static const char *const hubs[] = { "", "/hub", "/huggingface/hub", "/.cache/huggingface/hub" };
    const char *given = NULL, *rest = "";
    char hash[HASH_MAX + 2] = "";
    for (size_t i = 0; i < 4 && (!given || !*given); i++) {
        given = getenv(names[i]);
        rest = hubs[i];
    }
    int org = (int)strcspn(f->name, "/"), name = (int)strcspn(f->name + org + 1, ":");
    int n = snprintf(out, FIND_PATH, "%s%s/%s%.*s--%.*s", given ? given : "", rest, prefix, org,
                     f->name, name, f->name + org + 1);
    if (n + HASH_MAX + 16 > FIND_PATH)
        return err_set(f->err, ERR_IO, "%s: %s", out, strerror(ENAMETOOLONG));
    snprintf(out + n, FIND_PATH - (size_t)n, "/refs/main");
    int fd = open(out, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait */
    if (fd < 0 && errno != ENOENT)
        return err_set(f->err, ERR_IO, "%s: %s", out, strerror(errno));
    if (fd >= 0) {
        size_t h = read(fd, hash, sizeof(hash) - 1) > 0 ? strspn(hash, "0123456789abcdef") : 0;
        close(fd);
        if (!h || h > HASH_MAX || (hash[h] && strcmp(hash + h, "\n") != 0))
            return err_set(f->err, ERR_FORMAT, "%s: expected a commit's hash, found none", out);
        snprintf(out + n, FIND_PATH - (size_t)n, "%s%.*s", snapshots, (int)h, hash);
    }
    f->cached = true;
    if (find_is_folder(out))
        return find_in_folder(out, f);
    return err_set(f->err, ERR_IO, "%s: no such file or folder, and the cache has no %s%s%s",
                   f->name, out, fetch, f->name);
}

int find_model(char out[FIND_PATH], const char *name, struct err *err)
{
    struct find f = { .name = name, .err = err };
    const char *colon = strrchr(name, ':');
    struct stat st;
    size_t n = strlen(name);
    if (n >= FIND_PATH)
        return err_set(err, ERR_IO, "%s: %s", name, strerror(ENAMETOOLONG));
    memcpy(out, name, n + 1);
    if (stat(out, &st) == 0)
        return S_ISDIR(st.st_mode) ? find_in_folder(out, &f) : OK;
    int missing = errno;
    if (colon && colon > name && colon[1] && !strchr(colon, '/')) {
        f.type = colon + 1;
        out[colon - name] = '\0';
        if (find_is_folder(out))
            return find_in_folder(out, &f);
    }
    if (missing != ENOENT || !find_is_name(out) || (f.type && !find_plain(f.type)))
        return err_set(err, ERR_IO, "%s: %s", name, strerror(missing));
    return find_in_cache(out, &f);
}
