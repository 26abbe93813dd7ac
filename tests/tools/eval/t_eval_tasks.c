/* Run eval_tasks.sh beside a cloud that knows texts: where a prefix begins as a line of the file
 * $KNOWN does, {"prompt": ..., "cot": ...}, it writes what follows there, else nothing. The script
 * writes the file anew when other texts are to be known. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "tests/support/files.h"
#include "tools/lab/stand_in/stand_in.h"

enum { IDS = 512 };

static const char model[] = "weights/milli/edge-0.5.gguf";
static const char *path;
static struct tokenizer *tok;

/* Append the ids of a text to ids[*n]. */
static void append(uint32_t *ids, size_t *n, const char *text)
{
    uint32_t *more;
    size_t count;
    struct err err;
    CHECK(tokenizer_encode(tok, &more, &count, text, strlen(text), false, &err) == OK);
    CHECK(*n + count <= IDS);
    memcpy(ids + *n, more, count * sizeof(*more));
    *n += count;
    free(more);
}

/* The token after ids[n], by the first line whose prompt and text begin so. */
static uint32_t next(void *arg, const uint32_t *ids, size_t n)
{
    uint32_t eos, found;
    FILE *file = fopen(path, "r");
    CHECK(file && tokenizer_eos(tok, &eos));
    found = eos;
    for (json_t *line; (line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL;) {
        uint32_t known[IDS];
        size_t prompt = 0, all;
        char text[256];
        append(known, &prompt, json_string_value(json_object_get(line, "prompt")));
        all = prompt;
        snprintf(text, sizeof(text), " %s", json_string_value(json_object_get(line, "cot")));
        append(known, &all, text);
        json_decref(line);
        if (n >= prompt && n < all && memcmp(known, ids, n * sizeof(*ids)) == 0) {
            found = known[n];
            break;
        }
    }
    fclose(file);
    (void)arg;
    return found;
}

int main(void)
{
    struct err err = { "" };
    struct stand_in *s;
    const char *run = getenv("RUN");
    if (access(model, R_OK) || (run && *run))
        SKIP("%s", run && *run ? "scripts start the program themselves"
                               : "no demo pair in weights/milli");
    path = in_scratch("known");
    CHECK(tokenizer_open_path(&tok, model, &err) == OK);
    const struct stand_in_oracle oracle = { .next = next, .tokenizer = tok };
    const struct stand_in_options o = { .oracle = &oracle };
    CHECK(stand_in_open(&s, &o, &err) == OK);
    CHECK(setenv("KNOWN", path, 1) == 0 && setenv("KNOWN_URL", stand_in_url(s), 1) == 0);
    int status = system("sh tests/tools/eval/eval_tasks.sh"); /* NOLINT: no input in the command */
    stand_in_close(s);
    tokenizer_close(tok);
    return status ? 1 : 0;
}
