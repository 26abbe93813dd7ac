/* mizzle.h - the public interface of Mizzle, a library that runs a language model on this machine
 * and asks a larger one in the cloud for the few tokens that the small one would get wrong.
 *
 *     struct mizzle_options o;
 *     struct mizzle_prompt p = { .size = sizeof(p), .text = "Once upon" };
 *     struct mizzle *m;
 *     mizzle_options_init(&o, sizeof(o));
 *     o.model = "qwen.gguf";
 *     o.cloud_url = "http://server:8080";
 *     if (mizzle_open(&m, &o, NULL) == MIZZLE_OK) {
 *         mizzle_generate(m, &p, show, NULL, NULL, NULL); // show(arg, token) prints token->piece
 *         mizzle_close(m);
 *     }
 *
 * A whole program, with errors and notes, is in LIBRARY.md.
 *
 * Threads: a handle serves one call at a time. A call that overlaps with another one, from another
 * thread or from a callback, returns MIZZLE_BUSY and changes nothing; only mizzle_stop may be
 * called at any time. Handles share nothing: several can work at the same time, each with its own
 * threads. After fork, the child must not use handles of its parent, nor close them.
 *
 * The library prints nothing, never exits, installs no signal handlers, does not depend on the
 * locale, and reads environment variables only if an option says so. libcurl is initialized once,
 * when the first cloud is opened. Two signals are up to the program. SIGXFSZ: ignore it if there is
 * a limit on file sizes and a file of answers is used; the write then fails with an error.
 * SIGBUS: it is raised if another process truncates the file of a model while mizzle_open reads it.
 *
 * Versions: every struct begins with its size, which the caller sets to sizeof, so that a newer
 * library can serve a program that was built with an older header. A struct from a newer header is
 * accepted if the part that this library does not know is zero, and MIZZLE_ABI is the same. The
 * fields of mizzle_options and mizzle_prompt are pointers or numbers of 8 bytes (on 64-bit
 * machines), so a program in another language may declare only the first few. Until version 1.0,
 * the ABI may change with the second number of the version. */
#ifndef ROUTER_MIZZLE_H
#define ROUTER_MIZZLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MIZZLE_VERSION "0.5.1"
#define MIZZLE_ABI     1 /* of mizzle_options; 0.5.1 had no such number */
#define MIZZLE_API     __attribute__((visibility("default")))

/* Return values. In brackets: the `mizzle` program's exit status. */
enum mizzle_code {
    MIZZLE_OK = 0,
    MIZZLE_NOMEM = 1,   /* out of memory [1] */
    MIZZLE_IO = 2,      /* a file cannot be read or written [3] */
    MIZZLE_FORMAT = 3,  /* the contents of a file are invalid [3] */
    MIZZLE_ARG = 4,     /* an option, a prompt or a struct is invalid [2] */
    MIZZLE_NET = 5,     /* the cloud is required and does not answer [4] */
    MIZZLE_REMOTE = 6,  /* the cloud is required and refuses all requests [4] */
    MIZZLE_STOPPED = 7, /* mizzle_stop was called [130] */
    MIZZLE_TEXT = 8,    /* the cloud is required and refuses this text, but maybe not others [4] */
    MIZZLE_BUSY = 9     /* another call on the handle is running; nothing was changed [1] */
};

struct mizzle_error {
    size_t size;
    int code;          /* enum mizzle_code */
    char message[512]; /* one line without control characters; "" with MIZZLE_OK */
};

struct mizzle; /* an open model with its router, its cloud and the text of the last answer */

/* What on_score reads. Valid during the call. */
struct mizzle_state {
    size_t size;
    const uint32_t *ids; /* [n_ids] token ids of the prompt and of the answer so far */
    size_t n_ids;
    const float *hidden; /* [n_hidden] the small model's state after its final norm */
    size_t n_hidden;
    const float *logits; /* [n_logits] of all ids, before temperature and penalties */
    size_t n_logits;
    uint32_t id; /* the small model's next token */
};

/* The options of mizzle_open. Set the defaults with mizzle_options_init, then change fields. The
 * struct and its strings may be freed after mizzle_open returns. */
