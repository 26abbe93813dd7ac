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
#include "tests/support/rude.h"

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
static uint32_t next(const uint32_t *ids, size_t n)
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
    return found;
}

/* Return a completion of llama.cpp's: ids until the text ends. */
static json_t *complete(const json_t *in)
{
    uint32_t ids[2 * IDS], eos;
    const json_t *list = json_object_get(in, "prompt");
    size_t n = json_array_size(list), made = 0;
    size_t want = (size_t)json_integer_value(json_object_get(in, "n_predict"));
    json_t *tokens = json_array();
    CHECK(n + want <= 2 * IDS && tokenizer_eos(tok, &eos));
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    for (; made < want && (!made || ids[n + made - 1] != eos); made++) {
        ids[n + made] = next(ids, n + made);
        json_array_append_new(tokens, json_integer(ids[n + made]));
    }
    return json_pack("{s:s,s:o,s:b,s:s,s:I}", "content", "", "tokens", tokens, "stop", 1,
                     "stop_type", made && ids[n + made - 1] == eos ? "eos" : "limit",
                     "tokens_predicted", (json_int_t)made);
}

/* Return the ids of a text, so that the client finds the tokenizer to be its own. */
static json_t *cut(const json_t *in)
{
    const json_t *text = json_object_get(in, "content");
    uint32_t *ids;
    size_t n;
    json_t *list = json_array();
    CHECK(json_is_string(text) &&
          tokenizer_encode_part(tok, &ids, &n, json_string_value(text), json_string_length(text),
                                true, NULL) == OK);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    free(ids);
    return json_pack("{s:o}", "tokens", list);
}

/* Answer as llama.cpp's server does. */
static bool answer(const struct rude_request *r)
{
    json_t *in = json_loadb(r->body, r->n, 0, NULL), *out;
    if (strcmp(r->path, "/completion") == 0)
        out = complete(in);
    else if (strcmp(r->path, "/tokenize") == 0)
        out = cut(in);
    else
        out = json_pack("{s:[{s:s,s:{s:i}}]}", "data", "id", "known", "meta", "n_ctx", 2 * IDS);
    char *text = json_dumps(out, JSON_COMPACT);
    json_decref(in);
    json_decref(out);
    CHECK(text);
    bool stays = rude_json(r, "200 OK", text);
    free(text);
    return stays;
}

int main(void)
{
    struct err err = { "" };
    const char *run = getenv("RUN");
    if (access(model, R_OK) || (run && *run))
        SKIP("%s", run && *run ? "scripts start the program themselves"
                               : "no demo pair in weights/milli");
    path = in_scratch("known");
    CHECK(tokenizer_open_path(&tok, model, &err) == OK);
    struct rude *s = rude_open(answer);
    CHECK(setenv("KNOWN", path, 1) == 0 && setenv("KNOWN_URL", rude_url(s), 1) == 0);
    int status = system("sh tests/tools/eval/eval_tasks.sh"); /* NOLINT: no input in the command */
    rude_close(s);
    tokenizer_close(tok);
    return status ? 1 : 0;
}
