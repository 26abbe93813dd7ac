#include "tools/convert_vocab.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "weights/gguf_write.h"

enum { PATH_SIZE = 4096, CONFIG_MAX = 8 << 20, TYPE_UNUSED = 5, PAD_ROOM = 24 };

/* True if the folder holds a regular file of that name; *size becomes its size. */
static bool folder_has(const char *folder, const char *file, off_t *size)
{
    char path[PATH_SIZE];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/%s", folder, file);
    if (n < 0 || n >= PATH_SIZE || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *size = st.st_size;
    return true;
}

/* Write tokens and token types for all rows of the embedding; rows without a token become
 * padding. */
static int write_tokens(struct ggufw *g, const struct tokenizer *t, size_t rows)
{
    size_t used = tokenizer_npieces(t);
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
        types[i] = type;
    }
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
 * tokenizer_config.json, else the number from config.json, which w holds under the key. */
static void write_id(struct ggufw *g, const struct weights *w, const struct tokenizer *t,
                     const json_t *config, const char *name, const char *key)
{
    const json_t *v = json_object_get(config, name);
    const char *text = json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
    uint32_t id;
    uint64_t number;
    if (text && tokenizer_special(t, text, &id))
        ggufw_u32(g, key, id);
    else if (weights_u64(w, key, &number) && number < tokenizer_npieces(t))
        ggufw_u32(g, key, (uint32_t)number);
}

/* Write special ids from tokenizer_config.json, which a folder need not have, and the chat
 * template, wherever it lies. */
static int convert_vocab_write_config(struct ggufw *g, const struct weights *w,
                                      const struct tokenizer *t, struct err *err)
{
    char path[PATH_SIZE];
    off_t size;
    json_error_t e;
    json_t *config = NULL;
    if (folder_has(weights_path(w), "tokenizer_config.json", &size)) {
        snprintf(path, sizeof(path), "%s/tokenizer_config.json", weights_path(w));
        if (size > CONFIG_MAX)
            return err_set(err, ERR_FORMAT, "%s: expected at most %d bytes", path, CONFIG_MAX);
        config = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
        if (!config && e.line < 0) /* jansson has no words for it */
            return err_set(err, ERR_NOMEM, "%s: out of memory", path);
        if (!config)
            return err_set(err, ERR_FORMAT, "%s: line %d: %s", path, e.line, e.text);
    }
    write_id(g, w, t, config, "bos_token", "tokenizer.ggml.bos_token_id");
    write_id(g, w, t, config, "eos_token", "tokenizer.ggml.eos_token_id");
    write_id(g, w, t, config, "pad_token", "tokenizer.ggml.padding_token_id");
    ggufw_bool(g, "tokenizer.ggml.add_bos_token", false);
    if (tokenizer_template(t))
        ggufw_str(g, "tokenizer.chat_template", tokenizer_template(t));
    json_decref(config);
    return OK;
}

int convert_vocab(struct ggufw *g, const struct weights *w, size_t rows, struct err *err)
{
    off_t size;
    const char *folder = weights_path(w);
    if (!folder_has(folder, "tokenizer.json", &size) && !folder_has(folder, "vocab.json", &size)) {
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
