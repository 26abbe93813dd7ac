#include "tools/lab/bench/oracle_cloud.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "kernels/sys/os.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "model/text/vocabulary.h"
#include "net/cloud.h"
#include "net/http/json_input.h"
#include "net/server/server.h"
#include "tools/cli/json_report.h"
#include "tools/cli/setup.h"

enum { BYTES = 256, LETTERS = 26, LENGTH = 4, MOST = BYTES + 26 * 26 * 26 * 26 };
enum { TIMEOUT_MS = 600000, MOST_MADE = 64 };

/* The server: it knows SGLang's /generate, whole, and nothing of the model. */
struct oracle_server {
    struct server *server;
    struct oracle_cloud_answers answers;
    size_t vocab;
};

/* Write the piece of an id: a byte in GPT-2's alphabet, in which printable bytes stand for
 * themselves and the others are mapped to U+0100 and up, or a word. */
static size_t oracle_cloud_piece(char *out, uint32_t id, uint32_t *next)
{
    bool self = (id >= 0x21 && id <= 0x7e) || (id >= 0xa1 && id <= 0xac) || id >= 0xae;
    if (id < BYTES)
        return text_encode(out, self ? id : (*next)++);
    uint32_t rest = id - BYTES;
    for (size_t i = LENGTH; i-- > 0; rest /= LETTERS)
        out[i] = (char)('a' + rest % LETTERS);
    return LENGTH;
}

/* Make the vocabulary. */
static int oracle_cloud_vocabulary(struct tokenizer **out, size_t n, struct err *err)
{
    char *text = calloc(n, LENGTH);
    struct str *pieces = calloc(n, sizeof(*pieces));
    int *types = calloc(n, sizeof(*types));
    uint32_t next = BYTES;
    int rc = text && pieces && types ? OK : err_set(err, ERR_NOMEM, "vocabulary: out of memory");
    for (uint32_t id = 0; rc == OK && id < n; id++) {
        char *at = text + LENGTH * (size_t)id;
        pieces[id] = (struct str){ at, oracle_cloud_piece(at, id, &next) };
        types[id] = PIECE_NORMAL;
    }
    const struct vocabulary v = {
        .path = "the benchmark's", .pieces = pieces, .types = types, .count = n
    };
    if (rc == OK)
        rc = tokenizer_build(out, &v, err);
    free(types);
    free(pieces);
    free(text);
    return rc;
}

/* Return the answer to a request: the ids that the function says. */
static json_t *oracle_cloud_generate(const struct oracle_server *o, const json_t *in)
{
    const json_t *list = json_object_get(in, "input_ids");
    const json_t *params = json_object_get(in, "sampling_params");
    size_t n = json_array_size(list), made = 0;
    size_t want = json_input_count(json_object_get(params, "max_new_tokens"));
    want = want < MOST_MADE ? want : (size_t)MOST_MADE;
    uint32_t *ids = calloc(n + want + 1, sizeof(*ids));
    for (size_t i = 0; ids && i < n; i++)
        if (!json_input_id(&ids[i], json_array_get(list, i), o->vocab))
            want = 0;
    for (; ids && made < want; made++)
        ids[n + made] = o->answers.next(o->answers.arg, ids, n + made);
    json_t *out = ids ? json_pack("{s:s,s:o,s:{s:{s:s},s:I}}", "text", "", "output_ids",
                                  json_report_ids(ids + n, made), "meta_info", "finish_reason",
                                  "type", "length", "completion_tokens", (json_int_t)made)
                      : NULL;
    free(ids);
    return out;
}

/* Callback of the server: answer after the network's time. */
static void oracle_cloud_handle(void *arg, struct server_request *r)
{
    struct oracle_server *o = arg;
    const struct oracle_cloud_answers *a = &o->answers;
    uint64_t ms = server_first(r) ? a->trips * a->latency_ms : 0, until = os_now_ns();
    struct buf text = { 0 };
    struct err err;
    json_t *in = NULL, *out = NULL;
    if (strcmp(server_path(r), "/generate") != 0)
        out = json_object();
    else if (server_parse(r, &in, &err) == OK)
        out = oracle_cloud_generate(o, in);
    if (in)
        until = os_now_ns() + (ms + a->latency_ms) * UINT64_C(1000000);
    json_decref(in);
    while (os_now_ns() < until && !server_closing(r) && server_wait(r, until))
        ;
    if (json_report_append(&text, out, JSON_COMPACT))
        server_reply(r, 200, "application/json", &text, NULL);
    buf_free(&text);
}

int oracle_cloud_open(struct oracle_cloud *out, size_t vocab,
                      const struct oracle_cloud_answers *answers, struct err *err)
{
    size_t n = vocab < MOST ? vocab : MOST;
    *out = (struct oracle_cloud){ .vocab = NULL };
    if (n < BYTES)
        return err_set(err, ERR_ARG, "vocabulary: expected at least %d ids, found %zu", BYTES, n);
    int rc = oracle_cloud_vocabulary(&out->vocab, n, err);
    out->server = calloc(1, sizeof(*out->server));
    if (rc == OK && !out->server)
        rc = err_set(err, ERR_NOMEM, "bench: out of memory");
    if (rc)
        return rc;
    *out->server = (struct oracle_server){ .answers = *answers, .vocab = n };
    const struct server_options s = { .handle = oracle_cloud_handle, .arg = out->server };
    rc = server_open(&out->server->server, &s, err);
    if (rc)
        return rc;
    const struct cloud_options c = { .url = oracle_cloud_url(out),
                                     .api = CLOUD_SGLANG,
                                     .vocab = n,
                                     .timeout_ms = TIMEOUT_MS,
                                     .stop = &interrupted };
    rc = cloud_open(&out->cloud, &c, err);
    return rc ? rc : cloud_ready(out->cloud, err);
}

const char *oracle_cloud_url(const struct oracle_cloud *c)
{
    return server_url(c->server->server);
}

void oracle_cloud_close(struct oracle_cloud *c)
{
    cloud_close(c->cloud);
    if (c->server)
        server_close(c->server->server, 0);
    free(c->server);
    tokenizer_close(c->vocab);
}
