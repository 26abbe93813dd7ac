/* admission.h - which requests are let in, by their headers. */
#ifndef TOOLS_STAND_IN_ADMISSION_H
#define TOOLS_STAND_IN_ADMISSION_H

#include <microhttpd.h>
#include <stdbool.h>

#include "tools/stand_in/refusal.h"

/* The request brings the key. */
bool stand_in_admission_key(struct MHD_Connection *c, const char *key);
/* The played server reads a body of this type at the path. */
bool stand_in_admission_media(struct MHD_Connection *c, enum stand_in_server played,
                              const char *path);
/* The body has one length: with Content-Length and Transfer-Encoding a proxy in front of the server
 * may see another request behind it than the server does. */
bool stand_in_admission_length(struct MHD_Connection *c);

#endif
