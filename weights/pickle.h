/* pickle.h - internal to weights/: a machine for the part of Python's pickle that torch.save uses.
 *
 * It builds values and runs nothing: a global is a word from a fixed list, and "calling" one is a
 * case in pickle_call.c. The number of objects is limited, and with it memory and time; nothing
 * recurses. Source: the opcode comments of CPython's pickletools. */
#ifndef WEIGHTS_PICKLE_H
#define WEIGHTS_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weights/weights.h"

enum pkind {
    P_NONE,
    P_BOOL,
    P_INT,
    P_FLOAT,
    P_STR,
    P_BYTES, /* also integers of more than 64 bits, as they are stored */
    P_TUPLE,
    P_LIST,
    P_DICT,
    P_GLOBAL,
    P_STORAGE,
    P_TENSOR,
    P_MARK
};

/* What calling a global does. */
enum pcall { CALL_NONE, CALL_ORDERED_DICT, CALL_TENSOR, CALL_PARAMETER, CALL_SIZE };

/* A global that is allowed. */
struct pglobal {
    const char *module, *name;
    enum pcall call;
    int type; /* enum wtype of a storage class; -1 for the others */
};

struct pval {
    enum pkind kind;
    union {
        int64_t i; /* P_BOOL, P_INT */
        double f;  /* P_FLOAT */
        struct str s;
        struct {
            struct pval **v; /* a dict holds key, value, key, value, ... */
            size_t n, cap;
        } seq;
        const struct pglobal *global;
        struct {
            struct str key; /* the zip member or the id of its bytes */
            int type;
            size_t count;              /* number of values */
            const unsigned char *data; /* set by pth.c */
        } storage;
        struct {
            struct pval *storage;
            size_t offset; /* in values */
            unsigned ndim;
            size_t shape[8];
            bool contiguous;
        } tensor;
    } u;
};

struct pickle {
    struct weights *mem; /* owns all values */
    const char *name;    /* for errors */
    const unsigned char *p;
    size_t n, at, objects;
    struct pval **stack;
    size_t top, room;
    struct pval **memo;
    struct pval *storages;  /* a list of every storage that was named */
    size_t memos, memoized; /* slots of memo; how many of them MEMOIZE has filled */
    struct err *err;
};

/* Run one pickle from the start of p. *used becomes its length and *storages a list of the storages
 * that it names. ERR_FORMAT or ERR_NOMEM. */
int pickle_run(struct pval **out, struct pval **storages, size_t *used, struct weights *mem,
               const unsigned char *p, size_t n, const char *name, struct err *err);

/* Return the value of a string key, or NULL when it is absent or dict is not a dict. */
struct pval *pickle_item(const struct pval *dict, const char *key);
const char *pickle_kind(enum pkind kind); /* "a dict", ... */

/* The functions below are shared by pickle.c and pickle_call.c.
 *
 * Set ERR_FORMAT: "found WHAT at byte N". */
int pickle_fail(struct pickle *k, const char *what);
/* Return a new value, or NULL when the object budget or memory is used up. */
struct pval *pickle_value(struct pickle *k, enum pkind kind);
/* Append v to a tuple, list or dict; false when the object budget or memory is used up. */
bool pickle_append(struct pickle *k, struct pval *seq, struct pval *v);
/* Set the error for the two failures above. */
int pickle_no_room(struct pickle *k);
/* Return the allowed global of this name, or NULL. */
const struct pglobal *pickle_global(struct str module, struct str name);
/* Interpret REDUCE: f(*args). */
int pickle_call(struct pickle *k, struct pval **out, const struct pval *f, struct pval *args);
/* Interpret a persistent id, which names a storage. */
int pickle_storage(struct pickle *k, struct pval **out, const struct pval *id);

#endif
