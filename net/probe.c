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
    json_t *root; /* the latest reply, or NULL */
    long status;  /* its status; 0: none came */
};

/* True for a status that means: the server is there, but does not offer this path in this form. */
static bool not_offered(long status)
{
    return status == 400 || status == 404 || status == 405 || status == 422 || status == 500 ||
           status == 501;
}

/* Make one exchange, and note how long it takes if it is the slowest one. */
static int probe_fetch(struct probe *p, const char *path, const struct buf *body, size_t tokens,
                       struct err *err)
{
    struct cloud *c = p->c;
    uint64_t start = os_now_ns();
    json_decref(p->root);
    int rc = wire_fetch(c->wire, c->base, path, body, tokens, tokens ? p->n : 0, p->deadline,
                        &p->root, &p->status, err);
    uint64_t took = os_now_ns() - start;
    c->trip_ns = took > c->trip_ns ? took : c->trip_ns;
    return rc;
}

/* GET a path as JSON. */
static int probe_get(struct probe *p, const char *path, struct err *err)
{
    return probe_fetch(p, path, NULL, 0, err);
}

/* POST what json_pack made, which asks for `tokens` tokens, unless none are left: that is no reply
 * and no error. Frees body. */
static int probe_post(struct probe *p, const char *path, json_t *body, size_t tokens,
                      struct err *err)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct buf b = { .p = text, .n = text ? strlen(text) : 0 };
    p->status = 0;
    int rc = text ? probe_fetch(p, path, &b, tokens, err) : cloud_no_memory(err);
    free(text);
    json_decref(body);
    return rc == ERR_TEXT ? OK : rc;
}

/* Return what a failed exchange means if the server need not have the path: any reply is fine. */
static int probe_any(const struct probe *p, int rc)
{
    return rc == ERR_STOP || rc == ERR_NOMEM || !p->status ? rc : OK;
}

/* Find out whether the server offers llama.cpp's /props. */
static int ask_props(struct probe *p, bool *llamacpp, struct err *err)
{
    int rc = probe_get(p, "/props", err);
    *llamacpp = rc == OK && json_is_object(json_object_get(p->root, "default_generation_settings"));
    return probe_any(p, rc);
}

