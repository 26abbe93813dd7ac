/* header_checks.h - decides from the headers which requests are let in. */
#ifndef TOOLS_STAND_IN_HEADER_CHECKS_H
#define TOOLS_STAND_IN_HEADER_CHECKS_H

#include <microhttpd.h>
#include <stdbool.h>

#include "tools/stand_in/refusal.h"

/* True if the request carries the key. */
bool stand_in_header_checks_key(struct MHD_Connection *c, const char *key);
/* True if the imitated server reads a body of this type at the path. */
bool stand_in_header_checks_media(struct MHD_Connection *c, enum stand_in_server played,
                                  const char *path);
/* True if the length of the body is unambiguous. With both Content-Length and Transfer-Encoding, a
 * proxy in front of the server may find another request after this one than the server does. */
bool stand_in_header_checks_length(struct MHD_Connection *c);

#endif
