/* tokenizer_files.c - read a vocabulary from GGUF metadata or a Hugging Face folder. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer_internal.h"
#include "model/text/unicode.h"
#include "weights/find.h"

/* Limits on a JSON file. Qwen2.5's tokenizer.json has 7 MB. A short value besides pieces and merges
 * takes far more memory than its text, so both are limited: the worst file that passes takes
 * 290 MB. */
enum { MAX_FILE = 32 << 20, MAX_VALUES = 1 << 21 };

/* Refuse every tokenizer that is not Qwen2's byte-level BPE. */
static int is_gpt2(const struct weights *w, struct err *err)
{
    static const struct {
        const char *key, *want, *same; /* same: another name of it */
    } wants[] = { { "tokenizer.ggml.model", "gpt2", "gpt2" },
                  { "tokenizer.ggml.pre", "qwen2", "deepseek-r1-qwen" } };
    for (size_t i = 0; i < 2; i++) {
        struct str s;
        if (!weights_str(w, wants[i].key, &s))
            return err_set(err, ERR_FORMAT, "%s: no tokenizer: key %s: expected \"%s\", found none",
                           weights_path(w), wants[i].key, wants[i].want);
        if ((s.n != strlen(wants[i].want) || memcmp(s.p, wants[i].want, s.n)) &&
            (s.n != strlen(wants[i].same) || memcmp(s.p, wants[i].same, s.n)))
            return err_set(
                err, ERR_FORMAT, "%s: no usable tokenizer: key %s: expected \"%s\", found \"%.*s\"",
                weights_path(w), wants[i].key, wants[i].want, (int)(s.n < 40 ? s.n : 40), s.p);
    }
    return OK;
}

/* Read BOS and the ids that end an answer: of a text, of a turn, of a message. */
static void from_gguf_ids(struct vocabulary *v, const struct weights *w)
{
    static const char *const names[] = { "bos", "eos", "eot", "eom" };
    v->bos = UINT32_MAX;
    for (size_t i = 0; i < 4; i++) {
        char key[40];
        uint64_t id;
        snprintf(key, sizeof(key), "tokenizer.ggml.%s_token_id", names[i]);
        if (weights_u64(w, key, &id) && id < v->count)
            *(i ? &v->eog[v->neog++] : &v->bos) = (uint32_t)id;
    }
    weights_bool(w, "tokenizer.ggml.add_bos_token", &v->add_bos);
}

/* Build the tokenizer from a GGUF file's keys; types default to normal. */
static int from_gguf(struct tokenizer **out, const struct weights *w, struct err *err)
{
    int rc = is_gpt2(w, err);
    if (rc)
        return rc;
    const struct kv *tokens = weights_key(w, "tokenizer.ggml.tokens");
    const struct kv *types = weights_key(w, "tokenizer.ggml.token_type");
    const struct kv *merges = weights_key(w, "tokenizer.ggml.merges");
    if (!tokens || tokens->type != KV_ARR || tokens->elem != KV_STR || !merges ||
        merges->type != KV_ARR || merges->elem != KV_STR)
        return err_set(err, ERR_FORMAT,
                       "%s: keys tokenizer.ggml.tokens, .merges: expected arrays of strings",
                       weights_path(w));
    if (types && (types->type != KV_ARR || types->elem != KV_I32 || types->count != tokens->count))
        return err_set(err, ERR_FORMAT,
                       "%s: key tokenizer.ggml.token_type: expected %zu values of i32",
                       weights_path(w), tokens->count);
    struct vocabulary v = { .path = weights_path(w),
                            .pieces = tokens->strs,
                            .count = tokens->count,
                            .merges = merges->strs,
                            .nmerges = merges->count };
    int *all = malloc((v.count + 1) * sizeof(*all));
    v.types = all;
    rc = all ? OK : err_set(err, ERR_NOMEM, "tokenizer: out of memory");
    for (size_t i = 0; !rc && i < v.count; i++) {
        int32_t type = PIECE_NORMAL;
        if (types)
            memcpy(&type, (const char *)types->data + i * sizeof(type), sizeof(type));
        all[i] = type;
        if (type != PIECE_NORMAL && type != PIECE_CONTROL && type != PIECE_USER &&
            type != PIECE_UNUSED)
            rc = err_set(err, ERR_FORMAT,
                         "%s: key tokenizer.ggml.token_type: value %zu: expected 1, 3, 4 or 5, "
                         "found %d",
                         v.path, i, (int)type);
    }
    from_gguf_ids(&v, w);
    if (!weights_str(w, "tokenizer.chat_template", &v.template))
        v.template = (struct str){ NULL, 0 };
    if (!rc)
        rc = tokenizer_build(out, &v, err);
    free(all);
    return rc;
}

