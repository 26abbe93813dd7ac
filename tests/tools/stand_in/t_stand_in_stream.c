/* The stand-in server's streams carry the tokens and the text of the whole answer, event by event,
 * in the form of each dialect. Its replies and errors have the shape of recorded exchanges with
 * real servers. Asked in every dialect and under every fault that edits an answer, while the n-th
 * allocation fails, jansson's included, for every n, it gives an error or no answer, without crash
 * or leak. */
#include "kernels/sys/buf.h"
#include "tests/support/serving.h"
#include "tests/support/tiny.h"
#include "tests/tools/torture_path.h"
#include "tools/lab/stand_in/stand_in.h"

enum { TOKENS = 24 };

static struct stand_in *servers[4]; /* by enum cloud_api */

/* Where a dialect keeps text and ids. */
struct dialect {
    enum cloud_api server;
    const char *path, *body; /* body is a format for stream and ignore_eos */
    const char *text, *ids;
    bool in_choice, cumulative, done;
};

static const struct dialect dialects[] = {
    { CLOUD_OPENAI, "/v1/completions",
      "{\"prompt\":[72,200,33],\"max_tokens\":24,\"temperature\":0,\"return_token_ids\":true,"
      "\"stream\":%s,\"ignore_eos\":%s}",
      "text", "token_ids", true, false, true },
    { CLOUD_SGLANG, "/generate",
      "{\"input_ids\":[72,200,33],\"sampling_params\":{\"max_new_tokens\":24,\"temperature\":0,"
      "\"ignore_eos\":%2$s},\"stream\":%1$s}",
      "text", "output_ids", false, true, true },
    { CLOUD_LLAMACPP, "/completion",
      "{\"prompt\":[72,200,33],\"n_predict\":24,\"temperature\":0,\"return_tokens\":true,"
      "\"stream\":%s,\"ignore_eos\":%s}",
      "content", "tokens", false, false, false },
};

static struct http_client_reply *ask(enum cloud_api server, const char *path, const char *body)
{
    struct http_client_reply *r =
        http_client_reply(stand_in_port(servers[server]), "POST", path, NULL, body);
    CHECK(r->whole);
    return r;
}

/* Return the object that holds text and ids. */
static const json_t *part(const struct dialect *d, const json_t *root)
{
    return d->in_choice ? json_array_get(json_object_get(root, "choices"), 0) : root;
}

/* The text and ids of all events. */
struct told {
    json_t *ids;
    char text[4096];
    size_t events;
    bool done;
};

/* Add one event. */
static void hear(const struct dialect *d, struct told *t, const json_t *event)
{
    const json_t *at = part(d, event), *ids = json_object_get(at, d->ids);
    const char *text = json_string_value(json_object_get(at, d->text));
    CHECK(text && json_is_array(ids));
    if (d->cumulative) {
        CHECK(strncmp(text, t->text, strlen(t->text)) == 0);
        CHECK(json_array_size(ids) == t->events + 1);
        json_array_clear(t->ids);
        t->text[0] = 0;
    }
    json_array_extend(t->ids, (json_t *)(uintptr_t)ids);
    CHECK(strlen(t->text) + strlen(text) < sizeof(t->text));
    strncat(t->text, text, sizeof(t->text) - strlen(t->text) - 1);
    t->events++;
}

/* Split a body into events and add them up. */
static struct told listen_to(const struct dialect *d, char *body)
{
    struct told t = { .ids = json_array() };
    json_t *events = serving_stream(body, &t.done), *event;
    size_t i;
    json_array_foreach(events, i, event) hear(d, &t, event);
    json_decref(events);
    return t;
}

/* The events of a stream add up to the answer without "stream". */
static void test_streams(bool go_on)
{
    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        const struct dialect *d = &dialects[i];
        struct http_client_reply *r;
        char body[512];
        const char *eos = go_on ? "true" : "false";
        snprintf(body, sizeof(body), d->body, "false", eos);
        r = ask(d->server, d->path, body);
        CHECK(r->status == 200 && r->n && strstr(r->head, "application/json"));
        json_t *whole = json_loadb(r->body, r->n, 0, NULL);
        CHECK(whole);
        snprintf(body, sizeof(body), d->body, "true", eos);
        r = ask(d->server, d->path, body);
        CHECK(r->status == 200 && r->chunks && strstr(r->head, "Content-Type: text/event-stream"));
        struct told t = listen_to(d, r->body);
        const json_t *ids = json_object_get(part(d, whole), d->ids);
        const char *text = json_string_value(json_object_get(part(d, whole), d->text));
        CHECK(!go_on || json_array_size(ids) == TOKENS);
        CHECK(json_equal(t.ids, ids) && text && strcmp(t.text, text) == 0);
        CHECK(t.done == d->done && t.events == json_array_size(ids) + !d->done);
        CHECK(r->chunks >= json_array_size(ids));
        json_decref(t.ids);
        json_decref(whole);
    }
}

