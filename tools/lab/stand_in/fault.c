#include "tools/lab/stand_in/fault.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "kernels/sys/text.h"
#include "tools/cli/json_report.h"
#include "tools/lab/stand_in/gzip.h"

#define ZERO "\1" /* stands for a zero byte in `front` */

enum { FOR_FAULTS = 1 << 10, DEPTH = 100000, BOMB = 16 << 20, FRONT = 5 };

/* Return what is edited of a reply: OpenAI's choice, or the reply itself. */
static json_t *fault_choice(json_t *reply)
{
    json_t *choice = json_array_get(json_object_get(reply, "choices"), 0);
    return choice ? choice : reply;
}

/* True if this answer or event says that the text ended at end-of-text. */
static bool fault_stopped(json_t *reply)
{
    const json_t *meta = json_object_get(json_object_get(reply, "meta_info"), "finish_reason");
    const json_t *why = json_object_get(reply, "stop_type");
    why = meta  ? json_object_get(meta, "type")
          : why ? why
                : json_object_get(fault_choice(reply), "finish_reason");
    const char *word = json_string_value(why);
    return word && text_among(word, "stop, eos");
}

/* Set the reason for the end of the text, in the words of the dialect. */
static bool fault_reason(json_t *reply, const char *why)
{
    json_t *meta = json_object_get(reply, "meta_info");
    if (meta)
        return json_object_set_new(meta, "finish_reason", json_pack("{s:s}", "type", why)) == 0;
    if (json_object_get(reply, "choices"))
        return json_object_set_new(fault_choice(reply), "finish_reason", json_string(why)) == 0;
    return json_object_set_new(reply, "stop_type",
                               json_string(strcmp(why, "stop") == 0 ? "eos" : "limit")) == 0;
}

/* Return the list of ids that f makes of this one. */
static json_t *fault_list(json_t *ids, const struct stand_in_fault *f,
                          const struct stand_in_facts *at)
{
    json_t *out = json_array(), *v;
    size_t n = json_array_size(ids), from = at->n < FRONT ? 0 : at->n - FRONT, i;
    json_int_t last = json_integer_value(json_array_get(ids, n - 1));
    for (const char *p = f->ids; *p; p += strcspn(p, " "), p += *p == ' ')
        if (*p == 'H')
            json_array_foreach(ids, i, v)
            {
                if (i + 1 < n)
                    json_report_add(&out, json_incref(v));
            }
        else if (*p == 'P')
            for (i = from; i < at->n; i++)
                json_report_add(&out, json_integer(at->prompt[i]));
        else if (*p == 'L')
            json_report_add(&out, json_integer(last));
        else if (*p == 'O')
            json_report_add(&out, json_integer(last == at->prompt[0] ? last + 1 : at->prompt[0]));
        else if (*p == 'V')
            json_report_add(&out, json_integer((json_int_t)at->vocab + 7));
        else
            json_report_add(&out, json_loads(p, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL));
    return out;
}

/* Edit the ids; *none: there are none, so the reply stays as it is. */
static bool fault_ids(json_t *reply, const struct stand_in_fault *f,
                      const struct stand_in_facts *at, bool *none)
{
    static const char *const names[] = { "token_ids", "output_ids", "tokens" };
    json_t *in = fault_choice(reply), *ids = NULL;
    bool whole = *f->ids != 'H' && *f->ids != 'P';
    size_t i = 0;
    while (i < 3 && !json_is_array(ids = json_object_get(in, names[i])))
        i++;
    *none = i == 3 || (!whole && !json_array_size(ids));
    if (*none)
        return true;
    if (!*f->ids)
        return json_object_del(in, names[i]) == 0;
    return json_object_set_new(in, names[i],
                               whole ? json_loads(f->ids, JSON_DECODE_ANY, NULL)
                                     : fault_list(ids, f, at)) == 0;
}

/* Edit the members of an object that f names; *found: there are some. */
static bool fault_members(json_t *in, const struct stand_in_fault *f, bool *found)
{
    const char *key;
    json_t *v;
    void *next;
    bool fine = true;
    json_object_foreach_safe(in, next, key, v)
    {
        json_t *edited = NULL;
        if (f->member && text_among(key, f->member))
            edited = json_string(f->with);
        else if (f->count && text_among(key, f->count))
            edited = json_integer(json_integer_value(v) + f->by);
        else
            continue;
        fine = json_object_set_new(in, key, edited) == 0 && fine;
        *found = true;
    }
    return fine;
}

