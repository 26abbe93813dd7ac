/* jinja_internal.h - tokens and values of a template, for jinja*.c only. */
#ifndef MODEL_TEXT_JINJA_INTERNAL_H
#define MODEL_TEXT_JINJA_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/text/jinja.h"
#include "weights/weights.h"

enum {
    JINJA_MEMORY = 1 << 20, /* bytes of tokens and values */
    JINJA_OUTPUT = 64 << 10,
    JINJA_STEPS = 1 << 20, /* tokens read and bytes of strings compared */
    JINJA_DEPTH = 48,      /* of blocks and parentheses in each other */
    JINJA_VARIABLES = 64,
    JINJA_ENTRIES = 16, /* of a mapping, and arguments of a call */
    JINJA_TEMPLATE = 64 << 10
};

enum jinja_type {
    JINJA_TEXT,  /* to be printed as it is */
    JINJA_PRINT, /* {{ */
    JINJA_TAG,   /* {% */
    JINJA_CLOSE, /* }} or %} */
    JINJA_NAME,
    JINJA_STRING, /* without its quotes, with its escapes */
    JINJA_INTEGER,
    JINJA_SIGN,
    JINJA_END
};

struct jinja_token {
    struct str s;
    enum jinja_type type;
};

enum jinja_kind {
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_STR,
    JINJA_LIST,
    JINJA_MAP,
    JINJA_LOOP
};

struct jinja_value {
    enum jinja_kind kind;
    int64_t i; /* an integer or a truth value */
    struct str s;
    struct jinja_value *items; /* of a list, [n] */
    size_t n;
    struct jinja_map *map; /* shared by copies of the value */
    struct jinja_loop *loop;
};

/* Names with values: a mapping, or the arguments of a call (a name is empty if there is none). */
struct jinja_map {
    struct str names[JINJA_ENTRIES];
    struct jinja_value values[JINJA_ENTRIES];
    size_t n;
};

struct jinja_loop {
    struct jinja_value list;
    size_t at;
};

struct jinja {
    const char *template;
    size_t length;
    struct jinja_token *tokens; /* the last one is JINJA_END */
    size_t ntokens, at;
    char *memory; /* [JINJA_MEMORY] */
    size_t used;
    char *out; /* [JINJA_OUTPUT] */
    size_t nout, steps, depth;
    size_t dry; /* above 0: an expression is read, not evaluated */
    struct {
        struct str name;
        struct jinja_value value;
    } variables[JINJA_VARIABLES];
    size_t nvariables, scope; /* scope: the first variable of the innermost loop */
    const char *failed;       /* why, or NULL */
    const char *where;        /* in the template */
};

/* Note why the evaluation ends, and skip the rest of the template. */
void jinja_fail(struct jinja *j, const char *why);
/* Count work; fails beyond JINJA_STEPS. */
void jinja_work(struct jinja *j, size_t steps);
/* Return n zero bytes that live as long as j, or NULL after failing. */
void *jinja_take(struct jinja *j, size_t n);
bool jinja_is(struct str s, const char *text);

/* jinja_tokens.c: split the template into j->tokens. */
void jinja_tokens(struct jinja *j);

/* jinja_value.c */
bool jinja_true(const struct jinja_value *v);
struct jinja_value jinja_str(const char *p, size_t n);
struct jinja_value jinja_bool(bool b);
struct jinja_value jinja_int(int64_t i);
/* Return the value as text: what {{ }} prints. */
struct str jinja_text(struct jinja *j, const struct jinja_value *v);
struct jinja_value jinja_get(const struct jinja_map *m, struct str name);
void jinja_put(struct jinja *j, struct jinja_map *m, struct str name, struct jinja_value v);
/* Apply an operator of two values, a filter, a test, an attribute, a method, an index or a slice
 * (given[k] tells which of its three bounds are there). */
struct jinja_value jinja_operate(struct jinja *j, struct str sign, const struct jinja_value *a,
                                 const struct jinja_value *b);
bool jinja_contains(struct jinja *j, const struct jinja_value *all, const struct jinja_value *one);
struct jinja_value jinja_filter(struct jinja *j, struct str name, const struct jinja_value *v,
                                const struct jinja_map *args);
bool jinja_test(struct jinja *j, struct str name, const struct jinja_value *v);
struct jinja_value jinja_attribute(struct jinja *j, const struct jinja_value *v, struct str name);
struct jinja_value jinja_method(struct jinja *j, const struct jinja_value *v, struct str name,
                                const struct jinja_map *args);
struct jinja_value jinja_index(struct jinja *j, const struct jinja_value *v,
                               const struct jinja_value *at);
struct jinja_value jinja_slice(struct jinja *j, const struct jinja_value *v,
                               const struct jinja_value bounds[3]);

/* jinja_expression.c */
bool jinja_at(const struct jinja *j, const char *text); /* a name or a sign is next */
bool jinja_next(struct jinja *j, const char *text);     /* take it if it is next */
void jinja_expect(struct jinja *j, const char *text);   /* fail if it is not next */
void jinja_close(struct jinja *j);                      /* expect }} or %} */
struct str jinja_name(struct jinja *j);                 /* expect a name */
struct jinja_value jinja_expression(struct jinja *j);
struct jinja_value jinja_or(struct jinja *j); /* an expression without a trailing `if` */

#endif
