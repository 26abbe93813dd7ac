#define _XOPEN_SOURCE 700 /* realpath */
#include "tools/cli/demo_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"

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

const char *demo_question_text(const json_t *question, const char *key)
{
    return json_string_value(json_object_get(question, key));
}

int demo_questions_read(json_t **out, size_t n, struct err *err)
{
    const char *path = demo_files_path(DEMO_QUESTIONS);
    FILE *f = path ? fopen(path, "r") : NULL;
    int rc = OK;
    *out = NULL;
    if (!f)
        return err_set(err, ERR_IO, "the demo's questions are not found (weights/milli/%s)",
                       DEMO_QUESTIONS);
    json_t *all = json_array();
    for (size_t i = 0; rc == OK && i < n; i++) {
        json_t *one = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL);
        if (!demo_question_text(one, "prompt") || !demo_question_text(one, "answer"))
            rc =
                err_set(err, ERR_FORMAT,
                        "%s: line %zu: expected a JSON object with prompt and answer", path, i + 1);
        else if (json_array_append(all, one) != 0)
            rc = err_set(err, ERR_NOMEM, "%s: out of memory", path);
        json_decref(one);
    }
    fclose(f);
    if (rc == OK)
        *out = all;
    else
        json_decref(all);
    return rc;
}

int demo_question(json_t **out, size_t n, uint64_t seed, struct err *err)
{
    json_t *all;
    *out = NULL;
    if (n >= DEMO_QUESTIONS_COUNT)
        return err_set(err, ERR_ARG, "--question: expected 0 to %d, found %zu",
                       DEMO_QUESTIONS_COUNT - 1, n);
    size_t at = seed == 1 ? n : (size_t)rand_below(seed, n, DEMO_QUESTIONS_COUNT);
    int rc = demo_questions_read(&all, at + 1, err);
    if (rc != OK)
        return rc;
    *out = json_incref(json_array_get(all, at));
    json_decref(all);
    return OK;
}
