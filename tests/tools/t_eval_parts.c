/* The parts of eval that need no model: lists of policies, the type of the KV cache. */
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/test.h"
#include "tools/eval/eval.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/setup.h"

int main(void)
{
    enum policy list[EVAL_POLICIES];
    size_t n = 0;
    struct err err = { "" };
    CHECK(eval_policies(list, &n, "never,max-prob,mlp", &err) == OK && n == 3);
    CHECK(list[0] == POLICY_NEVER && list[1] == POLICY_MAX_PROB && list[2] == POLICY_MLP);
    CHECK(eval_policies(list, &n, "a,a,a,a,a,a,a,a,a", &err) == ERR_ARG);
    CHECK(eval_policies(list, &n, "mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp", &err) == OK && n == 8);
    CHECK(eval_policies(list, &n, "mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp", &err) == ERR_ARG);
    static const char *const bad[] = {
        "", ",", "mlp,", ",mlp", "mlp ,never", "a-name-that-is-much-too-long-for-any-policy"
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(eval_policies(list, &n, bad[i], &err) == ERR_ARG && strstr(err.msg, "--policy"));

    enum kvcache kv;
    CHECK(setup_kv(&kv, KVCACHE_F16, &err) == OK && kv == KVCACHE_F16);
    engine_options.kv = "q8";
    CHECK(setup_kv(&kv, KVCACHE_F16, &err) == OK && kv == KVCACHE_Q8);
    engine_options.kv = "f8";
    CHECK(setup_kv(&kv, KVCACHE_F16, &err) == ERR_ARG);
    return 0;
}
