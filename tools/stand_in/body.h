/* body.h - a request's body: bounded, and unpacked where it is compressed. */
#ifndef TOOLS_STAND_IN_BODY_H
#define TOOLS_STAND_IN_BODY_H

#include <stdbool.h>

#include "net/http/buf.h"
#include "tools/stand_in/refusal.h"

/* What Content-Encoding may be, in the form of an Accept-Encoding response header (RFC 7694). */
#define STAND_IN_ENCODINGS "gzip, deflate"

/* Unpacks body in place; encoding: the header's value, or NULL. Never longer than body->max:
 * WRONG_SIZE. WRONG_ENCODING, WRONG_JSON (the compressed bytes are damaged), WRONG_MEMORY. */
enum stand_in_wrong stand_in_body_unpack(struct buf *body, const char *encoding,
                                         struct stand_in_refusal *no);

#endif
