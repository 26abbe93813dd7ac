/* probe.c - asks a server what must be known before the first call, and what `--check` shows. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/cloud_internal.h"
#include "net/http/json_input.h"

/* A text with merges, digits, blanks, accents, other scripts and an emoji: different tokenizers cut
 * something in it differently. It is plain enough that no server's template changes it. */
static const char sample[] = "The caf\xc3\xa9 isn't 1,234.50 \xe2\x82\xac:\n\tif (x != 42) { "
                             "return na\xc3\xafvely;  }\n\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80";

struct probe {
    struct cloud *c;
    uint64_t deadline;
    uint32_t *ids; /* the sample text in our ids */
    size_t n;
    struct wire_answer got; /* the latest reply */
};

/* Make one exchange, and note how long it takes if it is the slowest one: POST body, which is freed
 * and asks for `tokens` tokens, unless none are left: that is no reply and no error; body NULL:
 * GET. */
static int probe_ask(struct probe *p, const char *path, json_t *body, size_t tokens,
                     struct err *err)
{
    struct cloud *c = p->c;
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    const struct buf b = { .p = text, .n = text ? strlen(text) : 0 };
    uint64_t start = os_now_ns();
    json_decref(p->got.root);
    p->got = (struct wire_answer){ 0 };
    int rc = body && !text ? cloud_no_memory(&p->got.err)
                           : wire_fetch(c->wire, c->base, path, body ? &b : NULL, tokens,
                                        tokens ? p->n : 0, p->deadline, &p->got);
    uint64_t took = os_now_ns() - start;
    c->trip_ns = took > c->trip_ns ? took : c->trip_ns;
    free(text);
    json_decref(body);
    if (rc && err)
        *err = p->got.err;
    return rc == ERR_TEXT ? OK : rc;
}

/* Return what an exchange means if the server need not have the path in this form. */
static int probe_may(const struct probe *p, int rc)
{
    long s = p->got.status;
    bool none = s == 400 || s == 404 || s == 405 || s == 422 || s == 500 || s == 501;
    return none && rc != ERR_STOP && rc != ERR_NOMEM ? OK : rc;
}

/* Return what an exchange means if any reply is fine. */
static int probe_any(const struct probe *p, int rc)
{
    return rc == ERR_STOP || rc == ERR_NOMEM || !p->got.status ? rc : OK;
}

/* Return the entry of /v1/models for the model that is requested, else the first one: a server with
 * one model may take any name. */
static const json_t *find_model_entry(const struct cloud *c, const json_t *data)
{
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)(size_t)data, i, entry)
    {
        const char *id = json_string_value(json_object_get(entry, "id"));
        if (c->model && id && !strcmp(c->model, id))
            return entry;
    }
    return json_array_get(data, 0);
}

/* Keep what an entry of /v1/models says; of the weights, vLLM's path, llama.cpp's sizes, Mizzle's
 * fingerprint. */
static void read_model(struct cloud *c, const json_t *entry)
{
    static const char *const names[] = { "fingerprint", "kv", "meta", "root" };
    const json_t *owner = json_object_get(entry, "owned_by");
    const json_t *meta = json_object_get(entry, "meta");
    json_t *says = json_object();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (json_object_get(entry, names[i]))
            json_object_set(says, names[i], json_object_get(entry, names[i]));
    char *text = json_dumps(says, JSON_COMPACT | JSON_SORT_KEYS);
    wire_line(c->wire, c->info.says, sizeof(c->info.says), text, text ? strlen(text) : 0);
    free(text);
    json_decref(says);
    wire_line(c->wire, c->info.server, sizeof(c->info.server), json_string_value(owner),
              json_string_length(owner));
    c->info.context = json_input_count(json_object_get(entry, "max_model_len"));
    if (!c->info.context)
        c->info.context = json_input_count(json_object_get(meta, "n_ctx"));
}

