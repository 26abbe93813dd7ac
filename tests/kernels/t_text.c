/* t_text.c - UTF-8 by the table of the standard, and which characters may be shown. */
#include "kernels/sys/text.h"

#include "tests/support/test.h"

/* Encode and decode every code point; surrogates and cut characters are invalid. */
static void check_round_trip(void)
{
    for (uint32_t c = 1; c < 0x110000; c++) {
        char s[4];
        uint32_t back;
        bool ok;
        size_t n = text_encode(s, c), got = text_decode(&back, s, n, &ok);
        bool half = c >= 0xd800 && c < 0xe000;
        CHECK(n == text_encoded_length(c) && ok == !half && text_valid(s, n) == !half);
        CHECK(half ? back == 0xfffd && got == 1 : back == c && got == n);
        CHECK(text_shown(s, n) == (text_harmless(c) && !half ? n : 0));
        if (n > 1)
            CHECK(!text_valid(s, n - 1) && text_shown(s, n - 1) == 0);
    }
}

static void check_harmless(void)
{
    static const uint32_t bad[] = { 0,      '\n',   '\t',   0x1b,   0x7f,   0x80,
                                    0x9f,   0x61c,  0x200e, 0x200f, 0x2028, 0x2029,
                                    0x202a, 0x202e, 0x2066, 0x2069, 0x206f, 0xfeff };
    static const uint32_t good[] = { ' ', '~', 0xa0, 0xe9, 0x5d0, 0x200c, 0x200d, 0x4e2d, 0x1f600 };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!text_harmless(bad[i]));
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CHECK(text_harmless(good[i]));
}

static void check_line(const char *text, const char *want)
{
    struct err err;
    CHECK(err_set(&err, ERR_IO, "%s", text) == ERR_IO && strcmp(err.msg, want) == 0);
}

/* True if some bytes after tail[n], n <= 4, give a character that is longer than it. */
static bool completes(const char *tail, size_t n)
{
    static const unsigned char next[] = { 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf };
    for (size_t i = 0; i < 6 * 6 * 6; i++) {
        char s[4 + 3];
        uint32_t c;
        bool ok;
        memcpy(s, tail, n);
        s[n] = (char)next[i % 6];
        s[n + 1] = (char)next[i / 6 % 6];
        s[n + 2] = (char)next[i / 36];
        if (text_decode(&c, s, n + 3, &ok) > n && ok)
            return true;
    }
    return false;
}

/* What text_complete holds back is what further bytes may complete, and nothing else. */
static void check_complete(void)
{
    static const unsigned char bytes[] = { 'a',  0,    0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0,
                                           0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed,
                                           0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff };
    enum { KINDS = sizeof(bytes), ALL = KINDS * KINDS * KINDS * KINDS };
    CHECK(text_complete(NULL, 0) == 0);
    for (size_t i = 0; i < ALL; i++) {
        char s[4];
        size_t at = 0, left = i;
        for (size_t k = 0; k < 4; k++, left /= KINDS)
            s[k] = (char)bytes[left % KINDS];
        for (uint32_t c; at < 4 && !completes(s + at, 4 - at);)
            at += text_decode(&c, s + at, 4 - at, NULL);
        CHECK(text_complete(s, 4) == at);
    }
}

int main(void)
{
    check_complete();
    check_round_trip();
    check_harmless();
    check_line("", "");
    check_line("caf\xc3\xa9 \xe4\xb8\xad", "caf\xc3\xa9 \xe4\xb8\xad");
    check_line("a\nb\x1b[2J", "a?b?[2J");
    check_line("a\xe2\x80\xae"
               "b",
               "a???b"); /* U+202E, which err_set once let through */
    check_line("\xd8\x9c\xef\xbb\xbf", "?????");
    check_line("\xc2\x9b|\xff|\xed\xa0\x80", "??|?|???");
    return 0;
}
