/* sample_files_internal.h - what sample_meta.c does for sample_files.c. */
#ifndef ROUTER_LEARN_SAMPLE_FILES_INTERNAL_H
#define ROUTER_LEARN_SAMPLE_FILES_INTERNAL_H

#include "router/learn/sample_files.h"

/* Return meta.json as malloc'ed text, or NULL when out of memory. */
char *sample_meta_text(const struct sample_meta *m);
/* Return the checksum of everything but the counts; *ok is false when out of memory. */
uint32_t sample_meta_checksum(const struct sample_meta *m, bool *ok);
/* Read DIR/meta.json, except dir. ERR_FORMAT names file, field, expected and found; ERR_IO (also
 * when there is none, *missing), ERR_NOMEM. */
int sample_meta_read(struct sample_meta *out, bool *missing, const char *path, struct err *err);
/* Compare all fields but the counts. Return the name of the first that differs, with both values as
 * text, or NULL. few: only those in which folders that are read together must agree. */
const char *sample_meta_differ(char a[160], char b[160], const struct sample_meta *x,
                               const struct sample_meta *y, bool few);

#endif