/* Learn the model's name from /v1/models and, if it is still open, the dialect. */
static int ask_models(struct probe *p, struct err *err)
{
    struct cloud *c = p->c;
    int rc = probe_ask(p, "/v1/models", NULL, 0, err);
    const json_t *entry = find_model_entry(c, json_object_get(p->got.root, "data"));
    const json_t *id = json_object_get(entry, "id");
    if (rc && p->got.status != 404 && p->got.status != 405 && p->got.status != 501)
        return rc;
    read_model(c, entry);
    rc = json_string_length(id) && !c->model
             ? cloud_set_model(c, json_string_value(id), json_string_length(id), err)
             : OK;
    if (!c->dialect)
        c->dialect = !strcmp(c->info.server, "llamacpp") ? &dialect_llamacpp
                     : !strcmp(c->info.server, "sglang") ? &dialect_sglang
                                                         : &dialect_openai;
    return rc;
}

/* Return id i of a list of ids, or of [logprob, id, text]; -1 for anything else. */
static long long probe_id(const json_t *list, size_t i)
{
    const json_t *v = json_array_get(list, i);
    uint32_t id;
    bool is = json_input_id(&id, json_is_array(v) ? json_array_get(v, 1) : v, UINT32_MAX);
    return is ? (long long)id : -1;
}

/* Compare the server's ids with ours. One more id in front (begin-of-text) is the server's own
 * addition, and an empty list proves nothing. */
static int compare(const struct probe *p, const json_t *list, const char *path, struct err *err)
{
    size_t n = json_array_size(list), skip = n == p->n + 1 ? 1 : 0, i = 0;
    while (i < p->n && i + skip < n && probe_id(list, i + skip) == p->ids[i])
        i++;
    if (n && (i < p->n || n != p->n + skip))
        return err_set(err, ERR_REMOTE,
                       "cloud %s: another tokenizer than this model's: token %zu of the test text: "
                       "expected %lld of %zu, found %lld of %zu",
                       p->c->base, i, i < p->n ? (long long)p->ids[i] : -1, p->n,
                       probe_id(list, i + skip), n - skip);
    if (n)
        p->c->info.tokenizer = path;
    return OK;
}

/* POST /tokenize in the forms of vLLM, SGLang and llama.cpp at once. */
static int ask_tokenize(struct probe *p, struct err *err)
{
    json_t *body = json_pack("{s:s,s:s,s:b,s:b}", "content", sample, "prompt", sample,
                             "add_special", 0, "add_special_tokens", 0);
    if (p->c->model)
        json_object_set_new(body, "model", json_loads(p->c->model_json, JSON_DECODE_ANY, NULL));
    int rc = probe_may(p, probe_ask(p, "/tokenize", body, 0, err));
    return rc ? rc : compare(p, json_object_get(p->got.root, "tokens"), "/tokenize", err);
}

/* Let SGLang cut the sample; it returns the ids of the prompt with their log probabilities. */
static int ask_logprobs(struct probe *p, struct err *err)
{
    json_t *body =
        json_pack("{s:s,s:{s:i,s:i},s:b,s:i}", "text", sample, "sampling_params", "max_new_tokens",
                  1, "temperature", 0, "return_logprob", 1, "logprob_start_len", 0);
    int rc = probe_may(p, probe_ask(p, "/generate", body, 1, err));
    const json_t *meta = json_object_get(p->got.root, "meta_info");
    return rc ? rc : compare(p, json_object_get(meta, "input_token_logprobs"), "/generate", err);
}

/* See whether llama.cpp's server has ids in its replies; an older one, and ik_llama.cpp, do not,
 * and are used in OpenAI's form. */
static int ask_return_tokens(struct probe *p, struct err *err)
{
    json_t *body = json_pack("{s:s,s:i,s:i,s:b}", "prompt", sample, "n_predict", 1, "temperature",
                             0, "return_tokens", 1);
    int rc = probe_may(p, probe_ask(p, "/completion", body, 1, err));
    if (json_is_string(json_object_get(p->got.root, "content")) &&
        !json_object_get(p->got.root, "tokens"))
        p->c->dialect = &dialect_openai;
    return rc;
}

/* Ask for one token after the sample, which is sent as text while the tokenizer is unconfirmed, and
 * see whether ids of the token and of its prompt come back, or text alone. */