/* Return an upper bound on the values in a JSON text, without parsing it; a list or an object
 * counts as three because of the memory that it takes. */
static size_t count_values(const char *text, size_t n)
{
    size_t count = 1;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted)
            i += text[i] == '\\';
        else if (text[i] == ',')
            count++;
        else if (text[i] == '[' || text[i] == '{')
            count += 3;
    }
    return count;
}

/* Parse text[n] as a JSON object. */
static int parse_json(json_t **out, const char *path, const char *text, size_t n, struct err *err)
{
    json_error_t why;
    size_t values = count_values(text, n);
    *out = NULL;
    if (values > MAX_VALUES)
        return err_set(err, ERR_FORMAT, "%s: expected at most %d JSON values, found up to %zu",
                       path, MAX_VALUES, values);
    *out = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (*out && json_is_object(*out))
        return OK;
    if (!*out && why.line < 0) /* jansson has no words for it */
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (*out)
        why = (json_error_t){ .line = 1, .text = "found a list" };
    json_decref(*out);
    *out = NULL;
    return err_set(err, ERR_FORMAT, "%s: line %d: expected a JSON object: %s", path, why.line,
                   why.text);
}

/* A folder's vocabulary while it is read; its strings belong to the texts and the JSON values. */
struct folder {
    const char *path;
    char file[4096];       /* the one that is read */
    json_t *main, *config; /* what tokenizer.json has besides; tokenizer_config.json */
    struct json_pieces found;
    char *pieces;   /* tokenizer.json or vocab.json */
    char *text;     /* merges.txt */
    char *template; /* chat_template.jinja */
    struct str *merges;
    struct vocabulary v;
};

/* Read a file of the folder whole, terminated, without a byte order mark. ERR_IO, with *text NULL,
 * when it does not exist. */
