#include "tests/support/serving.h"

#include <stdarg.h>

#include "router/routing.h"
#include "tests/support/http_client.h"
#include "tests/support/test.h"
#include "tools/lab/stand_in/stand_in.h"

const char serving_model[] = "weights/milli/edge-0.5.gguf";
uint64_t serving_limit = UINT64_MAX;
const char *const serving_prompts[PROMPTS] = {
    "Once upon", "Question: Where could you come across the lonumamo?\\nAnswer:",
    "Question: Rank these three words: ocher, chair, juice.\\nAnswer:", "The \xc3\xa9"
};

void serving_need_pair(void)
{
    if (access(serving_model, R_OK))
        SKIP("no demo pair in weights/milli");
}

void serving_open_for(struct serving *s, const struct serve_options *o,
                      const struct routing_options *mo)
{
    struct serve_options so = *o;
    struct err err = { "" };
    so.parallel = so.parallel ? so.parallel : 8;
    so.queue = so.queue ? so.queue : 64;
    int rc = serve_open(&s->serve, &so, &err);
    if (rc == OK)
        rc = serve_load(s->serve, mo, &err);
    CHECK_MSG(rc == OK, "%s", err.msg);
    s->port = (unsigned)strtoul(strrchr(serve_url(s->serve), ':') + 1, NULL, 10);
}

/* Start the server, whose cloud is at s->cloud_url, if that is not empty. */
static void serving_start(struct serving *s, const struct serve_options *o, const char *local,
                          const char *kv)
{
    struct routing_options mo = routing_defaults;
    mo.engine = (struct engine_options){ .model = serving_model, .threads = 1, .kv = kv };
    mo.cloud_model = local;
    mo.max_cloud_tokens = serving_limit;
    mo.cloud_url = s->cloud_url[0] ? s->cloud_url : NULL; /* which it uses to its end */
    serving_open_for(s, o, &mo);
}

void serving_open(struct serving *s, const struct serve_options *o, enum serving_cloud cloud)
{
    static const char large[] = "weights/milli/cloud.gguf";
    const struct stand_in_options co = { .model = large, .threads = 1 };
    *s = (struct serving){ 0 };
    serving_need_pair();
    if (cloud == SERVING_CLOUD) {
        CHECK(stand_in_open(&s->cloud, &co, NULL) == OK);
        snprintf(s->cloud_url, sizeof(s->cloud_url), "%s", stand_in_url(s->cloud));
    }
    serving_start(s, o, cloud == SERVING_LOCAL ? large : NULL, NULL);
}

void serving_open_with(struct serving *s, const struct serve_options *o, unsigned cloud,
                       const char *kv)
{
    *s = (struct serving){ 0 };
    if (cloud)
        snprintf(s->cloud_url, sizeof(s->cloud_url), "http://127.0.0.1:%u", cloud);
    serving_start(s, o, NULL, kv);
}

void serving_close(struct serving *s)
{
    serve_close(s->serve, 2000);
    stand_in_close(s->cloud);
    json_decref(s->replies);
}

/* Keep a reply as long as the server. */
static json_t *serving_keep(struct serving *s, json_t *reply)
{
    if (!s->replies)
        s->replies = json_array();
    CHECK(!reply || json_array_append_new(s->replies, reply) == 0);
    return reply;
}

/* Ask, and return the reply. */
static struct http_client_reply serving_reply(struct serving *s, const char *method,
                                              const char *path, const char *headers,
                                              const char *body)
{
    struct http_client_reply r;
    http_client_ask(s->port, &r, method, path, headers, body);
    s->status = r.status;
    snprintf(s->head, sizeof(s->head), "%.2000s", r.head);
    return r;
}

json_t *serving_ask(struct serving *s, const char *method, const char *path, const char *headers,
                    const char *body)
{
    struct http_client_reply r = serving_reply(s, method, path, headers, body);
    json_t *out = json_loadb(r.body, r.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    http_client_free(&r);
    return serving_keep(s, out);
}

json_t *serving_post(struct serving *s, const char *path, const char *body)
{
    return serving_ask(s, "POST", path, NULL, body);
}

json_t *serving_send(struct serving *s, const char *path, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    CHECK(text);
    json_t *reply = serving_post(s, path, text);
    json_decref(body);
    free(text);
    return reply;
}

json_t *serving_postf(struct serving *s, const char *path, const char *form, ...)
{
    char body[2000];
    va_list args;
    va_start(args, form);
    CHECK((size_t)vsnprintf(body, sizeof(body), form, args) < sizeof(body));
    va_end(args);
    return serving_post(s, path, body);
}

json_t *serving_complete(struct serving *s, const char *path, const char *prompt, const char *more)
{
    char body[2000];
    snprintf(body, sizeof(body),
             strcmp(path, CHAT) == 0
                 ? "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"max_tokens\":40%s}"
                 : "{\"prompt\":\"%s\",\"max_tokens\":40%s}",
             prompt, more);
    return (strstr(more, "\"stream\":true") ? serving_events : serving_post)(s, path, body);
}

json_t *serving_stream(char *body, bool *done)
{
    json_t *list = json_array();
    *done = false;
    for (char *end; (end = strstr(body, "\n\n")); body = end + 2) {
        *end = '\0';
        CHECK(!*done);
        if (body[0] == ':')
            continue;
        CHECK(strncmp(body, "data: ", 6) == 0);
        *done = strcmp(body + 6, "[DONE]") == 0;
        json_t *event = *done ? NULL : json_loads(body + 6, JSON_ALLOW_NUL, NULL);
        CHECK(*done || json_array_append_new(list, event) == 0);
    }
    return list;
}

json_t *serving_events(struct serving *s, const char *path, const char *body)
{
    struct http_client_reply r = serving_reply(s, "POST", path, NULL, body);
    json_t *event;
    bool done;
    size_t i;
    CHECK(r.status == 200 && r.whole && strstr(r.head, "text/event-stream"));
    json_t *list = serving_keep(s, serving_stream(r.body, &done));
    json_array_foreach(list, i, event) CHECK(json_is_array(json_object_get(event, "choices")));
    CHECK(done);
    http_client_free(&r);
    return list;
}

json_t *serving_at(const json_t *in, const char *path)
{
    json_t *v = (json_t *)(size_t)in;
    while (v && *path) {
        char name[64];
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        v = json_is_array(v) ? json_array_get(v, (size_t)strtoul(name, NULL, 10))
                             : json_object_get(v, name);
        path += n + (path[n] == '.');
    }
    return v;
}

const char *serving_text(const json_t *in, const char *path)
{
    return json_string_value(serving_at(in, path));
}

json_int_t serving_number(const json_t *in, const char *path)
{
    return json_integer_value(serving_at(in, path));
}
