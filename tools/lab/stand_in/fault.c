#include "tools/lab/stand_in/fault.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/stand_in/gzip.h"
#include "tools/lab/stand_in/chance.h"

enum { FOR_FAULTS = 1 << 10, DEPTH = 100000, BOMB = 16 << 20, FRONT = 5 };

/* The edits of JSON change an answer or an event, and leave one without ids as it is; the others
 * change its text. All return false if there is no memory. */

/* Return the object that holds text and ids. */
static json_t *fault_choice(json_t *reply, const struct stand_in_case *c)
{
    bool choices = c->ask->form == FORM_VLLM || c->ask->form == FORM_TEXT;
    return choices ? json_array_get(json_object_get(reply, "choices"), 0) : reply;
}

/* Return the list of ids and set *key to its name in that object; NULL if the dialect sends none.
 */
static json_t *fault_list_of(json_t *reply, const struct stand_in_case *c, const char **key)
{
    static const char *const keys[] = { "token_ids", "token_ids", "output_ids", "tokens" };
    *key = keys[c->ask->form];
    json_t *list = json_object_get(fault_choice(reply, c), *key);
    return json_is_array(list) ? list : NULL;
}

/* Return the same list, or NULL if it is missing or empty. */
static json_t *fault_ids(json_t *reply, const struct stand_in_case *c)
{
    const char *key;
    json_t *list = fault_list_of(reply, c, &key);
    return json_array_size(list) ? list : NULL;
}

/* Replace the last id by v. */
static bool fault_put(json_t *reply, const struct stand_in_case *c, json_t *v)
{
    json_t *list = fault_ids(reply, c);
    if (list)
        return v && json_array_set_new(list, json_array_size(list) - 1, v) == 0;
    json_decref(v);
    return true;
}

static bool fault_wrong_id(json_t **reply, const struct stand_in_case *c)
{
    json_t *list = fault_ids(*reply, c);
    json_int_t was = json_integer_value(json_array_get(list, json_array_size(list) - 1));
    return fault_put(*reply, c, json_integer(was == (json_int_t)c->other ? was + 1 : c->other));
}

static bool fault_out_of_vocab(json_t **reply, const struct stand_in_case *c)
{
    return fault_put(*reply, c, json_integer((json_int_t)c->vocab + 7));
}

/* Replace the last id by the JSON of the fault. */
static bool fault_last_id(json_t **reply, const struct stand_in_case *c)
{
    return fault_put(*reply, c, json_loads(c->fault->with, JSON_DECODE_ANY, NULL));
}

/* Replace the list of ids by the JSON of the fault, or remove it. */
static bool fault_all_ids(json_t **reply, const struct stand_in_case *c)
{
    const char *key, *with = c->fault->with;
    json_t *at = fault_choice(*reply, c);
    if (!fault_list_of(*reply, c, &key))
        return true;
    return with ? json_object_set_new(at, key, json_loads(with, JSON_DECODE_ANY, NULL)) == 0
                : json_object_del(at, key) == 0;
}

/* Set the reason for the end of the text, in the words of the dialect. */
static bool fault_reason(json_t *reply, const struct stand_in_case *c, const char *why)
{
    if (c->ask->form == FORM_COMPLETION)
        return json_object_set_new(reply, "stop_type",
                                   json_string(strcmp(why, "stop") == 0 ? "eos" : "limit")) == 0;
    if (c->ask->form == FORM_GENERATE)
        return json_object_set_new(json_object_get(reply, "meta_info"), "finish_reason",
                                   json_pack("{s:s}", "type", why)) == 0;
    return json_object_set_new(fault_choice(reply, c), "finish_reason", json_string(why)) == 0;
}

static bool fault_empty_ids(json_t **reply, const struct stand_in_case *c)
{
    const char *key;
    return !fault_list_of(*reply, c, &key) ||
           (fault_all_ids(reply, c) && fault_reason(*reply, c, "stop"));
}

static bool fault_abort(json_t **reply, const struct stand_in_case *c)
{
    return fault_all_ids(reply, c) && fault_reason(*reply, c, "abort");
}

