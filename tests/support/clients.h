/* clients.h - many clients of `mizzle serve` at once, with requests of all kinds, one in ten of
 * them rude: it leaves midway, sends half a head, garbage or a wrong length, reads slowly, or
 * resets its connection. Every other answer must be the one that is given alone. */
#ifndef TESTS_SUPPORT_CLIENTS_H
#define TESTS_SUPPORT_CLIENTS_H

#include <stddef.h>

/* Ask for all kinds of requests, `variants` of each, one after the other, and keep the answers. The
 * server has the demo pair, with a cloud. Returns how many requests these are. */
size_t clients_learn(unsigned port, size_t variants);
/* Make this many requests from so many threads. Ends the test at the first answer that differs, and
 * shows both. Returns how many were rude. */
size_t clients_run(unsigned port, size_t clients, size_t requests);
/* Free the answers that are kept. */
void clients_forget(void);
/* Return a count of /metrics, such as "queue". */
long clients_metric(unsigned port, const char *name);
/* Wait until no text is in progress or waits and all connections are closed; ends the test if that
 * takes too long. */
void clients_settle(unsigned port);
/* Wait until the reply on this connection so far holds these words, and leave it unread. */
void clients_await(int fd, const char *words);

#endif
