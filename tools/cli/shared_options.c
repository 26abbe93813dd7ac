#include "tools/cli/shared_options.h"

#include <math.h>

#include "net/answers/store.h"

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
