/* find_gguf.h - internal to weights/: the GGUF files in a folder, and picking one by its type. */
#ifndef WEIGHTS_FIND_GGUF_H
#define WEIGHTS_FIND_GGUF_H

#include <stddef.h>

#include "weights/find.h"

struct gguf_list {
    char **names; /* [n], relative to the folder, sorted; of a sharded file only one part */
    size_t n, room;
};

enum { GGUF_LIST_TEXT = 300 };

/* List the GGUF files of a folder and, if deep, of those in it. ERR_IO, ERR_FORMAT (more files than
 * any model has) or ERR_NOMEM; free the list in either case. */
int gguf_list_read(struct gguf_list *l, const char *folder, bool deep, struct err *err);
void gguf_list_free(struct gguf_list *l);

/* Set *found to the number of files that a type picks, and *at to the first of them. type NULL
 * picks all. */
void gguf_list_pick(const struct gguf_list *l, const char *type, size_t *at, size_t *found);

/* Describe the files that a type picks in one line: by their own types if type is NULL and they
 * differ, else by their names. */
void gguf_list_text(char out[GGUF_LIST_TEXT], const struct gguf_list *l, const char *type);

#endif
