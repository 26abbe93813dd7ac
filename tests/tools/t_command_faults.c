/* t_command_faults.c - convert, logits, info and explain as commands, while the n-th allocation
 * fails and while a file is cut short before the n-th allocation, for every n: one line names what
 * is wrong, nothing is left behind, and nothing leaks. */
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/cli/setup.h"
#include "tools/command.h"
#include "weights/weights.h"

enum { ROOM = 4096, LISTED = 1024 };

static char model[64], *gguf, *out, *lines, weights[96];
static unsigned char bytes[1 << 20];
static const char *cut_path;

/* Run a command with stderr in a file, and return its status. */
static int command_status(const struct command *c, char **args)
{
    int n = 0, old = dup(STDERR_FILENO), fd = open(lines, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    while (args[n])
        n++;
    CHECK(old >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0 && close(fd) == 0);
    int status = command_run(c, n, args);
    fflush(stderr);
    CHECK(dup2(old, STDERR_FILENO) >= 0 && close(old) == 0);
    return status;
}

/* Return what the command said on stderr. */
static const char *said(void)
{
    static char words[ROOM];
    words[slurp(lines, words, sizeof(words) - 1)] = '\0';
    return words;
}

/* Return how many lines of stderr begin as those of a failure do; fallbacks are said before. */
static unsigned failures(void)
{
    unsigned n = 0;
    for (const char *p = said(); p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        n += strncmp(p, "mizzle convert: tensors whose", 29) != 0;
    return n;
}

/* Whatever allocation fails, the command says so and leaves no file; at last it succeeds. Where it
 * shows JSON on stdout, jansson's count, too: it only writes there. Elsewhere its reader takes some
 * failures for mistakes in the text. */
static void check_memory(const struct command *c, char **args, bool shows)
{
    int reached = 1, kept = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
    long n = 1;
    json_malloc_t make;
    json_free_t end;
    json_get_alloc_funcs(&make, &end);
    CHECK(kept >= 0 && null >= 0 && fflush(stdout) == 0);
    if (shows) {
        CHECK(dup2(null, STDOUT_FILENO) >= 0);
        json_set_alloc_funcs(malloc, free);
    }
    for (; reached; n++) {
        size_t open_files = descriptors();
        unlink(out);
        torture_begin(n);
        int status = command_status(c, args);
        reached = torture_end();
        /* The text of open_memstream is freed, but its allocation by libc is not counted. */
        CHECK(torture_live() == 0 || (c == &cmd_explain && torture_live() == -1));
        CHECK(descriptors() == open_files);
        if (reached && status == EXIT_FINE && !shows) /* a hint or a name, done without */
            continue;
        CHECK(status == (reached ? EXIT_FAILED : EXIT_FINE));
        CHECK(!reached || (failures() == 1 && strstr(said(), "memory")));
        CHECK(shows || (access(out, F_OK) == 0) == !reached);
    }
    json_set_alloc_funcs(make, end);
    CHECK(fflush(stdout) == 0 && dup2(kept, STDOUT_FILENO) >= 0);
    CHECK(close(kept) == 0 && close(null) == 0);
    printf("%s: %ld allocations\n", c->name, n - 2);
}

static void cut(void)
{
    CHECK(truncate(cut_path, 0) == 0);
}

/* Whenever the file is cut, the command ends well or with one line that names a file and status 3.
 * Each run has a process of its own, which the signal ends. */
static void check_cut(const struct command *c, char **args, const char *path)
{
    size_t whole = slurp(path, bytes, sizeof(bytes));
    int reached = 1;
    long n = 1, signals = 0;
    for (; reached; n++) {
        int status = 0;
        unlink(out);
        fflush(stdout);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            setup_signals();
            cut_path = path;
            torture_call(n, cut);
            status = command_status(c, args);
            _exit(torture_end() ? status : status + 100);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        status = WEXITSTATUS(status);
        reached = status < 100;
        CHECK(status == EXIT_BAD_FILE || status % 100 == EXIT_FINE);
        CHECK((access(out, F_OK) == 0) == (status % 100 == EXIT_FINE));
        if (status == EXIT_BAD_FILE) {
            CHECK(failures() == 1);
            signals += strstr(said(), "another process cut it short") != NULL;
        }
        spill(path, bytes, whole);
    }
    printf("%s: %s cut at %ld moments, %ld of them while it was read\n", c->name,
           strrchr(path, '/') + 1, n - 2, signals);
    CHECK(signals > 0);
}

/* One of many mapped files is cut: it is named, or, when `first` files fill the list of names, the
 * line says as much. */
static void check_many(size_t first, const char *line)
{
    struct weights *w = NULL;
    char path[192];
    int status = 0;
    snprintf(path, sizeof(path), "%s.copy", gguf);
    spill(path, bytes, slurp(gguf, bytes, sizeof(bytes)));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) { /* closes nothing */
        int fd = open(lines, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        float x[256];
        CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
        setup_signals();
        for (size_t i = 0; i < first; i++)
            CHECK(weights_open(&w, gguf, NULL) == OK);
        weights_close(w);
        CHECK(weights_open(&w, gguf, NULL) == OK && weights_open(&w, path, NULL) == OK);
        CHECK(truncate(path, 0) == 0);
        const struct tensor *t = weights_find(w, "output_norm.weight");
        _exit(weights_floats(x, t, 0, 1, "f.gguf", NULL) == OK ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == EXIT_BAD_FILE && strstr(said(), line));
    CHECK(unlink(path) == 0);
}

int main(void)
{
    snprintf(model, sizeof(model), "%s", tiny_make());
    gguf = in_scratch("model.gguf");
    out = in_scratch("out");
    lines = in_scratch("lines");
    char *machine[] = { "info", "--json", NULL }, *memory[] = { "memory", "-o", "json", NULL };
    char *quantise[] = { "convert", model, out, "--type", "q4_0", "-t", "1", "-q", NULL };
    char *show[] = { "info", gguf, "--json", "--tensors", NULL };
    check_memory(&cmd_info, machine, true);
    check_memory(&cmd_bench_memory, memory, true);
    check_memory(&cmd_convert, quantise, false);
    CHECK(rename(out, gguf) == 0);
    check_memory(&cmd_info, show, true);
    quantise[1] = gguf;
    check_cut(&cmd_convert, quantise, gguf);
    char *row[] = { "logits", "-m", gguf, "--ids", "1", "-o", out, "-t", "1", NULL };
    check_cut(&cmd_logits, row, gguf);
    quantise[1] = model;
    snprintf(weights, sizeof(weights), "%s/model.safetensors", model);
    check_cut(&cmd_convert, quantise, weights);
    check_many(200, "model.gguf.copy: another process cut it short\n");
    check_many(LISTED, "mizzle: a file of a model: another process cut it short\n");
    char *look[] = { "explain", "-m",      model, "-p",       "to", "-n", "1", "--policy",
                     "never",   "--cloud", "off", "--output", out,  "-t", "1", NULL };
    check_memory(&cmd_explain, look, false);
    return 0;
}
