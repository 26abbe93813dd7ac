/* driver.c - runs a fuzz program without libFuzzer.
 *
 *   fuzz_gguf [--runs N] [--seed S]   give it N mutations of its seeds (default: 10,000; a tenth of
 * N if it opens whole models), and print the rate fuzz_gguf FILE...                 give it these
 * files, and print the results fuzz_gguf --seeds DIR             write its seeds, as a corpus for
 * libFuzzer
 *
 * Run i depends on S and on what was accepted before it alone. An input that fails is written to
 * FUZZ_PROGRAM.failed. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/files.h"

enum { SEEDS = 64, KEPT = 64, RUNS = 10000, EDITS = 6, PIECE = 64 };

/* A seed, or a mutation of one that was accepted. */
struct input {
    uint8_t *p;
    size_t n;
};

static struct input seeds[SEEDS], kept[KEPT];
static size_t nseeds, nkept;

static uint8_t now[FUZZ_ROOM]; /* the input of this run */
static size_t now_n;
static volatile sig_atomic_t running;
static char failed[128];

/* Save the input that fails. */
static void driver_save(void)
{
    if (!running)
        return;
    running = 0;
    FILE *f = fopen(failed, "wb");
    if (f && fwrite(now, 1, now_n, f) == now_n && fclose(f) == 0)
        fprintf(stderr, "the input is in %s\n", failed);
}

static void driver_on_signal(int number)
{
    driver_save();
    signal(number, SIG_DFL);
    raise(number);
}

/* What sanitizers call or read: gcc's two libraries each end the process in a way of its own. */
void __sanitizer_set_death_callback(void (*call)(void)) __attribute__((weak));
const char *__ubsan_default_options(void);

const char *__ubsan_default_options(void)
{
    return "abort_on_error=1";
}

static void driver_catch(void)
{
    static const int numbers[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    size_t n = sizeof(numbers) / sizeof(*numbers);
    atexit(driver_save);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(driver_save);
        n = 1; /* the sanitizer reports the others */
    }
    for (size_t i = 0; i < n; i++)
        signal(numbers[i], driver_on_signal);
}

static void driver_run(void)
{
    /* memory of exactly this size, so that a sanitizer sees any byte read beyond it */
    uint8_t *copy = malloc(now_n ? now_n : 1);
    CHECK(copy);
    memcpy(copy, now, now_n);
    running = 1;
    LLVMFuzzerTestOneInput(copy, now_n);
    running = 0;
    free(copy);
}

static void driver_keep(struct input *in)
{
    free(in->p);
    in->p = malloc(now_n ? now_n : 1);
    CHECK(in->p);
    memcpy(in->p, now, now_n);
    in->n = now_n;
}

/* Numbers from one stream. */
static uint64_t stream, counter;

static size_t driver_below(size_t n)
{
    return n ? (size_t)rand_below(stream, counter++, n) : 0;
}

/* Choose a position, more often near the beginning, where headers are. */
static size_t driver_place(void)
{
    size_t n = now_n;
    for (size_t turns = driver_below(5); turns && n > 256; turns--)
        n /= 4;
    return driver_below(n);
}

/* Replace now[at, at + gone) by p[n]; p may lie inside the input. */
static void driver_splice(size_t at, size_t gone, const uint8_t *p, size_t n)
{
    uint8_t piece[PIECE * 4];
    n = n < sizeof(piece) ? n : sizeof(piece);
    gone = gone < now_n - at ? gone : now_n - at;
    if (now_n - gone + n > FUZZ_ROOM)
        return;
    if (n)
        memcpy(piece, p, n);
    memmove(now + at + n, now + at + gone, now_n - at - gone);
    memcpy(now + at, piece, n);
    now_n += n - gone;
}

/* Overwrite a number of 1 to 8 bytes with one that programs get wrong: a small one, or one at a
 * power of two or beside it. */
static void driver_number(size_t at)
{
    uint64_t power = UINT64_C(1) << driver_below(64);
    uint64_t v = driver_below(4) ? power + driver_below(3) - 1 : driver_below(16);
    size_t bytes = (size_t)1 << driver_below(4);
    for (size_t i = 0; i < bytes && at + i < now_n; i++)
        now[at + i] = (uint8_t)(v >> (8 * i));
}

/* Words that formats have, or that JSON must not have, with tabs between them. */
static const char words[] =
    "null\ttrue\t-1\t0\t1e999\t18446744073709551616\t[\t]\t{\t}\t\"\t,\t:\t[[[[[[[[\t\\u0000\t"
    "\\ud800\t\\\t\xff\t\xed\xa0\x80\tGGUF\tqwen2\tF32\tBF16\tQ8_0\tgeneral.alignment\t"
    "split.count\t__metadata__\t\n====\n\t<|im_end|>\t../\ta b\t\n\t \t.";
enum { WORDS = 34 };

