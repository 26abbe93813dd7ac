/* crowd.h - a server on a raw loopback socket with one thread per connection, for clients that keep
 * many requests in flight. The test's own function writes the replies. Only one server at a
 * time. */
#ifndef TESTS_SUPPORT_CROWD_H
#define TESTS_SUPPORT_CROWD_H

#include <stdbool.h>
#include <stddef.h>

struct crowd_request {
    int fd;
    char path[64];
    const char *body; /* [n], terminated */
    size_t n;
    bool gzip;     /* it has a Content-Encoding */
    unsigned last; /* the last id of the list in the body; 0: none */
    unsigned seen; /* earlier requests with this last id, over all connections */
};

/* Start the server. serve answers one request, in any of the connections' threads, and returns true
 * to keep the connection. Ends the test when no socket can be had. */
void crowd_open(bool (*serve)(const struct crowd_request *r));
void crowd_close(void);
unsigned crowd_port(void);
unsigned crowd_connections(void);   /* accepted since crowd_open */
unsigned crowd_seen(unsigned last); /* requests with this last id */
void crowd_forget(void);            /* reset all counts */

/* Send part of a reply. These return false when the client or the test has gone. */
bool crowd_send(const struct crowd_request *r, const char *bytes, size_t n);
bool crowd_text(const struct crowd_request *r, const char *bytes);
bool crowd_json(const struct crowd_request *r, const char *status, const char *json);
/* Wait; also false when the client hangs up. */
bool crowd_pause(const struct crowd_request *r, unsigned ms);
/* Make the close an RST; serve then returns false. */
void crowd_reset(const struct crowd_request *r);

#endif
