#include "tests/fuzz/fuzz_open.h"

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "weights/weights.h"

void fuzz_open(const char *path)
{
    struct err err = { "" }, no_text = { "" };
    struct weights *w;
    struct model *m = NULL;
    struct tokenizer *t = NULL;
    fuzz_begin();
    int code = weights_open(&w, path, &err);
    if (code == OK) {
        int text = tokenizer_open(&t, w, &no_text);
        CHECK(text == OK || text == ERR_FORMAT || text == ERR_IO);
        code = model_open(&m, w, &kernels_scalar, NULL, NULL, NULL, &err);
        if (m)
            model_fingerprint(m, t);
        model_close(m);
        tokenizer_close(t);
        weights_close(w);
    }
    fuzz_end(code, &err);
}