struct mizzle_options {
    size_t size;
    size_t abi;            /* set to MIZZLE_ABI by mizzle_options_init; other values are refused */
    const char *model;     /* required: GGUF file or Hugging Face folder; FOLDER:TYPE, as in
                              models:Q4_K_M, picks one of several GGUF files; ORG/NAME or
                              ORG/NAME:TYPE a repository in Hugging Face's cache; nothing is
                              downloaded */
    const char *cloud_url; /* http[s]://host[:port][/base]; NULL: no server */
    const char *router;    /* file; NULL: NAME.router.safetensors beside NAME.gguf, or
                              router.safetensors in the model's folder (in Hugging Face's cache
                              also in models--ORG--NAME), if it exists; for policies "context" and
                              "combined" with their name instead of "router" */
    /* Source of a token's score: "mlp" (the router), "combined" (a router without hidden state),
     * "context" (a table of the last two ids), "entropy", "max-prob", "margin", "random",
     * "position" (see place); "always" and "never" need no score. NULL: that of the router, if one
     * is found and either router or a cloud is set; else "never". */
    const char *policy;
    double threshold; /* 0 to 1; tokens with a lower score are requested from the cloud; NaN, the
                         default: the router's own threshold, else 0.5 */

    /* The answer. The sampler picks the small model's tokens; the cloud is always greedy. */
    size_t max_tokens; /* longest answer; SIZE_MAX: as the context allows; default: 256 */
    /* An answer ends where it contains one of these texts: a NULL-terminated array, or NULL. The
     * token that completes the text is passed to on_token as a whole. */
    const char *const *stops;
    size_t context;        /* length of the KV cache: tokens of prompt and answer; 0: 4096, or the
                              model's maximum if that is less */
    double temp;           /* temperature; default: 0, which takes the most likely token */
    size_t top_k;          /* 0: no limit; default: 40 */
    double top_p;          /* 1: no limit; 0: the likeliest alone; default: 0.95 */
    double min_p;          /* 0: no limit; default: 0.05 */
    double repeat_penalty; /* default: 1, which is no penalty */
    uint64_t seed;         /* for the sampler and the policy "random"; default: 1 */

    /* The machine. */
    size_t threads;  /* at most 64; 0: one per processor */
    const char *isa; /* kernel set, one of those that `mizzle info` lists; NULL: the fastest exact
                        one */
    const char *kv;  /* type of the KV cache, also for a large model in this process: "f32", "f16"
                        or "q8"; NULL: "f32" for models with f32 weights, else "f16" */

    /* The cloud. */
    const char *cloud;          /* "auto": if the cloud fails, the small model's token is kept;
                                   "required": a failure ends the call; "off"; NULL: "auto" */
    const char *cloud_api;      /* "openai", "sglang", "llamacpp" or "auto", which asks the server;
                                   NULL: "auto" */
    const char *cloud_model;    /* NULL: the first model that the server lists; without cloud_url a
                                   large model's file, named as for `model`, which then is the
                                   cloud in this process */
    const char *cloud_key;      /* API key; NULL: see the next two */
    const char *cloud_key_file; /* file that holds the API key; NULL: see the next one */
    size_t cloud_key_env;       /* 1: take the key from MIZZLE_API_KEY or OPENAI_API_KEY */
    const char *cloud_ca; /* PEM file with the only authorities to trust; NULL: the system's */
    size_t cloud_timeout; /* deadline of one call in milliseconds; 0: 10,000, or more for a slow
                             server (net/cloud.h) */
    size_t cloud_tokens;  /* tokens to request per call, 1 to 64; default: 1 */
    size_t ahead;         /* 1, the default: during a call, the small model continues after its own
                             tentative token, up to the next token to route; 0: wait for each
                             answer. The text is the same */

    /* Limits on what is sent to the cloud, over all answers of this handle. */
    uint64_t max_cloud_tokens; /* tokens requested; UINT64_MAX, the default: no limit */
    uint64_t max_cloud_input;  /* token ids sent, the whole prefix with each request; UINT64_MAX,
                                  the default: no limit */
    const char *private_file;  /* patterns, one per line: a text that matches one is not sent; NULL:
                                  none */

    /* Where the cloud's answers are kept. */
    const char *answers;  /* file that keeps them from run to run, as JSON lines; NULL: none */
    size_t answers_limit; /* its size in MiB, at which it begins anew; 0: 64 */
    size_t offline;       /* 1: take them from this file alone, without a network */

    /* mizzle_open calls this, with opening_arg, as soon as m may be passed to mizzle_stop, which
     * then ends a long wait for the cloud: mizzle_open returns MIZZLE_STOPPED. Other calls on m are
     * refused until mizzle_open returns. If opening fails, on_opening is called again with m = NULL
     * before the handle is freed. May be NULL. */
    void (*on_opening)(void *opening_arg, struct mizzle *m);
    void *opening_arg;

    /* Drafts: likely next tokens are evaluated together with the newest one, which saves time if
     * they come. The answer is the same for all values. */
    const char *draft; /* source of drafts: "lookup", the continuation of an earlier occurrence of
                          the last tokens; "cloud", further tokens of the cloud's reply; "both";
                          "off"; NULL: "lookup", or "both" if cloud_tokens is not 1 */

