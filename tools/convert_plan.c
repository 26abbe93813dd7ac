#include "tools/convert.h"

#include <string.h>
#include <strings.h>

#include "weights/weights.h"

static const struct convert_target targets[] = {
    { "f32", W_F32, 0 },   { "f16", W_F16, 1 },   { "bf16", W_BF16, 32 },
    { "q8_0", W_Q8_0, 7 }, { "q4_0", W_Q4_0, 2 },
};

const struct convert_target *convert_target(const char *name)
{
    for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++)
        if (strcasecmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
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

int convert_plan_type(int type, const char *head, const char *name, unsigned ndim,
                      const size_t *shape, bool *fell_back)
{
    size_t values = 1, bytes;
    if (!convert_plan_matrix(name, ndim, shape))
        return W_F32;
    if (type == W_Q4_0 && strcmp(name, head) == 0)
        type = W_Q8_0;
    wtype_block(type, &values, &bytes);
    if (shape[ndim - 1] % values == 0)
        return type;
    *fell_back = true;
    return W_F16;
}
