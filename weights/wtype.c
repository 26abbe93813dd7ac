#include <string.h>

#include "weights/weights.h"

/* Numbers, blocks and bytes are those of ggml.h and ggml-common.h; the missing numbers belonged to
 * types that ggml has retired. */
static const struct {
    int type;
    const char *name;
    unsigned short values, bytes;
} types[] = {
    { W_F32, "F32", 1, 4 },         { W_F16, "F16", 1, 2 },
    { W_Q4_0, "Q4_0", 32, 18 },     { W_Q4_1, "Q4_1", 32, 20 },
    { W_Q5_0, "Q5_0", 32, 22 },     { W_Q5_1, "Q5_1", 32, 24 },
    { W_Q8_0, "Q8_0", 32, 34 },     { 9, "Q8_1", 32, 36 },
    { W_Q2_K, "Q2_K", 256, 84 },    { W_Q3_K, "Q3_K", 256, 110 },
    { W_Q4_K, "Q4_K", 256, 144 },   { W_Q5_K, "Q5_K", 256, 176 },
    { W_Q6_K, "Q6_K", 256, 210 },   { 15, "Q8_K", 256, 292 },
    { 16, "IQ2_XXS", 256, 66 },     { 17, "IQ2_XS", 256, 74 },
    { 18, "IQ3_XXS", 256, 98 },     { 19, "IQ1_S", 256, 50 },
    { W_IQ4_NL, "IQ4_NL", 32, 18 }, { 21, "IQ3_S", 256, 110 },
    { 22, "IQ2_S", 256, 82 },       { W_IQ4_XS, "IQ4_XS", 256, 136 },
    { W_I8, "I8", 1, 1 },           { W_I16, "I16", 1, 2 },
    { W_I32, "I32", 1, 4 },         { W_I64, "I64", 1, 8 },
    { W_F64, "F64", 1, 8 },         { 29, "IQ1_M", 256, 56 },
    { W_BF16, "BF16", 1, 2 },       { 34, "TQ1_0", 256, 54 },
    { 35, "TQ2_0", 256, 66 },       { 39, "MXFP4", 32, 17 },
    { 40, "NVFP4", 64, 36 },        { 41, "Q1_0", 128, 18 },
    { 42, "Q2_0", 64, 18 },         { W_U8, "U8", 1, 1 },
    { W_U16, "U16", 1, 2 },         { W_U32, "U32", 1, 4 },
    { W_U64, "U64", 1, 8 },         { W_BOOL, "BOOL", 1, 1 },
    { W_F8_E4M3, "F8_E4M3", 1, 1 }, { W_F8_E5M2, "F8_E5M2", 1, 1 },
};

enum { NTYPES = sizeof(types) / sizeof(*types) };

const char *wtype_name(int type)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (types[i].type == type)
            return types[i].name;
    return NULL;
}

static char wtype_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool wtype_parse(int *type, const char *name)
{
    for (size_t i = 0; i < NTYPES; i++) {
        const char *a = types[i].name, *b = name;
        while (*a && *a == wtype_upper(*b))
            a++, b++;
        if (!*a && !*b) {
            *type = types[i].type;
            return true;
        }
    }
    return false;
}

bool wtype_block(int type, size_t *values, size_t *bytes)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (types[i].type == type) {
            *values = types[i].values;
            *bytes = types[i].bytes;
            return true;
        }
    return false;
}
