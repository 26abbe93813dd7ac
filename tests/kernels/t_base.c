/* t_base.c - status text, checked sizes, SHA-256, and the choice of an instruction set. */
#include "kernels/sys/cpu.h"
#include "kernels/sys/sha256.h"
#include "kernels/kernels.h"
#include "tests/support/test.h"

/* Control characters are replaced, long text is truncated, and err may be NULL. */
static void errors(void)
{
    struct err e;
    CHECK(err_set(&e, ERR_FORMAT, "%s: bad magic %d", "a\nb\x7f\x1b", 7) == ERR_FORMAT);
    CHECK(!strcmp(e.msg, "a?b??: bad magic 7"));
    CHECK(err_set(NULL, ERR_IO, "nobody reads this") == ERR_IO);
    char lengthy[2 * sizeof(e.msg)];
    memset(lengthy, 'x', sizeof(lengthy));
    lengthy[sizeof(lengthy) - 1] = 0;
    err_set(&e, ERR_ARG, "%s", lengthy);
    CHECK(strlen(e.msg) == sizeof(e.msg) - 1);
}

static void sizes(void)
{
    size_t v = 42;
    CHECK(size_add(&v, SIZE_MAX - 1, 1) && v == SIZE_MAX);
    CHECK(!size_add(&v, SIZE_MAX, 1) && v == SIZE_MAX);
    CHECK(size_mul(&v, SIZE_MAX / 2, 2) && v == SIZE_MAX - 1);
    CHECK(!size_mul(&v, SIZE_MAX / 2 + 1, 2) && v == SIZE_MAX - 1);
    CHECK(size_mul(&v, 0, SIZE_MAX) && v == 0);
    CHECK(size_mul(&v, SIZE_MAX, 0) && v == 0);
    CHECK(size_align(&v, 65, 64) && v == 128);
    CHECK(size_align(&v, 64, 64) && v == 64);
    CHECK(!size_align(&v, SIZE_MAX, 64) && v == 64);
    CHECK(size_within(0, 0, 0) && size_within(3, 7, 10));
    CHECK(!size_within(3, 8, 10) && !size_within(11, 0, 10) && !size_within(3, SIZE_MAX, 10));
}

/* Sizes that a file could state, those that overflow included. */
static void panel_sizes(void)
{
    size_t panel, total;
    CHECK(panels_bytes(&panel, &total, P_F32, 17, 3) && panel == 192 && total == 384);
    CHECK(panels_bytes(&panel, &total, P_BF16, 16, 3) && panel == 128 && total == 128);
    CHECK(panels_bytes(&panel, &total, P_Q8, 1, 96) && panel == 2176 && total == 2176);
    CHECK(panels_bytes(&panel, &total, P_Q4, 33, 64) && panel == 576 && total == 3 * 576);
    CHECK(!panels_bytes(&panel, &total, P_Q8, 16, 33));
    CHECK(!panels_bytes(&panel, &total, P_Q4, 16, 16));
    CHECK(!panels_bytes(&panel, &total, P_F32, 16, 0));
    CHECK(!panels_bytes(&panel, &total, P_F32, SIZE_MAX, 64));
    CHECK(!panels_bytes(&panel, &total, P_F32, 16, SIZE_MAX / 32));
    CHECK(panels_count(0) == 0 && panels_count(1) == 1 && panels_count(16) == 1 &&
          panels_count(17) == 2 && panels_count(SIZE_MAX) == SIZE_MAX / 16 + 1);
}

/* Any name in the list of sets is accepted if the set runs here; others are refused by name. */
static void picks(void)
{
    struct kernels k;
    struct err e;
    unsigned cpu = cpu_detect();
    CHECK(kernels_pick(&k, NULL, cpu, &e) == OK && !(k.needs & CPU_INEXACT));
    CHECK(kernels_pick(&k, NULL, 0, &e) == OK && !strcmp(k.isa, "scalar"));
    for (size_t i = 0; i < kernels_nsets; i++) {
        const char *isa = kernels_sets[i]->isa;
        int want = kernels_ready(kernels_sets[i], cpu) ? OK : ERR_ARG;
        CHECK(kernels_pick(&k, isa, cpu, &e) == want);
        CHECK(want || !strcmp(k.isa, isa));
        CHECK(kernels_pick(&k, isa, 0, &e) == (i ? ERR_ARG : OK));
#define X(op) CHECK(k.op);
        KERNEL_OPS(X)
#undef X
    }
    CHECK(kernels_pick(&k, "z80", cpu, &e) == ERR_ARG);
    CHECK(strstr(e.msg, "found z80") && strstr(e.msg, "scalar"));
    CHECK(*cpu_name());
}

