/* Requests that a server must not take, or not take for something else, one row each: what is
 * answered, whether a callback saw it, and whether the connection goes on. */
#include <sys/socket.h>

#include "kernels/sys/buf.h"
#include "net/server/server.h"
#include "tests/support/http_client.h"
#include "tests/support/test.h"

enum { BODY_MAX = 1000 };

static struct server *server;
static _Atomic int heads, handled;

static bool at_head(void *arg, struct server_request *r)
{
    const char *type = server_header(r, "Content-Type");
    struct buf none = { 0 };
    (void)arg;
    heads++;
    if (strcmp(server_method(r), "POST") != 0 || (type && strcmp(type, "application/json") == 0))
        return true;
    server_reply(r, 415, NULL, &none, NULL);
    return false;
}

static bool at_open(void *arg, struct server_request *r)
{
    (void)arg;
    return strcmp(server_path(r), "/health") == 0;
}

/* Tell what was understood. */
static void at_handle(void *arg, struct server_request *r)
{
    struct buf out = { 0 };
    const struct buf *body = server_body(r);
    (void)arg;
    handled++;
    CHECK(server_path(r)[0] == '/' && body->n <= BODY_MAX &&
          (strcmp(server_method(r), "GET") != 0 || !body->n));
    CHECK(buf_str(&out, server_method(r)) && buf_str(&out, " ") && buf_str(&out, server_path(r)) &&
          buf_str(&out, " ") && buf_add(&out, body->p ? body->p : "", body->n));
    server_reply(r, 200, "text/plain", &out, NULL);
}

struct row {
    const char *what, *bytes;
    size_t n;
    int status; /* 0: closed without a reply */
    const char *says;
    enum { REFUSED, JUDGED, HANDLED } seen; /* by no callback, by head alone, by handle */
    bool closed;
};

#define B(text)     text, sizeof(text) - 1
#define H           "Host: localhost\r\n"
#define K           "Authorization: Bearer sesame\r\n"
#define J           "Content-Type: application/json\r\n"
#define GET         "GET / HTTP/1.1\r\n" H K
#define POST        "POST / HTTP/1.1\r\n" H K J
#define KEY(sent)   "GET / HTTP/1.1\r\n" H "Authorization: " sent "\r\n\r\n"
#define NEXT        "GET /next HTTP/1.1\r\n" H K "\r\n"
#define CHUNKED     POST "Transfer-Encoding: chunked\r\n\r\n"
#define LINE(first) first "\r\n" H K "\r\n"
#define HOST(name)  "GET / HTTP/1.1\r\nHost: " name "\r\n" K "\r\n"

/* Rows of common kinds: answered; refused, while the connection goes on; refused and closed. */
#define AS(...)     \
    {               \
        __VA_ARGS__ \
    }
#define FINE(what, says, bytes)           AS(what, B(bytes), 200, says, HANDLED, false)
#define DENIED(what, status, says, bytes) AS(what, B(bytes), status, says, REFUSED, false)
#define BAD(what, says, bytes)            AS(what, B(bytes), 400, says, REFUSED, true)

/* Two that are refused alike: keys, hosts, lengths. */
#define NOKEY(sent)   DENIED("key " sent, 401, "", KEY(sent))
#define KEYLESS(a, b) NOKEY(a), NOKEY(b)
#define NOHOST(name)  DENIED("host " name, 403, "Host", HOST(name))
#define HOSTILE(a, b) NOHOST(a), NOHOST(b)
#define LENGTH(n)     BAD("length " n, "", POST "Content-Length: " n "\r\n\r\n{}" NEXT)
#define LENGTHS(a, b) LENGTH(a), LENGTH(b)

/* A body in chunks and a request behind it, which is not answered. */
#define ONCE(what, says, chunks) AS(what, B(CHUNKED chunks NEXT), 200, says, HANDLED, true)

