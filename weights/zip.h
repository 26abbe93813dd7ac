/* zip.h - internal to weights/: the members of a zip archive as torch.save writes it: stored or
 * deflated, zip64 included, never encrypted. Source: PKWARE's APPNOTE.TXT. */
#ifndef WEIGHTS_ZIP_H
#define WEIGHTS_ZIP_H

#include "weights/table.h"

struct zip_entry {
    struct str name;
    unsigned method;
    uint32_t crc;
    uint64_t packed, size, at;  /* at: offset of the local header */
    const unsigned char *bytes; /* set once read and verified; a pickle may name a member often */
};

struct zip {
    struct weights *mem; /* owns the entries and inflated data */
    struct mapping file;
    struct zip_entry *entries; /* sorted by name */
    size_t n;
    size_t inflated; /* bytes inflated so far */
};

/* True when the file begins like a zip archive. */
bool zip_is(const struct mapping *m);
/* Read the central directory. ERR_FORMAT or ERR_NOMEM. */
int zip_open(struct zip *z, struct weights *mem, const struct mapping *m, struct err *err);
/* Return the member of this name, or NULL. */
struct zip_entry *zip_find(const struct zip *z, const char *name, size_t n);
/* Return a member's bytes, verified by its crc32; a member larger than limit is refused. The bytes
 * live as long as mem and the mapping. */
int zip_read(struct zip *z, struct zip_entry *e, const unsigned char **out, size_t *n, size_t limit,
             struct err *err);

#endif
