/* fault_bodies.c - faults in what comes with status 200: JSON, token ids, events. The first rows
 * contain the fields of all dialects at once. */
#include "kernels/sys/base.h"
#include "tests/support/fault_matrix.h"

#define OK200                     "HTTP/1.1 200 OK\r\n"
#define ENDS                      OK200 "Connection: close\r\n\r\n"
#define STREAM                    OK200 "Content-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define ID(list, says)            ROW("ids " list, ERR_NET, says, CLOSE, ENDS W, .ids = list)
#define IDS(a, b, c, d)           ID(a, ""), ID(b, ""), ID(c, ""), ID(d, "")
#define JSON(name, says, text)    ROW(name, ERR_NET, says, CLOSE, ENDS text)
#define AS(name, code, says, row) ROW(name, code, says, CLOSE, NULL, .fault = row)
#define EVENTS(name, code, says, then, ...) \
    ROW(name, code, says, then, STREAM __VA_ARGS__, .stream = true)
#define L32 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
/* The fields of all dialects; each dialect has its own way to state the finish reason. */
#define ALL(ids, openai, sglang)                                                                  \
    "{\"choices\":[{\"text\":\"\",\"finish_reason\":" openai ",\"token_ids\":" ids "}],\"output_" \
    "ids\":" ids ",\"meta_info\":{\"finish_reason\":" sglang "},\"tokens\":" ids                  \
    ",\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\"}"

