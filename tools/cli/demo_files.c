#include "tools/cli/demo_files.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

const char *demo_files_program;

/* Write "dir[n]/file" to out; false if it does not fit. */
static bool demo_files_join(char out[PATH_SIZE], const char *dir, size_t n, const char *file)
{
    int len = snprintf(out, PATH_SIZE, "%.*s/%s", (int)n, dir, file);
    return len > 0 && len < PATH_SIZE;
}

/* Return the length of the folder part of a path that has a slash. */
static size_t demo_files_dir_length(const char *path)
{
    return (size_t)(strrchr(path, '/') - path);
}

/* Find an executable in the folders of PATH, as a shell does. */
static bool demo_files_search_path(char out[PATH_SIZE], const char *name)
{
    for (const char *p = getenv("PATH"); p && *p;) {
        size_t n = strcspn(p, ":");
        if (n && n < PATH_SIZE && demo_files_join(out, p, n, name) && access(out, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* Find the file that is running, and follow symbolic links. */
static bool demo_files_program_path(char out[PATH_SIZE])
{
    char link[PATH_SIZE], next[PATH_SIZE];
    if (access("/proc/self/exe", F_OK) == 0)
        snprintf(out, PATH_SIZE, "/proc/self/exe");
    else if (!demo_files_program)
        return false;
    else if (strchr(demo_files_program, '/'))
        snprintf(out, PATH_SIZE, "%s", demo_files_program);
    else if (!demo_files_search_path(out, demo_files_program))
        return false;
    for (int hops = 0; hops < 16; hops++) {
        ssize_t n = readlink(out, link, sizeof(link) - 1);
        if (n < 0)
            return strchr(out, '/') != NULL;
        link[n] = '\0';
        if (link[0] == '/')
            snprintf(next, sizeof(next), "%s", link);
        else if (!demo_files_join(next, out, demo_files_dir_length(out), link))
            return false;
        memcpy(out, next, sizeof(next));
    }
    return false;
}

/* Take each "/NAME/.." out of a path. */
static void demo_files_fold(char *path)
{
    for (char *up, *name; (up = strstr(path, "/../"));) {
        *up = '\0';
        name = strrchr(path, '/');
        *up = '/';
        if (!name)
            return;
        memmove(name, up + 3, strlen(up + 3) + 1);
    }
}

/* Return a copy that stays valid until four other paths were asked for. */
static const char *demo_files_keep(const char *path)
{
    static char kept[4][PATH_SIZE];
    static size_t turn;
    for (size_t i = 0; i < 4; i++)
        if (strcmp(kept[i], path) == 0)
            return kept[i];
    char *out = kept[turn++ % 4];
    memcpy(out, path, strlen(path) + 1);
    return out;
}

const char *demo_files_path(const char *file)
{
    /* For programs in build/ARCH-MODE/, its exercises/ and tests/FOLDER/, and in PREFIX/bin/. */
    static const char *const beside[] = { "../../weights/milli", "../../../weights/milli",
                                          "../../../../weights/milli", "../share/mizzle/milli" };
    char program[PATH_SIZE], dir[PATH_SIZE], out[PATH_SIZE];
    const char *named = getenv("MIZZLE_DEMO");
    if (named && *named)
        return demo_files_join(out, named, strlen(named), file) && access(out, R_OK) == 0
                   ? demo_files_keep(out)
                   : NULL;
    if (!demo_files_program_path(program))
        return NULL;
    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++)
        if (demo_files_join(dir, program, demo_files_dir_length(program), beside[i]) &&
            demo_files_join(out, dir, strlen(dir), file) && access(out, R_OK) == 0) {
            demo_files_fold(out);
            return demo_files_keep(out);
        }
    return NULL;
}
