/* mizzle.h - the whole of Mizzle as a library: a small model here, a large one in the cloud for the
 * few tokens that the small one would get wrong.
 *
 *     struct mizzle_options o;
 *     struct mizzle *m;
 *     mizzle_options_init(&o, sizeof(o));
 *     o.model = "qwen.gguf";
 *     o.cloud_url = "http://server:8080";
 *     mizzle_open(&m, &o, NULL);
 *     mizzle_generate(m, &(struct mizzle_prompt){ .size = sizeof(struct mizzle_prompt),
 *                                                 .text = "Once upon" }, print, NULL, NULL, NULL);
 *     mizzle_close(m);
 *
 * Threads: one call at a time uses a handle; a second one is refused with MIZZLE_BUSY. mizzle_stop
 * is the exception. Handles share nothing: several may work at the same time, each with threads of
 * its own. After fork a child must not use what it inherited, not even close it.
 *
 * The library prints nothing, never ends the process, installs no signal handler, depends on no
 * locale and reads no environment variable unless an option says so. libcurl is initialised once,
 * when the first cloud is opened. Two signals are the program's to handle: SIGXFSZ, where it has a
 * limit on file sizes and keeps a store or a recording; SIGBUS, where somebody cuts a model's file
 * while it is being opened.
 *
 * Every struct begins with its size, which the caller sets to sizeof: a newer library then serves a
 * program that was built with an older header. All fields of mizzle_options and mizzle_prompt are
 * pointers or numbers of 8 bytes (on 64-bit machines), so a program in another language may declare
 * just the first ones. A struct from a newer header is served as long as what this library does not
 * know is zero. Until version 1.0 the ABI may change with the second number of the version. */
#ifndef ROUTER_MIZZLE_H
#define ROUTER_MIZZLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MIZZLE_VERSION "0.1.0"
#define MIZZLE_API     __attribute__((visibility("default")))

/* What calls return. In brackets the exit status that `mizzle` makes of it. */
enum mizzle_code {
    MIZZLE_OK = 0,
    MIZZLE_NOMEM = 1,   /* memory has run out [1] */
    MIZZLE_IO = 2,      /* a file cannot be read or written [3] */
    MIZZLE_FORMAT = 3,  /* a file is damaged, or not what it should be [3] */
    MIZZLE_ARG = 4,     /* an option, a prompt or a struct is wrong [2] */
    MIZZLE_NET = 5,     /* the cloud is required and does not answer [4] */
    MIZZLE_REMOTE = 6,  /* the cloud is required and refuses for good [4] */
    MIZZLE_STOPPED = 7, /* mizzle_stop [130] */
    MIZZLE_TEXT = 8,    /* the cloud is required and refuses this text; others it may take [4] */
    MIZZLE_BUSY = 9     /* a call on this handle is running; nothing was changed [1] */
};

struct mizzle_error {
    size_t size;
    int code;          /* enum mizzle_code */
    char message[512]; /* one line of text without control characters, or "" */
};

struct mizzle; /* a model with its router, its cloud and one text in progress */

/* Strings, arrays and the struct itself may go once mizzle_open has returned. */
struct mizzle_options {
    size_t size;
    const char *model;     /* GGUF file or Hugging Face folder */
    const char *cloud_url; /* http[s]://host[:port][/base]; NULL: no cloud */
    const char *router;    /* file; NULL: NAME.router.safetensors beside NAME.gguf, or
                              router.safetensors in the folder, if there */
    const char *policy;    /* "mlp", "entropy", "max-prob", "margin", "random", "always", "never";
                              NULL: mlp where there is a router, else never */
    double threshold;      /* a score below it, 0 to 1, goes to the cloud; NaN: the router's own,
                              else 0.5 */

    /* The answer. The sampler picks the small model's tokens; the cloud is always greedy. */
    size_t max_tokens;        /* default: 256 */
    const char *const *stops; /* texts that end an answer, NULL-ended; NULL: none */
    size_t context;        /* room for prompt and answer in tokens; 0: 4096, or all that the model
                              was made for where that is less */
    double temp;           /* default: 0, the likeliest token */
    size_t top_k;          /* 0: off; default: 40 */
    double top_p;          /* 1: off; default: 0.95 */
    double min_p;          /* 0: off; default: 0.05 */
    double repeat_penalty; /* 1: off, the default */
    uint64_t seed;         /* of the sampler and of policy random; default: 1 */

