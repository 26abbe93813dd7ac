#include "tools/stand_in/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/cli/edit_distance.h"
#include "tools/stand_in/chance.h"
#include "tools/stand_in/fault_edits.h"

enum { FOR_FAULTS = 1 << 10 };

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
      .body = "", .text = stand_in_fault_edit_bomb },
    { "huge-header", "200 and a header of 100 KB", .status = 200, "X-Filler", NULL, .body = "" },
    /* The answer, edited. */
    { "wrong-id", "an id other than the model's (only an audit can detect it)",
      .json = stand_in_fault_edit_wrong_id },
    { "out-of-vocab", "an id beyond the vocabulary", .json = stand_in_fault_edit_out_of_vocab },
    { "negative-id", "the id -1", .json = stand_in_fault_edit_negative_id },
    { "real-id", "an id with a fraction", .json = stand_in_fault_edit_real_id },
    { "string-id", "an id as a string", .json = stand_in_fault_edit_string_id },
    { "huge-id", "the id 2^63 - 1", .json = stand_in_fault_edit_huge_id },
    { "no-ids", "text without ids", .json = stand_in_fault_edit_no_ids },
    { "null-ids", "null instead of the ids", .json = stand_in_fault_edit_null_ids },
    { "empty-ids", "an empty list of ids, as at the end of a text",
      .json = stand_in_fault_edit_empty_ids },
    { "no-eos", "end-of-text left out of the ids", .json = stand_in_fault_edit_no_eos },
    { "eos-as-length", "end-of-text with the reason \"length\"",
      .json = stand_in_fault_edit_length },
    { "prompt-in-front", "the last tokens of the prompt before those of the answer",
      .json = stand_in_fault_edit_prompt },
    { "too-many", "more ids than requested", .json = stand_in_fault_edit_too_many },
    { "wrong-count", "a token count that does not match the ids",
      .json = stand_in_fault_edit_count },
    { "short-prompt", "a prompt count that is too small by one",
      .json = stand_in_fault_edit_short_prompt },
    { "aborted", "the reason \"abort\" and no ids", .json = stand_in_fault_edit_abort },
    { "list", "the answer in a list", .json = stand_in_fault_edit_list },
    { "control", "terminal control sequences in the text, correct ids",
      .json = stand_in_fault_edit_control },
    { "wrong-model", "the name of another model, correct ids", .json = stand_in_fault_edit_model },
    { "bad-json", "JSON that ends too early", .text = stand_in_fault_edit_bad_json },
    { "nan", "JSON with a NaN", .text = stand_in_fault_edit_nan },
    { "infinity", "JSON with the number 1e999", .text = stand_in_fault_edit_infinity },
    { "bad-utf8", "JSON with bytes that are not UTF-8", .text = stand_in_fault_edit_bad_utf8 },
    { "nul", "JSON with a NUL byte", .text = stand_in_fault_edit_nul },
    { "bom", "a byte order mark before the JSON", .text = stand_in_fault_edit_bom },
    { "trailing", "more text after the JSON", .text = stand_in_fault_edit_trailing },
    { "deep", "lists nested 100,000 deep", .text = stand_in_fault_edit_deep },
    { "twice", "each key twice, the wrong one first", .text = stand_in_fault_edit_twice },
    { "gzip", "compressed although not requested", .header = "Content-Encoding", .value = "gzip",
      .text = stand_in_fault_edit_gzip },
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

/* Return the fault with this name, or NULL; *near becomes the most similar name. */
static const struct stand_in_fault *stand_in_fault_find(const char *name, size_t n,
                                                        const char **near)
{
    size_t least = 4;
    char word[32];
    snprintf(word, sizeof(word), "%.*s", n < 31 ? (int)n : 31, name);
    for (const struct stand_in_fault *f = stand_in_fault_table; f->name; f++) {
        size_t d = edit_distance(f->name, word);
        if (!d && n < sizeof(word))
            return f;
        if (d < least) {
            least = d;
            *near = f->name;
        }
    }
    return NULL;
}

int stand_in_fault_add(struct stand_in_faults *f, const char *spec, struct err *err)
{
    const char *colon = strchr(spec, ':'), *near = NULL;
    const struct stand_in_fault *fault =
        stand_in_fault_find(spec, colon ? (size_t)(colon - spec) : strlen(spec), &near);
    if (!fault)
        return err_set(err, ERR_ARG, "--fault: unknown name %s%s%s%s; --fault help lists them",
                       spec, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
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
