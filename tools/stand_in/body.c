#include "tools/stand_in/body.h"

#include <string.h>
#include <strings.h>
#include <zlib.h>

/* Append the whole stream to out; anything after its end is an error. */
static enum stand_in_wrong stand_in_body_inflate_all(struct buf *out, z_stream *z,
                                                     struct stand_in_refusal *no)
{
    unsigned char piece[1 << 14];
    int rc = Z_OK;
    while (rc != Z_STREAM_END) {
        z->next_out = piece;
        z->avail_out = sizeof(piece);
        rc = inflate(z, Z_NO_FLUSH);
        if (rc == Z_MEM_ERROR)
            return no->what = WRONG_MEMORY;
        if ((rc != Z_OK && rc != Z_STREAM_END) || (rc == Z_STREAM_END && z->avail_in))
            return stand_in_refusal_set(no, WRONG_JSON, "the compressed body is damaged");
        if (!buf_add(out, piece, sizeof(piece) - z->avail_out))
            return stand_in_refusal_set(no, WRONG_SIZE, "the request is too large");
    }
    return WRONG_NOTHING;
}

enum stand_in_wrong stand_in_body_unpack(struct buf *body, const char *encoding,
                                         struct stand_in_refusal *no)
{
    if (!encoding || strcasecmp(encoding, "identity") == 0)
        return WRONG_NOTHING;
    if (strcasecmp(encoding, "gzip") != 0 && strcasecmp(encoding, "x-gzip") != 0 &&
        strcasecmp(encoding, "deflate") != 0)
        return stand_in_refusal_set(no, WRONG_ENCODING, "Content-Encoding: expected %s",
                                    STAND_IN_ENCODINGS);
    struct buf out = { .max = body->max };
    z_stream z = { .next_in = (unsigned char *)body->p, .avail_in = (unsigned)body->n };
    if (inflateInit2(&z, 15 + 32) != Z_OK) /* gzip or zlib, told apart by the first bytes */
        return no->what = WRONG_MEMORY;
    enum stand_in_wrong w = stand_in_body_inflate_all(&out, &z, no);
    inflateEnd(&z);
    buf_free(body);
    *body = out;
    return w;
}
