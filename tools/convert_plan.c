#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/convert_plan.h"

static const struct convert_target targets[] = {
    { "f32", W_F32, false, 0 },     { "f16", W_F16, false, 1 },    { "bf16", W_BF16, false, 32 },
    { "q8_0", W_Q8_0, false, 7 },   { "q4_0", W_Q4_0, false, 2 },  { "q4_1", W_Q4_1, false, 3 },
    { "q5_0", W_Q5_0, false, 8 },   { "q5_1", W_Q5_1, false, 9 },  { "q4_K", W_Q4_K, false, 14 },
    { "q5_K", W_Q5_K, false, 16 },  { "q6_K", W_Q6_K, false, 18 }, { "q4_K_M", W_Q4_K, true, 15 },
    { "q5_K_M", W_Q5_K, true, 17 },
};

enum { TARGETS = sizeof(targets) / sizeof(*targets) };

const struct convert_target *convert_target(const char *name)
{
    for (size_t i = 0; i < TARGETS; i++)
        if (strcasecmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}

const char *convert_target_names(void)
{
    return "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_K, q5_K, q6_K, q4_K_M or q5_K_M";
}

/* Return true and the layer if the name is "blk.LAYER.REST". */
static bool layer_of(const char *name, size_t *layer)
{
    char *end;
    if (strncmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9')
        return false;
    *layer = (size_t)strtoull(name + 4, &end, 10);
    return *end == '.' && *layer < SIZE_MAX;
}

void convert_plan_model(struct convert_plan *p, const struct weights *w)
{
    enum { BIG_LAYERS = 80 };
    struct str arch = { "", 0 };
    weights_str(w, "general.architecture", &arch);
    p->tied = !weights_find(w, "output.weight");
    p->layers = 0;
    for (size_t i = 0, layer; i < weights_ntensors(w); i++)
        if (layer_of(weights_tensor(w, i)->name, &layer) && layer >= p->layers)
            p->layers = layer + 1;
    p->big = p->layers == BIG_LAYERS && !(arch.n == 5 && memcmp(arch.p, "qwen3", 5) == 0);
}

/* The first and last eighth of the layers, and every third between them. */
static bool more_bits(size_t layer, size_t layers)
{
    size_t eighth = layers / 8;
    return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

/* Choose the type of a matrix before its row length is considered. */
static int preferred_type(const struct convert_plan *p, const char *name, size_t cols)
{
    int type = p->target->type;
    size_t layer = 0, values, bytes;
    if (p->pure || !wtype_block(type, &values, &bytes) || values == 1)
        return type;
    if (strcmp(name, p->tied ? "token_embd.weight" : "output.weight") == 0)
        return cols % 256 || type == W_Q8_0 ? W_Q8_0 : W_Q6_K;
    bool layered = layer_of(name, &layer);
    bool value = layered && strstr(name, ".attn_v.weight");
    bool down = layered && strstr(name, ".ffn_down.weight");
    if (p->target->mix && (value || down) && more_bits(layer, p->layers))
        return W_Q6_K;
    if (value && type == W_Q4_K && p->big) /* eight heads share each value head */
        return W_Q5_K;
    /* Weights can lead a search with one scale astray in the first layers. */
    if (down && p->weighted && layer < p->layers / 8)
        return type == W_Q4_0 ? W_Q4_1 : type == W_Q5_0 ? W_Q5_1 : type;
    return type;
}

/* True for a tensor that is a matrix and whose name is that of weights, except a norm's. */
static bool convert_plan_matrix(const char *name, unsigned ndim, const size_t *shape)
{
    static const char end[] = "weight";
    size_t len = strlen(name), n = sizeof(end) - 1;
    bool rows = false;
    for (unsigned i = 0; i + 1 < ndim; i++)
        rows = rows || shape[i] != 1;
    return rows && len >= n && strcmp(name + len - n, end) == 0 && !strstr(name, "_norm.weight");
}

int convert_plan_type(const struct convert_plan *p, const char *name, unsigned ndim,
                      const size_t *shape, bool *fell_back)
{
    size_t values = 1, bytes, cols = ndim ? shape[ndim - 1] : 1;
    if (!convert_plan_matrix(name, ndim, shape))
        return W_F32;
    int type = preferred_type(p, name, cols);
    wtype_block(type, &values, &bytes);
    if (cols % values == 0)
        return type;
    *fell_back = true;
    if (cols % 32)
        return W_F16;
    return type == W_Q4_K ? W_Q5_0 : type == W_Q5_K ? W_Q5_1 : W_Q8_0;
}
