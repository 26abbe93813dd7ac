#include "tools/cli/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "net/answers/store.h"
#include "tools/command.h"

enum { WIDTH = 80, HELP_COLUMN = 28 };

struct engine_options engine_options;
struct cloud_option_values cloud_option_values = {
    .mode = "auto", .api = "auto", .tokens = 1, .slot = SIZE_MAX
};
struct route_options route_options = { .threshold = NAN, .ahead = 1 };

const struct option_group engine_option_rows = {
    "Model and machine",
    (const struct option[]){
        { "--model", "-m", OPTION_STR, &engine_options.model, "PATH",
          "GGUF file or Hugging Face folder (default: the demo pair)" },
        { "--threads", "-t", OPTION_SIZE, &engine_options.threads, "N",
          "threads to compute with (default: all processors)" },
        { "--isa", NULL, OPTION_STR, &engine_options.isa, "NAME",
          "kernel set, one of `mizzle info`'s sets (default: MIZZLE_ISA, else the best)" },
        { "--kv", NULL, OPTION_STR, &engine_options.kv, "TYPE",
          "keys and values in f32, f16 or q8" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

enum { WHETHER = 2 }; /* so many of the rows say whether and whom to ask, the others how */

static const struct option cloud_rows[] = {
    { "--cloud-url", NULL, OPTION_STR, &cloud_option_values.url, "URL",
      "server of the large model (default: MIZZLE_CLOUD_URL; for the demo pair a stand-in is "
      "started)" },
    { "--cloud", NULL, OPTION_STR, &cloud_option_values.mode, "MODE",
      "auto: a fault keeps the small model's token; off; required: a fault ends the run with "
      "status 4 (default: auto)" },
    { "--cloud-api", NULL, OPTION_STR, &cloud_option_values.api, "NAME",
      "openai, sglang, llamacpp, or auto to ask the server (default: auto)" },
    { "--cloud-model", NULL, OPTION_STR, &cloud_option_values.model, "NAME",
      "model to ask for (default: the first one the server lists)" },
    { "--cloud-key-file", NULL, OPTION_STR, &cloud_option_values.key_file, "FILE",
      "file with the API key (default: MIZZLE_API_KEY, else OPENAI_API_KEY, which goes over "
      "https or to this machine alone)" },
    { "--cloud-ca", NULL, OPTION_STR, &cloud_option_values.ca, "FILE",
      "PEM file of a private certificate authority" },
    { "--cloud-timeout", NULL, OPTION_SIZE, &cloud_option_values.timeout_ms, "MS",
      "deadline of one call in milliseconds (default: 10000)" },
    { "--cloud-tokens", NULL, OPTION_SIZE, &cloud_option_values.tokens, "N",
      "tokens of one call, 1 to 64: the first is used as it arrives, the rest is kept for when "
      "it is wanted; limits count all of them (default: 1)" },
    { "--hedge-ms", NULL, OPTION_SIZE, &cloud_option_values.hedge_ms, "MS",
      "send a call once more when there is no answer after this long (default: never)" },
    { "--compress", NULL, OPTION_FLAG, &cloud_option_values.compress, NULL,
      "gzip the requests, where the server takes it" },
    { "--cloud-slot", NULL, OPTION_SIZE, &cloud_option_values.slot, "N",
      "llamacpp: the server's slot to use, from 0 (default: the server chooses)" },
    { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
};

const struct option_group cloud_option_rows = { "Cloud", cloud_rows };
const struct option_group cloud_check_option_rows = { "Cloud (with --check alone)",
                                                      cloud_rows + WHETHER };

const struct option_group route_option_rows = {
    "Routing",
    (const struct option[]){
        { "--router", NULL, OPTION_STR, &route_options.router, "FILE",
          "router of the model, safetensors or .pth (default: beside the model: "
          "NAME.router.safetensors or DIR/router.safetensors)" },
        { "--policy", NULL, OPTION_STR, &route_options.policy, "NAME",
          "mlp, entropy, max-prob, margin, random, always or never (default: mlp where there is a "
          "router, else never)" },
        { "--threshold", NULL, OPTION_FLOAT, &route_options.threshold, "T",
          "a score below T, 0 to 1, goes to the cloud (default: the router's own, else 0.5)" },
        { "--ahead", NULL, OPTION_SIZE, &route_options.ahead, "W",
          "go on behind the small model's guess while the cloud is asked, with up to W requests "
          "out, 0 to 64; 0: wait each time. The text is the same; above 1 some calls are made in "
          "vain (default: 1)" },
        { "--max-wasted-calls", NULL, OPTION_SIZE, &route_options.max_wasted, "N",
          "after N calls in vain go on as with --ahead 1, which makes none (default: no limit)" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

struct cloud_limit_options cloud_limit_options = { .store_limit = STORE_LIMIT >> 20,
                                                   .max_tokens = UINT64_MAX,
                                                   .max_upload = UINT64_MAX };

const struct option_group cloud_limit_option_rows = {
    "Limits and memory of the cloud",
    (const struct option[]){
        { "--max-cloud-tokens", NULL, OPTION_U64, &cloud_limit_options.max_tokens, "N",
          "ask the cloud for no more tokens than this, over all answers; what the store or the "
          "memo "
          "knows does not count (default: no limit)" },
        { "--max-upload-bytes", NULL, OPTION_U64, &cloud_limit_options.max_upload, "N",
          "no more bytes of requests than this, headers and retries apart (default: no limit)" },
        { "--cloud-budget", NULL, OPTION_STR, &cloud_limit_options.budget, "AMOUNT",
          "no more money than this, in the currency of --cloud-price (default: no limit)" },
        { "--cloud-price", NULL, OPTION_STR, &cloud_limit_options.price, "PRICES",
          "prices per million tokens, UP,CACHED,DOWN as in 2.50,1.25,10; or a file with lines "
          "MODEL UP CACHED DOWN, where MODEL * is any other" },
        { "--private-from", NULL, OPTION_STR, &cloud_limit_options.from, "TEXT",
          "a text that holds this is not sent any more from there on" },
        { "--private-to", NULL, OPTION_STR, &cloud_limit_options.to, "TEXT",
          "ends what --private-from begins: with nothing but blanks between the two, it is sent" },
        { "--private-file", NULL, OPTION_STR, &cloud_limit_options.patterns, "FILE",
          "a text that holds a line of this file is not sent; in a line, \\d is a digit, \\w a "
          "letter, digit or _, \\s a blank, \\\\ a backslash, # at its beginning a comment" },
        { "--cloud-store", NULL, OPTION_STR, &cloud_limit_options.store, "FILE",
          "keep the cloud's answers there, and ask it nothing twice; processes may share it" },
        { "--store-limit", NULL, OPTION_SIZE, &cloud_limit_options.store_limit, "MB",
          "size of the store; beyond it the older half goes (default: 64)" },
        { "--record", NULL, OPTION_STR, &cloud_limit_options.record, "FILE",
          "append the cloud's answers there, as JSON lines" },
        { "--replay", NULL, OPTION_STR, &cloud_limit_options.replay, "FILE",
          "take the cloud's answers from a recording and use no network; what it does not hold "
          "is a fault" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

size_t options_distance(const char *a, const char *b)
{
    size_t row[33], nb = strlen(b);
    if (nb > 32 || strlen(a) > 32)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < nb; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j + 1] + 1 < best)
                best = row[j + 1] + 1;
            row[j + 1] = best;
        }
    }
    return row[nb];
}

/* The row whose name or short name is s[n]. */
static const struct option *options_find(const struct command *cmd, const char *s, size_t n)
{
    for (size_t g = 0; cmd->groups && cmd->groups[g]; g++)
        for (const struct option *o = cmd->groups[g]->opts; o->name; o++)
            if ((strlen(o->name) == n && memcmp(o->name, s, n) == 0) ||
                (o->alt && strlen(o->alt) == n && memcmp(o->alt, s, n) == 0))
                return o;
    return NULL;
}

void options_as_typed(struct err *out, const struct command *cmd, const char *line)
{
    char text[sizeof(out->msg)], name[32] = "--";
    size_t used = 0;
    for (size_t i = 0; line[i] && used < sizeof(text) - sizeof(name);) {
        size_t n = strspn(line + i, "abcdefghijklmnopqrstuvwxyz_");
        bool option =
            n && n < sizeof(name) - 2 && (memchr(line + i, '_', n) || (i == 0 && line[n] == ':'));
        for (size_t k = 0; option && k < n; k++)
            name[2 + k] = line[i + k] == '_' ? '-' : line[i + k];
        if (!option || !options_find(cmd, name, n + 2)) {
            n = n ? n : 1;
            n = n < sizeof(text) - used ? n : sizeof(text) - used - 1;
            memcpy(text + used, line + i, n);
            used += n;
        } else {
            memcpy(text + used, name, n + 2);
            used += n + 2;
        }
        i += n;
    }
    text[used] = '\0';
    err_set(out, OK, "%s", text);
}

static int options_unknown(const struct command *cmd, const char *arg)
{
    const char *near = NULL;
    size_t least = 4;
    for (size_t g = 0; cmd->groups && cmd->groups[g]; g++)
        for (const struct option *o = cmd->groups[g]->opts; o->name; o++)
            if (options_distance(arg, o->name) < least) {
                least = options_distance(arg, o->name);
                near = o->name;
            }
    struct err err;
    err_set(&err, ERR_ARG, "unknown option %s", arg);
    fprintf(stderr, "mizzle %s: %s%s%s%s; see mizzle %s --help\n", cmd->name, err.msg,
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", cmd->name);
    return EXIT_USAGE;
}

static bool options_number(const char *s, uint64_t max, uint64_t *out)
{
    uint64_t n = 0;
    if (!*s)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        uint64_t digit = (uint64_t)(*s - '0');
        if (n > (max - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *out = n;
    return true;
}

/* Store value where the row points; NULL, or what was expected instead. */
static const char *options_store(const struct option *o, const char *value)
{
    uint64_t n;
    switch (o->type) {
    case OPTION_FLAG:
        *(bool *)o->to = true;
        return NULL;
    case OPTION_STR:
        *(const char **)o->to = value;
        return NULL;
    case OPTION_SIZE:
        if (!options_number(value, SIZE_MAX, &n))
            return "a whole number";
        *(size_t *)o->to = (size_t)n;
        return NULL;
    case OPTION_U64:
        if (!options_number(value, UINT64_MAX, (uint64_t *)o->to))
            return "a whole number";
        return NULL;
    case OPTION_FLOAT: {
        char *end;
        float f = strtof(value, &end);
        if (end == value || *end || !(fabsf(f) < INFINITY))
            return "a number";
        *(float *)o->to = f;
        return NULL;
    }
    case OPTION_LIST: {
        struct option_list *list = o->to;
        if (list->n + 1 >= sizeof(list->at) / sizeof(list->at[0]))
            return "at most 16 of them";
        list->at[list->n++] = value;
        return NULL;
    }
    }
    return "another type";
}

static int options_usage(const struct command *cmd, const char *name, const char *what,
                         const char *found)
{
    struct err err;
    err_set(&err, ERR_ARG, "%s: expected %s%s%s", name, what, found ? ", found " : "",
            found ? (*found ? found : "nothing") : "");
    fprintf(stderr, "mizzle %s: %s; see mizzle %s --help\n", cmd->name, err.msg, cmd->name);
    return EXIT_USAGE;
}

int options_parse(const struct command *cmd, int argc, char **argv, int *nargs)
{
    bool options = true;
    *nargs = 0;
    for (int i = 1; i < argc; i++) {
        char *arg = argv[i];
        if (!options || arg[0] != '-' || !arg[1]) {
            argv[1 + (*nargs)++] = arg;
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            options = false;
            continue;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            options_help(stdout, cmd);
            return EXIT_FINE;
        }
        const char *equals = arg[1] == '-' ? strchr(arg, '=') : NULL;
        const struct option *o =
            options_find(cmd, arg, equals ? (size_t)(equals - arg) : strlen(arg));
        if (!o)
            return options_unknown(cmd, arg);
        const char *value = equals ? equals + 1 : NULL;
        if (o->type == OPTION_FLAG && value)
            return options_usage(cmd, o->name, "no value", value);
        if (o->type != OPTION_FLAG && !value) {
            if (++i == argc)
                return options_usage(cmd, o->name, o->arg, "nothing");
            value = argv[i];
        }
        const char *expected = options_store(o, value);
        if (expected)
            return options_usage(cmd, o->name, expected, value);
    }
    return -1;
}

/* Words of text[n] from column `at` on, further lines indented. */
static void options_wrap_words(FILE *to, const char *text, size_t n, int indent, int at)
{
    for (size_t i = 0; i < n;) {
        size_t len = 0;
        while (i + len < n && text[i + len] != ' ' && text[i + len] != '\n')
            len++;
        if (at > indent && at + 1 + (int)len > WIDTH) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', to);
            at++;
        }
        fwrite(text + i, 1, len, to);
        at += (int)len;
        for (i += len; i < n && (text[i] == ' ' || text[i] == '\n'); i++)
            ;
    }
    fputc('\n', to);
}

void options_wrap(FILE *to, const char *text, int indent)
{
    while (*text) {
        const char *end = text;
        if (*text == ' ' || *text == '\n') { /* kept as it is */
            end = strchr(text, '\n') ? strchr(text, '\n') : text + strlen(text);
            fprintf(to, "%*s%.*s\n", *text == '\n' ? 0 : indent, "", (int)(end - text), text);
        } else {
            while (*end && !(end[0] == '\n' && (end[1] == '\n' || end[1] == ' ' || !end[1])))
                end++;
            fprintf(to, "%*s", indent, "");
            options_wrap_words(to, text, (size_t)(end - text), indent, indent);
        }
        text = *end ? end + 1 : end;
    }
}

void options_help(FILE *to, const struct command *cmd)
{
    int at = fprintf(to, "mizzle %s:", cmd->name);
    options_wrap_words(to, cmd->summary, strlen(cmd->summary), 0, at);
    fprintf(to, "\nUsage: mizzle %s [options]%s%s\n\n", cmd->name, *cmd->args ? " " : "",
            cmd->args);
    options_wrap(to, cmd->description, 0);
    for (size_t g = 0; cmd->groups && cmd->groups[g]; g++) {
        fprintf(to, "\n%s:\n", cmd->groups[g]->title);
        for (const struct option *o = cmd->groups[g]->opts; o->name; o++) {
            at = fprintf(to, "  %s%s%s%s%s", o->alt ? o->alt : "", o->alt ? ", " : "    ", o->name,
                         o->arg ? " " : "", o->arg ? o->arg : "");
            if (at >= HELP_COLUMN) {
                fputc('\n', to);
                at = 0;
            }
            fprintf(to, "%*s", HELP_COLUMN - at, "");
            options_wrap_words(to, o->help, strlen(o->help), HELP_COLUMN, HELP_COLUMN);
        }
    }
    fprintf(to, "\nOther:\n  -h, --help%*sthis text\n", HELP_COLUMN - 12, "");
}
