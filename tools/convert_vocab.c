#include "tools/convert.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "tools/cli/input_file.h"
#include "weights/gguf_write.h"

enum { PATH_SIZE = 4096, CONFIG_MAX = 8 << 20, TYPE_UNUSED = 5, TYPE_MASK = 15, PAD_ROOM = 24 };

/* True if the folder holds a regular file of that name. */
static bool folder_has(const char *folder, const char *file)
{
    char path[PATH_SIZE];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/%s", folder, file);
    return n > 0 && n < PATH_SIZE && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Write tokens and token types for all rows of the embedding; rows without a token become padding.
 * Say on stderr what the file cannot hold of added tokens. */
static int write_tokens(struct ggufw *g, const struct tokenizer *t, size_t rows)
{
    size_t used = tokenizer_npieces(t), lost = 0;
    struct str *pieces = calloc(rows ? rows : 1, sizeof(*pieces));
    int32_t *types = calloc(rows ? rows : 1, sizeof(*types));
    char(*pads)[PAD_ROOM] = calloc(rows ? rows : 1, sizeof(*pads));
    int code = pieces && types && pads ? OK : ERR_NOMEM;
    for (size_t i = 0; code == OK && i < rows; i++) {
        int type = TYPE_UNUSED;
        if (i < used)
            tokenizer_piece(t, (uint32_t)i, &pieces[i], &type);
        if (i >= used || !pieces[i].n) {
            pieces[i].n = (size_t)snprintf(pads[i], PAD_ROOM, "[PAD%zu]", i);
            pieces[i].p = pads[i];
            type = TYPE_UNUSED;
        }
        types[i] = type & TYPE_MASK;
        lost += type > TYPE_MASK;
    }
    if (lost)
        fprintf(stderr, "mizzle convert: lost: lstrip, rstrip, normalized of %zu tokens\n", lost);
    if (code == OK) {
        ggufw_strs(g, "tokenizer.ggml.tokens", pieces, rows);
        ggufw_i32s(g, "tokenizer.ggml.token_type", types, rows);
    }
    free(pieces);
    free(types);
    free(pads);
    return code;
}

static int write_merges(struct ggufw *g, const struct tokenizer *t)
{
    size_t n = tokenizer_nmerges(t);
    struct str *merges = calloc(n ? n : 1, sizeof(*merges)), left, right;
    size_t bytes = 1;
    for (size_t i = 0; i < n; i++) {
        tokenizer_merge(t, i, &left, &right);
        bytes += left.n + right.n + 1;
    }
    char *lines = malloc(bytes), *at = lines;
    for (size_t i = 0; merges && lines && i < n; i++) {
        tokenizer_merge(t, i, &left, &right);
        merges[i] = (struct str){ at, left.n + right.n + 1 };
        memcpy(at, left.p, left.n);
        at[left.n] = ' ';
        memcpy(at + left.n + 1, right.p, right.n);
        at += merges[i].n;
    }
    if (merges && lines)
        ggufw_strs(g, "tokenizer.ggml.merges", merges, n);
    int rc = merges && lines ? OK : ERR_NOMEM;
    free(merges);
    free(lines);
    return rc;
}

/* Write one special id: that of "eos_token": "TEXT" or {"content": "TEXT"} in
 * tokenizer_config.json, else the number from config.json, which w holds under the key. Return it,
 * or UINT32_MAX. */
static uint32_t write_id(struct ggufw *g, const struct weights *w, const struct tokenizer *t,
                         const json_t *config, const char *name, const char *key)
{
    const json_t *v = json_object_get(config, name);
    const char *text = json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
    uint32_t id = UINT32_MAX;
    uint64_t number;
    if (!(text && tokenizer_special(t, text, &id)) && weights_u64(w, key, &number) &&
        number < tokenizer_npieces(t))
        id = (uint32_t)number;
    if (id != UINT32_MAX)
        ggufw_u32(g, key, id);
    return id;
}

/* Write the ids that end an answer besides eos and besides those that readers know by their text.
 * GGUF holds two; say on stderr which others are lost. */
static void write_ends(struct ggufw *g, const struct tokenizer *t, uint32_t eos)
{
    static const char *const keys[] = { "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id" };
    size_t n = 0;
    uint32_t known[2] = { eos, eos };
    tokenizer_special(t, "<|im_end|>", &known[0]);
    tokenizer_special(t, "<|endoftext|>", &known[1]);
    for (uint32_t id = 0; id < tokenizer_npieces(t); id++) {
        if (!tokenizer_is_eog(t, id) || id == eos || id == known[0] || id == known[1])
            continue;
        if (n < 2)
            ggufw_u32(g, keys[n++], id);
        else
            fprintf(stderr, "mizzle convert: lost: token %u as an end of text\n", (unsigned)id);
    }
}

/* Write special ids from tokenizer_config.json, which a folder need not have, and the chat
 * template, wherever it lies. */
static int convert_vocab_write_config(struct ggufw *g, const struct weights *w,
                                      const struct tokenizer *t, struct err *err)
{
    char path[PATH_SIZE], *text;
    size_t n;
    uint32_t bos;
    json_t *config = NULL;
    if (folder_has(weights_path(w), "tokenizer_config.json")) {
        snprintf(path, sizeof(path), "%s/tokenizer_config.json", weights_path(w));
        int code = input_file_read(&text, &n, path, CONFIG_MAX, err);
        if (code != OK)
            return code;
        config = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
        free(text);
        if (!config) /* the tokenizer has read it */
            return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    }
    if (tokenizer_bos(t, &bos))
        ggufw_u32(g, "tokenizer.ggml.bos_token_id", bos);
    else
        write_id(g, w, t, config, "bos_token", "tokenizer.ggml.bos_token_id");
    write_ends(g, t, write_id(g, w, t, config, "eos_token", "tokenizer.ggml.eos_token_id"));
    write_id(g, w, t, config, "pad_token", "tokenizer.ggml.padding_token_id");
    ggufw_bool(g, "tokenizer.ggml.add_bos_token", tokenizer_bos(t, &bos));
    if (tokenizer_template(t))
        ggufw_str(g, "tokenizer.chat_template", tokenizer_template(t));
    json_decref(config);
    return OK;
}

int convert_vocab(struct ggufw *g, const struct weights *w, size_t rows, struct err *err)
{
    const char *folder = weights_path(w);
    if (!folder_has(folder, "tokenizer.json") && !folder_has(folder, "vocab.json")) {
        ggufw_str(g, "tokenizer.ggml.model", "no_vocab");
        return OK;
    }
    struct tokenizer *t;
    int code = tokenizer_open_path(&t, folder, err);
    if (code != OK)
        return code;
    if (tokenizer_npieces(t) > rows) {
        code = err_set(err, ERR_FORMAT, "%s: expected at most %zu tokens, found %zu", folder, rows,
                       tokenizer_npieces(t));
    } else {
        ggufw_str(g, "tokenizer.ggml.model", "gpt2");
        ggufw_str(g, "tokenizer.ggml.pre", "qwen2");
        if (write_tokens(g, t, rows) != OK || write_merges(g, t) != OK)
            code = err_set(err, ERR_NOMEM, "%s: out of memory", folder);
        else
            code = convert_vocab_write_config(g, w, t, err);
    }
    tokenizer_close(t);
    return code;
}
