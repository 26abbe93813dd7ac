/* options.h - options from one table: parsing, --help and the man page read the same rows.
 *
 * "--name value", "--name=value", "-x value"; "--" ends the options; flags take no value. A
 * command's own values live in static variables that the rows point to; defaults are what the
 * variables hold before. */
#ifndef TOOLS_CLI_OPTIONS_H
#define TOOLS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kernels/sys/base.h"

struct command;

enum option_type { OPTION_FLAG, OPTION_STR, OPTION_SIZE, OPTION_U64, OPTION_FLOAT, OPTION_LIST };

/* What an option that may be given several times points to: its values in order, NULL-ended. */
struct option_list {
    const char *at[17];
    size_t n;
};

struct option {
    const char *name; /* "--threads" */
    const char *alt;  /* "-t" or NULL */
    enum option_type type;
    void *to;         /* bool, const char *, size_t, uint64_t, float, struct option_list */
    const char *arg;  /* "N", for the help; NULL for a flag */
    const char *help; /* one line; defaults are named here */
};

struct option_group {
    const char *title;         /* "Model", "Cloud", ... */
    const struct option *opts; /* ended by a row with name NULL */
};

/* Parse argv against the command's groups. Positional arguments are moved to the front, *nargs of
 * them, beginning at argv[1]. Returns -1 to go on, or the exit status: EXIT_FINE after --help was
 * printed to stdout, EXIT_USAGE after one line on stderr. */
int options_parse(const struct command *cmd, int argc, char **argv, int *nargs);

void options_help(FILE *to, const struct command *cmd); /* what --help prints */

/* Print text in lines of at most 80 columns, indented; a line that begins with two blanks is kept
 * as it is, an empty line ends a paragraph. */
void options_wrap(FILE *to, const char *text, int indent);

/* The library names its options as C does: in line, write those that the command has as they are
 * typed. cloud_url is --cloud-url, and so is a single word at the beginning, as in "policy: ...".
 */
void options_as_typed(struct err *out, const struct command *cmd, const char *line);

/* Letters to insert, delete or replace to make b of a: for "did you mean". */
size_t options_distance(const char *a, const char *b);

/* Options that mean the same everywhere; see options.c for the rows. */
extern const struct option_group engine_option_rows; /* -m --isa -t --kv */
extern const struct option_group
    cloud_option_rows; /* --cloud-url --cloud --cloud-api --cloud-key-file
               --cloud-ca --cloud-model --cloud-timeout
               --cloud-tokens --hedge-ms --compress --cloud-slot */
extern const struct option_group
    cloud_check_option_rows; /* those of cloud_option_rows but --cloud-url and --cloud */
extern const struct option_group route_option_rows; /* --router --policy --threshold --ahead
                                            --max-wasted-calls */

extern const struct option_group
    cloud_limit_option_rows; /* --max-cloud-tokens --max-upload-bytes --cloud-budget
              --cloud-price --private-* --cloud-store --store-limit
              --record --replay */

extern struct engine_options {
    const char *model; /* NULL: the demo pair */
    const char *isa;   /* NULL: MIZZLE_ISA, else the best */
    size_t threads;    /* 0: all processors */
    const char *kv;    /* NULL: the command's default */
} engine_options;

extern struct cloud_option_values {
    const char *url;  /* NULL: MIZZLE_CLOUD_URL */
    const char *mode; /* "auto", "off", "required" */
    const char *api;  /* "auto", "openai", "sglang", "llamacpp" */
    const char *key_file, *ca, *model;
    size_t timeout_ms, tokens, hedge_ms;
    size_t slot; /* SIZE_MAX: none */
    bool compress;
} cloud_option_values;

extern struct route_options {
    const char *router; /* NULL: beside the model */
    const char *policy; /* NULL: mlp where there is a router */
    float threshold;    /* NaN: the router's own */
    size_t ahead;       /* requests out at once */
    size_t max_wasted;  /* calls made ahead in vain; 0: no limit */
} route_options;

extern struct cloud_limit_options {
    const char *store, *record, *replay;
    size_t store_limit; /* MiB */
    uint64_t max_tokens, max_upload;
    const char *budget, *price, *from, *to, *patterns;
} cloud_limit_options;

#endif
