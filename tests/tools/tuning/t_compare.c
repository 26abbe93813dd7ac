/* `bench kernels --compare`: intervals worked out by hand and on simulated times, and files that
 * are not what they should be. */
#include "tests/support/test.h"
#include "tools/lab/tuning/compare.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* With six rounds the interval is all of them, 1 - 2 / 64; with five it would miss one time in 16.
 * With nine, the outer one on each side is left out. */
static void check_rounds(void)
{
    const double before[] = { 10, 20, 10, 10, 10, 10, 10, 10, 10 };
    const double after[] = { 9, 16, 8.5, 9.5, 8.8, 9.1, 30, 8.2, 8.9 };
    struct compare_ratio r;
    CHECK(compare_rounds(&r, before, after, 5) && !r.known && near(r.ratio, 0.88));
    CHECK(compare_rounds(&r, before, after, 6) && r.known && near(r.ratio, 0.89));
    CHECK(near(r.low, 0.8) && near(r.high, 0.95));
    CHECK(compare_rounds(&r, before, after, 9) && r.known && near(r.ratio, 0.89));
    CHECK(near(r.low, 0.82) && near(r.high, 0.95));
    CHECK(compare_rounds(&r, before, after, 1) && !r.known && near(r.ratio, 0.9));
    enum { MANY = 2000 }; /* 955 on each side: 1000 - 1.96 * sqrt(2000) / 2, and one more */
    static double one[MANY], rising[MANY];
    for (size_t i = 0; i < MANY; i++) {
        one[i] = 1;
        rising[i] = (double)(i + 1);
    }
    CHECK(compare_rounds(&r, one, rising, MANY) && r.known && near(r.ratio, 1000.5));
    CHECK(near(r.low, 956) && near(r.high, 1045));
}

/* Of pairs that are alike, about one in 20 or fewer may look different; a tenth is seen. */
static void check_chance(void)
{
    enum { TURNS = 1000, EACH = 9 };
    size_t wrong = 0, seen = 0;
    for (uint64_t i = 0; i < TURNS; i++) {
        double a[EACH], b[EACH], slower[EACH];
        struct compare_ratio r;
        for (uint64_t k = 0; k < EACH; k++) {
            double minute = 1 + rand_unit(1, i * EACH + k); /* the machine, the same for both */
            a[k] = minute * (1 + 0.05 * rand_unit(2, i * EACH + k));
            b[k] = minute * (1 + 0.05 * rand_unit(3, i * EACH + k));
            slower[k] = 1.1 * b[k];
        }
        CHECK(compare_rounds(&r, a, b, EACH) && r.known);
        wrong += r.low > 1 || r.high < 1;
        CHECK(compare_rounds(&r, a, slower, EACH));
        seen += r.low > 1;
    }
    CHECK(wrong <= TURNS / 20 && wrong > 0 && seen > TURNS * 99 / 100);
}

static const char *paths[2];

/* Write one of the two files. */
static void write_file(int which, const char *text)
{
    spill(paths[which], text, strlen(text));
}

#define ROW_OF(isa, op, shape, cpu, ns)                                                         \
    "{\"op\": \"" op "\", \"isa\": \"" isa "\", \"shape\": \"" shape "\", \"cpu_info\": \"" cpu \
    "\", \"ns\": " ns ", \"on_cpu\": 0.5}\n"
#define ROW(op, shape, cpu, ns) ROW_OF("avx2", op, shape, cpu, ns)

static struct err err;

static const char *compared[2];
static int compared_rc;

static void compare_them(void)
{
    compared_rc = compare_kernels(compared[0], compared[1], &err);
}

/* Compare two files; return what is printed, in static storage. */
static const char *printed_of(const char *before, const char *after, int want)
{
    compared[0] = before;
    compared[1] = after;
    const char *text = printed(compare_them);
    CHECK_MSG(compared_rc == want && (want == OK || (!*text && !strchr(err.msg, '\n'))),
              "%d, expected %d: %s\n%s", compared_rc, want, err.msg, text);
    return text;
}

/* Compare the two files. */
static const char *printed_files(int want)
{
    return printed_of(paths[0], paths[1], want);
}