/* On request, an event with the number of tokens follows. */
static void test_usage(void)
{
    struct http_client_reply *r = ask(
        CLOUD_OPENAI, "/v1/completions",
        "{\"prompt\":[1,2],\"max_tokens\":2,\"temperature\":0,\"ignore_eos\":true,\"stream\":true,"
        "\"stream_options\":{\"include_usage\":true},\"return_token_ids\":true}");
    const char *first = strstr(r->body, "\"prompt_token_ids\":[1,2]");
    CHECK(first && !strstr(first + 9, "prompt_token_ids"));
    CHECK(strstr(r->body, "\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":2,"
                          "\"total_tokens\":4"));
}

/* Each server can be told apart by its paths and replies. */
static void test_probes(void)
{
    static const char *const owners[] = { "\"mizzle\"", "\"vllm\"", "\"llamacpp\"", "\"sglang\"" };
    static const struct {
        const char *path;
        int status[4];
    } paths[] = {
        { "/health", { 200, 200, 200, 200 } },      { "/props", { 200, 404, 200, 404 } },
        { "/slots", { 200, 404, 200, 404 } },       { "/model_info", { 200, 404, 404, 200 } },
        { "/server_info", { 200, 404, 404, 200 } }, { "/version", { 200, 200, 404, 404 } },
        { "/v1/models", { 200, 200, 200, 200 } },
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        for (unsigned s = 0; s < 4; s++) {
            struct http_client_reply *r =
                http_client_reply(stand_in_port(servers[s]), "GET", paths[i].path, NULL, NULL);
            CHECK(r->status == paths[i].status[s] && r->whole);
            CHECK(strcmp(paths[i].path, "/v1/models") != 0 || strstr(r->body, owners[s]));
            CHECK(strcmp(paths[i].path, "/health") != 0 ||
                  (r->n == 0) == (s == CLOUD_OPENAI || s == CLOUD_SGLANG));
        }
    const struct http_client_reply *r =
        ask(CLOUD_SGLANG, "/v1/completions",
            "{\"prompt\":[1,2],\"max_tokens\":1,\"temperature\":0,\"return_token_ids\":true}");
    CHECK(r->status == 200 && !strstr(r->body, "token_ids"));
}

/* Map recorded ids, from a vocabulary of 151,936, to ids below 250. */
static void shrink(json_t *v)
{
    size_t i;
    json_t *e;
    json_array_foreach(v, i, e)
    {
        if (json_is_integer(e) && json_integer_value(e) < 151936)
            json_array_set_new(v, i, json_integer(json_integer_value(e) % 250));
    }
}

/* True if everything in our reply is in the real server's reply, too, with the same type. */
static bool alike(const json_t *ours, const json_t *theirs, const char *where)
{
    const char *key;
    json_t *v;
    if (json_is_null(ours) || json_is_null(theirs))
        return true;
    bool same = json_typeof(ours) == json_typeof(theirs) ||
                (json_is_number(ours) && json_is_number(theirs)) ||
                (json_is_boolean(ours) && json_is_boolean(theirs));
    if (!same)
        fprintf(stderr, "%s: another type\n", where);
    json_object_foreach((json_t *)(uintptr_t)ours, key, v)
    {
        const json_t *other = json_object_get(theirs, key);
        if (!other)
            fprintf(stderr, "%s.%s: not in the recording\n", where, key);
        same = same && other && alike(v, other, key);
    }
    if (json_array_size(ours) && json_array_size(theirs) && json_is_object(json_array_get(ours, 0)))
        same = same && alike(json_array_get(ours, 0), json_array_get(theirs, 0), where);
    return same;
}

/* Recorded exchanges. */
static const struct recorded {
    enum cloud_api server;
    bool exact; /* our body must be the same byte by byte */
    const char *folder, *names;
} recordings[] = {
    { CLOUD_LLAMACPP, false, "llama_server_2026-08/qwen_random",
      "completion_ids_1 completion_append_cached completion_n_predict_0 "
      "completion_no_return_tokens "
      "completion_unknown_field completion_stream err_404 err_405 err_bad_json err_empty_body "
      "err_prompt_type err_too_long models tokenize detokenize" },
    { CLOUD_LLAMACPP, true, "llama_server_2026-08/qwen_random",
      "completion_bad_temperature err_empty_prompt err_no_prompt err_token_negative "
      "err_token_out_of_vocab health" },
    { CLOUD_LLAMACPP, false, "llama_server_2025-02/stories260K", "slots" },
    { CLOUD_SGLANG, false, "sglang_wire_sim/wire",
      "generate_stream err_bad_json err_bad_type err_out_of_vocab" },
    { CLOUD_SGLANG, true, "sglang_wire_sim/wire",
      "err_404 err_405 err_empty_ids err_no_input err_unknown_sampling_key health" },
};

/* Return the body of an HTTP message. */
static char *body_of(char *message)
{
    char *p = strstr(message, "\r\n\r\n");
    CHECK(p);
    return p + 4;
}

/* Return the recorded body with ids that the test model has; malloc'ed. */
static char *fitted(const char *body)
{
    json_t *root = json_loads(body, 0, NULL);
    if (!root)
        return strdup(body);
    shrink(json_object_get(root, "prompt"));
    shrink(json_object_get(root, "input_ids"));
    shrink(json_object_get(root, "tokens"));
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

/* Return the first JSON document of a body, or of the first event of a stream. */
static json_t *document(const char *body)
{
    if (strncmp(body, "data: ", 6) == 0)
        body += 6;
    return json_loads(body, JSON_DISABLE_EOF_CHECK, NULL);
}

/* Send a recorded request and compare the replies; false if there is no recording. */
static bool replay(const struct recorded *rec, const char *name)
{
    size_t n;
    char *request = slurp_all(test_data("http/%s/%s.request", rec->folder, name), &n);
    char *response = slurp_all(test_data("http/%s/%s.response", rec->folder, name), &n);
    if (!request || !response) {
        free(request);
        free(response);
        return false;
    }
    char method[8], path[64];
    CHECK(sscanf(request, "%7s %63s", method, path) == 2);
    char *sent = fitted(body_of(request)), *theirs = body_of(response);
    struct http_client_reply *r =
        http_client_reply(stand_in_port(servers[rec->server]), method, path, NULL,
                          strcmp(method, "GET") == 0 ? NULL : sent);
    int status = (int)strtol(response + 9, NULL, 10);
    if (strstr(response, "Transfer-Encoding: chunked"))
        theirs = strchr(theirs, '\n') + 1;
    json_t *a = document(r->body), *b = document(theirs);
    bool same = rec->exact ? strncmp(theirs, r->body, r->n) == 0 && strlen(theirs) - r->n <= 2
                           : a && b && alike(a, b, name);
    CHECK_MSG(r->status == status && r->whole && same, "%s: %d %s\nnot %d %s", name, r->status,
              r->body, status, theirs);
    CHECK(!strstr(response, "text/event-stream") || strstr(r->head, "text/event-stream"));
    CHECK(!strstr(response, "text/plain") || strstr(r->head, "text/plain"));
    json_decref(a);
    json_decref(b);
    free(sent);
    free(request);
    free(response);
    return true;
}

/* Requests, and the status of their answers, by enum cloud_api. */
static const struct {
    enum cloud_api server;
    int status;
    const char *path, *body;
} requests[] = {
    { CLOUD_OPENAI, 200, "/v1/completions",
      "{\"prompt\":[1,2,3],\"max_tokens\":3,\"return_token_ids\":true,\"stream_options\":"
      "{\"include_usage\":true}}" },
    { CLOUD_SGLANG, 200, "/v1/completions", "{\"prompt\":\"Hello\",\"max_tokens\":3}" },
    { CLOUD_SGLANG, 200, "/generate",
      "{\"input_ids\":[1,2,3],\"rid\":\"r\",\"sampling_params\":{\"max_new_tokens\":3}}" },
    { CLOUD_LLAMACPP, 200, "/completion",
      "{\"prompt\":[1,2,3],\"n_predict\":3,\"return_tokens\":true}" },
    { CLOUD_SGLANG, 200, "/generate", "{\"input_ids\":[1,2,999],\"stream\":true}" },
    { CLOUD_OPENAI, 400, "/v1/completions", "{\"prompt\":[1,2,999],\"max_tokens\":3}" },
    { CLOUD_LLAMACPP, 400, "/completion", "{\"prompt\":[1,2,999],\"n_predict\":3}" },
    { CLOUD_AUTO, 200, "/v1/models", NULL },
    { CLOUD_AUTO, 200, "/props", NULL },
    { CLOUD_AUTO, 200, "/slots", NULL },
    { CLOUD_AUTO, 200, "/model_info", NULL },
    { CLOUD_AUTO, 200, "/server_info", NULL },
    { CLOUD_AUTO, 200, "/version", NULL },
    { CLOUD_AUTO, 200, "/tokenize", "{\"content\":\"Hi\"}" },
    { CLOUD_AUTO, 200, "/detokenize", "{\"tokens\":[72,105]}" },
};

static void test_requests(void)
{
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        torture_path(stand_in_port(servers[requests[i].server]), requests[i].path, requests[i].body,
                     requests[i].status);
}

/* Replies of each dialect at the end of a text. */
static const char *const replies[] = {
    ("{\"choices\":[{\"index\":0,\"text\":\"Hi\",\"finish_reason\":\"stop\",\"token_ids\":[72,105,"
     "256]"
     "}],\"model\":\"m\",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":3}}"),
    ("{\"text\":\"Hi\",\"output_ids\":[72,105,256],\"meta_info\":{\"finish_reason\":{\"type\":"
     "\"stop\"},"
     "\"prompt_tokens\":3,\"completion_tokens\":3}}"),
    ("{\"content\":\"Hi\",\"tokens\":[72,105,256],\"stop_type\":\"eos\",\"tokens_evaluated\":3,"
     "\"tokens_predicted\":3}"),
};

/* Let a fault edit them. */
static void test_fault(const struct stand_in_fault *f)
{
    static const uint32_t prompt[] = { 1, 2, 3 };
    const struct stand_in_facts at = { prompt, 3, TINY_VOCAB };
    for (size_t i = 0; i < 3; i++) {
        long n = 1;
        bool fine;
        do {
            struct buf text = { 0 };
            torture_begin(n++);
            fine = buf_str(&text, replies[i]) && stand_in_fault_edit(&text, f, &at, true);
            bool same = text.n == strlen(replies[i]) && !memcmp(text.p, replies[i], text.n);
            CHECK_MSG(!fine || !same, "%s: nothing is edited: %s", f->name, replies[i]);
            buf_free(&text);
            CHECK(torture_live() == 0);
        } while (torture_end());
        CHECK_MSG(fine, "%s", f->name);
    }
}

int main(void)
{
    const char *model = tiny_make();
    json_set_alloc_funcs(malloc, free); /* those that can fail */
    json_object_seed(1);
    for (const struct stand_in_fault *f = stand_in_fault_table; f->name; f++)
        if (stand_in_fault_edits_json(f) || stand_in_fault_edits_text(f))
            test_fault(f);
    for (unsigned i = 0; i < 4; i++) {
        const struct stand_in_options o = { .model = model,
                                            .threads = 1,
                                            .server = (enum cloud_api)i };
        CHECK(stand_in_open(&servers[i], &o, NULL) == OK);
    }
    test_streams(true);
    test_streams(false);
    test_usage();
    test_probes();
    test_requests();
    size_t missing = 0;
    for (size_t i = 0; i < sizeof(recordings) / sizeof(recordings[0]); i++)
        for (const char *at = recordings[i].names; *at; at += strspn(at, " ")) {
            char name[40];
            size_t n = strcspn(at, " ");
            snprintf(name, sizeof(name), "%.*s", (int)n, at);
            missing += !replay(&recordings[i], name);
            at += n;
        }
    for (unsigned i = 0; i < 4; i++)
        stand_in_close(servers[i]);
    if (!missing)
        return 0;
    printf("SKIP: %zu recorded exchanges are not in http/ of the test data\n", missing);
    return 77;
}
