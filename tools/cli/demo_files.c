#define _XOPEN_SOURCE 700 /* realpath */
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

/* Find the folder of the file that is running, behind symbolic links. */
static bool demo_files_program_folder(char out[PATH_SIZE])
{
    char name[PATH_SIZE] = "/proc/self/exe";
    if (access(name, F_OK) != 0) {
        if (!demo_files_program)
            return false;
        if (strchr(demo_files_program, '/'))
            snprintf(name, sizeof(name), "%s", demo_files_program);
        else if (!demo_files_search_path(name, demo_files_program))
            return false;
    }
    char *slash = realpath(name, out) ? strrchr(out, '/') : NULL;
    if (slash)
        *slash = '\0';
    return slash;
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
    char folder[PATH_SIZE], name[PATH_SIZE], out[PATH_SIZE];
    const char *named = getenv("MIZZLE_DEMO");
    if (named && *named)
        return demo_files_join(out, named, strlen(named), file) && access(out, R_OK) == 0
                   ? demo_files_keep(out)
                   : NULL;
    if (!demo_files_program_folder(folder))
        return NULL;
    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++)
        if (snprintf(name, sizeof(name), "%s/%s/%s", folder, beside[i], file) < PATH_SIZE &&
            realpath(name, out) && access(out, R_OK) == 0)
            return demo_files_keep(out);
    return NULL;
}
