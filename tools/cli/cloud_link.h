/* cloud_link.h - the cloud's options as the command line gives them. */
#ifndef TOOLS_CLI_CLOUD_LINK_H
#define TOOLS_CLI_CLOUD_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cloud;
struct cloud_options;
struct err;
struct tokenizer;

/* cloud_option_values for the server at url, which is borrowed (NULL: none); *key is malloc'ed or
 * NULL, for the caller to give to wipe_text once the cloud is open. t: the model's tokenizer here,
 * borrowed, to compare the server's with; NULL: not. own: the server is our own, which needs no
 * key. What a person should know of the key is printed. ERR_ARG, ERR_IO, ERR_NOMEM. */
int cloud_link_options(struct cloud_options *o, char **key, const char *url,
                       const struct tokenizer *t, bool own, struct err *err);
/* Print what the client has to say. */
void cloud_link_notes(struct cloud *c);

#endif
