/* fault_replies.c - faults of the connection and of HTTP: name, what the client makes of it, part
 * of its message, then what the server does. */
#include "kernels/sys/base.h"
#include "tests/support/fault_matrix.h"

#define OK200  "HTTP/1.1 200 OK\r\n"
#define GOOD   OK200 "Content-Length: " L "\r\n\r\n" W
#define ENDS   OK200 "Connection: close\r\n\r\n"
#define LONG   OK200 "Content-Length: 500\r\n\r\n"
#define CHUNKS OK200 "Transfer-Encoding: chunked\r\n\r\n"
#define CODE(s) \
    "HTTP/1.1 " s "\r\nContent-Length: 34\r\n\r\n{\"error\":{\"message\":\"the reason\"}}\n"
#define ONLY(becomes, s)       ROW(#s, becomes, #s, KEEP, CODE(#s " Why"))
#define FOUR(code, a, b, c, d) ONLY(code, a), ONLY(code, b), ONLY(code, c), ONLY(code, d)
#define MORE(s, h)         \
    "HTTP/1.1 " s "\r\n" h \
    "\r\nContent-Length: 34\r\n\r\n{\"error\":{\"message\":\"the reason\"}}\n"
/* Nothing, or too little, comes in time. What a client that expects TLS makes of its hello. */
#define LATE(name, end, ...) ROW(name, ERR_NET, "in time", end, __VA_ARGS__, .late = true)
#define TLS(name, end, ...)  ROW(name, ERR_NET, "", end, __VA_ARGS__, .when = RUDE_HALF, .tls = true)
/* All three at one stage. */
#define STAGE(at, ...)                               \
    ROW("FIN " at, ERR_NET, "", CLOSE, __VA_ARGS__), \
        ROW("RST " at, ERR_NET, "", RESET, __VA_ARGS__), LATE("silent " at, SILENT, __VA_ARGS__)
#define TO(s, at) "HTTP/1.1 " s "\r\nLocation: " at "\r\nContent-Length: 0\r\n\r\n"
#define X79       "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"

