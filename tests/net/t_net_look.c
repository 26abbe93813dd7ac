/* Tests calls whose tokens are looked at as they come, and streams that end early because the text
 * needs no more. The last id of the prefix selects the server's behaviour. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/answers/answers.h"
#include "net/cloud.h"
#include "tests/support/test.h"
#include "tests/support/threaded_server.h"

enum { VOCAB = 1000, BAD = 2, STREAM }; /* 400; four tokens */

#define SSE       "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define EVENT(id) "data: {\"choices\":[{\"index\":0,\"text\":\"x\",\"token_ids\":[" id "]}]}\n\n"

static atomic_bool silent, held; /* a stream waits before its first token; after it */

static bool serve(const struct threaded_server_request *r)
{
    if (r->last == BAD)
        return threaded_server_json(r, "400 Bad", "{\"error\":{\"message\":\"bad\"}}");
    bool goes_on = true;
    while (goes_on && silent)
        goes_on = threaded_server_pause(r, 10);
    goes_on = goes_on && threaded_server_text(r, SSE EVENT("201"));
    while (goes_on && held)
        goes_on = threaded_server_pause(r, 10);
    return goes_on &&
           threaded_server_text(r, EVENT("202") EVENT("203") EVENT("204") "data: [DONE]\n\n") &&
           false;
}

static struct cloud_call *ask(struct cloud *c, uint32_t last)
{
    struct cloud_call *call;
    CHECK(cloud_ask(c, (const uint32_t[]){ 5, 6, last }, 3, 4, &call, NULL) == OK);
    return call;
}

/* Wait for the first token of a call that succeeds. */
static void take(struct cloud_call *call)
{
    struct err err = { "" };
    uint32_t id = 0;
    CHECK(cloud_take(call, &id, &err) == OK && id == 201);
}

/* A stream that has given enough ends at once: its tokens are kept if it is committed, and nobody
 * waits for the others. */
static void test_enough(struct cloud *c)
{
    uint32_t ids[] = { 5, 6, STREAM, 201 }, id = 0, seen[4];
    bool ended;
    silent = held = true;
    struct cloud_call *call = ask(c, STREAM);
    cloud_enough(call); /* of no effect before the first token */
    silent = false;
    take(call);
    CHECK(cloud_look(call, seen, 0, 4, &ended) == 1 && seen[0] == 201 && !ended);
    CHECK(cloud_look(call, seen, 1, 4, &ended) == 0 && !ended);
    cloud_enough(call);
    cloud_enough(call);
    cloud_commit(call);
    CHECK(cloud_known(c, ids, 3, &id) == ORIGIN_MEMO && id == 201);
    CHECK(!cloud_known(c, ids, 4, &id)); /* the server still holds the stream */
    call = ask(c, STREAM);
    take(call);
    cloud_enough(call);
    cloud_drop(call);
    CHECK(cloud_ledger(c)->committed == 1 && cloud_ledger(c)->wasted == 1);
}

/* Tokens are seen in pieces of any size before the call is committed. */
static void test_look(struct cloud *c)
{
    uint32_t ids[] = { 5, 6, STREAM, 201, 202 }, id = 0, seen[5] = { 0 };
    bool ended = false;
    held = false;
    struct cloud_call *call = ask(c, STREAM);
    for (size_t n = 0; !ended; n += cloud_look(call, seen + n, n, 5 - n, &ended))
        CHECK(n <= 4);
    CHECK(seen[0] == 201 && seen[3] == 204 && seen[4] == 0);
    CHECK(cloud_look(call, seen, 2, 1, &ended) == 1 && seen[0] == 203 && !ended);
    CHECK(cloud_look(call, seen, 3, 1, &ended) == 1 && seen[0] == 204 && ended);
    CHECK(cloud_look(call, seen, 9, 1, &ended) == 0 && ended);
    cloud_enough(call);
    CHECK(!cloud_known(c, ids, 5, &id)); /* not committed yet */
    cloud_commit(call);
    CHECK(cloud_known(c, ids, 5, &id) == ORIGIN_MEMO && id == 203);
}

/* A fault has no tokens, and take gives it. */
static void test_fault(struct cloud *c)
{
    struct err err = { "" };
    uint32_t id = 77, seen[4];
    bool ended;
    struct cloud_call *call = ask(c, BAD);
    CHECK(cloud_take(call, &id, &err) == ERR_TEXT && id == 77);
    CHECK(cloud_look(call, seen, 0, 4, &ended) == 0 && ended);
    cloud_enough(call);
    CHECK(cloud_take(call, &id, &err) == ERR_TEXT);
    cloud_commit(call);
}

int main(void)
{
    struct answers *answers;
    struct cloud *c;
    struct err err = { "" };
    char url[64];
    threaded_server_open(serve);
    CHECK(answers_open(&answers, &(struct answers_options){ .vocab = VOCAB }, &err) == OK);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", threaded_server_port());
    const struct cloud_options o = { .url = url,
                                     .vocab = VOCAB,
                                     .api = CLOUD_OPENAI,
                                     .model = "m",
                                     .tokens = 4,
                                     .answers = answers };
    CHECK(cloud_open(&c, &o, &err) == OK);
    test_enough(c);
    test_look(c);
    test_fault(c);
    cloud_close(c);
    answers_close(answers, NULL);
    threaded_server_close();
    return 0;
}