    /* The machine. */
    size_t threads;  /* to compute with; 0: one per processor */
    const char *isa; /* a kernel set, as `mizzle info` lists them; NULL: the best exact one */
    const char *kv; /* keys and values in "f32", "f16" or "q8"; NULL: f32 for models of f32 weights,
                       else f16 */

    /* The cloud. */
    const char *cloud;          /* "auto": a fault keeps the small model's token; "off";
                                   "required": a fault ends the call; NULL: auto */
    const char *cloud_api;      /* "openai", "sglang", "llamacpp", or "auto" to ask; NULL: auto */
    const char *cloud_model;    /* model to ask for; NULL: the first one that the server lists */
    const char *cloud_key;      /* API key */
    const char *cloud_key_file; /* else a file with it */
    size_t cloud_key_env;       /* 1: else take MIZZLE_API_KEY or OPENAI_API_KEY */
    const char *cloud_ca;    /* PEM file with the only authorities to trust; NULL: the system's */
    size_t cloud_timeout;    /* deadline of one call in milliseconds; 0: 10,000 */
    size_t cloud_tokens;     /* of one call, 1 to 64; default: 1 */
    size_t hedge_ms;         /* send a call again after this long; 0: never */
    size_t compress;         /* 1: gzip requests where the server takes it */
    size_t cloud_slot;       /* of llama.cpp's server; SIZE_MAX, the default: its choice */
    size_t ahead;            /* requests out at once while the small model goes on, 0 to 64; the
                                text is the same for all; default: 1 */
    size_t max_wasted_calls; /* made ahead and not used; 0: no limit */

    /* What the cloud may get and cost, over all answers of this handle. */
    uint64_t max_cloud_tokens, max_upload_bytes; /* UINT64_MAX, the default: no limit */
    const char *cloud_budget;                    /* an amount such as "0.50"; NULL: no limit */
    const char *cloud_price;  /* "UP,CACHED,DOWN" per million tokens, or a file of lines "MODEL UP
                                 CACHED DOWN" */
    const char *private_from; /* a text is not sent from this marker on... */
    const char *private_to;   /* ...to this one */
    const char *private_file; /* patterns, a line each: a text that holds one is not sent */

    /* What is kept of the cloud's answers. */
    const char *cloud_store; /* file that keeps them from run to run */
    size_t store_limit;      /* its size in MiB; 0: 64 */
    const char *record;      /* file to append them to, as JSON lines */
    const char *replay;      /* file to take them from; no network then */

    /* Called by mizzle_open with opening_arg as soon as mizzle_stop accepts the handle: it ends a
     * long wait for the cloud, and mizzle_open returns MIZZLE_STOPPED. Where opening fails, it is
     * called again with NULL before the handle is freed. May be NULL. */
    void (*on_opening)(void *opening_arg, struct mizzle *m);
    void *opening_arg;
};

struct mizzle_message { /* never grows: arrays of it are passed */
    const char *role;   /* "system", "user", "assistant" */
    const char *text;   /* special tokens spelt out in it stay text */
    size_t text_size;   /* in bytes; 0: as long as strlen says */
};

/* One of text, ids and messages; the rest zero. */
struct mizzle_prompt {
    size_t size;
    const char *text;    /* UTF-8; special tokens spelt out in it are parsed */
    size_t text_size;    /* in bytes; 0: as long as strlen says */
    const uint32_t *ids; /* token ids, [n_ids] */
    size_t n_ids;
    const struct mizzle_message *messages; /* of a conversation, [n_messages]; where no system
                                              message is first, the model's own is put in front */
    size_t n_messages;
    size_t max_tokens;        /* 0: the options' */
    const char *const *stops; /* NULL: the options' */
    uint64_t seed;            /* 0: the options' */
    /* Called while the prompt is read, with arg: so many of its tokens are done. May be NULL. */
    void (*on_reading)(void *arg, size_t done, size_t all);
};

/* Who wrote a token: the small model; the cloud; the small model because the cloud could not. */
enum mizzle_source { MIZZLE_EDGE, MIZZLE_CLOUD, MIZZLE_FALLBACK };

