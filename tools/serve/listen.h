/* listen.h - the options of a server's port and of who may call it, for `serve` and `cloud`. */
#ifndef TOOLS_SERVE_LISTEN_H
#define TOOLS_SERVE_LISTEN_H

#include "tools/cli/options.h"

struct err;
struct server_options;

extern const struct option_group listen_option_rows; /* --port --host and those of a key, TLS */

/* Set *out to what these say. *key is that of --api-key-file, else of MIZZLE_SERVE_KEY; the caller
 * frees it with wipe_text. ERR_ARG; errors of api_key_of_server. */
int listen_read(struct server_options *out, char **key, struct err *err);
/* Print the line that a server is ready, and wait for a signal; look is called now and then, unless
 * it is NULL. */
void listen_wait(const char *url, const _Atomic int *ended, void (*look)(void *arg), void *arg);

#endif
