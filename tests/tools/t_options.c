/* Options: every type, both forms, what is refused and with which message, and the help with its
 * line breaks. */
#include "tools/cli/shared_options.h"

#include "tests/support/test.h"
#include "tools/command.h"

static bool flag;
static const char *text;
static size_t size;
static uint64_t big;
static float number;
static double amount;
static struct option_list list;

static const struct option_group own = {
    "Own",
    (const struct option[]){
        { "--flag", "-f", OPTION_FLAG, &flag, NULL, "a flag" },
        { "--text", "-x", OPTION_STR, &text, "TEXT", "a text" },
        { "--size", NULL, OPTION_SIZE, &size, "N", "a size" },
        { "--count", NULL, OPTION_COUNT, &size, "N", "a count" },
        { "--big", NULL, OPTION_U64, &big, "N", "a big number" },
        { "--number", NULL, OPTION_FLOAT, &number, "X",
          "a number whose help is so long that it cannot stand in one line of eighty columns" },
        { "--amount", NULL, OPTION_AMOUNT, &amount, "X", "an amount" },
        { "--item", NULL, OPTION_LIST, &list, "TEXT", "several" },
        OPTION_END,
    },
};

static const struct command cmd = {
    .name = "test",
    .summary = "tests",
    .args = "IN OUT",
    .description = "First paragraph.\nSame paragraph.\n\n  kept   as it is\nThird.",
    .groups = (const struct option_group *const[]){ &own, NULL },
};

/* What the last call of parse printed. */
static const char *said;

/* Parse words as `as` does and capture stdout and stderr in `said`. */
static int parse_as(const struct command *as, int *nargs, char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    FILE *f = tmpfile();
    CHECK(f);
    int out = dup(1), err = dup(2);
    CHECK(fflush(stdout) == 0 && dup2(fileno(f), 1) == 1 && dup2(fileno(f), 2) == 2);
    int status = options_parse(as, argc, argv, nargs);
    fflush(stdout);
    CHECK(dup2(out, 1) == 1 && dup2(err, 2) == 2 && close(out) == 0 && close(err) == 0);
    said = slurp_closed(f);
    return status;
}

static int parse(int *nargs, char **argv)
{
    return parse_as(&cmd, nargs, argv);
}

#define PARSE(nargs, ...) parse(nargs, (char *[]){ "test", __VA_ARGS__, NULL })

static void test_values(void)
{
    int n;
    char *argv[] = { "test",   "a",        "-f",    "--text=b=c",
                     "--size", "12",       "--big", "18446744073709551615",
                     "c",      "--number", "-0.5",  "--",
                     "-f",     NULL };
    CHECK(parse(&n, argv) == -1 && !said[0]);
    CHECK(n == 3 && !strcmp(argv[1], "a") && !strcmp(argv[2], "c") && !strcmp(argv[3], "-f"));
    CHECK(flag && !strcmp(text, "b=c") && size == 12 && big == UINT64_MAX && number == -0.5f);
    CHECK(PARSE(&n, "-x", "-f", "-") == -1 && !strcmp(text, "-f") && n == 1);
    CHECK(PARSE(&n, "--item", "1", "--item=2") == -1 && list.n == 2 && !strcmp(list.at[1], "2") &&
          !list.at[2]);
    CHECK(PARSE(&n, "--text=") == -1 && !*text);
    CHECK(PARSE(&n, "--count", "1") == -1 && size == 1);
    CHECK(PARSE(&n, "--amount", "1e-9") == -1 && amount == (double)1e-9f);
}

/* Parsing as `as` must fail with `what` in the message. */
static void refused(const struct command *as, const char *what, char **argv)
{
    int n;
    CHECK(parse_as(as, &n, argv) == EXIT_USAGE);
    CHECK_MSG(strstr(said, what) && strchr(said, '\n') == said + strlen(said) - 1,
              "expected one line with \"%s\", found: %s", what, said);
}

#define REFUSED(what, ...)        refused(&cmd, what, (char *[]){ "test", __VA_ARGS__, NULL })
#define REFUSED_BY(as, what, ...) refused(&cmd_##as, what, (char *[]){ #as, __VA_ARGS__, NULL })

