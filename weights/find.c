#include "weights/find.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dirent.h>

#include "kernels/sys/base.h"
#include "weights/find_gguf.h"

enum { PART_MAX = 96, HASH_MAX = 64 };

static const char prefix[] = "models--", snapshots[] = "/snapshots/";

/* Write a path; false if it is too long. */
__attribute__((format(printf, 2, 3))) static bool find_path(char out[FIND_PATH], const char *fmt,
                                                            ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(out, FIND_PATH, fmt, ap);
    va_end(ap);
    return n >= 0 && n < FIND_PATH;
}

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

/* ---- names ---- */

/* True for bytes that need no quotes in a shell and have no meaning there. */
static bool find_plain(const char *s, size_t n)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    for (size_t i = 0; i < n; i++)
        if (!s[i] || !strchr(fine, s[i]))
            return false;
    return n > 0;
}

/* True for one half of a repository's name. Hugging Face's rules: letters, digits, - . and _, not
 * doubled - or ., which would make the cache's folders ambiguous, and none at the ends. */
static bool find_is_part(const char *s, size_t n)
{
    if (!find_plain(s, n) || n > PART_MAX || strchr("-.", s[0]) || strchr("-.", s[n - 1]))
        return false;
    for (size_t i = 1; i < n; i++)
        if (s[i] == s[i - 1] && strchr("-.", s[i]))
            return false;
    return true;
}

/* True for ORG/NAME[n]; what ends like a file's name is taken for a path that does not exist. */
static bool find_is_repository(const char *s, size_t n)
{
    static const char *const files[] = { ".gguf", ".safetensors", ".json", ".pth", ".pt", ".bin" };
    const char *slash = memchr(s, '/', n);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        size_t end = strlen(files[i]);
        if (n >= end && strncmp(s + n - end, files[i], end) == 0)
            return false;
    }
    return slash && find_is_part(s, (size_t)(slash - s)) &&
           find_is_part(slash + 1, n - (size_t)(slash - s) - 1);
}

/* Return the decimal number in five digits; false if they are none. */
static bool find_five(const char *s, unsigned *out)
{
    *out = 0;
    for (unsigned i = 0; i < 5; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        *out = *out * 10 + (unsigned)(s[i] - '0');
    }
    return true;
}

bool find_shard(const char *path, size_t *stem, unsigned *number, unsigned *count)
{
    static const char form[] = "-00001-of-00003.gguf";
    size_t n = strlen(path), m = sizeof(form) - 1;
    const char *end = n > m ? path + n - m : NULL; /* "-00001..." */
    if (!end || end[-1] == '/' || end[0] != '-' || !find_five(end + 1, number) ||
        memcmp(end + 6, "-of-", 4) != 0 || !find_five(end + 10, count) ||
        strcmp(end + 15, form + 15) != 0)
        return false;
    *stem = n - m;
    return *number >= 1 && *number <= *count;
}

/* ---- the cache ---- */

