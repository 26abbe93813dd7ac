#include "tests/support/fault_matrix.h"

#include "kernels/sys/buf.h"
#include "tests/support/port.h"
#include "tools/lab/stand_in/fault.h"

#define KEY "sk-matrix-0123456789"

enum { PATIENT_MS = 30000, SLACK_MS = 10000, FIRST_MARK = 0xf1 };

struct text {
    char p[4096];
    size_t n;
};

struct matrix_server {
    struct rude *rude;
    char url[32];
    struct text bad, good;
};

static const uint32_t prompt[] = { 7, 8, 9 };
static const char good_reply[] = "HTTP/1.1 200 OK\r\nContent-Length: " L "\r\n\r\n" W;

/* Return the format of a whole reply in this dialect, with room for the list of ids. */
static const char *whole_form(enum cloud_api api)
{
    switch (api) {
    case CLOUD_SGLANG:
        return "{\"text\":\"x\",\"output_ids\":%s,\"meta_info\":{\"finish_reason\":{\"type\":"
               "\"length\",\"length\":1},\"completion_tokens\":1}}";
    case CLOUD_LLAMACPP:
        return "{\"index\":0,\"content\":\"x\",\"tokens\":%s,\"stop\":true,\"stop_type\":\"limit\","
               "\"tokens_predicted\":1}";
    default:
        return "{\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":\"length\","
               "\"token_ids\":%s}],\"usage\":{\"completion_tokens\":1}}";
    }
}

/* Return the format of one event in this dialect. */
static const char *event_form(enum cloud_api api)
{
    switch (api) {
    case CLOUD_SGLANG:
        return "data: {\"text\":\"x\",\"output_ids\":%s,\"meta_info\":{\"finish_reason\":null,"
               "\"completion_tokens\":1}}\n\n";
    case CLOUD_LLAMACPP:
        return "data: {\"content\":\"x\",\"tokens\":%s,\"stop\":false}\n\n";
    default:
        return "data: {\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":null,"
               "\"token_ids\":%s}]}\n\n";
    }
}

static void add(struct text *t, const char *p, size_t n)
{
    CHECK(n <= sizeof(t->p) - t->n);
    memcpy(t->p + t->n, p, n);
    t->n += n;
}

/* Write the bytes to t with their marks replaced. */
static void render(struct text *t, const char *bytes, const char *ids, enum cloud_api api)
{
    struct text parts[5];
    const char *list = ids ? ids : "[42]";
    int n = snprintf(parts[0].p, sizeof(parts[0].p), whole_form(api), list);
    CHECK(n > 0 && (size_t)n < sizeof(parts[0].p));
    parts[0].n = (size_t)n;
    parts[1].n = (size_t)snprintf(parts[1].p, 20, "%d", n);
    parts[2].n = (size_t)snprintf(parts[2].p, 20, "%x", (unsigned)n);
    n = snprintf(parts[3].p, sizeof(parts[3].p), event_form(api), list);
    CHECK(n > 0 && (size_t)n < sizeof(parts[3].p));
    parts[3].n = (size_t)n;
    parts[4].p[0] = 0;
    parts[4].n = 1;
    t->n = 0;
    for (; *bytes; bytes++)
        if ((*bytes & 0xff) >= FIRST_MARK && (*bytes & 0xff) < FIRST_MARK + 5)
            add(t, parts[(*bytes & 0xff) - FIRST_MARK].p, parts[(*bytes & 0xff) - FIRST_MARK].n);
        else
            add(t, bytes, 1);
}

/* Write the reply that the fault of this name makes. */
static void render_fault(struct text *t, const char *name, enum cloud_api api)
{
    const struct stand_in_fault *f = stand_in_fault_find(name, strlen(name));
    const struct stand_in_facts at = { prompt, 3, MATRIX_VOCAB };
    struct text whole, head;
    struct buf body = { 0 };
    CHECK_MSG(f, "%s: no such fault", name);
    render(&whole, W, NULL, api);
    CHECK(f->body ? stand_in_fault_body(&body, f)
                  : buf_add(&body, whole.p, whole.n) && stand_in_fault_edit(&body, f, &at, true));
    head.n = (size_t)snprintf(
        head.p, sizeof(head.p), "HTTP/1.1 %u X\r\n%s%s%s%sConnection: close\r\n\r\n",
        f->status ? f->status : 200, f->header ? f->header : "", f->header ? ": " : "",
        f->header ? f->value : "", f->header ? "\r\n" : "");
    t->n = 0;
    add(t, head.p, head.n);
    add(t, body.p ? body.p : "", body.n);
    buf_free(&body);
}

