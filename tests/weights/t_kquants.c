/* t_kquants.c - decode GGUF's quantised types: blocks made by hand, then the values of a small
 * model as another engine dequantised them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/sha256.h"
#include "tests/support/files.h"
#include "weights/quant.h"
#include "weights/weights.h"

enum { ONE = 0x3c00, HALF = 0x3800, MINUS_TWO = 0xc000 };

static unsigned char block[256];
static float y[256];

static void set16(size_t at, unsigned v)
{
    block[at] = (unsigned char)v;
    block[at + 1] = (unsigned char)(v >> 8);
}

/* Decode the block into y, count the values that are not `rest`, and clear the block. */
static unsigned others(int type, float rest)
{
    size_t values, bytes;
    unsigned n = 0;
    CHECK(wtype_block(type, &values, &bytes) && quant_known(type));
    quant_decode(y, type, block, values);
    for (size_t i = 0; i < values; i++)
        n += y[i] != rest;
    memset(block, 0, sizeof(block));
    return n;
}

static void test_blocks_of_32(void)
{
    set16(0, HALF); /* Q4_1: d, m, nibbles */
    set16(2, MINUS_TWO);
    block[4 + 3] = 0x5f;
    CHECK(others(W_Q4_1, -2) == 2 && y[3] == 5.5f && y[19] == 0.5f);
    set16(0, HALF); /* Q5_0: d, fifth bits, nibbles */
    block[2 + 3] = 0x80;
    block[6 + 15] = 0x21;
    CHECK(others(W_Q5_0, -8) == 2 && y[15] == -7.5f && y[31] == 1);
    set16(0, HALF); /* Q5_1: d, m, fifth bits, nibbles */
    set16(2, ONE);
    block[4 + 1] = 0x02;
    block[8 + 9] = 0x31;
    CHECK(others(W_Q5_1, 1) == 2 && y[9] == 9.5f && y[25] == 2.5f);
    set16(0, HALF); /* IQ4_NL: d, nibbles */
    block[2] = 0xf8;
    CHECK(others(W_IQ4_NL, -63.5f) == 2 && y[0] == 0.5f && y[16] == 56.5f);
}

/* The scales of Q4_K and Q5_K at block[at], [12]: sub-block 2 has scale 33 and minimum 3, sub-block
 * 6 scale 50 and minimum 18. */
static void set_scales(size_t at)
{
    block[at + 2] = 33 | (50 >> 4) << 6;
    block[at + 6] = 3 | (18 >> 4) << 6;
    block[at + 10] = (50 & 15) | (18 & 15) << 4;
}

static void test_q4_k_and_q5_k(void)
{
    set16(0, HALF);
    set16(2, ONE);
    set_scales(4);
    block[16 + 32 + 1] = 0x07; /* sub-block 2, value 1 */
    block[16 + 96 + 31] = 0x02;
    CHECK(others(W_Q4_K, 0) == 64 && y[64] == -3 && y[65] == 33 * 3.5f - 3);
    CHECK(y[95] == -3 && y[192] == -18 && y[223] == 50 - 18 && y[224] == 0);
    set16(0, HALF);
    set16(2, ONE);
    set_scales(4);
    block[16 + 1] = 0x04;  /* fifth bit of sub-block 2, value 1 */
    block[16 + 31] = 0x40; /* and of sub-block 6, value 31 */
    block[48 + 32 + 1] = 0x07;
    CHECK(others(W_Q5_K, 0) == 64 && y[64] == -3 && y[65] == 33 * 11.5f - 3);
    CHECK(y[192] == -18 && y[223] == 50 * 8 - 18);
}

static void test_q2_k_and_q3_k(void)
{
    set16(80, HALF);
    set16(82, ONE);
    block[11] = 0x26;               /* sub-block 11: scale 6, minimum 2 */
    block[16 + 32 + 16 + 5] = 0x0c; /* the second pair of bits of the second half */
    CHECK(others(W_Q2_K, 0) == 16 && y[176] == -2 && y[181] == 3 * 3 - 2);
    /* Q3_K: scales are 0 where bits say 32, so all others stay zero */
    set16(108, HALF);
    memset(block + 96 + 8, 0xaa, 4);
    block[96 + 3] = 0x90;     /* sub-block 11: 9 + 32 - 32 */
    block[32 + 32 + 16] = 12; /* value 0 of the sub-block: 3 - 4 */
    block[16 + 1] = 0x20;     /* value 1 of the sub-block: 4 - 4 */
    CHECK(others(W_Q3_K, 0) == 15 && y[176] == -4.5f && y[177] == 0 && y[178] == -18);
}

