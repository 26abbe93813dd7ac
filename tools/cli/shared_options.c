#include "tools/cli/shared_options.h"

#include "router/policy_kind.h"

struct routing_options shared_options;
size_t shared_parallel;

const struct option_group engine_option_rows = {
    "Model and machine",
    (const struct option[]){
        { "--model", "-m", OPTION_STR, &shared_options.engine.model, "NAME",
          "Load PATH, ORG/NAME or NAME:TYPE: a GGUF file or Hugging Face folder, a repository in "
          "Hugging Face's cache, or the GGUF file of TYPE, such as Q4_K_M, in a repository or "
          "folder; nothing is downloaded (default: the demo pair)" },
        OPTION_ROW_THREADS,
        OPTION_ROW_ISA("the best"),
        { "--kv", NULL, OPTION_STR, &shared_options.engine.kv, "TYPE",
          "Keep keys and values in f32, f16 or q8, also for a large model in this process "
          "(default: f32 for models whose weights are f32 and for `mizzle cloud` and `mizzle "
          "logits`, else f16; benchmarks always f16). q8 raises perplexity from 56.9 to 58.7 with "
          "Qwen2.5-0.5B" },
        OPTION_END,
    },
};

const struct option_group chat_option_rows = {
    "Conversations",
    (const struct option[]){
        { "--chat-template", NULL, OPTION_STR, &shared_options.engine.chat_template, "NAME",
          "Write conversations in the form qwen2.5, qwq, qwen3, qwen3-coder, deepseek, deepseek-r1 "
          "or chatml (default: the form of the model's template, which must be known; chatml if it "
          "has none)" },
        { "--think", NULL, OPTION_STR, &shared_options.engine.think, "MODE",
          "Let the model think before its answers, on or off, if its template has this choice, as "
          "Qwen3's does; auto leaves it to the template (default: auto)" },
        OPTION_END,
    },
};

const struct option_group route_option_rows = {
    "Routing",
    (const struct option[]){
        { "--router", NULL, OPTION_STR, &shared_options.router, "FILE",
          "Load this router (default: the one beside the model, NAME.router.safetensors or "
          "DIR/router.safetensors, in Hugging Face's cache also "
          "models--ORG--NAME/router.safetensors, or the router installed for the model's "
          "fingerprint; for policies context and combined, their name replaces router)" },
        { "--policy", NULL, OPTION_STR, &shared_options.policy, "NAME",
          "Decide by this policy. " POLICY_HELPS
          "0 is the first token of an answer. `mizzle eval` takes a list, in which position must "
          "be last (default: mlp if a router is found, and it is named or there is a cloud; else "
          "never)" },
        { "--max-routed", NULL, OPTION_AMOUNT, &shared_options.max_routed, "S",
          "Limit cloud tokens to the share S of each answer, plus two tokens; beyond it, keep the "
          "small model's tokens (default: three times the share for which a router was calibrated, "
          "with its own threshold; eval: 1, which is off)" },
        { "--threshold", NULL, OPTION_REAL, &shared_options.threshold, "T",
          "Route tokens with a score below T, 0 to 1, to the cloud (default: the router's own, "
          "else 0.5)" },
        OPTION_END,
    },
};

const struct option_group ahead_option_rows = {
    "Decoding ahead, and drafts",
    (const struct option[]){
        { "--ahead", NULL, OPTION_SIZE, &shared_options.ahead, "W",
          "1: during a call, continue after the small model's tentative token, up to the next "
          "token to route; 0: wait for each answer. The text is the same (default: 1)" },
        { "--draft", NULL, OPTION_STR, &shared_options.draft, "FROM",
          "Evaluate likely next tokens together with the newest one: lookup takes what followed an "
          "earlier occurrence of the last tokens, cloud takes further tokens of the cloud's reply "
          "(see --cloud-tokens), both takes either; off takes none. The text is the same for all "
          "(default: lookup, or both if --cloud-tokens is above 1)" },
        OPTION_END,
    },
};