/* Return an environment variable, or NULL if it is not set or empty. */
static const char *find_variable(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

/* Write the folder of the cache; false if no variable gives it or it is too long. */
static bool find_cache(char out[FIND_PATH])
{
    const char *hub = find_variable("HF_HUB_CACHE"), *home = find_variable("HF_HOME");
    const char *cache = find_variable("XDG_CACHE_HOME"), *user = find_variable("HOME");
    const char *given = hub ? hub : home ? home : cache;
    const char *rest = hub ? "" : home ? "/hub" : "/huggingface/hub";
    if (given && given[0] == '~' && given[1] == '/' && user)
        return find_path(out, "%s%s%s", user, given + 1, rest);
    if (given)
        return find_path(out, "%s%s", given, rest);
    return user && find_path(out, "%s/.cache%s", user, rest);
}

/* Find the last "models--ORG--NAME/snapshots/COMMIT" in a path. *name and *name_n become
 * "ORG--NAME", and *rest what follows COMMIT/, perhaps nothing. */
static bool find_in_snapshot(const char *path, const char **name, size_t *name_n, const char **rest)
{
    const char *found = NULL, *p = path;
    while ((p = strstr(p, snapshots)) != NULL)
        found = p++;
    if (!found)
        return false;
    const char *start = found;
    while (start > path && start[-1] != '/')
        start--;
    size_t n = (size_t)(found - start), skip = sizeof(prefix) - 1;
    if (n <= skip || memcmp(start, prefix, skip) != 0)
        return false;
    const char *commit = found + sizeof(snapshots) - 1;
    size_t hash = strcspn(commit, "/");
    *name = start + skip;
    *name_n = n - skip;
    *rest = commit + hash + strspn(commit + hash, "/");
    return hash > 0;
}

bool find_repository(char out[FIND_PATH], const char *path)
{
    const char *name, *rest;
    size_t n;
    return find_in_snapshot(path, &name, &n, &rest) &&
           find_path(out, "%.*s", (int)(name + n - path), path);
}

void find_hint(char *out, size_t room, const char *path)
{
    const char *name, *rest;
    size_t n, org = 0;
    *out = '\0';
    if (!find_in_snapshot(path, &name, &n, &rest))
        return;
    while (org + 1 < n && memcmp(name + org, "--", 2) != 0)
        org++;
    if (!find_is_part(name, org) || org + 2 >= n || !find_is_part(name + org + 2, n - org - 2))
        return;
    bool file = *rest != '\0';
    for (size_t i = 0; rest[i]; i++)
        file = file && (rest[i] == '/' || find_plain(rest + i, 1));
    snprintf(out, room, "; to fetch it: hf download %.*s/%.*s%s%s", (int)org, name,
             (int)(n - org - 2), name + org + 2, file ? " " : "", file ? rest : "");
}

int find_no_pointer(const char *path, const void *p, size_t n, struct err *err)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    char hint[300];
    if (n < sizeof(begin) - 1 || memcmp(p, begin, sizeof(begin) - 1) != 0)
        return OK;
    find_hint(hint, sizeof(hint), path);
    return err_set(err, ERR_FORMAT, "%s: expected the file itself, found a Git LFS pointer%s", path,
                   *hint ? hint : "; to fetch it: git lfs pull in its folder, or hf download");
}

/* A name that is looked for in the cache. */
struct wanted {
    const char *name; /* as the user wrote it */
    size_t n;         /* bytes of ORG/NAME in it */
    const char *type; /* or NULL */
    struct err *err;
};

/* The longest command: names of 96 bytes each, three times, and four bytes for each of 40 letters
 * of a type, which stands there twice more. */
enum { COMMAND = 896 };
static const char script[] = "tools/download.sh"; /* which is not installed */

/* Append that the script fetches NAME, GGUF and TYPE, if it is here. */
static size_t find_script(char *out, size_t room, const struct wanted *w, const char *gguf,
                          const char *type)
{
    if (access(script, R_OK) != 0)
        return 0;
    return (size_t)snprintf(out, room, ", or sh %s %.*s%s%s", script, (int)w->n, w->name, gguf,
                            type);
}

/* Write "; to fetch it: hf download ..., or ..." for what is wanted. hf's patterns respect case and
 * publishers do not agree on it, hence [qQ]. They do keep GGUF files in a repository of their own,
 * NAME-GGUF, which is meant with a type unless this repository is known to have some. */
