/* base64.h - bytes as text of letters, digits, + and / (RFC 4648). */
#ifndef TOOLS_LAB_EVAL_BASE64_H
#define TOOLS_LAB_EVAL_BASE64_H

#include <stdio.h>

/* Write p[n]; errors are those of the file. */
void base64_write(FILE *to, const unsigned char *p, size_t n);

#endif