    /* Conversations are written in the form of the model's own chat template, if that is known;
     * without a template in ChatML. */
    const char *chat_template; /* a form instead of the model's own: "qwen2.5", "qwq", "qwen3",
                                  "qwen3-coder", "deepseek", "deepseek-r1", "chatml"; NULL: none */
    const char *think;         /* the template's enable_thinking: "on", "off", or "auto", the
                                  template's default; NULL: "auto". mizzle_note reports problems of
                                  conversations after mizzle_open, with NULL after the first
                                  conversation */

    /* Policy "position" takes the tokens at this place of an answer from the cloud: one token by
     * its number, 0 for the first; a range, as in "0-3"; or, if it is no number, each token that
     * follows this text. NULL: none */
    const char *place;

    /* Maximum share of cloud tokens at any point of an answer, plus two tokens. Beyond it, the
     * small model's tokens are kept, as "capped": a router that asks for more is away from its
     * task. 0, the default: three times the share for which a router was calibrated, if its own
     * threshold is used, else no limit. 1: no limit. */
    double max_routed;

    /* A folder of routers by the model's fingerprint (`mizzle info` prints it). If router is NULL
     * and none is beside the model, FINGERPRINT.router.safetensors in it is used, with "context" or
     * "combined" instead of "router" for these policies. NULL: none. */
    const char *routers;

    /* Your own score in place of a router's, with policy NULL or "mlp" and router NULL. Called with
     * score_arg, on the thread of mizzle_generate, for each token that the small model would write,
     * tentative ones included. It returns 0 to 1. A token that scores NaN, or less than the
     * threshold (NaN: 0.5), goes to the cloud. The score must depend on the state alone, so that an
     * answer is the same for any `ahead`. NULL: none. */
    float (*on_score)(void *score_arg, const struct mizzle_state *state);
    void *score_arg;

    /* URL of a proxy for the cloud, "" for none; NULL: that of http_proxy, https_proxy or all_proxy
     * in the environment. Hosts in no_proxy are always asked directly. */
    const char *cloud_proxy;
};

/* One message of a conversation. Arrays of it are passed, so it never grows. */
struct mizzle_message {
    const char *role; /* "system", "user", "assistant" */
    const char *text; /* UTF-8; the names of special tokens in it are plain text */
    size_t text_size; /* in bytes; 0: strlen(text) */
};

/* What mizzle_generate answers: one of text, ids and messages, with the other two NULL. */
struct mizzle_prompt {
    size_t size;
    const char *text;    /* UTF-8; the names of special tokens in it are read as these tokens */
    size_t text_size;    /* in bytes; 0: strlen(text) */
    const uint32_t *ids; /* token ids, [n_ids] */
    size_t n_ids;
    /* The whole conversation so far, [n_messages], because the library keeps no history: append the
     * answer as a message of the assistant before the next call. If it does not begin with a system
     * message, the model's own, if any, is put in front. */
    const struct mizzle_message *messages;
    size_t n_messages;
    size_t max_tokens;        /* 0: as in the options */
    const char *const *stops; /* NULL: as in the options */
    uint64_t seed;            /* 0: as in the options */
    /* Called with the arg of mizzle_generate while the prompt is evaluated, unless a token came
     * first: `done` of `all` tokens are evaluated. May be NULL. */
    void (*on_reading)(void *arg, size_t done, size_t all);
};

/* Who wrote a token: the small model, the cloud, or the small model because the cloud failed or was
 * not allowed. */
enum mizzle_source { MIZZLE_EDGE, MIZZLE_CLOUD, MIZZLE_FALLBACK };

/* One token of an answer. It is final: tentative tokens are not passed to on_token. The struct and
 * its strings are valid during the callback. */
struct mizzle_token {
    size_t size;
    const char *piece; /* its bytes, zero-terminated. A character may begin in one token and end in
                          a later one. "" for tokens without text, such as the end of the answer */
    size_t piece_size; /* in bytes */
    int source;        /* enum mizzle_source */
    uint32_t id;
    size_t pos;         /* 0 for the first token of the answer */
    double score;       /* 0 to 1; low scores go to the cloud; NaN with the policies "always" and
                           "never", which measure none */
    double ms;          /* time since the token before, or since the call for the first one */
    const char *fault;  /* fallback: one line that says why; else NULL */
    const char *reason; /* fallback: the same as a word, one of those of mizzle_held; else NULL */
    int end;            /* 1: the model ends the answer with this token */
    int has_edge;       /* 1: edge_id is known. For the cloud's tokens it is if the policy needs
                           it, or if ahead is not 0 and the token took a call of its own */
    uint32_t edge_id;   /* the small model's choice for this token */
};

