#include <string.h>

#include "kernels/sys/base.h"
#include "tools/eval/eval.h"

int eval_policies(enum policy out[EVAL_POLICIES], size_t *n, const char *list, struct err *err)
{
    *n = 0;
    for (const char *p = list;; p++) {
        char name[16];
        size_t len = strcspn(p, ",");
        if (len < sizeof(name)) {
            memcpy(name, p, len);
            name[len] = 0;
        }
        if (len >= sizeof(name) || !policy_parse(&out[*n], name))
            return err_set(err, ERR_ARG,
                           "--policy: expected mlp, context, entropy, max-prob, margin, random, "
                           "always or never, found \"%.*s\"",
                           len < 64 ? (int)len : 64, p);
        ++*n;
        p += len;
        if (!*p)
            return OK;
        if (*n == EVAL_POLICIES)
            return err_set(err, ERR_ARG, "--policy: expected at most %d names", EVAL_POLICIES);
    }
}
