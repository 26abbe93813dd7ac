/* A cloud that is killed under eight texts: all go on to their end, and say which tokens it failed
 * to write. Once another one listens there, it is asked again. */
#include "tests/support/clients.h"
#include "tests/support/http_client.h"
#include "tests/support/process.h"
#include "tests/support/serving.h"
#include "tools/lab/stand_in/stand_in.h"

enum { TEXTS = 8, LENGTH = 40, LATENCY_MS = 100, AGAIN = 150 };

#define ASK                                                                                    \
    "{\"prompt\":\"Kill %d\",\"max_tokens\":%d,\"ignore_eos\":true,\"stream\":%s,\"mizzle\":{" \
    "\"policy\":\"always\",\"trace\":{}}}"

static struct serving server;

/* Whoever is killed cannot end with the status of a race that it has reported, so under the thread
 * sanitizer the first report ends it. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "halt_on_error=1";
}

/* Kill a cloud, which must have lived until now. */
static void kill_cloud(struct child *c)
{
    int status = child_end(c, SIGKILL);
    CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", (unsigned)status);
}

/* A cloud in a process of its own, which begins when it is told its port, and says where it is. */
static void cloud(const void *latency_ms)
{
    struct stand_in_options o = { .model = "weights/milli/cloud.gguf",
                                  .threads = 1,
                                  .latency_ms = *(const unsigned *)latency_ms };
    struct stand_in *s;
    struct err err = { "" };
    unsigned port;
    if (read(STDIN_FILENO, &o.listen.port, sizeof(port)) != sizeof(port))
        return; /* the test has failed */
    if (stand_in_open(&s, &o, &err) != OK)
        fprintf(stderr, "%s\n", err.msg);
    port = stand_in_port(s);
    CHECK(write(STDOUT_FILENO, &port, sizeof(port)) == sizeof(port));
    while (read(STDIN_FILENO, &port, 1) > 0)
        ;
}

/* Have it listen; return the port. */
static unsigned begin(const struct child *c, unsigned port)
{
    CHECK(write(c->to, &port, sizeof(port)) == sizeof(port));
    CHECK(read(c->from, &port, sizeof(port)) == sizeof(port));
    return port;
}

/* The tokens of a stream: first the cloud's, then those that it failed to write. */
static void check_tokens(char *body)
{
    size_t n = 0, cloud = 0, faults = 0, i, k;
    json_t *token, *event;
    bool done;
    json_t *events = serving_stream(body, &done);
    json_array_foreach(events, i, event)
    {
        CHECK(!json_object_get(event, "error"));
        json_array_foreach(serving_at(event, "mizzle.tokens"), k, token)
        {
            const char *source = json_string_value(json_object_get(token, "source"));
            const char *fault = json_string_value(json_object_get(token, "fault"));
            bool fell = strcmp(source, "fallback") == 0;
            CHECK(fell || (strcmp(source, "cloud") == 0 && !faults));
            CHECK(fell == (fault && *fault));
            CHECK(!fell ||
                  json_equal(json_object_get(token, "id"), json_object_get(token, "edge_id")));
            cloud += !fell;
            faults += fell;
            n++;
        }
    }
    json_decref(events);
    CHECK(n == LENGTH && cloud && faults);
}

/* Return the state of the cloud as /mizzle/info has it. */
static bool cloud_is(const char *state)
{
    json_t *info = serving_ask(&server, "GET", "/mizzle/info", NULL, NULL);
    bool same = strcmp(json_string_value(serving_at(info, "cloud.state")), state) == 0;
    return same;
}

static void test_killed(struct child *killed)
{
    struct http_client_reply *r;
    int fd[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        char body[300];
        snprintf(body, sizeof(body), ASK, i, LENGTH, "true");
        fd[i] = http_client_open(server.port);
        http_client_put(fd[i], "POST", RAW, NULL, body, strlen(body));
    }
    for (int i = 0; i < TEXTS; i++)
        clients_await(fd[i], "\"source\":\"cloud\"");
    kill_cloud(killed);
    for (int i = 0; i < TEXTS; i++) {
        r = http_client_read(fd[i], 60000);
        CHECK(r->status == 200 && r->whole && strstr(r->body, "[DONE]") &&
              strstr(r->body, "\"finish_reason\":\"length\""));
        check_tokens(r->body);
        close(fd[i]);
    }
    clients_settle(server.port);
    CHECK(clients_metric(server.port, "texts_failed_total") == 0);
    /* Who names the large model gets it or an error; it is asked, although the breaker is open. */
    json_t *reply = serving_complete(&server, RAW, "Kill", ",\"model\":\"edge-0.5:cloud\"");
    CHECK(server.status == 502 && !strstr(serving_text(reply, "error.message"), "not asked"));
    CHECK(cloud_is("paused"));
    /* In a stream the error is the last event, and no other one calls the text finished. */
    static const char ask[] = "{\"prompt\":\"Kill\",\"stream\":true,\"model\":\"edge-0.5:cloud\"}";
    fd[0] = http_client_open(server.port);
    http_client_put(fd[0], "POST", RAW, NULL, ask, strlen(ask));
    r = http_client_read(fd[0], 60000);
    CHECK(strstr(r->body, "cloud_failed") && !strstr(r->body, "\"finish_reason\":\""));
    close(fd[0]);
}

/* The pause is at most 64 tokens long, so the end of this text is the cloud's again. */
static void test_return(void)
{
    json_t *reply = serving_postf(&server, RAW, ASK, TEXTS, AGAIN, "false");
    const json_t *tokens = serving_at(reply, "mizzle.tokens");
    CHECK(server.status == 200 && json_array_size(tokens) == AGAIN);
    for (size_t i = AGAIN / 2; i < AGAIN; i++)
        CHECK(strcmp(json_string_value(serving_at(json_array_get(tokens, i), "source")), "cloud") ==
              0);
    CHECK(cloud_is("working"));
}

int main(void)
{
    struct child first, second;
    serving_need_pair();
    child_start(&first, cloud, &(unsigned){ LATENCY_MS });
    child_start(&second, cloud, &(unsigned){ 0 });
    unsigned port = begin(&first, 0);
    serving_open_with(&server, &(struct serve_options){ .parallel = TEXTS }, port, NULL);
    test_killed(&first);
    CHECK(begin(&second, port) == port);
    test_return();
    serving_close(&server);
    kill_cloud(&second);
    return 0;
}
