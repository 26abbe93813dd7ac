/* The stand-in server's faults and network: each fault does what its row says, in each dialect,
 * whole and streamed. What is drawn depends on seed, prefix and attempt, not on the order of
 * requests. */

#include "tests/support/http_client.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/lab/stand_in/stand_in.h"

enum { QUIET_MS = 80, PATIENCE_MS = 300, MOST_MS = 30000, PREFIXES = 24, ATTEMPTS = 3 };

static const char *model;
static int ending; /* a first token after which the text ends within 8 tokens */

struct form {
    const char *path, *body; /* body is a format for first token and stream */
    const char *ends;        /* what says that the text has ended by itself */
};

static const struct form forms[] = {
    { "/v1/completions",
      "{\"prompt\":[%d],\"max_tokens\":8,\"temperature\":0,\"return_token_ids\":"
      "true,\"stream\":%s}",
      "\"finish_reason\":\"stop\"" },
    { "/generate",
      "{\"input_ids\":[%d],\"sampling_params\":{\"max_new_tokens\":8,\"temperature\":"
      "0},\"stream\":%s}",
      "\"finish_reason\":{\"type\":\"stop\",\"matched\":25" },
    { "/completion",
      "{\"prompt\":[%d],\"n_predict\":8,\"temperature\":0,\"return_tokens\":true,"
      "\"stream\":%s}",
      "\"stop_type\":\"eos\"" },
};

/* Start a server with these options and, unless NULL, a fault. */
static struct stand_in *serve(const struct stand_in_options *more, const char *fault)
{
    struct stand_in_options o = *more;
    struct stand_in *s;
    o.model = model;
    o.threads = 1;
    CHECK(!fault || stand_in_fault_add(&o.faults, fault, NULL) == OK);
    CHECK(stand_in_open(&s, &o, NULL) == OK);
    return s;
}

/* Send one request and read the reply for at most ms. */
static void ask(const struct stand_in *s, const struct form *f, int first, bool stream, unsigned ms,
                struct http_client_reply *r)
{
    char body[256];
    int fd = http_client_open(stand_in_port(s));
    snprintf(body, sizeof(body), f->body, first, stream ? "true" : "false");
    http_client_put(fd, "POST", f->path, NULL, body, strlen(body));
    http_client_get(fd, r, ms);
    close(fd);
}

/* Set `ending`. */
static void find_ending(const struct stand_in *s)
{
    for (ending = 0; ending < 256; ending++) {
        struct http_client_reply r;
        ask(s, &forms[1], ending, false, MOST_MS, &r);
        bool stop = strstr(r.body, forms[1].ends) != NULL;
        CHECK(stop || strstr(r.body, "\"finish_reason\":{\"type\":\"length\",\"length\":8}"));
        http_client_free(&r);
        if (stop)
            return;
    }
    CHECK(ending < 256); /* some prefix ends */
}

/* Return the reply as JSON without the members that differ from call to call, or NULL. */
static json_t *understood(const struct http_client_reply *r)
{
    static const char *const names[] = { "id",
                                         "created",
                                         "e2e_latency",
                                         "timings",
                                         "cached_tokens",
                                         "prompt_tokens_details",
                                         "tokens_cached",
                                         "id_slot" };
    json_t *root = json_loadb(r->body, r->n, 0, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_object_del(root, names[i]);
        json_object_del(json_object_get(root, "meta_info"), names[i]);
        json_object_del(json_object_get(root, "usage"), names[i]);
    }
    return root;
}

/* Edited JSON parses but differs; edited text does not parse, with one exception; anything else
 * equals the reply without a fault. */
static void check_edit(const struct stand_in_fault *f, const struct http_client_reply *r,
                       const json_t *clean)
{
    json_t *got = understood(r);
    bool text = stand_in_fault_edits_text(f), json = stand_in_fault_edits_json(f);
    bool none = text && strcmp(f->name, "twice") != 0 && strcmp(f->name, "list") != 0;
    bool right = (got == NULL) == none && (text || json_equal(got, clean) == !json);
    CHECK_MSG(right, "%s: %s", f->name, r->body);
    CHECK(!f->type || strstr(r->head, f->type));
    CHECK(!f->header || strstr(r->head, f->header));
    json_decref(got);
}