/* Insert one of them. */
static void driver_word(size_t at)
{
    const char *word = words;
    for (size_t skip = driver_below(WORDS); skip; skip--)
        word = strchr(word, '\t') + 1;
    size_t n = strcspn(word, "\t");
    driver_splice(at, driver_below(3) ? 0 : n, (const uint8_t *)word, n);
}

/* Change the input in one place. */
static void driver_edit(const struct input *other)
{
    size_t at = driver_place(), from = driver_place(), n = 1 + driver_below(PIECE);
    if (!now_n)
        return driver_word(0);
    switch (driver_below(10)) {
    case 0:
    case 1:
        now[at] ^= (uint8_t)(1u << driver_below(8));
        break;
    case 2:
        now[at] = (uint8_t)driver_below(256);
        break;
    case 3:
    case 4:
        driver_number(at);
        break;
    case 5:
        driver_word(at);
        break;
    case 6:
        driver_splice(at, n, NULL, 0);
        break;
    case 7: /* double or move a piece */
        driver_splice(at, driver_below(2) ? n : 0, now + from, n < now_n - from ? n : now_n - from);
        break;
    case 8: /* a piece of another input */
        from = driver_below(other->n);
        driver_splice(at, n, other->p + from, n < other->n - from ? n : other->n - from);
        break;
    default:
        if (driver_below(4) == 0)
            now_n = at;
        else if (now[at] >= '0' && now[at] <= '9')
            now[at] = (uint8_t)('0' + driver_below(10));
    }
}

/* Make the input of run i, from a seed or from what was accepted. */
static void driver_mutate(uint64_t i)
{
    bool old = nkept && i % 2;
    counter = i << 16;
    const struct input *in = old ? &kept[driver_below(nkept)] : &seeds[driver_below(nseeds)];
    const struct input *other = &seeds[driver_below(nseeds)];
    memcpy(now, in->p, in->n);
    now_n = in->n;
    for (size_t edits = 1 + driver_below(EDITS); edits; edits--)
        driver_edit(other);
}

static void driver_read_seeds(void)
{
    while (nseeds < SEEDS && (now_n = fuzz_seed(nseeds, now, FUZZ_ROOM)) > 0) {
        size_t before = fuzz_accepted();
        driver_keep(&seeds[nseeds]);
        driver_run();
        if (fuzz_accepted() == before)
            fprintf(stderr, "seed %zu: %s\n", nseeds, fuzz_refusal());
        nseeds++;
    }
    CHECK(nseeds);
}

static void driver_fuzz(const char *name, uint64_t runs)
{
    struct rusage use;
    driver_read_seeds();
    size_t first = fuzz_accepted();
    uint64_t begin = os_now_ns();
    for (uint64_t i = 0; i < runs; i++) {
        size_t before = fuzz_accepted();
        driver_mutate(i);
        driver_run();
        if (fuzz_accepted() > before) {
            driver_keep(&kept[nkept < KEPT ? nkept++ : i % KEPT]);
        }
    }
    double seconds = (double)(os_now_ns() - begin) * 1e-9;
    getrusage(RUSAGE_SELF, &use);
    printf("%-22s %10llu runs in %7.1f s, %8.0f a second, %4.1f %% opened, %ld MiB at most\n", name,
           (unsigned long long)runs, seconds, (double)runs / seconds,
           100 * (double)(fuzz_accepted() - first) / (double)(runs ? runs : 1),
           use.ru_maxrss >> 10);
}

static void driver_write_seeds(const char *folder)
{
    char path[256];
    for (size_t i = 0; (now_n = fuzz_seed(i, now, FUZZ_ROOM)) > 0; i++) {
        snprintf(path, sizeof(path), "%s/seed-%zu", folder, i);
        spill(path, now, now_n);
    }
}

int main(int argc, char **argv)
{
    uint64_t runs = RUNS;
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    bool files = false;
    snprintf(failed, sizeof(failed), "build/%s.failed", name);
    driver_catch();
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (more && strcmp(argv[i], "--runs") == 0) {
            runs = strtoull(argv[++i], NULL, 10);
        } else if (more && strcmp(argv[i], "--seed") == 0) {
            stream = strtoull(argv[++i], NULL, 10);
        } else if (more && strcmp(argv[i], "--seeds") == 0) {
            driver_write_seeds(argv[++i]);
            files = true;
        } else {
            now_n = slurp(argv[i], now, FUZZ_ROOM);
            driver_run();
            printf("%s: %s\n", argv[i], *fuzz_refusal() ? fuzz_refusal() : "opened");
            files = true;
        }
    }
    if (!files)
        driver_fuzz(name, fuzz_whole ? runs / 10 : runs);
    for (size_t i = 0; i < nseeds; i++)
        free(seeds[i].p);
    for (size_t i = 0; i < nkept; i++)
        free(kept[i].p);
    return 0;
}