/* True if this answer or event says that the text ended at end-of-text. */
static bool fault_stopped(const json_t *reply, const struct stand_in_case *c)
{
    const json_t *why;
    if (c->ask->form == FORM_COMPLETION)
        why = json_object_get(reply, "stop_type");
    else if (c->ask->form == FORM_GENERATE)
        why = json_object_get(json_object_get(json_object_get(reply, "meta_info"), "finish_reason"),
                              "type");
    else
        why =
            json_object_get(json_array_get(json_object_get(reply, "choices"), 0), "finish_reason");
    const char *word = json_string_value(why);
    return word && (strcmp(word, "stop") == 0 || strcmp(word, "eos") == 0);
}

static bool fault_no_eos(json_t **reply, const struct stand_in_case *c)
{
    json_t *list = fault_ids(*reply, c);
    return !list || !fault_stopped(*reply, c) ||
           json_array_remove(list, json_array_size(list) - 1) == 0;
}

static bool fault_length(json_t **reply, const struct stand_in_case *c)
{
    return !fault_stopped(*reply, c) || fault_reason(*reply, c, "length");
}

static bool fault_prompt(json_t **reply, const struct stand_in_case *c)
{
    json_t *list = fault_ids(*reply, c);
    size_t n = c->ask->n < FRONT ? c->ask->n : (size_t)FRONT;
    for (size_t i = 0; list && i < n; i++)
        if (json_array_insert_new(list, i, json_integer(c->ask->ids[c->ask->n - n + i])))
            return false;
    return true;
}

static bool fault_too_many(json_t **reply, const struct stand_in_case *c)
{
    json_t *list = fault_ids(*reply, c);
    for (int i = 0; list && i < 3; i++)
        if (json_array_append_new(list, json_integer(c->other)))
            return false;
    return true;
}

/* Change the token count of the prompt or of the text by `by`. */
static bool fault_miscount(json_t *reply, const struct stand_in_case *c, bool prompt, json_int_t by)
{
    const char *key = prompt ? "prompt_tokens" : "completion_tokens";
    if (c->ask->form == FORM_COMPLETION)
        key = prompt ? "tokens_evaluated" : "tokens_predicted";
    else
        reply = json_object_get(reply, c->ask->form == FORM_GENERATE ? "meta_info" : "usage");
    const json_t *v = json_object_get(reply, key);
    return !v || json_object_set_new(reply, key, json_integer(json_integer_value(v) + by)) == 0;
}

static bool fault_count(json_t **reply, const struct stand_in_case *c)
{
    return fault_miscount(*reply, c, false, 6);
}

static bool fault_short_prompt(json_t **reply, const struct stand_in_case *c)
{
    return fault_miscount(*reply, c, true, -1);
}

static bool fault_in_list(json_t **reply, const struct stand_in_case *c)
{
    (void)c;
    *reply = json_pack("[o]", *reply);
    return *reply != NULL;
}

static bool fault_control(json_t **reply, const struct stand_in_case *c)
{
    json_t *text = json_string("\x1b[2J\x1b]0;title\x07\xe2\x80\xaetxet");
    return json_object_set_new(fault_choice(*reply, c),
                               c->ask->form == FORM_COMPLETION ? "content" : "text", text) == 0;
}

static bool fault_model(json_t **reply, const struct stand_in_case *c)
{
    (void)c;
    return json_object_set_new(*reply, "model", json_string("another-model")) == 0;
}

static bool fault_bad_json(struct buf *text, const char *with)
{
    (void)with;
    text->n -= text->n < 3 ? text->n : 3;
    return true;
}

/* Put p[n] before the text; an object then loses its own brace. */
static bool fault_insert(struct buf *text, const char *p, size_t n)
{
    struct buf made = { .max = text->max };
    size_t skip = *p == '{';
    bool fine = buf_add(&made, p, n) && buf_add(&made, text->p + skip, text->n - skip);
    buf_free(text);
    *text = made;
    return fine;
}

static bool fault_front(struct buf *text, const char *with)
{
    return fault_insert(text, with, strlen(with));
}

static bool fault_nul(struct buf *text, const char *with)
{
    static const char front[] = "{\0\"note\":\"\",";
    (void)with;
    return fault_insert(text, front, sizeof(front) - 1);
}

static bool fault_deep(struct buf *text, const char *with)
{
    text->n = 0;
    for (size_t i = 0; i < DEPTH; i++)
        if (!buf_str(text, with))
            return false;
    return true;
}