static void find_command(char out[COMMAND], const struct wanted *w, bool has_some)
{
    size_t room = COMMAND;
    size_t at = (size_t)snprintf(out, room, "; to fetch it: hf download %.*s", (int)w->n, w->name);
    if (!w->type || !find_plain(w->type, strlen(w->type)) || strlen(w->type) > 40) {
        find_script(out + at, room - at, w, "", "");
        return;
    }
    bool named = w->n > 5 && strncasecmp(w->name + w->n - 5, "-GGUF", 5) == 0;
    const char *gguf = has_some || named ? "" : "-GGUF";
    at += (size_t)snprintf(out + at, room - at, "%s --include '*", gguf);
    for (const char *p = w->type; *p; p++) {
        int low = *p >= 'A' && *p <= 'Z' ? *p + 32 : *p, high = low;
        if (low >= 'a' && low <= 'z')
            high = low - 32;
        at += (size_t)snprintf(out + at, room - at, low == high ? "%c" : "[%c%c]", low, high);
    }
    char type[48];
    snprintf(type, sizeof(type), ":%s", w->type);
    at += (size_t)snprintf(out + at, room - at, "*'");
    at += find_script(out + at, room - at, w, gguf, type);
    if (*gguf)
        snprintf(out + at, room - at, ", then -m %.*s-GGUF:%s", (int)w->n, w->name, w->type);
}

/* Say that the cache does not have what is wanted, and how to fetch it. */
static int find_absent(const struct wanted *w, int code, const char *what)
{
    char command[COMMAND];
    find_command(command, w, false);
    return err_set(w->err, code, "%s: %s%s", w->name, what, command);
}

/* Read the commit in refs/main. *commit stays empty if there is no such file. */
static int find_main(char commit[HASH_MAX + 2], const char *repository, const struct wanted *w)
{
    char path[FIND_PATH], text[HASH_MAX + 2] = "";
    struct stat st;
    *commit = '\0';
    if (!find_path(path, "%s/refs/main", repository))
        return err_set(w->err, ERR_IO, "%s: %s", repository, strerror(ENAMETOOLONG));
    if (stat(path, &st) != 0)
        return errno == ENOENT ? OK : err_set(w->err, ERR_IO, "%s: %s", path, strerror(errno));
    FILE *f = S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    if (f)
        fclose(f);
    while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        text[--n] = '\0';
    if (!n || n > HASH_MAX || strspn(text, "0123456789abcdef") != n)
        return err_set(w->err, ERR_FORMAT, "%s: expected the hash of a commit, found other bytes",
                       path);
    memcpy(commit, text, n + 1);
    return OK;
}

/* Write the only snapshot of a repository, for want of refs/main. */
static int find_only(char out[FIND_PATH], const char *repository, const struct wanted *w)
{
    char path[FIND_PATH], one[FIND_PATH];
    size_t n = 0;
    DIR *d = find_path(path, "%s/snapshots", repository) ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' && find_path(one, "%s/%s", path, e->d_name) && find_is_folder(one))
            if (!n++)
                memcpy(out, one, sizeof(one));
    if (d)
        closedir(d);
    if (n > 1) {
        char what[80];
        snprintf(what, sizeof(what), "the cache has %zu snapshots and no refs/main", n);
        return find_absent(w, ERR_FORMAT, what);
    }
    return n ? OK : find_absent(w, ERR_IO, "the cache has no snapshot of it");
}

/* Write the folder of the snapshot that is wanted. */
static int find_snapshot(char out[FIND_PATH], const struct wanted *w)
{
    char cache[FIND_PATH], repository[FIND_PATH], commit[HASH_MAX + 2];
    size_t org = (size_t)((const char *)memchr(w->name, '/', w->n) - w->name);
    if (!find_cache(cache))
        return find_absent(w, ERR_IO, "no such file or folder, and HOME names no cache");
    if (!find_path(repository, "%s/models--%.*s--%.*s", cache, (int)org, w->name,
                   (int)(w->n - org - 1), w->name + org + 1))
        return err_set(w->err, ERR_IO, "%s: %s", cache, strerror(ENAMETOOLONG));
    if (!find_is_folder(repository)) {
        char command[COMMAND];
        find_command(command, w, false);
        return err_set(w->err, ERR_IO, "%s: no such file or folder, and not in %s%s", w->name,
                       cache, command);
    }
    int code = find_main(commit, repository, w);
    if (code != OK || !*commit)
        return code == OK ? find_only(out, repository, w) : code;
    if (!find_path(out, "%s%s%s", repository, snapshots, commit))
        return err_set(w->err, ERR_IO, "%s: %s", repository, strerror(ENAMETOOLONG));
    return find_is_folder(out) ? OK : find_absent(w, ERR_IO, "the cache has no snapshot of it");
}