static const struct row rows[] = {
    /* What is fine, for comparison. */
    FINE("plain", "GET / ", GET "\r\n"),
    FINE("query", "GET /a b ", LINE("GET /a%20b?c=%41&d=+ HTTP/1.1")),
    { "HTTP/1.0", B("GET / HTTP/1.0\r\n" H K "\r\n"), 200, "GET /", HANDLED, true },
    FINE("body", "POST / {}", POST "Content-Length: 2\r\n\r\n{}"),
    ONCE("chunks", "POST / {}", "1\r\n{\r\n01\r\n}\r\n0\r\nT: 1\r\n\r\n"),
    FINE("no body at all", "POST / ", POST "\r\n"),
    FINE("GET with length 0", "GET /", GET "Content-Length: 0\r\n\r\n"),
    FINE("own absolute target", "GET /x", LINE("GET http://LOCALHOST/x HTTP/1.1")),
    FINE("IPv4 host", "GET", HOST("10.0.0.7:8080")),
    FINE("IPv6 host", "GET", HOST("[::1]:80")),
    FINE("allowed host", "GET", HOST("Box.lan:1")),
    FINE("own origin", "GET", GET "Origin: http://localhost\r\n\r\n"),
    FINE("allowed origin", "Access-Control-Allow-Origin: https://friend.example\r\n",
         GET "Origin: https://friend.example\r\n\r\n"),
    DENIED("preflight", 204, "Access-Control-Allow-Headers: x-a\r\n",
           "OPTIONS /x HTTP/1.1\r\n" H "Origin: https://friend.example\r\n"
           "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-a\r\n\r\n"),
    DENIED("preflight from a public site", 204, "Access-Control-Allow-Private-Network: true\r\n",
           "OPTIONS /x HTTP/1.1\r\n" H "Origin: https://friend.example\r\n"
           "Access-Control-Request-Method: POST\r\n"
           "Access-Control-Request-Private-Network: true\r\n\r\n"),
    DENIED("preflight has a number", 204, "x-request-id: req-",
           "OPTIONS /x HTTP/1.1\r\n" H "Origin: https://friend.example\r\n"
           "Access-Control-Request-Method: POST\r\n\r\n"),
    FINE("open without a key", "GET /health", "GET /health HTTP/1.1\r\n" H "\r\n"),
    FINE("two at once", "GET /next", GET "\r\n" NEXT),
    /* Where the body ends. */
    BAD("both lengths", "Transfer-Encoding",
        POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("both, other order", "",
        POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" NEXT),
    BAD("two lengths", "twice", POST "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}" NEXT),
    BAD("two equal lengths", "twice", POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" NEXT),
    LENGTHS("2, 2", "+2"),
    LENGTHS("-1", "0x2"),
    LENGTH(""),
    { "length beyond 64 bits", B(POST "Content-Length: 18446744073709551616\r\n\r\n{}"), 400, "",
      REFUSED, true },
    { "too large", B(POST "Content-Length: 1001\r\n\r\n{}"), 413, "too large", REFUSED, true },
    BAD("TE gzip", "chunked", POST "Transfer-Encoding: gzip\r\n\r\n{}" NEXT),
    BAD("TE identity", "", POST "Transfer-Encoding: identity\r\n\r\n" NEXT),
    BAD("TE gzip, chunked", "", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("TE chunked, chunked", "",
        POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("TE twice", "",
        POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n" NEXT),
    BAD("TE with a tab", "", POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n" NEXT),
    BAD("TE in HTTP/1.0", "",
        "POST / HTTP/1.0\r\n" H K J "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("GET with a body", "no body", GET "Content-Length: 5\r\n\r\nGET /" NEXT),
    BAD("GET in chunks", "no body", GET "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("HEAD with a body", "", "HEAD / HTTP/1.1\r\n" H K "Content-Length: 3\r\n\r\nabc" NEXT),
    /* Whatever a proxy takes for the end of the body, nothing behind it is answered. */
    ONCE("LF behind a size", "POST / {}", "2\n{}\r\n0\r\n\r\n"),
    ONCE("LF behind data", "POST / {}", "2\r\n{}\n0\r\n\r\n"),
    ONCE("LF in the last lines", "POST / {}", "2\r\n{}\r\n0\n\n"),
    ONCE("extension", "POST / {}", "2;a=b\r\n{}\r\n0;\r\n\r\n"),
    ONCE("extension with LF", "POST / {}", "2;a\n{}\r\n0\r\n\r\n"),
    ONCE("CR in an extension", "POST / {}", "2;\r{\r\n{}\r\n0\r\n\r\n"),
    { "chunk size zz", B(CHUNKED "zz\r\n{}\r\n0\r\n\r\n"), 400, "", JUDGED, true },
    { "chunk size -1", B(CHUNKED "-1\r\n{}\r\n0\r\n\r\n"), 400, "", JUDGED, true },
    { "chunk size 0x2", B(CHUNKED "0x2\r\n{}\r\n0\r\n\r\n"), 400, "", JUDGED, true },
    { "chunk beyond 64 bits", B(CHUNKED "10000000000000002\r\n{}\r\n0\r\n\r\n"), 413, "", JUDGED,
      true },
    { "chunk longer than stated", B(CHUNKED "1\r\n{}\r\n0\r\n\r\n"), 400, "", JUDGED, true },
    { "damaged trailer", B(CHUNKED "0\r\nno colon\r\n\r\n"), 400, "", JUDGED, true },
    { "compressed body", B(POST "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"), 415,
      "Content-Encoding: expected none", REFUSED, true },
    FINE("no encoding", "POST / {}",
         POST "Content-Encoding: Identity\r\nContent-Length: 2\r\n\r\n{}"),
    { "not JSON, body not read", B("POST / HTTP/1.1\r\n" H K "Content-Length: 900\r\n\r\n{}"), 415,
      "", JUDGED, true },
    { "not JSON, nothing to read", B(LINE("POST / HTTP/1.1")), 415, "", JUDGED, false },
    /* Lines. */
    BAD("blank before a colon", "name", GET "A : b\r\n\r\n" NEXT),
    BAD("blank in a length's name", "", POST "Content-Length : 2\r\n\r\n{}" NEXT),
    BAD("tab before a colon", "", GET "A\t: b\r\n\r\n" NEXT),
    BAD("no name", "", GET ": b\r\n\r\n" NEXT),
    BAD("brackets in a name", "", GET "A[]: b\r\n\r\n" NEXT),
    BAD("first header folded", "", "GET / HTTP/1.1\r\n A: b\r\n" H K "\r\n" NEXT),
    BAD("folded value", "", GET "A: b\r\n c\r\n\r\n" NEXT),
    BAD("fold that completes a name", "",
        "POST / HTTP/1.1\r\n" H K J "Content-Len: 2\r\n gth\r\n\r\n"),
    BAD("no colon", "", GET "A\r\n\r\n" NEXT),
    BAD("NUL in a value", "NUL", GET "A: b\0c\r\n\r\n" NEXT),
    BAD("NUL in the Host", "NUL", HOST("localhost\0.evil") NEXT),
    BAD("NUL in the last value", "NUL", GET "A: b\r\nB: c\0Content-Length: 4\r\n\r\n" NEXT),
    BAD("NUL in a name", "", GET "A\0b: c\r\n\r\n" NEXT),
    BAD("NUL ends the head", "", GET "\0: c\r\nContent-Length: 4\r\n\r\n" NEXT),
    BAD("NUL in the target", "", LINE("GET /\0/x HTTP/1.1") NEXT),
    BAD("NUL in the method", "", "GET\0 / HTTP/1.1\r\n" H K "\r\n" NEXT),
    BAD("CR alone", "control", GET "A: b\rContent-Length: 4\r\n\r\n" NEXT),
    BAD("LF alone", "CRLF", GET "A: b\nB: c\r\n\r\n" NEXT),
    BAD("LF after the first line", "CRLF", "GET / HTTP/1.1\n" H K "\r\n" NEXT),
    BAD("empty line with LF", "CRLF", GET "\n" NEXT),
    BAD("escape in a value", "control", GET "A: \x1b[31m\r\n\r\n" NEXT),
    /* The first line. */
    BAD("two blanks", "target", LINE("GET /  HTTP/1.1")),
    BAD("blanks before the target", "", LINE("GET   / HTTP/1.1") NEXT),
    BAD("blank after the version", "", "GET / HTTP/1.1 \r\n" H K "\r\n"),
    BAD("no version", "", "GET /\r\n\r\n"),
    { "no target", B("GET\r\n\r\n"), 0, "", REFUSED, true },
    BAD("HTTP/1.2", "version", "GET / HTTP/1.2\r\n" H K "\r\n" NEXT),
    { "HTTP/2.0", B("GET / HTTP/2.0\r\n" H K "\r\n"), 505, "", REFUSED, true },
    BAD("HTTP/9", "", "GET / HTTP/9\r\n" H K "\r\n"),
    BAD("lower case", "", "GET / http/1.1\r\n" H K "\r\n"),
    { "TLS", B("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n"), 0, "", REFUSED, true },
    { "HTTP/2 preface", B("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505, "", REFUSED, true },
    BAD("asterisk", "path", LINE("OPTIONS * HTTP/1.1")),
    BAD("no slash", "path", LINE("GET x HTTP/1.1")),
    BAD("CONNECT", "path", LINE("CONNECT localhost:80 HTTP/1.1")),
    BAD("target of another host", "Host", LINE("GET http://evil.example/ HTTP/1.1")),
    BAD("target with a user", "Host", LINE("GET http://a@localhost/ HTTP/1.1")),
    BAD("%00", "%00", LINE("GET /a%00b HTTP/1.1")),
    BAD("half an escape", "hexadecimal", LINE("GET /a%4 HTTP/1.1")),
    BAD("no escape", "hexadecimal", LINE("GET /a%zz HTTP/1.1")),
    BAD("bytes above ASCII", "ASCII", LINE("GET /\xc3\xa9 HTTP/1.1")),
    /* Who asks whom. */
    BAD("blank in the target", "target", LINE("GET /a b HTTP/1.1")),
    BAD("no Host", "Host", "GET / HTTP/1.1\r\n" K "\r\n"),
    BAD("no Host, HTTP/1.0", "Host", "GET / HTTP/1.0\r\n" K "\r\n"),
    BAD("two Hosts", "twice", GET H "\r\n"),
    HOSTILE("", "evil.example"),
    HOSTILE("127.0.0.1.evil.example", "localhost@evil"),
    HOSTILE("localhost:x", "localhost:65536"),
    NOHOST("[::1"),
    DENIED("another Host, open path", 403, "Host",
           "GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
    DENIED("foreign Origin", 403, "Origin", GET "Origin: http://evil.example\r\n\r\n"),
    DENIED("Origin null", 403, "Origin", GET "Origin: null\r\n\r\n"),
    DENIED("Origin https for http", 403, "Origin", GET "Origin: https://localhost\r\n\r\n"),
    DENIED("Origin of another port", 403, "Origin", GET "Origin: http://localhost:3000\r\n\r\n"),
    DENIED("foreign preflight", 403, "Origin",
           "OPTIONS / HTTP/1.1\r\n" H "Origin: http://evil.example\r\n"
           "Access-Control-Request-Method: POST\r\n\r\n"),
    DENIED("no key", 401, "WWW-Authenticate: Bearer\r\n", "GET / HTTP/1.1\r\n" H "\r\n"),
    KEYLESS("Bearer sesamf", "Bearer sesamee"),
    KEYLESS("Bearer ", "Bearer sesam"),
    KEYLESS("Bearer Sesame", "Bearer sesamesesame"),
    KEYLESS("Bearer  sesame", "Basic sesame"),
    KEYLESS("Digest sesame", "sesame"),
    FINE("other case", "GET", "GET / HTTP/1.1\r\n" H "AUTHORIZATION: bearer sesame\r\n\r\n"),
    BAD("two keys", "twice", GET K "\r\n"),
    { "no key, body not read", B("POST / HTTP/1.1\r\n" H J "Content-Length: 900\r\n\r\n{}"), 401,
      "", REFUSED, true },
    { "no key, asks to go on",
      B("POST / HTTP/1.1\r\n" H J "Content-Length: 900\r\nExpect: 100-continue\r\n\r\n"), 401, "",
      REFUSED, true },
};

/* Each row on a connection of its own; one that goes on is used again. */
static bool test_row(const struct row *row)
{
    struct raw_reply r;
    int before[2] = { heads, handled };
    int want = row->closed ? 0 : strcmp(row->what, "two at once") == 0 ? 2 : 1;
    int fd = http_client_open(server_port(server));
    http_client_send(fd, row->bytes, row->n);
    raw_http_read(fd, &r, want, 5000);
    int seen = handled > before[1] ? HANDLED : heads > before[0] ? JUDGED : REFUSED;
    bool fine = r.status == row->status && strstr(r.bytes, row->says) && seen == (int)row->seen &&
                r.replies == (want == 2 ? 2 : row->status > 0) && r.ended == row->closed;
    const char *head = strstr(r.bytes, "HTTP/1.1 4");
    fine = fine && !(head && strstr(head + 1, "HTTP/1.1 4")); /* one head, whatever is its length */
    if (fine && !row->closed) {
        struct raw_reply again;
        http_client_send(fd, B("GET /health HTTP/1.1\r\n" H "\r\n"));
        raw_http_read(fd, &again, 1, 5000);
        fine = again.status == 200;
    }
    if (!fine)
        fprintf(stderr, "%s: expected %d, seen %d, closed %d; found %d, seen %d, closed %d\n%s\n",
                row->what, row->status, (int)row->seen, row->closed, r.status, seen, r.ended,
                r.bytes);
    close(fd);
    return fine;
}

/* Heads, lines and lists without end. */
static void test_endless(void)
{
    static const struct {
        const char *what, *first, *again;
        int statuses[3];
    } endless[] = {
        { "target", "GET /", "a", { 414 } },
        { "value", GET "A: ", "a", { 431 } },
        { "headers", GET, "A: b\r\n", { 431 } },
        { "query", "GET /?", "a&", { 414 } },
        { "empty lines", "", "\r\n", { 414, 200 } },
        { "chunk size", POST "Transfer-Encoding: chunked\r\n\r\n", "0", { 400 } },
        { "extension", POST "Transfer-Encoding: chunked\r\n\r\n1;", "x", { 400 } },
        { "trailers", POST "Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n", { 431 } },
        { "chunks", POST "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", { 413 } },
    };
    for (size_t i = 0; i < sizeof(endless) / sizeof(endless[0]); i++) {
        const char *again = endless[i].again;
        size_t n = strlen(endless[i].first), each = strlen(again), room = 200000;
        char *bytes = malloc(room);
        struct raw_reply r;
        CHECK(bytes);
        memcpy(bytes, endless[i].first, n);
        for (; n + each <= room; n += each)
            memcpy(bytes + n, again, each);
        int fd = http_client_open(server_port(server));
        http_client_send(fd, bytes, n);
        shutdown(fd, SHUT_WR);
        raw_http_read(fd, &r, 0, 5000);
        close(fd);
        bool fine = !r.status; /* reset, with the reply on its way */
        for (int k = 0; k < 3; k++)
            fine |= r.status == endless[i].statuses[k];
        if (endless[i].statuses[0] == 400) /* the server's own words, which arrive */
            fine = fine && strstr(r.bytes, "\r\n\r\n{\"malformed\":1}");
        CHECK_MSG(fine && r.ended, "%s: %d, closed %d", endless[i].what, r.status, r.ended);
        free(bytes);
    }
}

/* A client that goes on sending after an early reply is not reset, which might lose the reply. */
static void test_linger(void)
{
    static const char head[] = "POST / HTTP/1.1\r\n" H J "Content-Length: 900\r\n\r\n";
    struct raw_reply r;
    int fd = http_client_open(server_port(server));
    http_client_send(fd, head, sizeof(head) - 1);
    raw_http_read(fd, &r, 0, 5000);
    CHECK(r.status == 401 && r.ended);
    for (int i = 0; i < 3; i++) {
        CHECK(send(fd, "more", 4, MSG_NOSIGNAL) == 4);
        rest_us(20000);
    }
    close(fd);
}

/* Rows with a few bytes changed or missing: a reply or nothing comes back; the server stays. */
static void test_fuzz(void)
{
    static const int fine[] = { 0, 200, 204, 400, 401, 403, 413, 414, 415, 431, 500, 501, 505 };
    enum { ROUNDS = 2000 };
    struct raw_reply r;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const struct row *row = &rows[rand_below(1, round, sizeof(rows) / sizeof(rows[0]))];
        char bytes[1024];
        size_t n = row->n;
        CHECK(n < sizeof(bytes));
        memcpy(bytes, row->bytes, n);
        for (uint64_t k = 0; k < 1 + round % 4; k++)
            bytes[rand_below(2, round * 4 + k, n)] = (char)rand_u64(3, round * 4 + k);
        size_t at = rand_below(4, round, n), gone = round % 8 ? 0 : rand_below(5, round, n - at);
        memmove(bytes + at, bytes + at + gone, n - at - gone);
        int fd = http_client_open(server_port(server));
        http_client_send(fd, bytes, n - gone);
        shutdown(fd, SHUT_WR);
        raw_http_read(fd, &r, 0, 5000);
        close(fd);
        bool known = false;
        for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
            known |= r.status == fine[i];
        CHECK_MSG(known && r.ended && !strstr(r.bytes, "sesame"), "%s, round %d: %d", row->what,
                  (int)round, r.status);
    }
}

int main(void)
{
    static const char *const hosts[] = { "box.lan", NULL };
    const struct server_options o = {
        .key = "sesame",
        .hosts = hosts,
        .origin = "https://Friend.example/",
        .body_max = BODY_MAX,
        .malformed = "{\"malformed\":1}",
        .open = at_open,
        .head = at_head,
        .handle = at_handle,
    };
    int bad = 0;
    CHECK(server_open(&server, &o, NULL) == OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        bad += !test_row(&rows[i]);
    CHECK(!bad);
    test_endless();
    test_linger();
    test_fuzz();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        bad += !test_row(&rows[i]);
    CHECK(!bad);
    server_close(server, 1000);
    return 0;
}