/* Edit an answer or an event as JSON. */
static bool fault_json(json_t *reply, const struct stand_in_fault *f,
                       const struct stand_in_facts *at)
{
    bool none = false, found = false;
    if (f->at_end && !fault_stopped(reply))
        return true;
    if (f->ids && !fault_ids(reply, f, at, &none))
        return false;
    if (f->reason && !none && !fault_reason(reply, f->reason))
        return false;
    if (!f->member && !f->count)
        return true;
    return fault_members(json_object_get(reply, "usage"), f, &found) &&
           fault_members(json_object_get(reply, "meta_info"), f, &found) &&
           fault_members(fault_choice(reply), f, &found) && fault_members(reply, f, &found) &&
           (found || !f->member ||
            json_object_set_new(reply, f->member, json_string(f->with)) == 0);
}

/* Make of the text what f says. */
static bool fault_text(struct buf *text, const struct stand_in_fault *f)
{
    struct buf made = { .max = text->max };
    size_t skip = f->front && *f->front == '{'; /* an object then loses its own brace */
    bool fine = buf_str(&made, f->front ? f->front : "");
    for (size_t i = 0; i < made.n; i++)
        made.p[i] = made.p[i] == *ZERO ? 0 : made.p[i];
    for (size_t i = 0; f->fill && i < DEPTH && fine; i++)
        fine = buf_str(&made, f->fill);
    if (!f->fill)
        fine = fine && buf_add(&made, text->p + skip,
                               text->n - skip > f->cut ? text->n - skip - f->cut : 0);
    fine = fine && buf_str(&made, f->behind ? f->behind : "");
    text->n = 0;
    if (fine && f->gzip)
        fine = gzip_add(text, made.p, made.n);
    else if (fine)
        fine = buf_add(text, made.p, made.n);
    buf_free(&made);
    return fine;
}

bool stand_in_fault_edit(struct buf *text, const struct stand_in_fault *f,
                         const struct stand_in_facts *at, bool first)
{
    bool fine = true;
    if (stand_in_fault_edits_json(f)) {
        json_t *reply = json_loadb(text->p, text->n, 0, NULL);
        fine = reply && fault_json(reply, f, at);
        text->n = 0;
        fine = json_report_append(text, reply, JSON_COMPACT) && fine;
    }
    return fine && (!first || !stand_in_fault_edits_text(f) || fault_text(text, f));
}

bool stand_in_fault_edits_json(const struct stand_in_fault *f)
{
    return f->ids || f->reason || f->member || f->count;
}

bool stand_in_fault_edits_text(const struct stand_in_fault *f)
{
    return f->front || f->behind || f->cut || f->fill || f->gzip;
}

bool stand_in_fault_body(struct buf *out, const struct stand_in_fault *f)
{
    char *zeros =
        f->zeros ? calloc(1, f->zeros) : NULL; /* only read: one zero page of the kernel */
    bool fine = f->zeros ? zeros && gzip_add(out, zeros, f->zeros) : buf_str(out, f->body);
    free(zeros);
    return fine;
}

static const char gateway[] = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
                              "<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n";
static const char late[] = "<html><body><h1>504 Gateway Time-out</h1></body></html>\n";
static const char portal[] =
    "<!DOCTYPE html><html><head><title>Welcome to the hotel</title></head><body><form "
    "action=\"/login\">Accept the terms to go online: {\"choices\":[]}</form></body></html>\n";
static const char html[] = "text/html; charset=utf-8";

