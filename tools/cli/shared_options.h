/* shared_options.h - the options that several commands take, and the values they set. */
#ifndef TOOLS_CLI_SHARED_OPTIONS_H
#define TOOLS_CLI_SHARED_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/cli/options.h"

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