const struct matrix_row matrix_replies[] = {
    /* The connection ends, or stalls, at each stage. */
    STAGE("before the request", "", .when = RUDE_ACCEPT),
    STAGE("within the request", "", .when = RUDE_HALF),
    STAGE("after the request", ""),
    STAGE("in the status line", "HTTP/1.1 2"),
    STAGE("in the headers", OK200 "Content-Le"),
    STAGE("after the headers", LONG),
    STAGE("in a body with length", LONG W),
    ROW("FIN in a body without length", ERR_NET, "not JSON", CLOSE, ENDS "{\"choices\":[{"),
    FINE("FIN after the reply", GOOD),
    ROW("RST in place of the end", ERR_NET, "", RESET, ENDS W),
    ROW("RST in a chunk", ERR_NET, "", RESET, CHUNKS "ff\r\n{\""),
    LATE("silent in place of the end", SILENT, ENDS W),
    LATE("silent in a chunk", SILENT, CHUNKS "ff\r\n{"),
    LATE("silent before the last chunk", SILENT, CHUNKS X "\r\n" W "\r\n"),
    LATE("silent after 100", SILENT, "HTTP/1.1 100 Continue\r\n\r\n"),
    ROW("no FIN after the last reply", OK, "", SILENT,
        OK200 "Connection: close\r\nContent-Length: " L "\r\n\r\n" W),
    LATE("slow headers", DRIP, OK200 "X-Padding: " X79 X79 "\r\n\r\n" W),
    LATE("slow body", DRIP, LONG W W W),
    ROW("slow, and in time", OK, "", DRIP, GOOD),

    /* The length differs from that of the body. */
    BAD("length longer than the body", LONG W),
    ROW("length shorter than the body", ERR_NET, "not JSON", CLOSE,
        OK200 "Content-Length: 9\r\n\r\n" W),
    ROW("length zero", ERR_NET, "empty", CLOSE, OK200 "Content-Length: 0\r\n\r\n" W),
    BAD("length negative", OK200 "Content-Length: -5\r\n\r\n" W),
    BAD("length not a number", OK200 "Content-Length: many\r\n\r\n" W),
    FINE("length beyond 64 bits", OK200 "Content-Length: 99999999999999999999\r\n\r\n" W),
    BAD("length of a terabyte", OK200 "Content-Length: 1099511627776\r\n\r\n" W),
    BAD("two lengths", OK200 "Content-Length: " L "\r\nContent-Length: 3\r\n\r\n" W),
    FINE("length and chunks", OK200 "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" X
                                    "\r\n" W "\r\n0\r\n\r\n"),
    FINE("no length", ENDS W),
    ROW("body of 100 MB", ERR_NET, "longer than", FLOOD,
        OK200 "Content-Length: 104857600\r\n\r\n" W, .flood = " "),
    ROW("endless body", ERR_NET, "longer than", FLOOD, ENDS, .flood = "["),

    /* Status lines and headers. */
    BAD("status of letters", "HTTP/1.1 abc\r\n\r\n" W),
    BAD("status of two digits", "HTTP/1.1 20\r\n\r\n" W),
    BAD("status of four digits", "HTTP/1.1 2000 OK\r\n\r\n" W),
    BAD("status 099", "HTTP/1.1 099 Low\r\n\r\n" W),
    BAD("no blank before the status", "HTTP/1.1200 OK\r\n\r\n" W),
    BAD("version 9.9", "HTTP/9.9 200 OK\r\n\r\n" W),
    FINE("version 2 over version 1", "HTTP/2 200\r\n\r\n" W),
    BAD("HTTP/0.9", W),
    BAD("ICY", "ICY 200 OK\r\n\r\n" W),
    BAD("SSH", "SSH-2.0-OpenSSH_9.2\r\n"),
    BAD("SMTP, before the request", "220 mail ESMTP\r\n", .when = RUDE_ACCEPT),
    BAD("zero bytes", Z Z Z Z Z Z Z Z),
    BAD("TLS on the plain port", "\x15\x03\x01" Z "\x02\x02\x0a"),
    BAD("a zero byte in a header", OK200 "X: a" Z "b\r\n\r\n" W),
    BAD("a header without colon", OK200 "nonsense\r\nConnection: close\r\n\r\n" W),
    FINE("lines without CR", "HTTP/1.1 200 OK\nConnection: close\n\n" W),
    FINE("HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n" W),
    FINE("100, 102 and 103 first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
                                   "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" GOOD),
    BAD("100 alone", "HTTP/1.1 100 Continue\r\n\r\n"),
    BAD("101 not asked for",
        "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n" W),
    ROW("endless status line", ERR_NET, "", FLOOD, "HTTP/1.1 200 ", .flood = "A"),
    ROW("header of 8 MB", ERR_NET, "", FLOOD, OK200 "X-Padding: ", .flood = "A"),
    ROW("endless headers", ERR_NET, "header", FLOOD, OK200, .flood = "X-Padding: " X79 "\r\n"),
    ROW("endless 103", ERR_NET, "", FLOOD, "",
        .flood = "HTTP/1.1 103 Early Hints\r\nX: " X79 "\r\n\r\n"),
    ROW("endless cookies", ERR_NET, "header", FLOOD, OK200, .flood = "Set-Cookie: a=" X79 "\r\n"),

    /* Chunks. */
    ROW("chunks", OK, "", KEEP, CHUNKS X "\r\n" W "\r\n0\r\n\r\n"),
    BAD("chunk size of letters", CHUNKS "zz\r\n" W "\r\n0\r\n\r\n"),
    BAD("chunk size missing", CHUNKS "\r\n" W "\r\n0\r\n\r\n"),
    BAD("chunk size negative", CHUNKS "-1\r\n" W "\r\n0\r\n\r\n"),
    BAD("chunk size beyond 64 bits", CHUNKS "fffffffffffffffff\r\n" W),
    BAD("chunk size of 63 bits", CHUNKS "7fffffffffffffff\r\n" W),
    BAD("chunk longer than said", CHUNKS "9\r\n" W "\r\n0\r\n\r\n"),
    BAD("chunk shorter than said", CHUNKS "fff\r\n" W "\r\n0\r\n\r\n"),
    BAD("no end of line after a chunk", CHUNKS X "\r\n" W "0\r\n\r\n"),
    BAD("FIN in the chunk size", CHUNKS "f"),
    BAD("FIN before the last chunk", CHUNKS X "\r\n" W "\r\n"),
    BAD("FIN in the last chunk", CHUNKS X "\r\n" W "\r\n0\r\n"),
    ROW("endless chunk extension", ERR_NET, "", FLOOD, CHUNKS "f;", .flood = "a", ),
    ROW("endless chunks", ERR_NET, "longer than", FLOOD, CHUNKS, .flood = "8\r\n[[[[[[[[\r\n"),
    ROW("endless trailers", ERR_NET, "", FLOOD, CHUNKS X "\r\n" W "\r\n0\r\n",
        .flood = "X-Padding: " X79 "\r\n"),
    FINE("chunks that are said to be gzip",
         OK200 "Transfer-Encoding: gzip, chunked\r\n\r\n" X "\r\n" W "\r\n0\r\n\r\n"),
    ROW("chunk extension and trailer", OK, "", KEEP,
        CHUNKS X ";a=b\r\n" W "\r\n0;c\r\nX-Trailer: 1\r\n\r\n"),

    /* A captive portal, a redirect, an encoding that was not requested. */
    ROW("HTML portal", ERR_NET, "<html>", CLOSE,
        OK200 "Content-Type: text/html\r\n\r\n<html>\x1b[31mlog in"),
    ROW("301", ERR_TEXT, "not followed", KEEP, TO("301 Moved", "http://127.0.0.1:1/")),
    ROW("302 to a file", ERR_NET, "not followed", KEEP, TO("302 Found", "file:///etc/passwd")),
    ROW("302 to nowhere", ERR_NET, "not followed", KEEP,
        "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"),
    ROW("303", ERR_NET, "not followed", KEEP, TO("303 See Other", "/")),
    ROW("307 to itself", ERR_NET, "not followed", KEEP, TO("307 Temporary", "/v1/completions")),
    ROW("308", ERR_TEXT, "not followed", KEEP, TO("308 Permanent", "https://other.invalid/")),
    ROW("304", ERR_NET, "304", KEEP, "HTTP/1.1 304 Not Modified\r\n\r\n"),
    ROW("511 portal", ERR_NET, "511", CLOSE,
        "HTTP/1.1 511 Network Authentication Required\r\nConnection: close\r\n\r\n<html>log in"),
    ROW("gzip not asked for", ERR_NET, "not JSON", CLOSE,
        OK200 "Content-Encoding: gzip\r\nConnection: close\r\n\r\n\x1f\x8b\x08" Z Z Z),
    ROW("brotli not asked for", ERR_NET, "not JSON", CLOSE,
        OK200 "Content-Encoding: br\r\nConnection: close\r\n\r\n\x8b\x0b\x80"),
    ROW("gzip bomb", ERR_NET, "longer than", FLOOD,
        OK200 "Content-Encoding: gzip\r\nConnection: close\r\n\r\n\x1f\x8b\x08",
        .flood = "\xec\xc1\x81\x10\x10\x10\x10"),

    /* The text that comes with an error status. */
    FOUR(ERR_TEXT, 402, 405, 410, 413),
    FOUR(ERR_TEXT, 415, 422, 431, 451),
    FOUR(ERR_NET, 206, 425, 429, 501),
    FOUR(ERR_NET, 504, 529, 599, 999),
    ONLY(ERR_REMOTE, 403),
    ONLY(ERR_REMOTE, 404),
    ROW("204", ERR_NET, "204", KEEP, "HTTP/1.1 204 No Content\r\n\r\n"),
    ROW("400", ERR_TEXT, "400: the reason", KEEP, CODE("400 Bad Request")),
    ROW("401", ERR_REMOTE, "401: the reason", KEEP, CODE("401 Unauthorized")),
    ROW("401 with a challenge", ERR_REMOTE, "401", KEEP,
        MORE("401 Unauthorized", "WWW-Authenticate: Negotiate")),
    ROW("407", ERR_TEXT, "407", KEEP, MORE("407 Proxy", "Proxy-Authenticate: Basic")),
    ROW("408", ERR_NET, "408", CLOSE, CODE("408 Request Timeout")),
    ROW("413 within the request", ERR_TEXT, "413", CLOSE, CODE("413 Too Large"), .when = RUDE_HALF),
    ROW("429, retry at once", ERR_NET, "429", KEEP, MORE("429 Too Many", "Retry-After: 0")),
    ROW("429, retry in 30,000 years", ERR_NET, "429", KEEP,
        MORE("429 Too Many", "Retry-After: 999999999999")),
    ROW("429, retry beyond 64 bits", ERR_NET, "429", KEEP,
        MORE("429 Too Many", "Retry-After: 99999999999999999999999")),
    ROW("429, retry before now", ERR_NET, "429", KEEP, MORE("429 Too Many", "Retry-After: -7")),
    ROW("429, retry on a day in 1999", ERR_NET, "429", KEEP,
        MORE("429 Too Many", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT")),
    ROW("429, retry whenever", ERR_NET, "429", KEEP, MORE("429 Too Many", "Retry-After: soon")),
    ROW("500", ERR_NET, "500: the reason", KEEP, CODE("500 Oops")),
    ROW("500, endless", ERR_NET, "", FLOOD, "HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n",
        .flood = "x"),
    ROW("502", ERR_NET, "502", CLOSE, "HTTP/1.1 502 Bad Gateway\r\n\r\n<html><h1>nginx"),
    ROW("503", ERR_NET, "503", KEEP, MORE("503 Unavailable", "Retry-After: 3600")),

    /* The client expects TLS. */
    TLS("plain HTTP on the TLS port", CLOSE, CODE("400 Bad Request")),
    BAD("FIN before the handshake", "", .when = RUDE_ACCEPT, .tls = true),
    TLS("FIN in the handshake", CLOSE, "\x16\x03\x03" Z "\x7a\x02"),
    TLS("RST in the handshake", RESET, "\x16\x03\x03" Z "\x7a\x02"),
    LATE("silent in the handshake", SILENT, "\x16\x03\x03" Z "\x7a\x02", .when = RUDE_HALF,
         .tls = true),
    LATE("silent before the handshake", SILENT, "", .when = RUDE_ACCEPT, .tls = true),
    TLS("handshake refused", CLOSE, "\x15\x03\x03" Z "\x02\x02\x28"),
    TLS("a handshake of garbage", CLOSE, "\x16\x03\x03" Z "\x08garbage!"),
    TLS("a TLS record too long", CLOSE, "\x16\x03\x03\xff\xff" X79 X79),
    TLS("endless handshake", FLOOD, "\x16\x03\x03", .flood = "\x16\x03\x03\x10\x10"),
    { .name = NULL },
};
