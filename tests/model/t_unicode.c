/* t_unicode.c - character classes and NFC are those of Hugging Face's tokenizers 0.23. */
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/unicode.h"
#include "tests/support/test.h"

/* Code points beyond the last range of a table have no class. U+E0067 is a tag, U+E0100 a variation
 * selector. */
static void check_ends(void)
{
    static const uint32_t none[] = { 0xe0000, 0xe0067, 0xe0100, 0xe01f0, 0x10ffff };
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        CHECK(unicode_class(none[i]) == UNICODE_OTHER);
    CHECK(unicode_class(0x323af) == UNICODE_LETTER && unicode_class(0x323b0) == UNICODE_OTHER);
    CHECK(unicode_class(0x1fbf9) == UNICODE_NUMBER && unicode_class(0x1fbfa) == UNICODE_OTHER);
    CHECK(unicode_sure_nfc("x\xf3\xa0\x81\xa7y", 6));
    CHECK(unicode_sure_nfc("\xf3\xa0\x84\x80\xf4\x8f\xbf\xbf", 8));
}

/* Check the number of code points per class in Unicode 16.0, which Oniguruma 6.9.10 has. */
static void check_classes(void)
{
    size_t count[4] = { 0 };
    for (uint32_t c = 0; c < 0x110000; c++)
        if (c < 0xd800 || c > 0xdfff)
            count[unicode_class(c)]++;
    CHECK(count[UNICODE_LETTER] == 141028);
    CHECK(count[UNICODE_NUMBER] == 1911);
    CHECK(count[UNICODE_SPACE] == 25);
    CHECK(unicode_class(0x10d4a) == UNICODE_LETTER); /* since 16.0 */
    CHECK(unicode_class(0x10940) == UNICODE_OTHER);  /* a letter only since 17.0 */
    CHECK(unicode_class(0x11de0) == UNICODE_OTHER);  /* a number only since 17.0 */
}

static void check_nfc(const char *text, const char *want)
{
    struct err err;
    char *out;
    size_t n = strlen(text);
    if (strcmp(text, want) == 0) {
        CHECK(unicode_sure_nfc(text, n));
        return;
    }
    CHECK(!unicode_sure_nfc(text, n));
    CHECK(unicode_nfc(&out, &n, text, n, &err) == OK);
    CHECK(n == strlen(want) && memcmp(out, want, n) == 0);
    free(out);
}

int main(void)
{
    check_ends();
    check_classes();
    check_nfc("e\xcc\x81", "\xc3\xa9");
    check_nfc("\xcc\x81\xcc\xa3", "\xcc\xa3\xcc\x81"); /* U+0323 has the lower class */
    /* U+1DF9 is a mark only since Unicode 10.0, U+11938 a composite only since 13.0. */
    check_nfc("q\xe1\xb7\xb9", "q\xe1\xb7\xb9");
    check_nfc("\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0", "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0");
    return 0;
}