/* Check how much of the reply arrived, as the fault's way says. */
static void check_way(const struct stand_in_fault *f, const struct http_client_reply *r)
{
    switch (f->way) {
    case WAY_CLOSE:
    case WAY_RESET:
    case WAY_SILENT:
    case WAY_LATE:
        CHECK(r->status == 0 && r->n == 0);
        return;
    case WAY_CUT:
    case WAY_STALL:
    case WAY_SLOW:
        CHECK(r->status == 200 && !r->whole && r->n);
        return;
    case WAY_HUGE:
        CHECK(r->whole && r->n > 100 << 20);
        return;
    case WAY_BYTES:
        CHECK(r->whole && r->chunks == r->n && r->n);
        return;
    case WAY_WHOLE:
        CHECK_MSG(r->whole && r->status == (f->status ? (int)f->status : 200), "%s: %d %.400s",
                  f->name, r->status, r->head);
        CHECK(!f->no_length || r->chunks);
        return;
    }
}

/* Check the events of a stream. */
static void check_stream(const struct stand_in_fault *f, const struct form *form,
                         const struct http_client_reply *r)
{
    bool llama = strcmp(form->path, "/completion") == 0;
    if (f->status || f->way)
        return;
    CHECK(r->status == 200 && r->whole && strstr(r->body, "data: "));
    bool done = strstr(r->body, llama ? "\"stop\":true" : "data: [DONE]\n\n") != NULL;
    bool edited = stand_in_fault_edits_text(f); /* may hold a NUL */
    CHECK(edited || done == (f->events != EVENTS_NO_DONE && f->events != EVENTS_ERROR));
    CHECK(f->events != EVENTS_COMMENTS || strstr(r->body, ": ping\r\n\r\ndata: "));
    CHECK(f->events != EVENTS_ERROR || strstr(r->body, "error"));
}

/* Send one request under a fault and read the reply for as long as the fault needs. A reply that
 * stops in the middle never ends, so it is read for a limited time; on a busy machine nothing may
 * have come by then, and it is asked again with more time. */
static void ask_patiently(const struct stand_in *s, const struct stand_in_fault *f,
                          const struct form *form, bool stream, struct http_client_reply *r)
{
    bool none = f->way == WAY_SILENT || f->way == WAY_LATE;
    bool part = f->way == WAY_STALL || f->way == WAY_SLOW;
    unsigned ms = none ? QUIET_MS : part ? PATIENCE_MS : MOST_MS;
    ask(s, form, ending, stream, ms, r);
    for (; part && !r->n && ms < MOST_MS; ms *= 2) {
        http_client_free(r);
        ask(s, form, ending, stream, 2 * ms, r);
    }
}

/* Compare the replies under a fault with those without it, in each form. */
static void test_fault(const struct stand_in_fault *f, json_t *const *clean)
{
    const struct stand_in_options o = { .seed = 1 };
    struct stand_in *s = serve(&o, f->name);
    for (size_t i = 0; i < 3; i++)
        for (int stream = 0; stream < 2; stream++) {
            struct http_client_reply r;
            if (f->way == WAY_HUGE && (i || stream))
                continue; /* 100 MB are enough once */
            ask_patiently(s, f, &forms[i], stream, &r);
            check_way(f, &r);
            if (stream)
                check_stream(f, &forms[i], &r);
            else if (!f->status && !f->way)
                check_edit(f, &r, clean[i]);
            http_client_free(&r);
        }
    /* Other paths are not affected. */
    struct http_client_reply *r = http_client_reply(stand_in_port(s), "GET", "/health", NULL, NULL);
    CHECK(r->status == 200 && r->whole);
    stand_in_close(s);
}

