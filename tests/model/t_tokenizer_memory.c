/* t_tokenizer_memory.c - the demo's tokenizer while each allocation fails in turn: ERR_NOMEM, and
 * no memory leaks. */
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

static const char path[] = "weights/milli/vocabulary.gguf";
static const char text[] =
    "Question: Where would you find a hilava?\xff\n<|endoftext|>e\xcc\x81 12345";

static int open_once(const void *arg)
{
    struct tokenizer *t;
    int rc = tokenizer_open_path(&t, path, NULL);
    (void)arg;
    CHECK((rc == OK) == (t != NULL));
    tokenizer_close(t);
    return rc;
}

static int encode_once(const void *t)
{
    uint32_t *ids;
    size_t count;
    int rc = tokenizer_encode(t, &ids, &count, text, strlen(text), true, NULL);
    CHECK(rc != OK || count > 10);
    if (rc == OK)
        free(ids);
    return rc;
}

int main(void)
{
    struct tokenizer *t;
    struct err err;
    if (access(path, R_OK) != 0)
        SKIP("no %s", path);
    torture_each(open_once, NULL);
    CHECK(tokenizer_open_path(&t, path, &err) == OK);
    torture_each(encode_once, t);
    tokenizer_close(t);
    return 0;
}