/* One token of the answer. It is final: what was written ahead of the cloud is not shown before it
 * is decided. Valid during the callback. */
struct mizzle_token {
    size_t size;
    const char *piece; /* its bytes, terminated; a character may begin in one token and end in the
                          next; "" for tokens that have no text, such as the end of the answer */
    size_t piece_size; /* in bytes */
    int source;        /* enum mizzle_source */
    uint32_t id;
    size_t pos;        /* 0 for the first one of the answer */
    double score;      /* 0 to 1: low goes to the cloud; NaN: policies always and never have none */
    double ms;         /* since the token before; the first one: since the start */
    const char *fault; /* fallback: why, one line; else NULL */
    const char *reason; /* fallback: the same in a word: "no-cloud", "refused", "unfit", "private",
                           "capped", "breaker", "fault" */
    int end;            /* 1: the model ends the answer here */
    int has_edge;       /* 1: the small model's own token is known: */
    uint32_t edge_id;
};

/* One answer in figures. Times are in milliseconds. */
struct mizzle_stats {
    size_t size;
    size_t tokens, cloud, fallback; /* written; of these by the cloud, and instead of it */
    size_t prompt_tokens;
    const char *finish; /* "eos", "length", "stop" (a stop text, or the callback), "error" */
    double first_ms, total_ms;
    double start_ms; /* waited for the cloud in mizzle_open; in the first answer's stats alone */
    double edge_ms, router_ms, cloud_ms; /* computing, scoring, waiting */
    /* calls = committed (answered) + failed + wasted (made ahead, and not needed) */
    uint64_t calls, committed, failed, wasted;
    uint64_t memo_hits, store_hits; /* tokens of the cloud that needed no call */
    uint64_t retries, hedges;       /* requests sent once more: after a fault; for being late */
    uint64_t bytes_up, bytes_down;  /* with headers, of wasted calls too */
    uint64_t header_bytes_up, header_bytes_down;
    uint64_t cost; /* in millionths of a millionth of cloud_price's currency */
    struct mizzle_held {
        size_t no_cloud, refused, unfit, private_text, capped, breaker, fault;
    } held; /* the fallback tokens by reason */
};

/* MIZZLE_VERSION of the library. */
MIZZLE_API const char *mizzle_version(void);

/* Set the first `size` bytes of o to the defaults, and o->size. Any multiple of a pointer's size
 * will do. */
MIZZLE_API void mizzle_options_init(struct mizzle_options *o, size_t size);

/* Open model, router and cloud. On error *out is NULL. A cloud that is not there is no error unless
 * it is required: mizzle_note then says so. err may be NULL, here and below. */
MIZZLE_API int mizzle_open(struct mizzle **out, const struct mizzle_options *o,
                           struct mizzle_error *err);

/* Write an answer. on_token, which may be NULL, gets each token in order, on this thread; false
 * ends the answer; it must not throw or jump out. What the prompt shares with the text before it is
 * not computed again. stats may be NULL; they are filled on errors, too. After an error the handle
 * can go on with any prompt. */
MIZZLE_API int mizzle_generate(struct mizzle *m, const struct mizzle_prompt *prompt,
                               bool (*on_token)(void *arg, const struct mizzle_token *token),
                               void *arg, struct mizzle_stats *stats, struct mizzle_error *err);

/* End the running call with MIZZLE_STOPPED; where none runs, the next one. Returns at once. May be
 * called from any thread and from a signal handler, until mizzle_close. NULL is fine. */
MIZZLE_API void mizzle_stop(struct mizzle *m);

/* MIZZLE_OK, and m is gone; MIZZLE_IO: m is gone, and the recording is incomplete; MIZZLE_BUSY:
 * a call is running, and nothing happens. NULL is fine. */
MIZZLE_API int mizzle_close(struct mizzle *m);

/* Take the next line that a person should know and was not told yet (the cloud is off, and why; the
 * store's disk is full): true, and it is in note->message. Worth a look after mizzle_open, after an
 * answer and before mizzle_close. False during a call. */
MIZZLE_API bool mizzle_note(struct mizzle *m, struct mizzle_error *note);

#ifdef __cplusplus
}
#endif

#endif