const struct stand_in_fault stand_in_fault_table[] = {
    /* A status instead of the answer. */
    { "400", "Bad Request, in the server's own form", .status = 400 },
    { "401", "Unauthorized", .status = 401 },
    { "403", "Forbidden", .status = 403 },
    { "404", "Not Found", .status = 404 },
    { "408", "Request Timeout", .status = 408 },
    { "409", "Conflict", .status = 409 },
    { "413", "Content Too Large", .status = 413 },
    { "422", "Unprocessable Content", .status = 422 },
    { "429", "Too Many Requests, Retry-After: 1", .status = 429, "Retry-After", "1" },
    { "429-hour", "the same, Retry-After: 3600", .status = 429, "Retry-After", "3600" },
    { "429-date", "the same, Retry-After: a date", .status = 429, "Retry-After",
      "Fri, 31 Dec 2100 23:59:59 GMT" },
    { "429-bad", "the same, Retry-After: soon", .status = 429, "Retry-After", "soon" },
    { "500", "Internal Server Error", .status = 500 },
    { "500-text", "the same, in plain text", .status = 500, .type = "text/plain; charset=utf-8",
      .body = "Internal Server Error" },
    { "501", "an unsupported method", .status = 501 },
    { "502", "Bad Gateway, a proxy's HTML", .status = 502, .type = html, .body = gateway },
    { "503", "Service Unavailable, Retry-After: 1", .status = 503, "Retry-After", "1" },
    { "504", "Gateway Timeout, a proxy's HTML", .status = 504, .type = html, .body = late },
    { "204", "No Content", .status = 204, .body = "" },
    { "redirect", "302 to another URL", .status = 302, "Location", "http://127.0.0.1:9/elsewhere",
      .type = html, .body = "" },
    { "moved", "308 to another URL", .status = 308, "Location", "http://127.0.0.1:9/elsewhere",
      .type = html, .body = "" },
    { "loop", "307 to the same URL", .status = 307, "Location", "", .type = html, .body = "" },
    /* Status 200 and something other than the answer. */
    { "empty", "200 without a body", .status = 200, .body = "" },
    { "html", "200 and the page of a captive portal", .status = 200, .type = html, .body = portal },
    { "empty-json", "200 and {}", .status = 200, .body = "{}" },
    { "null", "200 and null", .status = 200, .body = "null" },
    { "error-200", "200 and an error object", .status = 200,
      .body = "{\"error\":{\"message\":\"the engine is dead\",\"type\":\"server_error\",\"code\":"
              "500}}" },
    { "chat", "200 and the reply of a chat endpoint", .status = 200,
      .body = "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"model\":\"m\",\"choices\":["
              "{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"finish_"
              "reason\":\"stop\"}]}" },
    { "gzip-bomb", "200 and 16 MB of zeros, compressed", .status = 200, "Content-Encoding", "gzip",
      .body = "", .zeros = BOMB },
    { "huge-header", "200 and a header of 100 KB", .status = 200, "X-Filler", NULL, .body = "" },
    /* The answer, edited. */
    { "wrong-id", "an id other than the model's (the reply alone does not show it)", .ids = "H O" },
    { "out-of-vocab", "an id beyond the vocabulary", .ids = "H V" },
    { "negative-id", "the id -1", .ids = "H -1" },
    { "real-id", "an id with a fraction", .ids = "H 42.5" },
    { "string-id", "an id as a string", .ids = "H \"42\"" },
    { "huge-id", "the id 2^63 - 1", .ids = "H 9223372036854775807" },
    { "no-ids", "text without ids", .ids = "" },
    { "null-ids", "null instead of the ids", .ids = "null" },
    { "empty-ids", "an empty list of ids, as at the end of a text", .ids = "[]", .reason = "stop" },
    { "no-eos", "end-of-text left out of the ids", .ids = "H", .at_end = true },
    { "eos-as-length", "end-of-text with the reason \"length\"", .reason = "length",
      .at_end = true },
    { "prompt-in-front", "the last tokens of the prompt before those of the answer",
      .ids = "P H L" },
    { "too-many", "more ids than requested", .ids = "H L O O O" },
    { "wrong-count", "a token count that does not match the ids",
      .count = "completion_tokens, tokens_predicted", .by = 6 },
    { "short-prompt", "a prompt count that is too small by one",
      .count = "prompt_tokens, tokens_evaluated", .by = -1 },
    { "aborted", "the reason \"abort\" and no ids", .ids = "[]", .reason = "abort" },
    { "list", "the answer in a list", .front = "[", .behind = "]" },
    { "control", "terminal control sequences in the text, correct ids", .member = "text, content",
      .with = "\x1b[2J\x1b]0;title\x07\xe2\x80\xaetxet" },
    { "wrong-model", "the name of another model, correct ids", .member = "model",
      .with = "another-model" },
    { "bad-json", "JSON that ends too early", .cut = 3 },
    { "nan", "JSON with a NaN", .front = "{\"score\":NaN," },
    { "infinity", "JSON with the number 1e999", .front = "{\"score\":1e999," },
    { "bad-utf8", "JSON with bytes that are not UTF-8", .front = "{\"note\":\"\xff\xfe\xc3\"," },
    { "nul", "JSON with a NUL byte", .front = "{" ZERO "\"note\":\"\"," },
    { "bom", "a byte order mark before the JSON", .front = "\xef\xbb\xbf" },
    { "trailing", "more text after the JSON", .behind = "\n{\"more\":1}" },
    { "deep", "lists nested 100,000 deep", .fill = "[" },
    { "twice", "each key twice, the wrong one first",
      .front = "{\"tokens\":[0],\"output_ids\":[0],\"choices\":[]," },
    { "gzip", "compressed although not requested", .header = "Content-Encoding", .value = "gzip",
      .gzip = true },
    { "gzip-broken", "declared as compressed, but plain", .header = "Content-Encoding",
      .value = "gzip" },
    { "text-plain", "Content-Type: text/plain, otherwise correct", .type = "text/plain" },
    /* The answer, badly sent. */
    { "close", "the connection closed without an answer", .way = WAY_CLOSE },
    { "reset", "the connection reset without an answer", .way = WAY_RESET },
    { "silent", "no answer, but the connection stays open", .way = WAY_SILENT },
    { "late", "the answer 30 s late", .way = WAY_LATE },
    { "cut", "half of the body, then closed", .way = WAY_CUT },
    { "cut-chunked", "the same without Content-Length", .way = WAY_CUT, .no_length = true },
    { "stall", "half of the body, then nothing", .way = WAY_STALL },
    { "slow", "one byte every 20 ms", .way = WAY_SLOW },
    { "bytes", "one byte per chunk, otherwise correct", .way = WAY_BYTES, .no_length = true },
    { "chunked", "no Content-Length, otherwise correct", .no_length = true },
    { "huge", "100 MB of blanks before the answer", .way = WAY_HUGE },
    /* Only streams are changed. */
    { "no-done", "a stream that ends without its last event", .events = EVENTS_NO_DONE },
    { "twice-events", "a stream with each event twice", .events = EVENTS_TWICE },
    { "comments", "a stream with comments and CRLF, otherwise correct", .events = EVENTS_COMMENTS },
    { "error-event", "a stream with an error after the first token", .events = EVENTS_ERROR },
    { .name = NULL },
};