/* ---- folders ---- */

/* True for a folder with Hugging Face's weights. A link to nothing counts, so that the error is
 * about what is missing there. */
static bool find_has_safetensors(const char *folder)
{
    static const char *const files[] = { "model.safetensors", "model.safetensors.index.json" };
    char path[FIND_PATH];
    struct stat st;
    for (size_t i = 0; i < 2; i++)
        if (find_path(path, "%s/%s", folder, files[i]) && lstat(path, &st) == 0)
            return true;
    return false;
}

/* Choose in a folder: the folder itself, or one of its GGUF files. out and folder may be the
 * same. */
static int find_in_folder(char out[FIND_PATH], const char *folder, bool cached,
                          const struct wanted *w)
{
    char path[FIND_PATH], text[GGUF_LIST_TEXT], command[COMMAND] = "";
    struct gguf_list l = { 0 };
    size_t at, found;
    int code = find_path(path, "%s", folder)
                   ? OK
                   : err_set(w->err, ERR_IO, "%s: %s", folder, strerror(ENAMETOOLONG));
    bool whole = !w->type && find_has_safetensors(folder);
    if (code == OK && !whole)
        code = gguf_list_read(&l, folder, cached || w->type || strstr(folder, snapshots), w->err);
    gguf_list_pick(&l, w->type, &at, &found);
    if (code == OK && !whole && found == 1) {
        if (!find_path(path, "%s/%s", folder, l.names[at]))
            code = err_set(w->err, ERR_IO, "%s: %s", folder, strerror(ENAMETOOLONG));
    } else if (code == OK && found > 1) {
        gguf_list_text(text, &l, w->type);
        code = err_set(w->err, ERR_FORMAT, "%s: expected %s, found %s", w->name,
                       w->type ? "a name of one file after the colon" : "NAME:TYPE, one GGUF file",
                       text);
    } else if (code == OK && w->type) {
        if (cached)
            find_command(command, w, l.n);
        gguf_list_text(text, &l, NULL);
        code = err_set(w->err, ERR_IO, "%s: expected a GGUF file of this type, found %s%s", w->name,
                       l.n ? text : "none", command);
    }
    gguf_list_free(&l);
    if (code == OK) /* else the folder: its reader says what is missing in it */
        memcpy(out, path, sizeof(path));
    return code;
}

int find_model(char out[FIND_PATH], const char *name, struct err *err)
{
    const char *colon = strrchr(name, ':');
    struct wanted w = { name, strlen(name), NULL, err };
    struct stat st;
    *out = '\0';
    if (w.n >= FIND_PATH)
        return err_set(err, ERR_IO, "%s: %s", name, strerror(ENAMETOOLONG));
    if (stat(name, &st) == 0 && !S_ISDIR(st.st_mode)) {
        memcpy(out, name, w.n + 1);
        return OK;
    }
    int missing = errno;
    if (stat(name, &st) == 0)
        return find_in_folder(out, name, false, &w);
    if (colon && colon > name && colon[1] && !strchr(colon, '/')) {
        w.n = (size_t)(colon - name);
        w.type = colon + 1;
        find_path(out, "%.*s", (int)w.n, name);
        if (stat(out, &st) == 0 && !S_ISDIR(st.st_mode))
            return err_set(err, ERR_FORMAT, "%s: expected a folder before the colon, found a file",
                           name);
        if (stat(out, &st) == 0)
            return find_in_folder(out, out, false, &w);
    }
    if (missing != ENOENT || !find_is_repository(name, w.n))
        return err_set(err, ERR_IO, "%s: %s", name, strerror(missing));
    int code = find_snapshot(out, &w);
    return code == OK ? find_in_folder(out, out, true, &w) : code;
}
