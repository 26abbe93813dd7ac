/* secret.h - hides the API key in text from a server, which may send it back. */
#ifndef NET_HTTP_SECRET_H
#define NET_HTTP_SECRET_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Append text[n] to out, with *** for the key: all of it, 8 of its characters in a row, or its
 * first 6; read forwards or backwards; in base64; and with any character as %XX or escaped as in
 * JSON. key may be NULL. False: out of memory. */
bool secret_hide(struct buf *out, const char *key, const char *text, size_t n);

#endif
