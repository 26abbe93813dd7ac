#include "router/adapt.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "router/router.h"
#include "weights/atomic_file.h"

/* Chosen on samples of the demo world (router/results/README.md, "Adapting"). */
static const double RATE = 0.75;
static const double AUDIT_WEIGHT = 0.1, MOST_WEIGHT = 10;

/* A token that is scored and not decided yet, or that is held for the audit. */
struct adapt_slot {
    size_t at; /* as in adapt_keep; 0: the slot is free */
    bool held;
};

/* What changes; names as in struct router_form. */
struct adapt_layer {
    float *differs; /* [width], the second row of w2 */
    float b2_differs;
    uint64_t answers;
};

struct adapt {
    char *path;
    struct router_form form; /* as of the end of the latest text */
    struct router *router;   /* borrowed */
    struct adapt_layer now;  /* as of the latest token */
    bool unsaved;            /* the form is not what the file says */
    struct adapt_slot *slots;
    float *units; /* [nslots][width] */
    size_t nslots;
};

/* Refuse a router that cannot learn. */
static int adapt_check(const struct router_form *f, const char *path, struct err *err)
{
    if (!f->dim || !f->hurdle)
        return err_set(err, ERR_FORMAT,
                       "%s: expected a network with two outputs, which can learn (`mizzle router "
                       "train --head hurdle`), found %s",
                       path, !f->dim ? "a table" : "one output");
    return OK;
}

