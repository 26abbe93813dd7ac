/* input_file.h - reads a whole file that the user names. */
#ifndef TOOLS_CLI_INPUT_FILE_H
#define TOOLS_CLI_INPUT_FILE_H

#include <stddef.h>

struct err;

enum { INPUT_FILE_USUAL = 64 << 20 };

/* Set *text[*n] to the file of this path, or standard input if it is "-", malloc'ed and terminated,
 * without a byte order mark in front. ERR_IO, ERR_FORMAT (it has more than `most` bytes),
 * ERR_NOMEM, ERR_STOP (interrupted); *text is NULL then. */
int input_file_read(char **text, size_t *n, const char *path, size_t most, struct err *err);

#endif