const struct option_group cloud_option_rows = {
    "Cloud",
    (const struct option[]){
        { "--cloud-url", NULL, OPTION_STR, &shared_options.cloud_url, "URL",
          "Ask the large model at this server (default: MIZZLE_CLOUD_URL; without it, the file "
          "of --cloud-model or the demo pair's large model answers in this process)" },
        { "--cloud", NULL, OPTION_STR, &shared_options.cloud, "MODE",
          "Set what happens if the cloud fails: auto keeps the small model's token, required ends "
          "the run with status 4, in `mizzle serve` the text with an error; off does not use the "
          "cloud (default: auto; required for `mizzle eval`, which refuses off, and auto with "
          "--jsonl, and for `router collect` and `router calibrate`, which refuse both)" },
        { "--cloud-api", NULL, OPTION_STR, &shared_options.cloud_api, "NAME",
          "Speak openai, sglang or llamacpp; auto asks the server (default: auto)" },
        OPTION_END,
    },
};

const struct option_group cloud_call_option_rows = {
    "Calls of the cloud",
    (const struct option[]){
        { "--cloud-model", NULL, OPTION_STR, &shared_options.cloud_model, "NAME",
          "Request this model from the server at --cloud-url; without a URL, load this model, "
          "named as for --model, into this process (default: the first model that the server "
          "lists)" },
        { "--cloud-key-file", NULL, OPTION_STR, &shared_options.cloud_key_file, "FILE",
          "Read the API key from FILE (default: MIZZLE_API_KEY, else, over https, "
          "OPENAI_API_KEY)" },
        { "--cloud-proxy", NULL, OPTION_STR, &shared_options.cloud_proxy, "URL",
          "Use this proxy for servers outside no_proxy; \"\": none (default: http_proxy, "
          "https_proxy)" },
        { "--cloud-timeout", NULL, OPTION_COUNT, &shared_options.cloud_timeout, "MS",
          "End a call that has no answer after MS milliseconds (default: 10000; for a slow server "
          "up to 600000, estimated from its first replies and the lengths of text and reply; a "
          "model in this process has no deadline)" },
        { "--cloud-tokens", NULL, OPTION_SIZE, &shared_options.cloud_tokens, "N",
          "Request N tokens per call, 1 to 64. The first is used at once, the others are kept "
          "until needed; limits count all of them (default: 1)" },
        OPTION_END,
    },
};

const struct option_group cloud_limit_option_rows = {
    "Limits and privacy of the cloud",
    (const struct option[]){
        { "--max-cloud-tokens", NULL, OPTION_U64, &shared_options.max_cloud_tokens, "N",
          "Request at most N tokens from the cloud over all answers, failed and repeated requests "
          "included; kept answers do not count (default: no limit)" },
        { "--max-cloud-input", NULL, OPTION_U64, &shared_options.max_cloud_input, "N",
          "Send the cloud at most N token ids over all answers: each request, also a repeated one, "
          "sends the whole text so far (default: no limit)" },
        { "--private-file", NULL, OPTION_STR, &shared_options.private_file, "FILE",
          "Never send a text that contains a line of this file. In a line, \\d is a digit, \\w a "
          "letter, digit or _, \\s a blank and \\\\ a backslash; a line that begins with # is a "
          "comment (default: none)" },
        OPTION_END,
    },
};

const struct option_group answers_option_rows = {
    "Kept answers of the cloud",
    (const struct option[]){
        { "--answers", NULL, OPTION_STR, &shared_options.answers, "FILE",
          "Keep the cloud's answers in FILE, as JSON lines, and request nothing twice; processes "
          "may share it (default: none)" },
        { "--answers-limit", NULL, OPTION_COUNT, &shared_options.answers_limit, "MB",
          "At MB megabytes, rename the file to FILE.old, which is still read, and begin anew "
          "(default: 64)" },
        { "--offline", NULL, OPTION_FLAG, &shared_options.offline, NULL,
          "Answer from --answers alone, without a network; a missing answer is a fault" },
        OPTION_END,
    },
};
