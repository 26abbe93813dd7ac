/* answers_port.h - kept answers in front of a large model, as a port (cloud_port.h). A token that
 * is kept, or that the rest of a used call's reply brings, needs no call. */
#ifndef NET_ANSWERS_ANSWERS_PORT_H
#define NET_ANSWERS_ANSWERS_PORT_H

struct answers;
struct cloud_port;
struct err;

/* Make the port of these answers, which are borrowed, in front of another one, which closes with
 * it; NULL: offline, the answers are all there is. ERR_NOMEM; after an error the other port is
 * still the caller's. */
int answers_port(struct cloud_port *out, struct answers *a, const struct cloud_port *behind,
                 struct err *err);
/* Name what answers, for answers_server: its name, with the fingerprint of its weights and the
 * type of its KV cache if `says` (cloud_info) has them. Errors of answers_server. */
int answers_found(void *answers, const char *name, const char *says, struct err *err);

#endif
