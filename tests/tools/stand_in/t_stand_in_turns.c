/* The turns of the engine: a question that fails ends alone, and a known text is told in one go,
 * without waiting for passes of the model. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/stand_in/engine.h"
#include "tools/stand_in/stand_in.h"

enum { LONG = 200, ROUNDS = 5, SAID = 40 };

static char path[] = "/tmp/mizzle_turns_XXXXXX";
static struct stand_in_engine *engine;

static struct stand_in_job *ask(const uint32_t *prompt, size_t n, size_t max)
{
    const struct stand_in_wish wish = {
        .prompt = prompt, .n = n, .max = max, .go_on = true, .slot = -1
    };
    struct stand_in_job *j;
    struct err err;
    CHECK(stand_in_engine_ask(engine, &j, &wish, &err) == OK);
    return j;
}

/* Ask for a long text from the model, and return when it is in progress. */
static struct stand_in_job *begin_long(void)
{
    static const uint32_t prompt[] = { 7, 8, 9 };
    struct stand_in_job *j = ask(prompt, 3, LONG);
    CHECK(stand_in_engine_wait(j, 0, 60000).n > 0);
    return j;
}

static struct stand_in_text finish(struct stand_in_job *j)
{
    struct stand_in_text t;
    do
        t = stand_in_engine_wait(j, LONG, 60000);
    while (!t.finished);
    return t;
}

/* The model has no row for an id: its question fails, the one in the same pass does not. */
static void test_alone(void)
{
    static const uint32_t wrong[] = { 7, 8, 9, TINY_VOCAB + 5 };
    for (int i = 0; i < ROUNDS; i++) {
        struct stand_in_job *fine = begin_long(), *bad = ask(wrong, 4, 3);
        struct stand_in_text t = finish(bad);
        CHECK(t.rc == ERR_ARG && t.n == 0);
        t = finish(fine);
        CHECK(t.rc == OK && t.n == LONG);
        stand_in_engine_drop(bad);
        stand_in_engine_drop(fine);
    }
}

/* Between the first and the last token of a known text, the model has computed none. */
static void test_told(void)
{
    uint32_t *prompt;
    size_t n, between = 0;
    struct err err;
    const struct tokenizer *tok = stand_in_engine_tokenizer(engine);
    CHECK(tokenizer_encode(tok, &prompt, &n, "Where?", 6, false, &err) == OK);
    for (int i = 0; i < ROUNDS; i++) {
        struct stand_in_job *model = begin_long(), *told = ask(prompt, n, SAID);
        struct stand_in_text t = finish(told), m = finish(model);
        CHECK(t.rc == OK && t.n == SAID && m.rc == OK && m.n == LONG);
        for (size_t k = 0; k < m.n; k++)
            between += m.at[k] > t.at[0] && m.at[k] < t.at[t.n - 1];
        stand_in_engine_drop(told);
        stand_in_engine_drop(model);
    }
    CHECK(between == 0);
    free(prompt);
}

int main(void)
{
    static const char say[] =
        "{\"prompt\":\"Where?\",\"text\":\" In the lake, where every fish that "
        "we know of is found, and some others, too.\"}\n";
    const char *model = tiny_make();
    const struct stand_in_options o = { .model = model, .threads = 1, .slots = 4, .say = path };
    struct err err;
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, say, strlen(say)) == (ssize_t)strlen(say) && close(fd) == 0);
    CHECK(stand_in_engine_open(&engine, model, &o, &err) == OK);
    test_alone();
    test_told();
    stand_in_engine_close(engine);
    unlink(path);
    tiny_remove();
    return 0;
}
