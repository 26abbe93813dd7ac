/* threaded_server.h - a server on a raw loopback socket with one thread per connection, for clients
 * that keep many requests in flight. The test's own function writes the replies. Only one server at
 * a time. */
#ifndef TESTS_SUPPORT_THREADED_SERVER_H
#define TESTS_SUPPORT_THREADED_SERVER_H

#include <stdbool.h>
#include <stddef.h>

struct threaded_server_request {
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
void threaded_server_open(bool (*serve)(const struct threaded_server_request *r));
void threaded_server_close(void);
unsigned threaded_server_port(void);
unsigned threaded_server_connections(void);   /* accepted since threaded_server_open */
unsigned threaded_server_seen(unsigned last); /* requests with this last id */
void threaded_server_forget(void);            /* reset all counts */

/* Send part of a reply. These return false when the client or the test has gone. */
bool threaded_server_send(const struct threaded_server_request *r, const char *bytes, size_t n);
bool threaded_server_text(const struct threaded_server_request *r, const char *bytes);
bool threaded_server_json(const struct threaded_server_request *r, const char *status,
                          const char *json);
/* Wait; also false when the client hangs up. */
bool threaded_server_pause(const struct threaded_server_request *r, unsigned ms);
/* Make the close an RST; serve then returns false. */
void threaded_server_reset(const struct threaded_server_request *r);

#endif