static void test_faults(void)
{
    const struct stand_in_options o = { .seed = 1 };
    struct stand_in *s = serve(&o, NULL);
    json_t *clean[3];
    find_ending(s);
    for (size_t i = 0; i < 3; i++) {
        struct http_client_reply r;
        ask(s, &forms[i], ending, false, MOST_MS, &r);
        clean[i] = understood(&r);
        CHECK(clean[i] && strstr(r.body, forms[i].ends));
        http_client_free(&r);
    }
    stand_in_close(s);
    for (const struct stand_in_fault *f = stand_in_fault_table; f->name; f++)
        test_fault(f, clean);
    for (size_t i = 0; i < 3; i++)
        json_decref(clean[i]);
}

/* Ask each prefix three times, in order or backwards, and write down how that goes. */
static void outcomes(int status[PREFIXES][ATTEMPTS], uint64_t seed, bool backwards)
{
    struct stand_in_options options = { .seed = seed, .latency_ms = backwards };
    CHECK(stand_in_fault_add(&options.faults, "500:0.2", NULL) == OK);
    CHECK(stand_in_fault_add(&options.faults, "cut:0.2", NULL) == OK);
    struct stand_in *s = serve(&options, "429:0.25");
    for (size_t k = 0; k < PREFIXES * ATTEMPTS; k++) {
        size_t p = backwards ? PREFIXES - 1 - k / ATTEMPTS : k % PREFIXES;
        struct http_client_reply r;
        ask(s, &forms[p % 3], (int)p, false, MOST_MS, &r);
        status[p][backwards ? k % ATTEMPTS : k / PREFIXES] = r.whole ? r.status : -1;
        http_client_free(&r);
    }
    stand_in_close(s);
}

/* Who asks in another order gets the same outcomes; another seed gives others. */
static void test_order(void)
{
    static int status[3][PREFIXES][ATTEMPTS];
    size_t counts[4] = { 0 };
    outcomes(status[0], 5, false);
    outcomes(status[1], 5, true);
    outcomes(status[2], 6, false);
    CHECK(memcmp(status[0], status[1], sizeof(status[0])) == 0);
    CHECK(memcmp(status[0], status[2], sizeof(status[0])) != 0);
    for (size_t k = 0; k < PREFIXES * ATTEMPTS; k++) {
        int is = status[0][k / ATTEMPTS][k % ATTEMPTS];
        counts[is == 200 ? 0 : is == 500 ? 1 : is == 429 ? 2 : 3]++;
    }
    for (size_t i = 0; i < 4; i++) /* 72 draws: each kind occurs, and most requests succeed */
        CHECK(counts[i] >= 4 && counts[0] > 20);
}

static void test_specs(void)
{
    static const char *const bad[] = { "",      "nope",    "500:", "500:0", "500:1.5",
                                       "500:x", "500:nan", "5000", ":1" };
    struct stand_in_faults f = { 0 };
    struct err err = { "" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(stand_in_fault_add(&f, bad[i], &err) == ERR_ARG && f.n == 0);
    CHECK(stand_in_fault_add(&f, "bad-jsom", &err) == ERR_ARG && strstr(err.msg, "bad-jsom"));
    for (size_t i = 0; i < STAND_IN_FAULTS; i++)
        CHECK(stand_in_fault_add(&f, "503:0.5", &err) == OK);
    CHECK(stand_in_fault_add(&f, "503:0.5", &err) == ERR_ARG);
}

/* The same question has the same draws, whatever the order of the questions. */
static void test_draws(void)
{
    const uint32_t a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 };
    struct stand_in_chance *d = stand_in_chance_open(7);
    CHECK(d);
    uint64_t a1 = stand_in_chance_key(d, a, 3), a2 = stand_in_chance_key(d, a, 3);
    uint64_t b1 = stand_in_chance_key(d, b, 3);
    stand_in_chance_close(d);
    d = stand_in_chance_open(7);
    CHECK(d && stand_in_chance_key(d, b, 3) == b1 && stand_in_chance_key(d, a, 3) == a1 &&
          stand_in_chance_key(d, a, 3) == a2);
    CHECK(a1 != a2 && a1 != b1);
    stand_in_chance_close(d);
    d = stand_in_chance_open(8);
    CHECK(d && stand_in_chance_key(d, a, 3) != a1);
    stand_in_chance_close(d);
}

int main(void)
{
    model = tiny_make();
    test_specs();
    test_draws();
    test_order();
    test_faults();
    return 0;
}
