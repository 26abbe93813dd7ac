/* deep_file.c - how a router of several layers lies in a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "router/deep.h"
#include "weights/quant.h"
#include "weights/safetensors.h"
#include "weights/weights.h"

enum { SCALE = 2, BLOCK = SCALE + GROUP }; /* bytes of a block of Q8_0 */

bool deep_reads(const char *tensor)
{
    static const char *const begin[] = { "backbone.", "combined_projection.", "logits_projection.",
                                         "hidden_states_projection.", "layer_norm" };
    for (size_t i = 0; i < sizeof(begin) / sizeof(*begin); i++)
        if (strncmp(tensor, begin[i], strlen(begin[i])) == 0)
            return true;
    return false;
}

/* Turn a matrix of F32 into one of BF16, or, as safetensors has no Q8_0, into I8 [rows][cols] and
 * NAME_scale, F16 [rows][cols / 32]: t[2], *n of which are used. *room is what they lie in,
 * malloc'ed. */
static int deep_narrow(struct tensor t[2], size_t *n, void **room, int type, const char *path,
                       struct err *err)
{
    size_t count = t->bytes / sizeof(float), groups = count / GROUP, name = strlen(t->name);
    float *x = malloc(t->bytes);
    unsigned char *to = malloc(2 * count), *q = *room = malloc(2 * count + name + sizeof("_scale"));
    int rc = x && to && q ? weights_floats(x, t, 0, count, path, err)
                          : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (rc == OK)
        quant_encode(type == W_BF16 ? q : to, type, x, count);
    if (rc == OK && type == W_Q8_0) {
        unsigned char *scale = q + count;
        for (size_t g = 0; g < groups; g++) {
            memcpy(scale + g * SCALE, to + g * BLOCK, SCALE);
            memcpy(q + g * GROUP, to + g * BLOCK + SCALE, GROUP);
        }
        char *scales = (char *)scale + groups * SCALE;
        memcpy(scales, t->name, name);
        memcpy(scales + name, "_scale", sizeof("_scale"));
        t[1] = (struct tensor){ scales, W_F16,         2, { t->shape[0], t->shape[1] / GROUP },
                                scale,  groups * SCALE };
    }
    t->type = type == W_Q8_0 ? W_I8 : type;
    t->bytes = type == W_Q8_0 ? count : 2 * count;
    t->data = q;
    *n = type == W_Q8_0 ? 2 : 1;
    free(x);
    free(to);
    return rc;
}

int deep_save(const char *path, const struct weights *w, int type, const char *const *meta,
              struct err *err)
{
    size_t n = 0, all = weights_ntensors(w);
    struct tensor *list = calloc(2 * all, sizeof(*list));
    void **room = calloc(all, sizeof(*room));
    int rc = list && room ? OK : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    for (size_t i = 0, more; rc == OK && i < all; i++, n += more) {
        struct tensor *t = &list[n];
        *t = *weights_tensor(w, i);
        more = deep_reads(t->name);
        bool whole = t->ndim == 2 && t->shape[0] > 1 && t->shape[1] % GROUP == 0;
        if (more && type != W_F32 && t->type == W_F32 && t->ndim == 2 && (type == W_BF16 || whole))
            rc = deep_narrow(t, &more, &room[i], type, path, err);
    }
    if (rc == OK)
        rc = safetensors_write(path, list, n, meta, err);
    for (size_t i = 0; room && i < all; i++)
        free(room[i]);
    free(room);
    free(list);
    return rc;
}

int deep_blocks(struct tensor *t, const struct tensor *scale, const char *path, struct err *err)
{
    size_t groups = t->shape[1] / GROUP, blocks = t->shape[0] * groups;
    const unsigned char *q = t->data, *d = scale->data;
    t->data = NULL;
    if (scale->type != W_F16 || t->shape[1] % GROUP)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor %s: expected F16 for each %d columns, found %s for %zu", path,
                       scale->name, GROUP, wtype_name(scale->type), t->shape[1]);
    unsigned char *to = malloc(blocks * BLOCK);
    if (!to)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    t->type = W_Q8_0;
    t->data = to;
    t->bytes = blocks * BLOCK;
    for (size_t i = 0; i < blocks; i++) {
        memcpy(to + i * BLOCK, d + i * SCALE, SCALE);
        memcpy(to + i * BLOCK + SCALE, q + i * GROUP, GROUP);
    }
    return OK;
}