static void test_q6_k_and_iq4_xs(void)
{
    set16(208, HALF);
    block[192 + 13] = 0x80;          /* sub-block 13 (third run of the second half): -128 */
    block[64 + 16 + 2] = 0x70;       /* its third value: low bits 7 */
    block[128 + 32 + 16 + 2] = 0x20; /* and high bits 2 */
    CHECK(others(W_Q6_K, 0) == 16 && y[208] == 64 * 32 && y[210] == -64 * 7);
    set16(0, HALF);
    set16(2, 0xaa6a); /* sub-block 3: 16 + 15 - 32, others 0 */
    block[4 + 1] = 0xf0;
    block[8 + 48 + 4] = 0x0f;
    CHECK(others(W_IQ4_XS, 0) == 32 && y[96] == 63.5f && y[100] == -56.5f);
}

/* A tensor is decoded from any block on; anything else and other types are refused by name. */
static void test_floats(void)
{
    struct err err;
    struct tensor t = { .name = "t", .type = W_Q4_K, .ndim = 2, .shape = { 1, 512 } };
    static unsigned char two[288];
    t.data = two;
    t.bytes = sizeof(two);
    two[144 + 1] = two[144 + 3] = 0x3c; /* d and dmin of the second block */
    two[144 + 4] = two[144 + 8] = 1;
    CHECK(weights_floats(y, &t, 256, 256, "f.gguf", &err) == OK && y[0] == -1 && y[32] == 0);
    CHECK(weights_floats(y, &t, 32, 256, "f.gguf", &err) == ERR_FORMAT);
    CHECK(weights_floats(y, &t, 256, 32, "f.gguf", &err) == ERR_FORMAT);
    static const int no[] = { 9, 15, 16, 17, 18, 19, 21, 22, 29, 34, 35, 39, 40, W_I32, W_F8_E4M3 };
    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
        char found[64];
        t.type = no[i];
        snprintf(found, sizeof(found), "IQ4_XS, found %s", wtype_name(no[i]));
        CHECK(weights_floats(y, &t, 0, 256, "f.gguf", &err) == ERR_FORMAT);
        CHECK(strncmp(err.msg, "f.gguf: tensor t: expected F64", 30) == 0);
        CHECK(strcmp(strstr(err.msg, "IQ4_XS"), found) == 0);
        strcat(found, "; take a Q4_K_M");
        CHECK(quant_refuse("f.gguf", &t, &err) == ERR_FORMAT && strstr(err.msg, found));
        CHECK(strncmp(err.msg, "f.gguf: tensor t: expected F32", 30) == 0);
    }
}

/* Compare one tensor with the hash of its values. */
static void check_hash(const struct tensor *t, const char *type, const char *hash)
{
    struct err err;
    size_t values, bytes, n;
    char found[SHA256_HEX];
    CHECK(t && strcmp(wtype_name(t->type), type) == 0 && wtype_block(t->type, &values, &bytes));
    n = t->bytes / bytes * values;
    float *x = malloc(n * sizeof(*x));
    CHECK(x && weights_floats(x, t, 0, n, "f.gguf", &err) == OK);
    sha256_hex(found, x, n * sizeof(*x));
    CHECK_MSG(strcmp(found, hash) == 0, "%s of type %s: %s", t->name, type, found);
    free(x);
}

/* Check every line of golden.tsv: file, tensor, type, hash. */
static bool test_golden(void)
{
    char line[512], open_file[128] = "";
    struct weights *w = NULL;
    struct err err;
    unsigned n = 0;
    FILE *f = fopen(test_data("weights/kquants/golden.tsv"), "r");
    if (!f)
        return false;
    while (fgets(line, sizeof(line), f)) {
        char file[128], name[128], type[16], hash[SHA256_HEX];
        CHECK(sscanf(line, "%127s %127s %15s %64s", file, name, type, hash) == 4);
        if (strcmp(file, open_file) != 0) {
            weights_close(w);
            snprintf(open_file, sizeof(open_file), "%s", file);
            CHECK(weights_open(&w, test_data("weights/kquants/%s", file), &err) == OK);
        }
        check_hash(weights_find(w, name), type, hash);
        n++;
    }
    weights_close(w);
    fclose(f);
    printf("%u tensors as another engine dequantised them\n", n);
    return true;
}

int main(void)
{
    test_blocks_of_32();
    test_q4_k_and_q5_k();
    test_q2_k_and_q3_k();
    test_q6_k_and_iq4_xs();
    test_floats();
    if (!test_golden())
        SKIP("no weights/kquants/golden.tsv at $MIZZLE_TESTDATA (default ../shared/data)");
    return 0;
}