/* True when two paths name one file. */
static bool adapt_same(const char *a, const char *b)
{
    struct stat s, t;
    return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

/* Read what was learnt before. `base` is where it must have begun. */
static int adapt_resume(struct adapt *a, const struct router_form *base, const char *router,
                        struct err *err)
{
    struct router_form *f = &a->form;
    uint64_t origin = router_form_origin(base);
    int rc = router_form_read(f, a->path, err);
    if (rc != OK)
        return rc;
    if (adapt_same(a->path, router))
        return err_set(
            err, ERR_FORMAT,
            "%s: expected another file than the router; what was learnt goes on with the "
            "router from which it began",
            a->path);
    if (!f->learns)
        return err_set(err, ERR_FORMAT,
                       "%s: expected what a router has learnt, or no file yet, found a router that "
                       "has not learnt",
                       a->path);
    if (f->began != origin)
        return err_set(err, ERR_FORMAT,
                       "%s: metadata began: expected %016" PRIx64
                       ", the router %s, found %016" PRIx64
                       ", another one, or the same before it was trained again",
                       a->path, origin, router, f->began);
    return adapt_check(f, a->path, err);
}

/* Begin with the router `base`, whose numbers are taken over. */
static void adapt_start(struct adapt *a, struct router_form *base)
{
    uint64_t origin = router_form_origin(base);
    a->form = *base;
    *base = (struct router_form){ 0 };
    a->form.learns = true;
    a->form.began = origin;
}

/* Find out whether the file can be written before that has cost anything. It stays as it is, since
 * somebody else may be learning. */
static int adapt_try(const struct adapt *a, struct err *err)
{
    struct atomic_file part;
    int rc = atomic_file_open(&part, a->path, err);
    return rc == OK ? atomic_file_close(&part, false, err) : rc;
}

int adapt_open(struct adapt **out, struct router **r, const char *path, const char *router,
               const struct kernels *k, struct err *err)
{
    struct router_form base;
    struct stat st;
    size_t size = strlen(path) + 1;
    *out = NULL;
    *r = NULL;
    if (!*path)
        return err_set(err, ERR_ARG, "adapt: expected a file, found an empty name");
    struct adapt *a = calloc(1, sizeof(*a));
    if (!a || !(a->path = malloc(size))) {
        free(a);
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    }
    memcpy(a->path, path, size);
    bool exists = stat(path, &st) == 0 || errno != ENOENT;
    int rc = router_form_read(&base, router, err);
    if (rc == OK)
        rc = adapt_check(&base, router, err);
    if (rc == OK && exists)
        rc = adapt_resume(a, &base, router, err);
    else if (rc == OK)
        adapt_start(a, &base);
    router_form_close(&base);
    if (rc == OK && !(a->now.differs = malloc(a->form.width * sizeof(*a->now.differs))))
        rc = err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (rc == OK)
        rc = adapt_try(a, err);
    if (rc == OK)
        rc = router_make(r, &a->form, path, k, err);
    a->router = *r;
    if (rc == OK)
        *out = a;
    else
        adapt_close(a);
    return rc;
}

void adapt_close(struct adapt *a)
{
    if (!a)
        return;
    router_form_close(&a->form);
    free(a->path);
    free(a->now.differs);
    free(a->slots);
    free(a->units);
    free(a);
}

const struct router_form *adapt_form(const struct adapt *a)
{
    return &a->form;
}

int adapt_save(struct adapt *a, struct err *err)
{
    int rc = a && a->unsaved ? router_form_save(a->path, &a->form, err) : OK;
    if (a && rc == OK)
        a->unsaved = false;
    return rc;
}

void adapt_begin(struct adapt *a)
{
    const struct router_form *f = &a->form;
    memcpy(a->now.differs, f->w2 + f->width, f->width * sizeof(*f->w2));
    a->now.b2_differs = f->b2_differs;
    a->now.answers = f->answers;
    for (size_t i = 0; i < a->nslots; i++)
        a->slots[i].at = 0;
}

/* Return the slot of this token, or the number of slots. */
static size_t adapt_find(const struct adapt *a, size_t at)
{
    size_t i = 0;
    while (i < a->nslots && a->slots[i].at != at)
        i++;
    return i;
}

/* Make more slots. */
static int adapt_grow(struct adapt *a, struct err *err)
{
    size_t n = a->nslots ? 2 * a->nslots : 64, bytes;
    struct adapt_slot *slots = realloc(a->slots, n * sizeof(*slots));
    a->slots = slots ? slots : a->slots;
    bool fits = size_mul(&bytes, n, a->form.width * sizeof(*a->units));
    float *units = slots && fits ? realloc(a->units, bytes) : NULL;
    if (!units)
        return err_set(err, ERR_NOMEM, "adapt: out of memory");
    a->units = units;
    for (; a->nslots < n; a->nslots++)
        a->slots[a->nslots] = (struct adapt_slot){ 0 };
    return OK;
}

int adapt_keep(struct adapt *a, size_t at, const float *units, struct err *err)
{
    size_t i = adapt_find(a, at), width = a->form.width;
    if (i == a->nslots)
        i = adapt_find(a, 0);
    int rc = i == a->nslots ? adapt_grow(a, err) : OK;
    if (rc != OK)
        return rc;
    a->slots[i] = (struct adapt_slot){ at, false };
    memcpy(a->units + i * width, units, width * sizeof(*units));
    return OK;
}

/* Take a step from the token in a slot. Hidden units that are not finite teach nothing. */
static void adapt_step(struct adapt *a, size_t slot, bool differs, double weight)
{
    struct adapt_layer *now = &a->now;
    size_t n = a->form.width;
    const float *h = a->units + slot * n;
    double z = (double)now->b2_differs, square = 0;
    for (size_t j = 0; j < n; j++) {
        z += (double)now->differs[j] * (double)h[j];
        square += (double)h[j] * (double)h[j];
    }
    if (!isfinite(square))
        return;
    double off = (double)sigmoid_f32((float)z) - (differs ? 1 : 0);
    double step = RATE / (double)(n + 1) * weight * off; /* the bias is one more input */
    double scaled = step / (square / (double)n + 1e-6);
    for (size_t j = 0; j < n; j++)
        now->differs[j] -= (float)(scaled * (double)h[j]);
    now->b2_differs -= (float)step;
    now->answers++;
}

void adapt_hold(struct adapt *a, size_t at)
{
    size_t i = adapt_find(a, at);
    if (i < a->nslots)
        a->slots[i].held = true;
}

void adapt_decide(struct adapt *a, size_t at, bool answered, bool differs)
{
    size_t i = adapt_find(a, at);
    if (answered && i < a->nslots)
        adapt_step(a, i, differs, 1);
    for (i = 0; i < a->nslots; i++)
        if (a->slots[i].at <= at && !a->slots[i].held)
            a->slots[i].at = 0;
}

void adapt_audited(struct adapt *a, size_t at, double share, bool differs)
{
    size_t i = adapt_find(a, at);
    double weight = AUDIT_WEIGHT / share;
    if (i < a->nslots)
        adapt_step(a, i, differs, weight < MOST_WEIGHT ? weight : MOST_WEIGHT);
}

size_t adapt_end(struct adapt *a)
{
    struct router_form *f = &a->form;
    size_t learnt = (size_t)(a->now.answers - f->answers);
    if (!learnt)
        return 0;
    memcpy(f->w2 + f->width, a->now.differs, f->width * sizeof(*f->w2));
    f->b2_differs = a->now.b2_differs;
    f->answers = a->now.answers;
    a->unsaved = true;
    router_relearn(a->router, f);
    return learnt;
}