/* The family decides how products walk; items after the name fix parts of it. */
static void tunes(void)
{
    char bad[] = ",;,panels;,panels=;,panels=0;,panels=3;,run=0;,run=-1;,ahead=1x;,ahead=1048577;"
                 ",size=1;scalar,panels=1,;scalar, panels=1;,run=99999999999999999999";
    const struct tune amd = TUNE_AMD(0), codes = TUNE_AMD(8192), other = TUNE_DEFAULT;
    struct kernels k;
    struct err e;
    CHECK(kernels_pick(&k, NULL, CPU_AMD, &e) == OK && !k.tune_fixed);
    CHECK(!memcmp(&k.tune[P_Q4], &amd, sizeof(amd)));
    CHECK(!memcmp(&k.tune[P_Q4_K], &codes, sizeof(codes)));
    CHECK(kernels_pick(&k, "scalar", 0, &e) == OK && !memcmp(&k.tune[P_Q8], &other, sizeof(other)));
    CHECK(kernels_pick(&k, ",panels=1", 0, &e) == OK && !strcmp(k.isa, "scalar"));
    CHECK(k.tune_fixed && k.tune[P_F32].panels == 1 && k.tune[P_F32].run == other.run &&
          k.tune[P_F32].ahead == other.ahead);
    CHECK(kernels_pick(&k, "scalar,ahead=64,run=9,panels=2", CPU_AMD, &e) == OK);
    for (size_t i = 0; i < P_TYPES; i++)
        CHECK(k.tune[i].panels == 2 && k.tune[i].run == 9 && k.tune[i].ahead == 64);
    for (char *p = strtok(bad, ";"); p; p = strtok(NULL, ";"))
        CHECK(kernels_pick(&k, p, 0, &e) == ERR_ARG && strstr(e.msg, "expected"));
    CHECK(kernels_pick(&k, "z80,panels=1", 0, &e) == ERR_ARG && strstr(e.msg, "z80"));
    CHECK(kernels_pick(&k, "panels=2", 0, &e) == ERR_ARG && strstr(e.msg, "',panels=2'"));
}

/* The examples of FIPS 180-4 (NIST's "Example Values"), and a text around the size of a block in
 * pieces of every length. */
static void hashes(void)
{
    static const struct {
        const char *text, *hash;
    } known[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
          "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
    };
    char hex[SHA256_HEX], again[SHA256_HEX];
    unsigned char hash[SHA256_BYTES], text[150];
    struct sha256 s;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        sha256_hex(hex, known[i].text, strlen(known[i].text));
        CHECK(!strcmp(hex, known[i].hash));
    }
    sha256_begin(&s);
    for (size_t i = 0; i < 1000000; i++)
        sha256_add(&s, "a", 1);
    sha256_end(hash, &s);
    sha256_text(hex, hash);
    CHECK(!strcmp(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (unsigned char)(i * 7);
    for (size_t n = 0; n <= sizeof(text); n++) {
        sha256_hex(hex, text, n);
        for (size_t step = 1; step <= n; step += 13) {
            sha256_begin(&s);
            for (size_t at = 0; at < n; at += step)
                sha256_add(&s, text + at, step < n - at ? step : n - at);
            sha256_end(hash, &s);
            sha256_text(again, hash);
            CHECK(!strcmp(hex, again));
        }
    }
    char path[] = "/tmp/t_base_XXXXXX";
    int fd = mkstemp(path);
    unsigned char big[9001] = { 1, 2, 3 };
    CHECK(fd >= 0 && write(fd, big, sizeof(big)) == (ssize_t)sizeof(big) && !close(fd));
    sha256_hex(hex, big, sizeof(big));
    CHECK(sha256_file(again, path) && !strcmp(hex, again));
    CHECK(!unlink(path) && !sha256_file(again, path) && !*again);
}

int main(void)
{
    errors();
    sizes();
    hashes();
    panel_sizes();
    picks();
    tunes();
    return 0;
}
