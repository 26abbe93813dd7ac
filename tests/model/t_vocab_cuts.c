/* t_vocab_cuts.c - a vocabulary in JSON that is cut at any byte, has any byte changed, or meets any
 * failing allocation is read or refused in one line. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "tests/support/files.h"
#include "tests/support/letters.h"
#include "tests/support/torture.h"

static const char *folder, *path;
static char text[8192];
static size_t size;

/* Make the file: bytes as GPT-2 writes them, a few more pieces, escapes of all kinds. */
static void make(bool whole)
{
    char *at = text;
    if (!whole)
        at += sprintf(
            at, "{\"x\": \"\\\"{[\",\n \"added_tokens\": [{\"id\": 262, \"content\": \"<e>\"}],"
                "\n\"model\":{\"type\":\"BPE\", \"merges\":[\"h e\",\n[\"he\", \"l\"], "
                "[\"\\u0120\",\"t\"]], \"vocab\" :");
    at += sprintf(at, "{\n");
    for (unsigned b = 0; b < 256; b++) {
        char letter[5];
        letter_of(letter, b);
        if (b == '"' || b == '\\' || b % 3 == 0)
            at += sprintf(at, "\"\\u%04X\": %u , ", (unsigned)letter_code(b), b);
        else
            at += sprintf(at, "\"%s\":%u,\n", letter, b);
    }
    at += sprintf(at, "\"he\":256,\"hel\":257,\"\\u0120t\":258}%s", whole ? "" : "\n}}\n");
    size = (size_t)(at - text);
}

static int opens(const char *p, size_t n, struct err *err)
{
    struct tokenizer *t;
    remove(path); /* a new file, for some file systems write out one that is truncated */
    spill(path, p, n);
    int rc = tokenizer_open_path(&t, folder, err);
    CHECK((rc == OK) == (t != NULL));
    if (rc != OK)
        CHECK(strchr(err->msg, '\n') == NULL && strstr(err->msg, folder));
    tokenizer_close(t);
    return rc;
}

static void check_damage(void)
{
    static char copy[sizeof(text)];
    struct err err;
    size_t fine = 0, lines = 0;
    CHECK(opens(text, size, &err) == OK);
    for (size_t i = 0; i + 3 < size; i++) { /* the end is blanks */
        CHECK(opens(text, i, &err) == ERR_FORMAT);
        lines += strstr(err.msg, "line ") != NULL;
    }
    CHECK(lines + 40 > size);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit += 1 + (int)(i % 3)) {
            memcpy(copy, text, size);
            copy[i] = (char)(copy[i] ^ (1 << bit));
            int rc = opens(copy, size, &err);
            CHECK(rc == OK || rc == ERR_FORMAT);
            fine += rc == OK;
        }
    CHECK(fine > 0 && fine < size);
}

static int open_once(const void *arg)
{
    struct err err;
    struct tokenizer *t;
    int rc = tokenizer_open_path(&t, folder, &err);
    (void)arg;
    CHECK((rc == OK) == (t != NULL));
    tokenizer_close(t);
    return rc;
}

int main(void)
{
    struct err err;
    folder = scratch_folder();
    path = in_scratch("tokenizer.json");
    make(false);
    check_damage();
    CHECK(opens(text, size, &err) == OK);
    torture_some(open_once, NULL);
    remove(path);
    spill(in_scratch("merges.txt"), "h e\nhe l\n", 9);
    path = in_scratch("vocab.json");
    make(true);
    check_damage();
    CHECK(opens(text, size, &err) == OK);
    torture_some(open_once, NULL);
    return 0;
}
