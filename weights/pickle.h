/* pickle.h - inside of weights/: a machine for the part of Python's pickle that torch.save uses.
 *
 * It builds values and runs nothing: a global is a word from a fixed list, and "calling" one is a
 * case in pickle_call.c. Objects, and with them memory and time, are limited; nothing recurses.
 * Source: the opcode comments of CPython's pickletools. */
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
    P_BYTES, /* also integers of more than 64 bits, as stored */
    P_TUPLE,
    P_LIST,
    P_DICT,
    P_GLOBAL,
    P_STORAGE,
    P_TENSOR,
    P_MARK
};

enum pcall { CALL_NONE, CALL_ORDERED_DICT, CALL_TENSOR, CALL_PARAMETER, CALL_SIZE };

struct pglobal {
    const char *module, *name;
    enum pcall call;
    int type; /* of a storage class; -1 for the others */
};

struct pval {
    enum pkind kind;
    union {
        int64_t i; /* P_BOOL, P_INT */
        struct str s;
        struct {
            struct pval **v; /* of a dict: key, value, key, value, ... */
            size_t n, cap;
        } seq;
        const struct pglobal *global;
        struct {
            struct str key; /* the member or the id that holds its bytes */
            int type;
            size_t count;              /* values */
            const unsigned char *data; /* set by pth.c */
        } storage;
        struct {
            struct pval *storage;
            size_t offset; /* values */
            unsigned ndim;
            size_t shape[8];
            bool contiguous;
        } tensor;
    } u;
};

struct pickle {
    struct weights *mem; /* where all values live */
    const char *name;    /* for errors */
    const unsigned char *p;
    size_t n, at, objects;
    struct pval **stack;
    size_t top, room;
    struct pval **memo;
    struct pval *storages;  /* a list: every storage that was named */
    size_t memos, memoized; /* slots; how many MEMOIZE has filled */
    struct err *err;
};

/* Run one pickle from the start of p; *used is where it stopped, *storages a list of the storages
 * that it names. ERR_FORMAT or ERR_NOMEM. */
int pickle_run(struct pval **out, struct pval **storages, size_t *used, struct weights *mem,
               const unsigned char *p, size_t n, const char *name, struct err *err);

/* Value of a string key, or NULL. */
struct pval *pickle_item(const struct pval *dict, const char *key);
const char *pickle_kind(enum pkind kind); /* "a dict", ... */

/* Between pickle.c and pickle_call.c. */
int pickle_fail(struct pickle *k, const char *what);
struct pval *pickle_value(struct pickle *k,
                          enum pkind kind); /* NULL: the budget or memory is out */
bool pickle_append(struct pickle *k, struct pval *seq, struct pval *v);
int pickle_no_room(struct pickle *k);
const struct pglobal *pickle_global(struct str module, struct str name);
int pickle_call(struct pickle *k, struct pval **out, const struct pval *f, struct pval *args);
int pickle_storage(struct pickle *k, struct pval **out, const struct pval *id);

#endif