static void test_refused(void)
{
    REFUSED("unknown option --siz (did you mean --size?)", "--siz", "1");
    REFUSED("unknown option -q (", "-q");
    REFUSED("unknown option --foo; see", "--foo"); /* too short for a guess three letters off */
    REFUSED("unknown option --a\?[31m", "--a\033[31m");
    REFUSED("--size: expected a whole number, found -1", "--size", "-1");
    REFUSED("--size: expected a whole number, found nothing", "--size=");
    REFUSED("--size: expected a whole number", "--size", " 1");
    REFUSED("--size: expected a whole number", "--size", "1k");
    REFUSED("--count: expected a whole number of at least 1, found 0", "--count", "0");
    REFUSED("--count: expected a whole number of at least 1, found -1", "--count", "-1");
    REFUSED("--big: expected a whole number", "--big", "18446744073709551616");
    REFUSED("--number: expected a number", "--number", "1.5x");
    REFUSED("--number: expected a number", "--number", "nan");
    REFUSED("--number: expected a number", "--number", "1e99");
    REFUSED("--number: expected X, found nothing", "--number");
    REFUSED("--amount: expected a number above 0, found 0", "--amount", "0");
    REFUSED("--amount: expected a number above 0, found -1", "--amount", "-1");
    REFUSED("--flag: expected no value, found 1", "--flag=1");
    for (int i = 2; i < 16; i++)
        CHECK(PARSE(&(int){ 0 }, "--item", "x") == -1);
    REFUSED("--item: expected at most 16", "--item", "x");
}

/* Where 0 would be taken for an option that was not given, it is refused. */
static void test_zero(void)
{
    REFUSED_BY(run, "--max-routed: expected a number above 0, found 0", "--max-routed", "0");
    REFUSED_BY(run, "--cloud-timeout: expected a whole", "--cloud-timeout", "0");
    REFUSED_BY(cloud, "--parallel: expected a whole number of at least 1", "--parallel", "0");
    REFUSED_BY(cloud, "--max-queue: expected a whole number of at least 1", "--max-queue", "0");
    REFUSED_BY(router_train, "--width: expected a whole number of at least 1", "--width", "0");
    REFUSED_BY(router_calibrate, "--n-predict: expected a whole number of", "-n", "0");
    REFUSED_BY(cloud, "--context: expected a whole number of at least 1", "--context", "0");
}

/* An option that only other commands have: they are named, and no other option is suggested unless
 * it is all but the same. */
static void test_elsewhere(void)
{
    REFUSED_BY(run, "--calibration (an option of eval); see", "--calibration", "x");
    REFUSED_BY(run, "--calibration=x (an option of eval); see", "--calibration=x");
    REFUSED_BY(info, "--threads (an option of run, convert and others); see", "--threads", "2");
    REFUSED_BY(eval, "--question (an option of run and explain; did you mean --questions?); see",
               "--question", "2");
    REFUSED_BY(man, "unknown option --no-such; see", "--no-such");
}

static void test_help(void)
{
    int n;
    CHECK(PARSE(&n, "a", "--help") == EXIT_FINE);
    CHECK(strstr(said, "Usage: mizzle test [options] IN OUT\n"));
    CHECK(strstr(said, "First paragraph. Same paragraph.\n\n  kept   as it is\nThird.\n"));
    CHECK(strstr(said, "  -x, --text TEXT") && strstr(said, "      --size N"));
    for (const char *line = said; *line;) {
        size_t len = strcspn(line, "\n");
        CHECK(len <= 80);
        line += len + 1;
    }
}

static void test_distance(void)
{
    CHECK(edit_distance("", "") == 0 && edit_distance("run", "") == 3);
    CHECK(edit_distance("kitten", "sitting") == 3 && edit_distance("eval", "eavl") == 2);
    CHECK(edit_distance("0123456789012345678901234567890123", "x") == SIZE_MAX);
}

static void test_rows(void)
{
    /* No command has two options of one name, and every row has what its type needs. */
    for (size_t c = 0; commands[c]; c++) {
        const struct option *seen[128];
        size_t n = 0;
        CHECK(*commands[c]->summary && *commands[c]->description && commands[c]->run);
        for (size_t g = 0; commands[c]->groups && commands[c]->groups[g]; g++)
            for (const struct option *o = commands[c]->groups[g]->opts; o->name; o++) {
                CHECK(o->to && *o->help && !o->arg == (o->type == OPTION_FLAG) && n < 128);
                for (size_t i = 0; i < n; i++) {
                    bool same = !strcmp(seen[i]->name, o->name) ||
                                (o->alt && seen[i]->alt && !strcmp(seen[i]->alt, o->alt));
                    CHECK_MSG(!same, "%s: %s twice", commands[c]->name, o->name);
                }
                seen[n++] = o;
            }
    }
    CHECK(!shared_options.cloud && !shared_options.engine.model);
}

static void test_words(void)
{
    struct err e;
    options_as_typed(&e, &cmd_run, "policy: expected mlp, found cloud_url_2 with cloud_url");
    CHECK(strcmp(e.msg, "--policy: expected mlp, found cloud_url_2 with --cloud-url") == 0);
    options_as_typed(&e, &cmd_run, "a policy: no cloud_such");
    CHECK(strcmp(e.msg, "a policy: no cloud_such") == 0);
    char longest[sizeof(e.msg)];
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    options_as_typed(&e, &cmd_run, longest);
    CHECK(strlen(e.msg) == strlen(longest));
}

int main(void)
{
    test_words();
    test_values();
    test_refused();
    test_zero();
    test_elsewhere();
    test_help();
    test_distance();
    test_rows();
    return 0;
}