const struct matrix_row matrix_bodies[] = {
    FINE("end of text, called length",
         ENDS ALL("[42]", "\"length\"", "{\"type\":\"length\",\"length\":1}")),
    FINE("end of text, called stop",
         ENDS ALL("[42]", "\"stop\"", "{\"type\":\"stop\",\"matched\":42}")),
    FINE("no reason", ENDS ALL("[42]", "null", "null")),
    ROW("ended without a token", ERR_NET, "without a token", CLOSE,
        ENDS ALL("[]", "\"stop\"", "{\"type\":\"stop\",\"matched\":42}")),
    BAD("aborted, or text alone",
        ENDS ALL("\"\"", "\"abort\"", "{\"type\":\"abort\",\"message\":\"no\"}")),
    ROW("text without ids", ERR_REMOTE, "without token ids", CLOSE,
        ENDS "{\"choices\":[{\"text\":\"x\"}],\"text\":\"x\",\"content\":\"x\"}"),
    FINE(
        "a zero byte in the text", ENDS
        "{\"choices\":[{\"text\":\"\\u0000\",\"token_ids\":[42]}],\"output_ids\":[42],\"meta_info\""
        ":{\"completion_tokens\":1},\"content\":\"\\u0000\",\"tokens\":[42],\"stop\":true}"),
    BAD("two choices",
        ENDS "{\"choices\":[{\"token_ids\":[42]},{\"token_ids\":[42]}],\"output_ids\":[[42],[42]],"
             "\"tokens\":[[42],[42]]}"),
    BAD("no choice", ENDS "{\"choices\":[],\"output_ids\":[],\"tokens\":[]}"),
    FINE("the prompt in front", ENDS W, .ids = "[8,9,42]"),
    AS("the whole prompt in front", OK, "", "prompt-in-front"),
    ROW("another prompt in front", ERR_NET, "found 3", CLOSE, ENDS W, .ids = "[8,8,42]"),
    ROW("more than the prompt in front", ERR_NET, "found 5", CLOSE, ENDS W, .ids = "[6,7,8,9,42]"),
    BAD("the prompt in front, count missing", ENDS ALL("[8,9,42]", "null", "null")),
    ROW("error as success", ERR_NET, "over", CLOSE,
        ENDS "{\"error\":{\"message\":\"over\\nloaded\"}}"),
    AS("error with status 200", ERR_NET, "the engine is dead", "error-200"),
    AS("no ids", ERR_REMOTE, "without token ids", "no-ids"),
    AS("aborted", ERR_NET, "", "aborted"),
    AS("a chat's reply", ERR_NET, "", "chat"),
    AS("each key twice", ERR_NET, "duplicate object key", "twice"),
    AS("a NaN beside the ids", ERR_NET, "not JSON", "nan"),
    AS("a zero byte in front", ERR_NET, "not JSON", "nul"),
    AS("the reply in a list", ERR_NET, "", "list"),
    AS("an empty reply", ERR_NET, "empty", "empty"),
    AS("a portal with status 200", ERR_NET, "html", "html"),
    AS("a bad gateway", ERR_NET, "502", "502"),
    ROW("error as text", ERR_NET, "over", CLOSE, ENDS "{\"error\":\"over\\u0007loaded\"}"),

    AS("ids [1007]", ERR_NET, "below 1000", "out-of-vocab"),
    AS("ids [-1]", ERR_NET, "-1", "negative-id"),
    ID("[42.0]", "fraction"),
    AS("ids [42.5]", ERR_NET, "", "real-id"),
    AS("ids [\"42\"]", ERR_NET, "a string", "string-id"),
    ID("[null]", "null"),
    ID("[true]", "boolean"),
    ID("[[42]]", "a list"),
    ID("[4294967338]", "below 1000"),
    ID("[18446744073709551658]", "not JSON"),
    AS("ids [9223372036854775807]", ERR_NET, "", "huge-id"),
    ID("[1e300]", "fraction"),
    ID("[1e999]", "not JSON"),
    ID("[NaN]", "not JSON"),
    AS("ids []", ERR_NET, "without a token", "empty-ids"),
    AS("ids [42,7,7,7]", ERR_NET, "found 4", "too-many"),
    ID("[42,43]", "found 2"),
    ID("42", "a number"),
    ID("\"42\"", "a string"),
    IDS("[{}]", "[-9223372036854775808]", "[4.2e1]", "[0x2a]"),
    IDS("[042]", "[+42]", "[Infinity]", "[-Infinity]"),
    IDS("[42,42]", "[42,]", "[,42]", "[42"),
    IDS("{}", "{\"0\":42}", "true", "[42]]"),
    ID("[42],\"a\":}", ""),

    JSON("empty body", "empty", ""),
    JSON("blanks", "", " \r\n\t "),
    AS("null", ERR_NET, "", "null"),
    JSON("a number", "", "42"),
    JSON("a text", "", "\"42\""),
    JSON("a list", "", "[42]"),
    JSON("a list of replies", "", "[" W "," W "]"),
    AS("an empty object", ERR_NET, "", "empty-json"),
    AS("cut", ERR_NET, "not JSON", "bad-json"),
    JSON("single quotes", "not JSON", "{'choices':[]}"),
    JSON("two documents", "not JSON", W W),
    JSON("garbage behind", "not JSON", W "x"),
    JSON("a zero byte behind", "not JSON", W Z),
    JSON("a comment", "not JSON", "/* */" W),
    AS("UTF-8 mark in front", ERR_NET, "not JSON", "bom"),
    JSON("UTF-16", "not JSON", "\xff\xfe{" Z "}" Z),
    AS("bad UTF-8", ERR_NET, "not JSON", "bad-utf8"),
    JSON("overlong UTF-8", "not JSON", "{\"a\":\"\xc0\xaf\"}"),
    JSON("half a surrogate pair", "not JSON", "{\"a\":\"\\ud800\"}"),
    JSON("a control character", "not JSON", "{\"a\":\"\x1b[2J\"}"),
    JSON("an escape that is none", "not JSON", "{\"a\":\"\\x41\"}"),
    JSON("a callback", "not JSON", "callback(" W ")"),
    JSON("lists nested too deep", "deeper", L32 L32 "["),
    ROW("deep lists", ERR_NET, "", FLOOD, ENDS, .flood = "["),
    ROW("deep objects", ERR_NET, "", FLOOD, ENDS, .flood = "{\"a\":"),

    EVENTS("a stream", OK, "", CLOSE, E "data: [DONE]\n\n"),
    EVENTS("a stream without its end", OK, "", CLOSE, E),
    EVENTS("a stream, then RST", OK, "", RESET, E),
    EVENTS("a stream, then garbage", OK, "", CLOSE, E "data: {\n\n"),
    EVENTS("a stream, then a wrong id", OK, "", CLOSE,
           E "data: " ALL("[1000]", "null", "null") "\n\n"),
    EVENTS("a stream with comments", OK, "", CLOSE, ": ping\n\n: ping\r\n\r\n" E),
    EVENTS("a stream with other fields", OK, "", CLOSE, "event: x\nid: 7\nretry: 1\n" E),
    EVENTS("a stream, slow and in time", OK, "", DRIP, E),
    EVENTS("no event", ERR_NET, "", CLOSE, ""),
    EVENTS("RST before the first event", ERR_NET, "", RESET, ""),
    EVENTS("FIN in the first event", ERR_NET, "without a token", CLOSE, "data: {\"choices\""),
    EVENTS("comments alone", ERR_NET, "without a token", CLOSE, ": a\n\n: b\n\n"),
    EVENTS("done at once", ERR_NET, "without a token", CLOSE, "data: [DONE]\n\n"),
    EVENTS("done, then a token", ERR_NET, "without a token", CLOSE, "data: [DONE]\n\n" E),
    EVENTS("an event that is not JSON", ERR_NET, "not JSON", CLOSE, "data: {'a'}\n\n" E),
    EVENTS("an event of bad UTF-8", ERR_NET, "not JSON", CLOSE, "data: \"\xff\"\n\n" E),
    EVENTS("an empty event", ERR_NET, "", CLOSE, "data:\n\n" E),
    EVENTS("an error as event", ERR_NET, "over", CLOSE,
           "data: {\"error\":{\"message\":\"over\"}}\n\n"),
    EVENTS("an event with a wrong id", ERR_NET, "", CLOSE,
           "data: " ALL("[1000]", "null", "null") "\n\n" E),
    EVENTS("an event with too many ids", ERR_NET, "", CLOSE,
           "data: " ALL("[42,42,42,42,42]", "null", "null") "\n\n"),
    EVENTS("an event with text alone", ERR_REMOTE, "without token ids", CLOSE,
           "data: {\"choices\":[{\"text\":\"x\"}],\"text\":\"x\",\"content\":\"x\"}\n\n"),
    EVENTS("HTML as events", ERR_NET, "without a token", CLOSE, "<html>\n\n</html>\n\n"),
    EVENTS("a stream, then silence", OK, "", SILENT, E),
    EVENTS("silent before the first event", ERR_NET, "in time", SILENT, "", .late = true),
    EVENTS("silent in the first event", ERR_NET, "in time", SILENT, "data: {", .late = true),
    EVENTS("an event without its end", ERR_NET, "longer than", FLOOD, "data: ", .flood = "x"),
    EVENTS("events without a token for ever", ERR_NET, "longer than", FLOOD, "",
           .flood = ": comment\n\n"),
    FINE("a whole reply in place of a stream", ENDS W, .stream = true),
    ROW("HTML in place of a stream", ERR_NET, "<html>", CLOSE, ENDS "<html>", .stream = true),
    ROW("500 in place of a stream", ERR_NET, "500", CLOSE,
        "HTTP/1.1 500 Oops\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" E,
        .stream = true),
    { .name = NULL },
};
