/* t_tokenizer_memory.c - the demo's tokenizer while each allocation fails in turn: ERR_NOMEM, and
 * no memory leaks. */
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

enum { MOST = 200 };

static const char path[] = "weights/milli/vocabulary.gguf";
static const char text[] =
    "Question: Where would you find a hilava?\xff\n<|endoftext|>e\xcc\x81 12345";

static void test_open(void)
{
    struct err err;
    int hit = 1;
    for (long n = 1; hit; n++) {
        struct tokenizer *t;
        CHECK(n < MOST);
        torture_begin(n);
        int rc = tokenizer_open_path(&t, path, &err);
        hit = torture_end();
        CHECK(rc == (hit ? ERR_NOMEM : OK) && (rc == OK) == (t != NULL));
        tokenizer_close(t);
        CHECK(torture_live() == 0);
    }
}

static void test_encode(const struct tokenizer *t)
{
    struct err err;
    int hit = 1;
    for (long n = 1; hit; n++) {
        uint32_t *ids;
        size_t count;
        CHECK(n < MOST);
        torture_begin(n);
        int rc = tokenizer_encode(t, &ids, &count, text, strlen(text), true, &err);
        hit = torture_end();
        CHECK(rc == (hit ? ERR_NOMEM : OK));
        if (rc == OK) {
            CHECK(count > 10);
            free(ids);
        }
        CHECK(torture_live() == 0);
    }
}

int main(void)
{
    struct tokenizer *t;
    struct err err;
    if (access(path, R_OK) != 0) {
        printf("SKIP: no %s\n", path);
        return 77;
    }
    test_open();
    CHECK(tokenizer_open_path(&t, path, &err) == OK);
    test_encode(t);
    tokenizer_close(t);
    return 0;
}
