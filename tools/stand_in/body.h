/* body.h - decompresses the body of a request, within a limit. */
#ifndef TOOLS_STAND_IN_BODY_H
#define TOOLS_STAND_IN_BODY_H

#include <stdbool.h>

#include "net/http/buf.h"
#include "tools/stand_in/refusal.h"

/* Supported values of Content-Encoding, in the form of an Accept-Encoding response header (RFC
 * 7694). */
#define STAND_IN_ENCODINGS "gzip, deflate"

/* Decompress body in place; encoding is the value of the header, or NULL. WRONG_SIZE beyond
 * body->max; WRONG_ENCODING; WRONG_JSON for damaged data; WRONG_MEMORY. */
enum stand_in_wrong stand_in_body_unpack(struct buf *body, const char *encoding,
                                         struct stand_in_refusal *no);

#endif
