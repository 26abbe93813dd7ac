/* t_convert_plan.c - the types that convert chooses for tensors of all shapes and names. */
#include "tools/convert.h"

#include "tests/support/test.h"
#include "weights/weights.h"

static void test_names(void)
{
    CHECK(!convert_target("q4_") && !convert_target("q4_K_M") && !convert_target(""));
    CHECK(convert_target("BF16")->file_type == 32 && convert_target("q4_0")->type == W_Q4_0);
}

/* Check the type of a tensor with these dimensions (0 ends them), and whether it falls back. */
static void check(int type, const char *name, const size_t shape[4], int want, bool falls)
{
    unsigned ndim = 0;
    bool fell_back = false;
    while (ndim < 4 && shape[ndim])
        ndim++;
    CHECK(convert_plan_type(type, "output.weight", name, ndim, shape, &fell_back) == want);
    CHECK(fell_back == falls);
}

static void test_types(void)
{
    static const int types[] = { W_F32, W_F16, W_BF16, W_Q8_0, W_Q4_0 };
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        int type = types[i], head = type == W_Q4_0 ? W_Q8_0 : type;
        bool blocks = type == W_Q8_0 || type == W_Q4_0;
        check(type, "blk.0.attn_v.weight", (const size_t[4]){ 2, 32 }, type, false);
        check(type, "blk.0.ffn_up.weight", (const size_t[4]){ 2, 1, 256 }, type, false);
        check(type, "token_embd.weight", (const size_t[4]){ 9, 64 }, type, false);
        check(type, "output.weight", (const size_t[4]){ 9, 64 }, head, false);
        check(type, "x.weight", (const size_t[4]){ 3, 33 }, blocks ? W_F16 : type, blocks);
        check(type, "output.weight", (const size_t[4]){ 3, 48 }, blocks ? W_F16 : type, blocks);
        check(type, "x.weight", (const size_t[4]){ 0 }, W_F32, false);
        check(type, "x.weight", (const size_t[4]){ 33 }, W_F32, false);
        check(type, "x.weight", (const size_t[4]){ 1, 256 }, W_F32, false);
        check(type, "x.weight", (const size_t[4]){ 1, 1, 33 }, W_F32, false);
        check(type, "blk.0.attn_q_norm.weight", (const size_t[4]){ 2, 32 }, W_F32, false);
        check(type, "x.table", (const size_t[4]){ 2, 256 }, W_F32, false);
        check(type, "t", (const size_t[4]){ 2, 256 }, W_F32, false);
    }
}

int main(void)
{
    test_names();
    test_types();
    return 0;
}