/* Answer correctly from now on. */
static void matrix_mend(struct matrix_server *s)
{
    rude_part(s->rude, &(struct rude_part){ .bytes = s->good.p, .n = s->good.n });
}

struct matrix_server *matrix_open(const struct matrix_row *row, enum cloud_api api)
{
    struct matrix_server *s = calloc(1, sizeof(*s));
    CHECK(s);
    s->rude = rude_open(NULL);
    render(&s->good, good_reply, NULL, api);
    if (row && row->fault)
        render_fault(&s->bad, row->fault, api);
    else if (row)
        render(&s->bad, row->bytes ? row->bytes : "", row->ids, api);
    if (row)
        rude_part(s->rude,
                  &(struct rude_part){ row->then, s->bad.p, s->bad.n, row->flood, row->when });
    else
        matrix_mend(s);
    snprintf(s->url, sizeof(s->url), "%s://127.0.0.1:%u", row && row->tls ? "https" : "http",
             rude_port(s->rude));
    return s;
}

const char *matrix_url(const struct matrix_server *s)
{
    return s->url;
}

void matrix_close(struct matrix_server *s)
{
    rude_close(s->rude);
    free(s);
}

/* Check code, id and message: one harmless line that contains the row's text and not the key. */
static bool check_answer(const struct matrix_row *r, enum cloud_api api, int rc, uint32_t id,
                         const struct err *err)
{
    bool line = rc == OK || (*err->msg && strstr(err->msg, r->says) && !strstr(err->msg, KEY));
    bool right = rc == r->code && id == (rc == OK ? MATRIX_ID : 77) && line;
    for (const char *c = err->msg; *c && rc; c++)
        right = right && *c >= 0x20 && *c != 0x7f;
    if (!right)
        fprintf(stderr, "%s, %s: code %d, id %u: %s\n", r->name, cloud_api_name(api), rc,
                (unsigned)id, rc ? err->msg : "");
    return right;
}

/* Check that the call ended in time, and not before a deadline that alone can end it. */
static bool check_time(const struct matrix_row *r, int rc, double ms)
{
    bool waits = r->late && rc != OK;
    bool right =
        ms < (waits ? MATRIX_LATE_MS : 0) + SLACK_MS && (!waits || ms > MATRIX_LATE_MS - 1);
    if (!right)
        fprintf(stderr, "%s: %.0f ms\n", r->name, ms);
    return right;
}

static bool check_ledger(const struct matrix_row *r, const struct cloud_ledger *l, int rc)
{
    bool right = l->calls == 1 && l->faults == (rc != OK) &&
                 (r->stream ? (l->tokens > 0) == (rc == OK) : l->tokens == (rc == OK));
    if (!right)
        fprintf(stderr, "%s: the ledger is wrong\n", r->name);
    return right;
}

/* Check the next call, after the server has been told to answer correctly. */
static bool check_next(const struct matrix_row *r, struct cloud *c, enum cloud_api api)
{
    const struct matrix_row well = { .name = r->name, .code = OK, .says = "" };
    struct err err = { "" };
    uint32_t id = 77;
    int rc = port_next(c, prompt, 3, &id, &err);
    for (int again = 0; rc == ERR_NET && r->late && again < 20; again++) /* its deadline is short */
        rc = port_next(c, prompt, 3, &id, &err);
    return check_answer(&well, api, rc, id, &err);
}

bool matrix_call(const struct matrix_row *r, enum cloud_api api, const char *url,
                 struct matrix_server *s)
{
    const struct cloud_options o = { .api = api,
                                     .key = KEY,
                                     .max_reply = 1 << 16,
                                     .tokens = r->stream ? 4 : 1,
                                     .timeout_ms =
                                         r->late || r->hasty ? MATRIX_LATE_MS : PATIENT_MS };
    struct err err = { "" };
    struct cloud *c = port_open(url, o);
    uint32_t id = 77;
    uint64_t start = os_now_ns();
    int rc = port_next(c, prompt, 3, &id, &err);
    bool right = check_time(r, rc, (double)(os_now_ns() - start) / 1e6);
    right = check_answer(r, api, rc, id, &err) && right;
    right = check_ledger(r, cloud_ledger(c), rc) && right;
    if (s)
        matrix_mend(s);
    right = right && (!s || check_next(r, c, api));
    cloud_close(c);
    return right;
}

bool matrix_check(const struct matrix_row *r, enum cloud_api api)
{
    struct matrix_server *s = matrix_open(r, api);
    bool right = matrix_call(r, api, s->url, r->tls ? NULL : s);
    matrix_close(s);
    return right;
}
