#include "tools/cli/cloud_link.h"

#include <stdio.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "tools/cli/options.h"
#include "tools/cli/setup.h"

enum { DAY_MS = 86400000, MAX_SLOT = 1 << 20 };

static int cloud_link_encode(void *arg, uint32_t **ids, size_t *count, const char *text, size_t n,
                             struct err *err)
{
    return tokenizer_encode(arg, ids, count, text, n, true, err);
}

static unsigned at_most_a_day(size_t ms)
{
    return ms < DAY_MS ? (unsigned)ms : DAY_MS;
}

int cloud_link_options(struct cloud_options *o, char **key, const char *url,
                       const struct tokenizer *t, bool own, struct err *err)
{
    struct err note = { "" };
    *key = NULL;
    *o = (struct cloud_options){
        .url = url,
        .model = cloud_option_values.model,
        .ca = cloud_option_values.ca,
        .timeout_ms = at_most_a_day(cloud_option_values.timeout_ms),
        .vocab = t ? tokenizer_size(t) : UINT32_MAX,
        .stop = &interrupted,
        .tokens = cloud_option_values.tokens,
        .hedge_ms = at_most_a_day(cloud_option_values.hedge_ms),
        .compress = cloud_option_values.compress,
        .slot = cloud_option_values.slot < MAX_SLOT ? cloud_option_values.slot + 1 : 0,
        .encode = t && !own ? cloud_link_encode : NULL,
        .encode_arg = (void *)(size_t)t,
    };
    if (!cloud_api_parse(&o->api, cloud_option_values.api))
        return err_set(err, ERR_ARG,
                       "--cloud-api: expected auto, openai, sglang or llamacpp, found %s",
                       cloud_option_values.api);
    if (!cloud_option_values.tokens || cloud_option_values.tokens > CLOUD_MAX_TOKENS)
        return err_set(err, ERR_ARG, "--cloud-tokens: expected 1 to %d, found %zu",
                       CLOUD_MAX_TOKENS, cloud_option_values.tokens);
    /* A dialect that is named needs no answer before the first call. */
    o->background = o->api != CLOUD_AUTO;
    int rc = own ? OK : api_key_read(key, cloud_option_values.key_file, url, &note, err);
    o->key = *key;
    if (*note.msg)
        fprintf(stderr, "mizzle: %s\n", note.msg);
    return rc;
}

void cloud_link_notes(struct cloud *c)
{
    struct err note;
    while (cloud_note(c, &note))
        fprintf(stderr, "mizzle: %s\n", note.msg);
}
