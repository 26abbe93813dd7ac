#include "tools/cli/keep.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "net/answers/answers.h"
#include "net/answers/store.h"
#include "router/private.h"

static struct {
    const char *store, *record, *replay;
    size_t store_mb;
    uint64_t max_tokens, max_upload;
    const char *budget, *price;
    const char *from, *to, *patterns;
} options = { .store_mb = STORE_LIMIT >> 20, .max_tokens = UINT64_MAX, .max_upload = UINT64_MAX };

const struct option_group keep_option_rows = {
    "Limits and memory of the cloud",
    (const struct option[]){
        { "--max-cloud-tokens", NULL, OPTION_U64, &options.max_tokens, "N",
          "ask the cloud for no more tokens than this, over all answers; what the store or the "
          "memo "
          "knows does not count (default: no limit)" },
        { "--max-upload-bytes", NULL, OPTION_U64, &options.max_upload, "N",
          "no more bytes of requests than this, headers and retries apart (default: no limit)" },
        { "--cloud-budget", NULL, OPTION_STR, &options.budget, "AMOUNT",
          "no more money than this, in the currency of --cloud-price (default: no limit)" },
        { "--cloud-price", NULL, OPTION_STR, &options.price, "PRICES",
          "prices per million tokens, UP,CACHED,DOWN as in 2.50,1.25,10; or a file with lines "
          "MODEL UP CACHED DOWN, where MODEL * is any other" },
        { "--private-from", NULL, OPTION_STR, &options.from, "TEXT",
          "a text that holds this is not sent any more from there on" },
        { "--private-to", NULL, OPTION_STR, &options.to, "TEXT",
          "ends what --private-from begins: with nothing but blanks between the two, it is sent" },
        { "--private-file", NULL, OPTION_STR, &options.patterns, "FILE",
          "a text that holds a line of this file is not sent; in a line, \\d is a digit, \\w a "
          "letter, digit or _, \\s a blank, \\\\ a backslash, # at its beginning a comment" },
        { "--cloud-store", NULL, OPTION_STR, &options.store, "FILE",
          "keep the cloud's answers there, and ask it nothing twice; processes may share it" },
        { "--store-limit", NULL, OPTION_SIZE, &options.store_mb, "MB",
          "size of the store; beyond it the older half goes (default: 64)" },
        { "--record", NULL, OPTION_STR, &options.record, "FILE",
          "append the cloud's answers there, as JSON lines" },
        { "--replay", NULL, OPTION_STR, &options.replay, "FILE",
          "take the cloud's answers from a recording and use no network; what it does not hold "
          "is a fault" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static int open_caches(struct keep *k, const struct tokenizer *t, struct err *err)
{
    if (options.store_mb < 1 || options.store_mb > 65536)
        return err_set(err, ERR_ARG, "--store-limit: expected 1 to 65536 MB, found %zu",
                       options.store_mb);
    if (options.replay && (options.record || options.store))
        return err_set(err, ERR_ARG, "--replay answers from its file alone: leave out %s",
                       options.record ? "--record" : "--cloud-store");
    const struct answers_options o = { .store = options.store,
                                       .store_limit = (uint64_t)options.store_mb << 20,
                                       .record = options.record,
                                       .replay = options.replay,
                                       .tokenizer = tokenizer_fingerprint(t),
                                       .vocab = tokenizer_size(t) };
    /* A file that may not grow is a full disk, not a reason to die. */
    signal(SIGXFSZ, SIG_IGN);
    return answers_open(&k->answers, &o, err);
}

/* Digits and what stands between them, and no such file. */
static bool looks_like_prices(const char *text)
{
    return text[strspn(text, "0123456789., ")] == 0 && access(text, F_OK) != 0;
}

static int open_limits(struct keep *k, struct err *err)
{
    struct caps_limits l = caps_none;
    l.tokens = options.max_tokens;
    l.upload = options.max_upload;
    if (options.budget && !caps_decimal(&l.budget, options.budget, strlen(options.budget), 12))
        return err_set(err, ERR_ARG, "--cloud-budget: expected an amount such as 0.50, found %s",
                       options.budget);
    if (options.budget && !options.price)
        return err_set(err, ERR_ARG, "--cloud-budget needs --cloud-price");
    k->priced = options.price && caps_price(&l.price, options.price);
    if (options.price && !k->priced && looks_like_prices(options.price))
        return err_set(err, ERR_ARG,
                       "--cloud-price: expected UP,CACHED,DOWN as in 2.50,1.25,10, or a file, "
                       "found %s",
                       options.price);
    caps_begin(&k->caps, &l);
    return OK;
}

int keep_open(struct keep *k, const struct tokenizer *t, struct err *err)
{
    const struct private_options o = { options.from, options.to, options.patterns };
    memset(k, 0, sizeof(*k));
    int rc = open_limits(k, err);
    if (rc == OK)
        rc = private_open(&k->spans, &o, t, err);
    if (rc == OK)
        rc = open_caches(k, t, err);
    if (rc == OK)
        keep_notes(k);
    else
        keep_close(k, NULL);
    return rc;
}

bool keep_replays(const struct keep *k)
{
    return k->answers && answers_replays(k->answers);
}

bool keep_wants_model(const struct keep *k)
{
    return options.price && !k->priced;
}

int keep_price(struct keep *k, const char *model, struct err *err)
{
    return caps_price_file(&k->caps.limits.price, options.price, model, err);
}

void keep_notes(struct keep *k)
{
    struct err note;
    while (k->answers && answers_note(k->answers, &note))
        fprintf(stderr, "mizzle: %s\n", note.msg);
}

int keep_close(struct keep *k, struct err *err)
{
    keep_notes(k);
    int rc = answers_close(k->answers, err);
    private_close(k->spans);
    caps_end(&k->caps);
    memset(k, 0, sizeof(*k));
    return rc;
}
