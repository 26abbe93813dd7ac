#include "tools/lab/bench/oracle_cloud.h"

#include <stdlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "model/text/vocabulary.h"
#include "net/cloud.h"
#include "tools/cli/setup.h"
#include "tools/lab/stand_in/stand_in.h"

enum { BYTES = 256, LETTERS = 26, LENGTH = 4, MOST = BYTES + 26 * 26 * 26 * 26 };
enum { TIMEOUT_MS = 600000 };

/* Write the piece of an id: a byte in GPT-2's alphabet, in which printable bytes stand for
 * themselves and the others are mapped to U+0100 and up, or a word. */
static size_t oracle_cloud_piece(char *out, uint32_t id, uint32_t *next)
{
    bool self = (id >= 0x21 && id <= 0x7e) || (id >= 0xa1 && id <= 0xac) || id >= 0xae;
    if (id < BYTES)
        return text_encode(out, self ? id : (*next)++);
    uint32_t rest = id - BYTES;
    for (size_t i = LENGTH; i-- > 0; rest /= LETTERS)
        out[i] = (char)('a' + rest % LETTERS);
    return LENGTH;
}

/* Make the vocabulary. */
static int oracle_cloud_vocabulary(struct tokenizer **out, size_t n, struct err *err)
{
    char *text = calloc(n, LENGTH);
    struct str *pieces = calloc(n, sizeof(*pieces));
    int *types = calloc(n, sizeof(*types));
    uint32_t next = BYTES;
    int rc = text && pieces && types ? OK : err_set(err, ERR_NOMEM, "vocabulary: out of memory");
    for (uint32_t id = 0; rc == OK && id < n; id++) {
        char *at = text + LENGTH * (size_t)id;
        pieces[id] = (struct str){ at, oracle_cloud_piece(at, id, &next) };
        types[id] = PIECE_NORMAL;
    }
    const struct vocabulary v = {
        .path = "the benchmark's", .pieces = pieces, .types = types, .count = n
    };
    if (rc == OK)
        rc = tokenizer_build(out, &v, err);
    free(types);
    free(pieces);
    free(text);
    return rc;
}

int oracle_cloud_open(struct oracle_cloud *out, size_t vocab, size_t context,
                      const struct stand_in_net *net,
                      uint32_t (*next)(void *arg, const uint32_t *ids, size_t n), void *arg,
                      struct err *err)
{
    size_t n = vocab < MOST ? vocab : MOST;
    *out = (struct oracle_cloud){ .vocab = NULL };
    if (n < BYTES)
        return err_set(err, ERR_ARG, "vocabulary: expected at least %d ids, found %zu", BYTES, n);
    int rc = oracle_cloud_vocabulary(&out->vocab, n, err);
    const struct stand_in_oracle oracle = { next, arg, out->vocab };
    const struct stand_in_options s = {
        .oracle = &oracle, .server = CLOUD_SGLANG, .net = *net, .context = context
    };
    if (rc == OK)
        rc = stand_in_open(&out->server, &s, err);
    if (rc)
        return rc;
    const struct cloud_options c = { .url = stand_in_url(out->server),
                                     .api = CLOUD_SGLANG,
                                     .vocab = n,
                                     .timeout_ms = TIMEOUT_MS,
                                     .stop = &interrupted };
    rc = cloud_open(&out->cloud, &c, err);
    return rc ? rc : cloud_ready(out->cloud, err);
}

void oracle_cloud_close(struct oracle_cloud *c)
{
    cloud_close(c->cloud);
    stand_in_close(c->server);
    tokenizer_close(c->vocab);
}
