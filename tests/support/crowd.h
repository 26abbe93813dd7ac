/* crowd.h - a server on a raw loopback socket with a thread for each connection, for clients that
 * keep many calls in the air. What it says is the test's own function. One at a time. */
#ifndef TESTS_SUPPORT_CROWD_H
#define TESTS_SUPPORT_CROWD_H

#include <stdbool.h>
#include <stddef.h>

struct crowd_request {
    int fd;
    char path[64];
    const char *body; /* [n], terminated */
    size_t n;
    bool gzip;     /* Content-Encoding */
    unsigned last; /* the last id of the list in the body, 0: none */
    unsigned seen; /* how many requests with this last id came before, all connections together */
};

/* Starts the server. serve answers one request, in any of the connections' threads; true: the
 * connection stays. Exits the test where no socket is to be had. */
void crowd_open(bool (*serve)(const struct crowd_request *r));
void crowd_close(void);
unsigned crowd_port(void);
unsigned crowd_connections(void);   /* accepted since crowd_open */
unsigned crowd_seen(unsigned last); /* requests with this last id */
void crowd_forget(void);            /* all counts begin again */

/* False: the client or the test has gone. */
bool crowd_send(const struct crowd_request *r, const char *bytes, size_t n);
bool crowd_text(const struct crowd_request *r, const char *bytes);
bool crowd_json(const struct crowd_request *r, const char *status, const char *json);
bool crowd_pause(const struct crowd_request *r, unsigned ms); /* also false where it hangs up */
void crowd_reset(const struct crowd_request *r);              /* RST; then return false */

#endif
