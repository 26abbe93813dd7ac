#include "tools/cli/demo_questions.h"

#include <stdio.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "tools/cli/demo_files.h"

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