/* Keep what tells the weights apart: vLLM's path, llama.cpp's sizes, Mizzle's fingerprint. */
static void read_weights(struct cloud *c, const json_t *entry)
{
    static const char *const names[] = { "fingerprint", "kv", "meta", "root" };
    json_t *says = json_object();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (json_object_get(entry, names[i]))
            json_object_set(says, names[i], json_object_get(entry, names[i]));
    char *text = json_dumps(says, JSON_COMPACT | JSON_SORT_KEYS);
    wire_line(c->wire, c->info.says, sizeof(c->info.says), text, text ? strlen(text) : 0);
    free(text);
    json_decref(says);
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

/* Read what an entry of /v1/models says. */
static void read_model(struct cloud *c, const json_t *entry)
{
    read_weights(c, entry);
    const json_t *owner = json_object_get(entry, "owned_by");
    const json_t *meta = json_object_get(entry, "meta");
    wire_line(c->wire, c->info.server, sizeof(c->info.server), json_string_value(owner),
              json_string_length(owner));
    c->info.context = json_input_count(json_object_get(entry, "max_model_len"));
    if (!c->info.context)
        c->info.context = json_input_count(json_object_get(meta, "n_ctx"));
}

/* Return the dialect that goes with "owned_by", or NULL. */
static const struct dialect *dialect_of_owner(const char *owner)
{
    static const struct {
        const char *owner;
        const struct dialect *dialect;
    } known[] = { { "llamacpp", &dialect_llamacpp },
                  { "sglang", &dialect_sglang },
                  { "vllm", &dialect_openai },
                  { "mizzle", &dialect_openai } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(owner, known[i].owner) == 0)
            return known[i].dialect;
    return NULL;
}

/* Learn the model's name from /v1/models and, if it is still open, the dialect. */
static int ask_models(struct probe *p, struct err *err)
{
    struct cloud *c = p->c;
    bool llamacpp = false;
    char name[1024];
    int rc = probe_get(p, "/v1/models", err);
    const json_t *entry = find_model_entry(c, json_object_get(p->root, "data"));
    const json_t *id = json_object_get(entry, "id");
    if (rc && (p->status == 404 || p->status == 405 || p->status == 501))
        rc = OK;
    if (rc == OK)
        read_model(c, entry);
    if (rc == OK && json_string_length(id) && !c->model) {
        rc = cloud_set_model(c, json_string_value(id), json_string_length(id), err);
        wire_line(c->wire, name, sizeof(name), json_string_value(id), json_string_length(id));
        char *shown = rc ? NULL : strdup(name); /* requests have the server's own words */
        if (shown) {
            free(c->model);
            c->model = shown;
        }
        rc = rc || shown ? rc : cloud_no_memory(err);
    }
    if (rc || c->dialect)
        return rc;
    const struct dialect *d = dialect_of_owner(c->info.server);
    if (!d && (rc = ask_props(p, &llamacpp, err)) != OK)
        return rc;
    c->dialect = d ? d : llamacpp ? &dialect_llamacpp : &dialect_openai;
    return OK;
}

/* Return id i of a list of ids, or of [logprob, id, text]; UINT32_MAX for anything else. */
static uint32_t probe_id(const json_t *list, size_t i)
{
    const json_t *v = json_array_get(list, i);
    uint32_t id = UINT32_MAX;
    json_input_id(&id, json_is_array(v) ? json_array_get(v, 1) : v, UINT32_MAX);
    return id;
}

/* Compare the server's ids with ours. One more id in front (begin-of-text) is the server's own
 * addition, and an empty list proves nothing. */
static int compare(const struct probe *p, const json_t *list, const char *path, struct err *err)
{
    size_t n = json_array_size(list), skip = n == p->n + 1 ? 1 : 0, i = 0;
    while (i < p->n && i + skip < n && probe_id(list, i + skip) == p->ids[i])
        i++;
    if (i < p->n && i + skip < n)
        return err_set(err, ERR_REMOTE,
                       "cloud %s: another tokenizer than this model's: token %zu of the test text: "
                       "expected %u, found %u",
                       p->c->base, i, (unsigned)p->ids[i], (unsigned)probe_id(list, i + skip));
    if (n && n != p->n + skip)
        return err_set(err, ERR_REMOTE,
                       "cloud %s: another tokenizer than this model's: the test text: expected %zu "
                       "tokens, found %zu",
                       p->c->base, p->n, n);
    if (n)
        p->c->info.tokenizer = path;
    return OK;
}

/* POST /tokenize in the forms of vLLM, SGLang and llama.cpp at once. */
static int ask_tokenize(struct probe *p, struct err *err)
{
    json_t *body = json_pack("{s:s,s:s,s:b,s:b}", "content", sample, "prompt", sample,
                             "add_special", 0, "add_special_tokens", 0);
    if (body && p->c->model)
        json_object_set_new(body, "model", json_loads(p->c->model_json, JSON_DECODE_ANY, NULL));
    int rc = probe_post(p, "/tokenize", body, 0, err);
    if (rc == OK)
        rc = compare(p, json_object_get(p->root, "tokens"), "/tokenize", err);
    else if (not_offered(p->status))
        rc = OK;
    return rc;
}

/* Let SGLang cut the sample; it returns the ids of the prompt with their log probabilities. */
static int ask_logprobs(struct probe *p, struct err *err)
{
    json_t *body =
        json_pack("{s:s,s:{s:i,s:i},s:b,s:i}", "text", sample, "sampling_params", "max_new_tokens",
                  1, "temperature", 0, "return_logprob", 1, "logprob_start_len", 0);
    int rc = probe_post(p, "/generate", body, 1, err);
    const json_t *meta = json_object_get(p->root, "meta_info");
    if (rc == OK)
        rc = compare(p, json_object_get(meta, "input_token_logprobs"), "/generate", err);
    else if (not_offered(p->status))
        rc = OK;
    return rc;
}

/* See whether llama.cpp's server has ids in its own replies; an older one, and ik_llama.cpp, have
 * them in those of OpenAI's form. */
static int ask_return_tokens(struct probe *p, struct err *err)
{
    json_t *body = json_pack("{s:s,s:i,s:i,s:b}", "prompt", sample, "n_predict", 1, "temperature",
                             0, "return_tokens", 1);
    int rc = probe_post(p, "/completion", body, 1, err);
    if (rc == OK && json_is_string(json_object_get(p->root, "content")) &&
        !json_object_get(p->root, "tokens"))
        p->c->dialect = &dialect_openai;
    return rc && not_offered(p->status) ? OK : rc;
}

/* Ask for one token after the sample, which is sent as text while the tokenizer is unconfirmed;
 * logprobs: with that of the token. */
static int ask_completion(struct probe *p, bool logprobs, struct err *err)
{
    struct cloud *c = p->c;
    json_t *prompt = json_array();
    for (size_t i = 0; i < p->n; i++)
        json_array_append_new(prompt, json_integer(p->ids[i]));
    if (!c->info.tokenizer) {
        json_decref(prompt);
        prompt = json_string(sample);
    }
    json_t *body = json_pack("{s:o,s:i,s:i,s:b,s:b}", "prompt", prompt, "max_tokens", 1,
                             "temperature", 0, "return_token_ids", 1, "add_special_tokens", 0);
    if (body && c->model)
        json_object_set_new(body, "model", json_loads(c->model_json, JSON_DECODE_ANY, NULL));
    if (body && logprobs)
        json_object_set_new(body, "logprobs", json_integer(1));
    return probe_post(p, "/v1/completions", body, 1, err);
}

/* See whether ids of a token and of its prompt come back, or text alone. */
static int ask_round_trip(struct probe *p, struct err *err)
{
    struct cloud *c = p->c;
    int rc = ask_completion(p, false, err);
    const json_t *choice = json_array_get(json_object_get(p->root, "choices"), 0);
    if (rc == OK && c->o.encode && !c->info.tokenizer)
        rc = compare(p, json_object_get(choice, "prompt_token_ids"), "/v1/completions", err);
    if (rc && !c->o.encode && not_offered(p->status)) /* as long as nobody asks for tokens */
        return OK;
    if (rc != OK || json_is_array(json_object_get(choice, "token_ids")) ||
        !json_is_string(json_object_get(choice, "text")))
        return rc;
    c->text = true;
    rc = ask_completion(p, true, err);
    choice = json_array_get(json_object_get(p->root, "choices"), 0);
    choice = json_array_get(json_object_get(json_object_get(choice, "logprobs"), "content"), 0);
    c->logprobs = json_is_integer(json_object_get(choice, "id"));
    if (!c->logprobs)
        cloud_say(c,
                  "the server answers in text without token ids: its text is cut into tokens here, "
                  "which is not always exact");
    return probe_any(p, rc); /* the server has answered without logprobs */
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

bool probe_needed(const struct cloud *c)
{
    return c->o.background || c->o.encode || c->o.api == CLOUD_AUTO ||
           (c->o.api == CLOUD_OPENAI && !c->model);
}

int probe_run(struct cloud *c, struct err *err)
{
    struct probe p = { .c = c, .deadline = os_now_ns() + c->timeout_ns };
    bool models = c->o.encode || c->o.api == CLOUD_AUTO || (c->o.api == CLOUD_OPENAI && !c->model);
    c->info = (struct cloud_info){ 0 };
    c->text = c->logprobs = false;
    c->trip_ns = 0;
    int rc = models ? ask_models(&p, err) : OK;
    if (!models && c->o.background) /* this makes the connection; the reply does not matter */
        rc = probe_any(&p, probe_get(&p, "/health", err));
    if (rc == OK && c->o.encode)
        rc = check_tokenizer(&p, err);
    if (rc == OK && models && c->dialect == &dialect_llamacpp && c->o.api == CLOUD_AUTO)
        rc = ask_return_tokens(&p, err);
    if (rc == OK && models && c->dialect == &dialect_openai)
        rc = ask_round_trip(&p, err);
    free(p.ids);
    json_decref(p.root);
    c->sample = p.n;
    if (rc)
        return rc;
    c->info.api = c->dialect->api;
    c->info.model = c->model;
    c->info.ids = !c->text || c->logprobs;
    return OK;
}

/* Read "version" or "build_info" from a path that may not exist. */
static int ask_version(struct probe *p, const char *path, const char *field,
                       struct cloud_info *info, struct err *err)
{
    int rc = probe_get(p, path, err);
    const char *s = json_string_value(json_object_get(p->root, field));
    const json_t *settings = json_object_get(p->root, "default_generation_settings");
    if (rc == OK && s && !info->version[0])
        wire_line(p->c->wire, info->version, sizeof(info->version), s, strlen(s));
    if (rc == OK && !info->context)
        info->context = json_input_count(json_object_get(settings, "n_ctx"));
    return rc == OK || p->status ? OK : rc;
}

int probe_inspect(struct cloud *c, struct cloud_info *out, struct err *err)
{
    static const char *const paths[][2] = { { "/version", "version" },
                                            { "/props", "build_info" },
                                            { "/server_info", "version" } };
    struct probe p = { .c = c, .deadline = os_now_ns() + c->timeout_ns };
    *out = c->info;
    int rc = probe_get(&p, "/health", err);
    out->healthy = p.status == 200;
    rc = p.status ? OK : rc;
    for (size_t i = 0; i < 3 && rc == OK; i++)
        if (i == 1 || !out->version[0])
            rc = ask_version(&p, paths[i][0], paths[i][1], out, err);
    json_decref(p.root);
    out->http2 = wire_multiplexes(c->wire);
    return rc;
}
