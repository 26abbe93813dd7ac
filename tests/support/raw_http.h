/* raw_http.h - sends bytes that may not be HTTP, and collects all that comes back. */
#ifndef TESTS_SUPPORT_RAW_HTTP_H
#define TESTS_SUPPORT_RAW_HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct raw_reply {
    char bytes[16 << 10]; /* terminated; what comes after that is dropped */
    size_t n;
    int status;  /* of the first reply; 0: none */
    int replies; /* status lines that came */
    bool ended;  /* the server closed the connection */
};

/* Read until the other side closes, `want` replies have come whole (0: no limit), or ms have
 * passed without a byte. */
void raw_http_read(int fd, struct raw_reply *r, int want, int ms);
/* Send bytes[n] on a new connection to 127.0.0.1 and read. */
void raw_http_ask(unsigned port, struct raw_reply *r, const char *bytes, size_t n, int want,
                  int ms);

#endif