const struct stand_in_fault *stand_in_fault_find(const char *name, size_t n)
{
    const struct stand_in_fault *f = stand_in_fault_table;
    while (f->name && (strncmp(f->name, name, n) != 0 || f->name[n]))
        f++;
    return f->name ? f : NULL;
}

int stand_in_fault_add(struct stand_in_faults *f, const char *spec, struct err *err)
{
    const char *colon = strchr(spec, ':');
    const struct stand_in_fault *fault =
        stand_in_fault_find(spec, colon ? (size_t)(colon - spec) : strlen(spec));
    if (!fault)
        return err_set(err, ERR_ARG, "--fault: unknown name %s; --fault help lists them", spec);
    double rate = 1;
    if (colon) {
        char *end;
        rate = strtod(colon + 1, &end);
        if (end == colon + 1 || *end || !(rate > 0 && rate <= 1))
            return err_set(err, ERR_ARG, "--fault %s: expected a rate above 0 and at most 1", spec);
    }
    if (f->n == STAND_IN_FAULTS)
        return err_set(err, ERR_ARG, "--fault: at most %d", STAND_IN_FAULTS);
    f->at[f->n].fault = fault;
    f->at[f->n++].rate = rate;
    return OK;
}

/* A hash table of the prefixes whose attempts are counted. When it is full, prefixes that collide
 * start over. */
enum { PLACES = 1 << 18, PROBES = 8 };

struct stand_in_chance {
    uint64_t seed;
    pthread_mutex_t lock;
    struct place {
        uint64_t hash, asked;
    } places[PLACES];
};

struct stand_in_chance *stand_in_chance_open(uint64_t seed)
{
    struct stand_in_chance *d = calloc(1, sizeof(*d));
    if (d) {
        d->seed = seed;
        pthread_mutex_init(&d->lock, NULL);
    }
    return d;
}

void stand_in_chance_close(struct stand_in_chance *d)
{
    if (d)
        pthread_mutex_destroy(&d->lock);
    free(d);
}

/* The finisher of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t chance_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t stand_in_chance_key(struct stand_in_chance *d, const uint32_t *ids, size_t n)
{
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++)
        hash = chance_mix(hash ^ ids[i]);
    pthread_mutex_lock(&d->lock);
    struct place *p = &d->places[hash % PLACES];
    for (size_t i = 1; i < PROBES && p->asked && p->hash != hash; i++)
        p = &d->places[(hash + i) % PLACES];
    if (p->hash != hash)
        *p = (struct place){ .hash = hash };
    uint64_t earlier = p->asked++;
    pthread_mutex_unlock(&d->lock);
    return chance_mix(chance_mix(d->seed ^ hash) + earlier);
}

const struct stand_in_fault *stand_in_fault_draw(const struct stand_in_faults *f, uint64_t key)
{
    for (size_t i = 0; i < f->n; i++) /* uniform in [0, 1), a function of key and i */
        if ((double)(chance_mix(key ^ chance_mix(FOR_FAULTS + i)) >> 11) / 9007199254740992.0 <
            f->at[i].rate)
            return f->at[i].fault;
    return NULL;
}