/* Statistics of one answer. Times are in milliseconds. */
struct mizzle_stats {
    size_t size;
    size_t tokens;          /* of the answer; among them: */
    size_t cloud, fallback; /* written by the cloud; by the small model in its place */
    size_t prompt_tokens;
    const char *finish; /* "eos", "length", "stop" (a stop text, or on_token returned false) or
                           "error"; static */
    double prompt_ms, ttft_ms, total_ms; /* until the prompt was read (0: a token came first); the
                                            first token; the end */
    double start_ms;                     /* time that mizzle_open waited for the cloud; 0 after
                                            the first answer of a handle */
    double edge_ms, router_ms, cloud_ms; /* evaluating the model; scoring; waiting for the cloud */
    /* calls = committed (the answer was used) + failed, and one if an answer was stopped in it */
    uint64_t calls, committed, failed;
    uint64_t memo, store;                        /* cloud tokens from memory; from the file */
    uint64_t retries;                            /* requests sent again, after a fault */
    uint64_t bytes_up, bytes_down;               /* bodies and headers */
    uint64_t header_bytes_up, header_bytes_down; /* the headers' part of these */
    /* Fallback tokens by reason. */
    struct mizzle_held {
        size_t no_cloud;     /* "no-cloud": there is none */
        size_t refused;      /* "refused": the server refuses every request (401, 403, 404) */
        size_t unfit;        /* "unfit": the server refuses this text, for example as too long */
        size_t private_text; /* "private": the text matches a private pattern */
        size_t capped;       /* "capped": a limit of tokens is reached */
        size_t breaker;      /* "breaker": not tried, because several calls in a row have failed */
        size_t fault;        /* "fault": the call failed */
    } held;
    size_t passes;         /* evaluations after the prompt's */
    size_t drafted;        /* tokens of drafts that were evaluated */
    size_t accepted;       /* accepted tokens of drafts, also if rolled back later */
    uint64_t asked_tokens; /* tokens requested, repeated requests included */
};

/* Return MIZZLE_VERSION of the library. */
MIZZLE_API const char *mizzle_version(void);

/* Set the first `size` bytes of *o to the defaults, and o->size to size. size is sizeof(*o), or for
 * a struct with fewer fields any multiple of the size of a pointer. */
MIZZLE_API void mizzle_options_init(struct mizzle_options *o, size_t size);

/* Open a model, its router and its cloud. On error *out is NULL. A cloud that cannot be reached is
 * an error only if it is required; otherwise mizzle_note reports it. Policy "always"
 * without any cloud is MIZZLE_NET. err may be NULL, here and below; it is also set on success. */
MIZZLE_API int mizzle_open(struct mizzle **out, const struct mizzle_options *o,
                           struct mizzle_error *err);

/* Generate an answer. on_token (which may be NULL) is called for each token in order, on the
 * caller's thread; if it returns false, the answer ends there, with MIZZLE_OK. It must not throw or
 * longjmp. The part of the prompt that is the same as in the text before is not evaluated again. If
 * stats is not NULL, it is filled, also after an error. Only a call that was rejected at once (no
 * handle, MIZZLE_BUSY, a wrong stats->size) leaves it alone. After any error the handle can still
 * be used. */
MIZZLE_API int mizzle_generate(struct mizzle *m, const struct mizzle_prompt *prompt,
                               bool (*on_token)(void *arg, const struct mizzle_token *token),
                               void *arg, struct mizzle_stats *stats, struct mizzle_error *err);

/* End the running mizzle_generate with MIZZLE_STOPPED or, if none is running, the next one; for
 * mizzle_open see on_opening. Returns at once. May be called from any thread and from a signal
 * handler, but not during or after mizzle_close. NULL is fine. */
MIZZLE_API void mizzle_stop(struct mizzle *m);

/* Free m; NULL is fine. Return MIZZLE_OK, or MIZZLE_BUSY if a call is running (m is not freed). */
MIZZLE_API int mizzle_close(struct mizzle *m);

/* Take the next note for the user, such as why the cloud is off or that the disk is full.
 * Return true and set note->message (note->code is MIZZLE_OK), or false if there is none, m is NULL
 * or a call is running. The caller sets note->size. Each note is returned once. Ask until false
 * after mizzle_open, after each answer and before mizzle_close. */
MIZZLE_API bool mizzle_note(struct mizzle *m, struct mizzle_error *note);

#ifdef __cplusplus
}
#endif

#endif
