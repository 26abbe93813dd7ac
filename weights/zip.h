/* zip.h - inside of weights/: members of a zip archive, as torch.save writes it.
 * Source: PKWARE's APPNOTE.TXT, with zip64. Stored and deflated members; nothing encrypted. */
#ifndef WEIGHTS_ZIP_H
#define WEIGHTS_ZIP_H

#include "weights/table.h"

struct zip_entry {
    struct str name;
    unsigned method;
    uint32_t crc;
    uint64_t packed, size, at;  /* at: of the local header */
    const unsigned char *bytes; /* once read and verified: a pickle may name a member many times */
};

struct zip {
    struct weights *mem; /* owns the entries and what is inflated */
    struct mapping file;
    struct zip_entry *entries; /* sorted by name */
    size_t n;
    size_t inflated; /* bytes so far */
};

bool zip_is(const struct mapping *m); /* begins like one */
int zip_open(struct zip *z, struct weights *mem, const struct mapping *m, struct err *err);
struct zip_entry *zip_find(const struct zip *z, const char *name, size_t n);
/* The member's bytes, verified by its crc32; more than limit are refused. They live as long as mem
 * and the mapping. */
int zip_read(struct zip *z, struct zip_entry *e, const unsigned char **out, size_t *n, size_t limit,
             struct err *err);

#endif