/* Six rounds of one row, which stand as lines in one file and as arrays in the other. */
static void check_table(void)
{
    char lines[4096] = "", arrays[4096] = "";
    for (int i = 0; i < 6; i++) {
        snprintf(lines + strlen(lines), 512, ROW("matmul_q8", "gate", "C1", "%d"), 2000000 + i);
        snprintf(arrays + strlen(arrays), 512, "[" ROW("matmul_q8", "gate", "C1", "%d") "]",
                 1000000 + i);
    }
    strcat(lines, ROW("matmul_q8", "head", "C1", "5"));
    strcat(lines, ROW("add_f32", "896", "C1", "5"));
    strcat(arrays, ROW("add_f32", "896", "C1", "6"));
    strcat(arrays, ROW("add_f32", "896", "C1", "7"));
    write_file(0, lines);
    write_file(1, arrays);
    const char *text = printed_files(OK);
    CHECK(!strncmp(text, "C1, one thread, us a call: ", 27));
    CHECK(strstr(text, "\n  gate                       avx2             2000       1000  "
                       "-50.0 % (-50.0 to -50.0) ?\n"));
    CHECK(strstr(text, "too few to tell ?\n") && !strstr(text, "head"));
    CHECK(strstr(text, "Medians of 6 rounds; 95 % intervals"));
    CHECK(strstr(text, "Rows with more rounds in one file: 1; the first ones count.\n"));
    CHECK(strstr(text, "Rows with ?, which other programs disturbed: 2.\n"));
    char only[256];
    snprintf(only, sizeof(only), "Rows that only %s has: 1; only %s: 0.\n", paths[0], paths[1]);
    CHECK(strstr(text, only));
    write_file(1, lines);
    text = printed_files(OK);
    CHECK(strstr(text, "  no difference seen (+0.0 to +0.0 %) ?\n") && !strstr(text, "that only"));
}

/* Two sets of one file, in any order; a file whose own name ends in a colon and a word. */
static void check_sets(void)
{
    char text[4096] = "", first[80], second[80];
    for (int i = 0; i < 6; i++) {
        snprintf(text + strlen(text), 512, ROW_OF("avx2", "add_f32", "896", "C1", "%d"), 3000 + i);
        snprintf(text + strlen(text), 512, ROW_OF("mine", "add_f32", "896", "C1", "%d"), 1500 + i);
    }
    strcat(text, ROW("matmul_q8", "head", "C1", "5"));
    write_file(0, text);
    snprintf(first, sizeof(first), "%s:avx2", paths[0]);
    snprintf(second, sizeof(second), "%s:mine", paths[0]);
    const char *out = printed_of(first, second, OK);
    CHECK(strstr(out, "0.json:avx2, then build/") && strstr(out, "0.json:mine\n"));
    CHECK(strstr(out, "\nadd_f32                                       avx2       mine\n"));
    CHECK(strstr(out, "  896                                        3.002      1.502  -50.0 % ("));
    CHECK(strstr(out, "0.json:avx2 has: 1; only build/") && strstr(out, "0.json:mine: 0.\n"));
    CHECK(strstr(printed_of(second, first, OK), "  +99.8 % ("));
    printed_of(first, paths[0], ERR_ARG);
    printed_of(paths[0], second, ERR_ARG);
    strcpy(strrchr(second, ':'), ":none");
    printed_of(first, second, ERR_FORMAT);
    CHECK(strstr(err.msg, " with the set none, found none"));
    CHECK(rename(paths[0], second) == 0);
    CHECK(strstr(printed_of(second, second, OK), " avx2 ") && remove(second) == 0);
    printed_of(second, second, ERR_IO);
}

/* Files of as many rows as a night of rounds leaves; the time must not grow with their square. */
static void check_many(void)
{
    enum { SHAPES = 100, TIMES = 300 };
    FILE *f = fopen(paths[0], "w");
    CHECK(f);
    for (int i = 0; i < SHAPES * TIMES; i++)
        CHECK(fprintf(f, ROW("matmul_q8", "shape %d", "C1", "1000"), i % SHAPES) > 0);
    CHECK(fclose(f) == 0);
    const char *out = printed_of(paths[0], paths[0], OK);
    CHECK(strstr(out, "  shape 99  ") && strstr(out, "Medians of 300 rounds;"));
}

static void check_refused(void)
{
    const char *good = ROW("matmul_q8", "gate", "C1", "4");
    write_file(0, good);
    write_file(1, good);
    CHECK(strstr(printed_files(OK), "An interval takes six rounds in turn.\n"));
    write_file(1, ROW("matmul_q8", "gate", "C2", "1"));
    printed_files(ERR_FORMAT);
    CHECK(strstr(err.msg, "expected a measurement on C1, found C2"));
    write_file(1, ROW("matmul_q8", "down", "C1", "1"));
    printed_files(ERR_FORMAT);
    CHECK(strstr(err.msg, "expected operations and shapes of "));
    static const char *const wrong[] = { "", "[]", "[[[]]]", "x", "[1]", "{}", "\"op\"" };
    static const char *const times[] = { "[1]", "0", "-1", "1e300", "\"1\"", "1}[" };
    for (size_t i = 0; i < 13; i++) {
        char row[256];
        snprintf(row, sizeof(row), i < 7 ? "%s" : ROW("matmul_q8", "gate", "C1", "%s"),
                 i < 7 ? wrong[i] : times[i - 7]);
        write_file(1, row);
        printed_files(ERR_FORMAT);
        CHECK(strstr(err.msg, paths[1]) == err.msg);
    }
    CHECK(remove(paths[1]) == 0);
    printed_files(ERR_IO);
}

int main(void)
{
    for (int i = 0; i < 2; i++)
        paths[i] = in_scratch("%d.json", i);
    check_rounds();
    check_chance();
    check_table();
    check_sets();
    check_many();
    check_refused();
    return 0;
}