/* Replace the text by p[n], compressed. */
static bool fault_compress(struct buf *text, const char *p, size_t n)
{
    struct buf out = { .max = text->max };
    bool fine = gzip_add(&out, p, n);
    buf_free(text);
    *text = out;
    return fine;
}

static bool fault_gzip(struct buf *text, const char *with)
{
    (void)with;
    return fault_compress(text, text->p, text->n);
}

static bool fault_bomb(struct buf *text, const char *with)
{
    char *zeros = calloc(1, BOMB); /* only read, so the kernel backs it with one zero page */
    bool fine = zeros && fault_compress(text, zeros, BOMB);
    (void)with;
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
      .body = "", .text = fault_bomb },
    { "huge-header", "200 and a header of 100 KB", .status = 200, "X-Filler", NULL, .body = "" },
    /* The answer, edited. */
    { "wrong-id", "an id other than the model's (the reply alone does not show it)",
      .json = fault_wrong_id },
    { "out-of-vocab", "an id beyond the vocabulary", .json = fault_out_of_vocab },
    { "negative-id", "the id -1", .json = fault_last_id, .with = "-1" },
    { "real-id", "an id with a fraction", .json = fault_last_id, .with = "42.5" },
    { "string-id", "an id as a string", .json = fault_last_id, .with = "\"42\"" },
    { "huge-id", "the id 2^63 - 1", .json = fault_last_id, .with = "9223372036854775807" },
    { "no-ids", "text without ids", .json = fault_all_ids },
    { "null-ids", "null instead of the ids", .json = fault_all_ids, .with = "null" },
    { "empty-ids", "an empty list of ids, as at the end of a text", .json = fault_empty_ids,
      .with = "[]" },
    { "no-eos", "end-of-text left out of the ids", .json = fault_no_eos },
    { "eos-as-length", "end-of-text with the reason \"length\"", .json = fault_length },
    { "prompt-in-front", "the last tokens of the prompt before those of the answer",
      .json = fault_prompt },
    { "too-many", "more ids than requested", .json = fault_too_many },
    { "wrong-count", "a token count that does not match the ids", .json = fault_count },
    { "short-prompt", "a prompt count that is too small by one", .json = fault_short_prompt },
    { "aborted", "the reason \"abort\" and no ids", .json = fault_abort, .with = "[]" },
    { "list", "the answer in a list", .json = fault_in_list },
    { "control", "terminal control sequences in the text, correct ids", .json = fault_control },
    { "wrong-model", "the name of another model, correct ids", .json = fault_model },
    { "bad-json", "JSON that ends too early", .text = fault_bad_json },
    { "nan", "JSON with a NaN", .text = fault_front, .with = "{\"score\":NaN," },
    { "infinity", "JSON with the number 1e999", .text = fault_front, .with = "{\"score\":1e999," },
    { "bad-utf8", "JSON with bytes that are not UTF-8", .text = fault_front,
      .with = "{\"note\":\"\xff\xfe\xc3\"," },
    { "nul", "JSON with a NUL byte", .text = fault_nul },
    { "bom", "a byte order mark before the JSON", .text = fault_front, .with = "\xef\xbb\xbf" },
    { "trailing", "more text after the JSON", .text = buf_str, .with = "\n{\"more\":1}" },
    { "deep", "lists nested 100,000 deep", .text = fault_deep, .with = "[" },
    { "twice", "each key twice, the wrong one first", .text = fault_front,
      .with = "{\"tokens\":[0],\"output_ids\":[0],\"choices\":[]," },
    { "gzip", "compressed although not requested", .header = "Content-Encoding", .value = "gzip",
      .text = fault_gzip },
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

int stand_in_fault_add(struct stand_in_faults *f, const char *spec, struct err *err)
{
    const char *colon = strchr(spec, ':');
    size_t n = colon ? (size_t)(colon - spec) : strlen(spec);
    const struct stand_in_fault *fault = stand_in_fault_table;
    while (fault->name && (strncmp(fault->name, spec, n) != 0 || fault->name[n]))
        fault++;
    if (!fault->name)
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

const struct stand_in_fault *stand_in_fault_draw(const struct stand_in_faults *f, uint64_t key)
{
    for (size_t i = 0; i < f->n; i++)
        if (stand_in_chance_unit(key, FOR_FAULTS + i) < f->at[i].rate)
            return f->at[i].fault;
    return NULL;
}