static int read_file(struct folder *f, const char *name, char **text, size_t *n, struct err *err)
{
    struct stat st;
    snprintf(f->file, sizeof(f->file), "%s/%s", f->path, name);
    int rc = OK, fd = open(f->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait */
    FILE *from = fd < 0 ? NULL : fdopen(fd, "rb");
    *text = NULL;
    if (!from) {
        rc = err_set(err, ERR_IO, "%s: %s", f->file, strerror(errno));
        if (fd >= 0)
            close(fd);
        return rc;
    }
    if (fstat(fileno(from), &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
        rc = err_set(err, ERR_FORMAT, "%s: expected a regular file of at most %d bytes", f->file,
                     MAX_FILE);
    else if (!(*text = malloc((size_t)st.st_size + 1)))
        rc = err_set(err, ERR_NOMEM, "tokenizer: out of memory");
    else if (fread(*text, 1, (size_t)st.st_size, from) != (size_t)st.st_size)
        rc = err_set(err, ERR_IO, "%s: could not be read whole", f->file);
    else
        rc = find_no_pointer(f->file, *text, (size_t)st.st_size, err);
    fclose(from);
    if (rc) {
        free(*text);
        *text = NULL;
        return rc;
    }
    size_t mark = text_mark(*text, (size_t)st.st_size);
    *n = (size_t)st.st_size - mark;
    memmove(*text, *text + mark, *n);
    (*text)[*n] = 0;
    return OK;
}

/* Read a file of the folder as a JSON object. ERR_IO when it does not exist. */
static int read_json(struct folder *f, const char *name, json_t **out, struct err *err)
{
    char *text;
    size_t n;
    *out = NULL;
    int rc = read_file(f, name, &text, &n, err);
    if (rc == OK)
        rc = parse_json(out, f->file, text, n, err);
    free(text);
    return rc;
}

/* Read tokenizer.json or vocab.json. ERR_IO when it does not exist. */
static int read_pieces(struct folder *f, const char *name, bool whole, struct err *err)
{
    size_t n;
    struct buf rest = { 0 };
    int rc = read_file(f, name, &f->pieces, &n, err);
    if (rc == OK && whole)
        return tokenizer_json_vocab(&f->found, f->pieces, n, f->file, err);
    if (rc == OK)
        rc = tokenizer_json_split(&f->found, &rest, f->pieces, n, f->file, err);
    if (rc == OK)
        rc = parse_json(&f->main, f->file, rest.p ? rest.p : "", rest.n, err);
    buf_free(&rest);
    return rc;
}

/* Take the pieces that were found; `extra` is the number of added tokens to come. */
static int take_pieces(struct folder *f, size_t extra, struct err *err)
{
    struct json_pieces *o = &f->found;
    size_t most = o->n + extra;
    if (!o->n || most > MAX_PIECES)
        return err_set(err, ERR_FORMAT, "%s: vocabulary: expected an object of pieces", f->path);
    f->v.count = o->top > most ? o->top : most;
    f->v.count += 4096; /* added tokens may follow a gap; unused ids cost nothing */
    int rc = tokenizer_json_room(o, f->v.count, err);
    f->v.pieces = o->pieces;
    f->v.types = o->types;
    return rc;
}

static bool added_flag(json_t *entry, const char *name)
{
    return json_is_true(json_object_get(entry, name));
}

/* Read how an added token is found. What cannot be done exactly is refused. */
static int added_flags(int *flags, const struct folder *f, json_t *entry, struct err *err)
{
    const char *text = json_string_value(json_object_get(entry, "content"));
    bool word = added_flag(entry, "single_word"), normalized = added_flag(entry, "normalized");
    *flags |= added_flag(entry, "lstrip") ? ADDED_LSTRIP : 0;
    *flags |= added_flag(entry, "rstrip") ? ADDED_RSTRIP : 0;
    *flags |= normalized ? ADDED_NORMALIZED : 0;
    if (!word && (!normalized || unicode_sure_nfc(text, strlen(text))))
        return OK;
    return err_set(err, ERR_FORMAT, "%s/%s: added token \"%.60s\": %s: expected false, found true",
                   f->path, f->main ? "tokenizer.json" : "tokenizer_config.json", text,
                   word ? "single_word" : "normalized, though its text is perhaps no NFC");
}

/* Store an added token, which may replace a piece: control if it is marked special, else user
 * defined. */
static int put_added(struct folder *f, json_t *id, json_t *entry, struct err *err)
{
    json_t *content = json_object_get(entry, "content");
    json_int_t at = json_integer_value(id);
    if (!json_is_string(content) || !json_is_integer(id))
        return err_set(err, ERR_FORMAT, "%s: added token: expected content and id", f->path);
    if (at < 0 || (uint64_t)at >= f->v.count)
        return err_set(err, ERR_FORMAT, "%s: vocabulary: id expected 0 to %zu, found %lld", f->path,
                       f->v.count - 1, (long long)at);
    f->found.pieces[at] = (struct str){ json_string_value(content), json_string_length(content) };
    f->found.types[at] =
        json_is_true(json_object_get(entry, "special")) ? PIECE_CONTROL : PIECE_USER;
    return added_flags(&f->found.types[at], f, entry, err);
}

/* Read what tokenizer.json has besides pieces and merges: model.type, added_tokens. */
static int from_tokenizer_json(struct folder *f, struct err *err)
{
    json_t *type = json_object_get(json_object_get(f->main, "model"), "type"), *entry;
    json_t *added = json_object_get(f->main, "added_tokens");
    size_t i;
    if (json_is_string(type) && strcmp(json_string_value(type), "BPE"))
        return err_set(err, ERR_FORMAT, "%s/tokenizer.json: model.type: expected BPE, found %.40s",
                       f->path, json_string_value(type));
    int rc = take_pieces(f, json_array_size(added), err);
    if (!rc && !f->found.merges)
        return err_set(err, ERR_FORMAT, "%s/tokenizer.json: model.merges: expected a list",
                       f->path);
    json_array_foreach(added, i, entry)
    {
        if (!rc)
            rc = put_added(f, json_object_get(entry, "id"), entry, err);
    }
    f->v.merges = f->found.merges;
    f->v.nmerges = f->found.nmerges;
    return rc;
}

/* Read merges.txt, one merge per line; a #version line may come first. */
static int read_merges(struct folder *f, struct err *err)
{
    size_t n, lines = 1;
    int rc = read_file(f, "merges.txt", &f->text, &n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        lines += f->text[i] == '\n';
    if (lines > MAX_PIECES)
        return err_set(err, ERR_FORMAT, "%s: expected at most %d lines, found %zu", f->file,
                       MAX_PIECES, lines);
    f->v.merges = f->merges = malloc(lines * sizeof(*f->merges));
    if (!f->merges)
        return err_set(err, ERR_NOMEM, "tokenizer: out of memory");
    bool first = true;
    for (char *p = f->text, *end = f->text + n; p < end; first = false) {
        char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((stop ? stop : end) - p);
        bool version = first && len > 9 && !memcmp(p, "#version:", 9);
        if (len && !version)
            f->merges[f->v.nmerges++] = (struct str){ p, len };
        p += len + 1;
    }
    return OK;
}

/* Read vocab.json + merges.txt (+ added_tokens_decoder of tokenizer_config.json). */
static int from_vocab_json(struct folder *f, struct err *err)
{
    const char *key;
    json_t *entry, *added = json_object_get(f->config, "added_tokens_decoder");
    int rc = take_pieces(f, json_object_size(added), err);
    json_object_foreach(added, key, entry)
    {
        char *end;
        long long id = strtoll(key, &end, 10);
        json_t *value = json_integer(*end || end == key ? -1 : id);
        if (!rc)
            rc = put_added(f, value, entry, err);
        json_decref(value);
    }
    return rc ? rc : read_merges(f, err);
}

/* Find the token that comes in front of each text, as tokenizer_config.json says (add_bos_token) or
 * else the post-processor of tokenizer.json. */
static void put_bos(struct folder *f)
{
    json_t *add = json_object_get(f->config, "add_bos_token");
    json_t *bos = json_object_get(f->config, "bos_token"), *last, *with;
    if (!json_is_boolean(add)) {
        last = json_object_get(f->main, "post_processor");
        with = json_object_get(last, "processors");
        last = with ? json_array_get(with, json_array_size(with) - 1) : last;
        add = json_object_get(json_array_get(json_object_get(last, "single"), 0), "SpecialToken");
        bos = json_object_get(add, "id");
    }
    f->v.add_bos = json_is_true(add) || json_is_object(add);
    f->v.bos = UINT32_MAX;
    bos = json_is_object(bos) ? json_object_get(bos, "content") : bos;
    for (size_t i = 0; f->v.add_bos && json_is_string(bos) && i < f->v.count; i++)
        if (f->v.types[i] && f->v.pieces[i].n == json_string_length(bos) &&
            !memcmp(f->v.pieces[i].p, json_string_value(bos), f->v.pieces[i].n))
            f->v.bos = (uint32_t)i;
}

/* Collect eos_token_id, a number or a list, from one of the folder's files, if it exists. */
static int put_ends(struct folder *f, const char *name, struct err *err)
{
    json_t *config, *id;
    struct err why;
    int rc = read_json(f, name, &config, &why);
    if (rc)
        return rc == ERR_IO ? OK : err_set(err, rc, "%s", why.msg);
    json_t *eos = json_object_get(config, "eos_token_id");
    size_t n = json_is_array(eos) ? json_array_size(eos) : 1;
    for (size_t i = 0; i < n && f->v.neog < 8; i++) {
        id = json_is_array(eos) ? json_array_get(eos, i) : eos;
        if (json_is_integer(id) && json_integer_value(id) >= 0 &&
            json_integer_value(id) < MAX_PIECES)
            f->v.eog[f->v.neog++] = (uint32_t)json_integer_value(id);
    }
    json_decref(config);
    return OK;
}

/* Read the chat template: a file of its own, or in tokenizer_config.json a string or a list of
 * named ones. */
static int read_template(struct folder *f, struct err *err)
{
    struct err why;
    size_t i;
    json_t *entry, *all = json_object_get(f->config, "chat_template"), *one = all;
    int rc = read_file(f, "chat_template.jinja", &f->template, &f->v.template.n, &why);
    if (rc != ERR_IO) {
        f->v.template.p = f->template;
        return rc ? err_set(err, rc, "%s", why.msg) : OK;
    }
    json_array_foreach(all, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name && !strcmp(name, "default"))
            one = json_object_get(entry, "template");
    }
    f->v.template = (struct str){ json_string_value(one), json_string_length(one) };
    return OK;
}

/* tokenizer.json is preferred; ids at the end that no piece uses are cut off. */
static int from_folder(struct tokenizer **out, const char *path, struct err *err)
{
    struct folder f = { .path = path, .v = { .path = path } };
    struct err ignored;
    bool one = true;
    int rc = read_pieces(&f, "tokenizer.json", false, &ignored);
    if (rc && rc != ERR_IO)
        err_set(err, rc, "%s", ignored.msg);
    if (rc == ERR_IO) {
        one = false;
        rc = read_pieces(&f, "vocab.json", true, err);
        if (rc == ERR_IO) {
            char hint[300];
            find_hint(hint, sizeof(hint), path);
            rc = err_set(err, ERR_FORMAT, "%s: expected tokenizer.json or vocab.json, found none%s",
                         path, hint);
        }
    }
    int config = rc ? OK : read_json(&f, "tokenizer_config.json", &f.config, &ignored);
    if (config != OK && config != ERR_IO)
        rc = err_set(err, config, "%s", ignored.msg);
    if (!rc)
        rc = read_template(&f, err);
    if (!rc)
        rc = one ? from_tokenizer_json(&f, err) : from_vocab_json(&f, err);
    if (!rc)
        rc = put_ends(&f, "generation_config.json", err);
    if (!rc)
        rc = put_ends(&f, "config.json", err);
    if (!rc) {
        put_bos(&f);
        while (f.v.count && !f.v.types[f.v.count - 1])
            f.v.count--;
        rc = tokenizer_build(out, &f.v, err);
    }
    json_decref(f.main);
    json_decref(f.config);
    free(f.pieces);
    free(f.text);
    free(f.template);
    free(f.merges);
    free(f.found.pieces);
    free(f.found.types);
    free(f.found.merges);
    return rc;
}

int tokenizer_open(struct tokenizer **out, const struct weights *w, struct err *err)
{
    *out = NULL;
    if (find_is_folder(weights_path(w)))
        return from_folder(out, weights_path(w), err);
    return from_gguf(out, w, err);
}

int tokenizer_open_path(struct tokenizer **out, const char *path, struct err *err)
{
    struct weights *w;
    *out = NULL;
    if (find_is_folder(path))
        return from_folder(out, path, err);
    int rc = weights_open(&w, path, err);
    if (rc)
        return rc;
    rc = from_gguf(out, w, err);
    weights_close(w);
    return rc;
}