static int ask_round_trip(struct probe *p, struct err *err)
{
    struct cloud *c = p->c;
    json_t *prompt = c->info.tokenizer ? json_array() : json_string(sample);
    for (size_t i = 0; c->info.tokenizer && i < p->n; i++)
        json_array_append_new(prompt, json_integer(p->ids[i]));
    json_t *body = json_pack("{s:o,s:i,s:i,s:b,s:b}", "prompt", prompt, "max_tokens", 1,
                             "temperature", 0, "return_token_ids", 1, "add_special_tokens", 0);
    if (c->model)
        json_object_set_new(body, "model", json_loads(c->model_json, JSON_DECODE_ANY, NULL));
    int rc = probe_ask(p, "/v1/completions", body, 1, err);
    if (!c->o.encode) /* as long as nobody asks for tokens */
        rc = probe_may(p, rc);
    const json_t *choice = json_array_get(json_object_get(p->got.root, "choices"), 0);
    if (rc == OK && c->o.encode && !c->info.tokenizer)
        rc = compare(p, json_object_get(choice, "prompt_token_ids"), "/v1/completions", err);
    c->text = !json_is_array(json_object_get(choice, "token_ids")) &&
              json_is_string(json_object_get(choice, "text"));
    wire_lock(c->wire);
    if (c->text)
        err_set(&c->note, OK,
                "cloud %s: the server answers in text without token ids: its text is cut into "
                "tokens here, which is not always exact",
                c->base);
    wire_unlock(c->wire);
    return rc;
}

/* Compare the server's tokenizer with ours in every way that its dialect offers. */
static int check_tokenizer(struct probe *p, struct err *err)
{
    struct cloud *c = p->c;
    struct err low = { "" };
    int rc = c->o.encode(c->o.encode_arg, &p->ids, &p->n, sample, sizeof(sample) - 1, &low);
    if (rc)
        return err_set(err, rc, "cloud: the test text: %s", low.msg);
    rc = ask_tokenize(p, err);
    if (rc == OK && c->dialect == &dialect_sglang && !c->info.tokenizer)
        rc = ask_logprobs(p, err);
    return rc;
}

/* True when the server must say what it is. */
static bool probe_asks(const struct cloud *c)
{
    return c->o.encode || c->o.api == CLOUD_AUTO || (c->o.api == CLOUD_OPENAI && !c->model);
}

bool probe_needed(const struct cloud *c)
{
    return c->o.background || probe_asks(c);
}

int probe_run(struct cloud *c, struct err *err)
{
    struct probe p = { .c = c, .deadline = os_now_ns() + c->timeout_ns };
    bool asks = probe_asks(c);
    c->info = (struct cloud_info){ 0 };
    c->text = false;
    c->trip_ns = 0;
    int rc = OK;
    if (asks)
        rc = ask_models(&p, err);
    else if (c->o.background) /* this makes the connection; the reply does not matter */
        rc = probe_any(&p, probe_ask(&p, "/health", NULL, 0, err));
    if (rc == OK && c->o.encode)
        rc = check_tokenizer(&p, err);
    if (rc == OK && asks && c->dialect == &dialect_llamacpp && c->o.api == CLOUD_AUTO)
        rc = ask_return_tokens(&p, err);
    if (rc == OK && asks && c->dialect == &dialect_openai)
        rc = ask_round_trip(&p, err);
    free(p.ids);
    json_decref(p.got.root);
    c->sample = p.n;
    if (rc)
        return rc;
    c->info.api = c->dialect->api;
    c->info.model = c->model;
    c->info.ids = !c->text;
    return OK;
}

int probe_inspect(struct cloud *c, struct cloud_info *out, struct err *err)
{
    static const char *const paths[][2] = { { "/health", "version" },
                                            { "/version", "version" },
                                            { "/props", "build_info" },
                                            { "/server_info", "version" } };
    struct probe p = { .c = c, .deadline = os_now_ns() + c->timeout_ns };
    int rc = OK;
    *out = c->info;
    for (size_t i = 0; i < 4 && rc == OK; i++) {
        rc = probe_any(&p, probe_ask(&p, paths[i][0], NULL, 0, err));
        const json_t *version = json_object_get(p.got.root, paths[i][1]);
        const json_t *settings = json_object_get(p.got.root, "default_generation_settings");
        out->healthy = i ? out->healthy : p.got.status == 200;
        if (!*out->version)
            wire_line(c->wire, out->version, sizeof(out->version), json_string_value(version),
                      json_string_length(version));
        if (!out->context)
            out->context = json_input_count(json_object_get(settings, "n_ctx"));
    }
    out->http2 = p.got.http2;
    json_decref(p.got.root);
    return rc;
}
