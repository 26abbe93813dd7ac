#include "router/learn/router_import.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/atomic_file.h"
#include "kernels/sys/base.h"
#include "router/deep.h"
#include "router/router.h"
#include "weights/find.h"
#include "weights/weights.h"

/* Write the form that router/import.h reads, of a router with this name. */
static int rmlp_write(const char *path, const struct router_form *form, const char *name,
                      struct err *err)
{
    struct atomic_file part;
    const int32_t head[] = { 1, (int32_t)form->dim, (int32_t)form->width };
    size_t n = form->width, floats = sizeof(float);
    const char *taps = taps_text(&form->taps);
    float b2 = form->high ? form->b2[0] : -form->b2[0];
    if (!form->dim || form->ncontexts || strcmp(taps, "final") || form->members > 1 || form->gain)
        return err_set(err, ERR_ARG,
                       "%s: expected one network of head mlp that reads the final hidden state "
                       "alone, found %zu of head %s at tap %s",
                       path, form->dim ? form->members : 1, name, taps);
    int rc = atomic_file_open(&part, path, err);
    if (rc != OK)
        return rc;
    bool fine = fwrite("RMLP", 4, 1, part.f) == 1 && fwrite(head, sizeof(head), 1, part.f) == 1 &&
                fwrite(form->w1, floats * form->dim, n, part.f) == n &&
                fwrite(form->b1, floats, n, part.f) == n;
    for (size_t i = 0; fine && i < n; i++) {
        float w2 = form->high ? form->w2[i] : -form->w2[i];
        fine = fwrite(&w2, floats, 1, part.f) == 1;
    }
    fine = fine && fwrite(&b2, floats, 1, part.f) == 1;
    rc = fine ? OK : err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    int closed = atomic_file_close(&part, fine, fine ? err : NULL);
    return rc == OK ? closed : rc;
}

int router_import(const char *in, const char *out, int type, struct err *err)
{
    struct router_form f;
    struct router *r = NULL;
    int rc = router_form_read(&f, in, err);
    if (rc == OK)
        rc = router_make(&r, &f, in, &kernels_scalar, err); /* which checks a deep one */
    for (size_t i = 0; rc == OK && type >= 0 && f.deep && i < weights_ntensors(f.deep); i++) {
        const struct tensor *t = weights_tensor(f.deep, i);
        if (t->ndim == 2 && deep_reads(t->name) && find_ends(t->name, ".weight") &&
            t->type != W_F32 && t->type != (type == W_Q8_0 ? W_I8 : type))
            rc = err_set(err, ERR_ARG, "%s: tensor %s: expected F32, to be stored as %s, found %s",
                         in, t->name, wtype_name(type), wtype_name(t->type));
    }
    type = type < 0 ? W_F32 : type;
    if (rc == OK && type != W_F32 && !f.deep)
        rc = err_set(err, ERR_ARG, "%s: expected a router of R2R for %s, found one of two layers",
                     in, wtype_name(type));
    f.type = type;
    if (rc == OK && find_ends(out, ".rmlp"))
        rc = rmlp_write(out, &f, router_name(r), err);
    else if (rc == OK)
        rc = router_form_save(out, &f, err);
    router_close(r);
    router_form_close(&f);
    return rc;
}
