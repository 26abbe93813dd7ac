#include "tools/eval/agree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/learn/samples.h"
#include "router/router.h"
#include "tools/cli/setup.h"
#include "tools/eval/eval.h"
#include "tools/run/prompt_input.h"

/* Read one id at *p. False: something else is there. */
static bool agree_read_id(uint32_t *id, const char **p, size_t size)
{
    uint64_t value = 0;
    const char *at = *p;
    for (; *at >= '0' && *at <= '9' && value < size; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    if (at == *p || value >= size || !strchr(" \t\r\n", *at)) /* strchr finds the end, too */
        return false;
    *id = (uint32_t)value;
    *p = at;
    return true;
}

/* Return the number of blank characters of the line at p. */
static size_t agree_blanks(const char *p)
{
    return strspn(p, " \t\r");
}

/* Read the ids of one line; *p becomes its end. */
static int agree_read_line(struct agree *a, const char **p, const char *path, size_t line,
                           struct err *err)
{
    struct agree_part *text = &a->texts[a->ntexts];
    text->at = a->nids;
    for (*p += agree_blanks(*p); **p && **p != '\n'; *p += agree_blanks(*p))
        if (!agree_read_id(&a->ids[a->nids++], p, a->size))
            return err_set(err, ERR_FORMAT,
                           "%s: line %zu: expected token ids below %zu, found \"%.*s\"", path, line,
                           a->size,
                           (int)(strcspn(*p, " \t\r\n") < 40 ? strcspn(*p, " \t\r\n") : 40), *p);
    text->n = a->nids - text->at;
    if (text->n >= a->context)
        return err_set(err, ERR_FORMAT, "%s: line %zu: expected fewer than %zu ids, found %zu",
                       path, line, a->context, text->n);
    a->ntexts += text->n != 0;
    return OK;
}

/* Read the texts. An id takes at least two bytes, and so does a line that has one. */
static int agree_read(struct agree *a, const char *path, struct err *err)
{
    char *bytes = NULL;
    size_t n = 0;
    int rc = prompt_input_read(&bytes, &n, path, err);
    if (rc != OK)
        return rc;
    a->ids = calloc(n / 2 + 2, sizeof(*a->ids));
    a->texts = calloc(n / 2 + 2, sizeof(*a->texts));
    if (!a->ids || !a->texts)
        rc = err_set(err, ERR_NOMEM, "%s: out of memory", path);
    const char *p = bytes;
    for (size_t line = 1; rc == OK && *p; line++, p += *p == '\n')
        rc = agree_read_line(a, &p, path, line, err);
    if (rc == OK && p != bytes + n)
        rc = err_set(err, ERR_FORMAT, "%s: expected lines of token ids, found a byte 0", path);
    if (rc == OK && !a->nids)
        rc = err_set(err, ERR_FORMAT, "%s: expected lines of token ids, found none", path);
    free(bytes);
    return rc;
}

/* Deal n prompts to the texts in turn; those of one text are evenly spaced beginnings of it. */
static int agree_deal(struct agree *a, size_t n, struct err *err)
{
    a->prompts = calloc(n, sizeof(*a->prompts));
    a->text = calloc(a->context, sizeof(*a->text));
    a->scores = calloc(a->length, sizeof(*a->scores));
    if (!a->prompts || !a->text || !a->scores)
        return err_set(err, ERR_NOMEM, "agree: out of memory");
    for (size_t i = 0; i < n; i++) {
        size_t line = i % a->ntexts, turn = i / a->ntexts;
        size_t turns = n / a->ntexts + (line < n % a->ntexts);
        const struct agree_part *text = &a->texts[line];
        a->prompts[i].at = text->at;
        a->prompts[i].n = 1 + turn * text->n / turns;
    }
    a->nprompts = n;
    return OK;
}

int agree_prepare(struct agree *a, const struct router *r, struct err *err)
{
    size_t room = router_is_table(r) ? 0 : router_scratch(r);
    if (router_reads_features(r))
        return err_set(err, ERR_ARG, "agree: expected a router that reads hidden states alone");
    if (room <= a->room)
        return OK;
    free(a->scratch);
    a->scratch = calloc(room, sizeof(*a->scratch));
    a->room = a->scratch ? room : 0;
    return a->scratch ? OK : err_set(err, ERR_NOMEM, "agree: out of memory");
}

/* Open both models and their sessions. */
static int agree_models(struct agree *a, const char *cloud, struct err *err)
{
    int rc = setup_engine(&a->edge, NULL, false, err);
    if (rc == OK)
        rc = setup_engine(&a->cloud, cloud, false, err);
    if (rc == OK)
        rc = setup_kv(&a->kv, engine_best_kv(&a->edge), err);
    if (rc != OK)
        return rc;
    const struct model_config *small = model_config(a->edge.model);
    const struct model_config *large = model_config(a->cloud.model);
    a->size = a->edge.tokenizer ? tokenizer_size(a->edge.tokenizer) : small->vocab;
    if (a->size > small->vocab)
        a->size = small->vocab;
    if (large->vocab < a->size)
        return err_set(err, ERR_ARG,
                       "--cloud-model: expected a model of at least %zu ids, found %zu", a->size,
                       (size_t)large->vocab);
    a->context = small->context < large->context ? small->context : large->context;
    rc = session_open(&a->small, a->edge.batch, a->context, a->kv, err);
    return rc ? rc : session_open(&a->large, a->cloud.batch, a->context, a->kv, err);
}

void agree_close(struct agree *a)
{
    session_close(a->small);
    session_close(a->large);
    engine_close(&a->edge);
    engine_close(&a->cloud);
    free(a->scratch);
    free(a->ids);
    free(a->text);
    free(a->scores);
    free(a->texts);
    free(a->prompts);
    free(a->truth);
    *a = (struct agree){ 0 };
}

/* Return the score of the small model's token after text[n], whose state is the `back`-th last of
 * its latest eval; NaN: the policy has none. i: the text, for policy random. */
static float agree_score(struct agree *a, const struct agree_how *how, size_t i,
                         const uint32_t *text, size_t n, size_t back)
{
    switch (how->policy) {
    case POLICY_MLP:
        return router_score(how->router, session_hidden(a->small, router_tap(how->router), back),
                            a->scratch);
    case POLICY_CONTEXT:
        return router_score_ids(how->router, text, n);
    case POLICY_RANDOM:
        return policy_score_random(rand_u64(a->seed, i), n);
    case POLICY_ALWAYS:
    case POLICY_NEVER:
    case POLICY_ORACLE:
    case POLICY_PRICE:
    case POLICY_POSITION:
    case POLICY_COMBINED:
    case POLICY_QUERY:
        return NAN;
    case POLICY_ENTROPY:
    case POLICY_MAX_PROB:
    case POLICY_MARGIN:
        break;
    }
    return policy_score_logits(how->policy, session_logits(a->small, back), a->size,
                               &a->edge.kernels);
}

/* What agree_teacher collects. */
struct agree_seen {
    const struct agree_how *hows;
    size_t n;
    unsigned char *same; /* [nids] */
    float *scores;       /* [n][nids] */
};

/* Run both models over one text. */
static int agree_text(struct agree_seen *seen, struct agree *a, const struct agree_part *text,
                      struct err *err)
{
    const uint32_t *ids = a->ids + text->at;
    session_rewind(a->small, 0);
    session_rewind(a->large, 0);
    for (size_t at = 0, m; at < text->n; at += m) {
        m = text->n - at < BATCH_ROWS ? text->n - at : (size_t)BATCH_ROWS;
        int rc = session_eval(a->small, ids + at, m, &interrupted, err);
        if (rc == OK)
            rc = session_eval(a->large, ids + at, m, &interrupted, err);
        if (rc != OK)
            return rc;
        for (size_t i = 0; i < m; i++) {
            size_t back = m - 1 - i, to = text->at + at + i;
            seen->same[to] = a->edge.kernels.argmax_f32(session_logits(a->small, back), a->size) ==
                             a->cloud.kernels.argmax_f32(session_logits(a->large, back), a->size);
            for (size_t h = 0; h < seen->n; h++)
                seen->scores[h * a->nids + to] =
                    agree_score(a, &seen->hows[h], 0, ids, at + i + 1, back);
        }
    }
    return OK;
}

int agree_teacher(struct agree_teacher *out, struct agree *a, const struct agree_how *hows,
                  size_t n, struct err *err)
{
    struct agree_seen seen = { hows, n, malloc(a->nids), calloc(a->nids, (n + 1) * sizeof(float)) };
    int rc = seen.same && seen.scores ? OK : err_set(err, ERR_NOMEM, "agree: out of memory");
    *out = (struct agree_teacher){ .tokens = a->nids };
    for (size_t i = 0; rc == OK && i < a->ntexts; i++)
        rc = agree_text(&seen, a, &a->texts[i], err);
    for (size_t i = 0; rc == OK && i < a->nids; i++)
        out->same += seen.same[i];
    for (size_t h = 0; rc == OK && h < n; h++)
        rc = samples_auc(&out->auc[h], seen.scores + h * a->nids, seen.same, a->nids, err);
    free(seen.same);
    free(seen.scores);
    return rc;
}

/* Roll a session back to what its text shares with the prompt, but its last id. */
static void agree_enter(struct session *s, const uint32_t *prompt, size_t n)
{
    const uint32_t *ids = session_ids(s);
    size_t same = 0, have = session_length(s);
    while (same < have && same + 1 < n && ids[same] == prompt[same])
        same++;
    session_rewind(s, same);
}

/* Run the large model over text[n] as far as it has not, and count the tokens of the answer that
 * it meets, of which `known` are there with the prompt. */
static int agree_catch_up(struct agree_answer *out, struct agree *a, size_t n, size_t prompt,
                          size_t known, struct err *err)
{
    for (size_t at = session_length(a->large), m, best; at < n; at += m) {
        m = n - at < BATCH_ROWS ? n - at : (size_t)BATCH_ROWS;
        int rc = session_eval(a->large, a->text + at, m, &interrupted, err);
        if (rc != OK)
            return rc;
        for (size_t next = at + 1; next <= at + m; next++)
            if (next >= prompt && next < known)
                out->nats += eval_surprise(&best, session_logits(a->large, at + m - next), a->size,
                                           a->text[next], &a->cloud.kernels);
    }
    return OK;
}

/* Take the large model's token after text[n]. */
static int agree_take(struct agree_answer *out, struct agree *a, size_t n, size_t prompt,
                      struct err *err)
{
    size_t best;
    int rc = agree_catch_up(out, a, n, prompt, n, err);
    if (rc != OK)
        return rc;
    const float *logits = session_logits(a->large, 0);
    a->text[n] = (uint32_t)a->cloud.kernels.argmax_f32(logits, a->size);
    out->nats += eval_surprise(&best, logits, a->size, a->text[n], &a->cloud.kernels);
    out->cloud++;
    return OK;
}

int agree_write(struct agree_answer *out, struct agree *a, size_t i, const struct agree_how *how,
                float threshold, struct err *err)
{
    const struct agree_part *p = &a->prompts[i];
    size_t end = a->context - p->n < a->length ? a->context : p->n + a->length;
    int rc = OK;
    *out = (struct agree_answer){ .tokens = end - p->n };
    memcpy(a->text, a->ids + p->at, p->n * sizeof(*a->text));
    agree_enter(a->small, a->text, p->n);
    agree_enter(a->large, a->text, p->n);
    for (size_t n = p->n; rc == OK && n < end; n++) {
        float *score = &a->scores[n - p->n];
        size_t have = session_length(a->small);
        bool routed = how->policy == POLICY_ALWAYS;
        *score = NAN;
        if (!routed) {
            rc = session_eval(a->small, a->text + have, n - have, &interrupted, err);
            if (rc != OK)
                return rc;
            *score = agree_score(a, how, i, a->text, n, 0);
            routed = *score < threshold;
        }
        if (routed)
            rc = agree_take(out, a, n, p->n, err);
        else
            a->text[n] = (uint32_t)a->edge.kernels.argmax_f32(session_logits(a->small, 0), a->size);
        out->equal += a->truth && a->text[n] == a->truth[i * a->length + n - p->n];
    }
    return rc == OK ? agree_catch_up(out, a, end - 1, p->n, end, err) : rc;
}

/* Let the large model write all answers alone. */
static int agree_truth(struct agree *a, struct err *err)
{
    const struct agree_how always = { .policy = POLICY_ALWAYS };
    struct agree_answer answer;
    size_t bytes = a->length * sizeof(*a->truth);
    uint32_t *truth = calloc(a->nprompts, bytes);
    int rc = truth ? OK : err_set(err, ERR_NOMEM, "agree: out of memory");
    for (size_t i = 0; rc == OK && i < a->nprompts; i++) {
        rc = agree_write(&answer, a, i, &always, 0, err);
        if (rc == OK)
            memcpy(truth + i * a->length, a->text + a->prompts[i].n,
                   answer.tokens * sizeof(*truth));
    }
    a->truth = truth;
    return rc;
}

int agree_open(struct agree *a, const struct agree_options *o, struct err *err)
{
    *a = (struct agree){ .length = o->length, .seed = o->seed };
    int rc = agree_models(a, o->cloud, err);
    if (rc == OK)
        rc = agree_read(a, o->data, err);
    if (rc == OK)
        rc = agree_deal(a, o->prompts, err);
    return rc ? rc : agree_truth(a, err);
}
