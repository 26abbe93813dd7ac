/* explain_without.c - the same text with a head of attention left out, and what is written then. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/progress.h"
#include "tools/lab/explain/explain.h"

void explain_leave_out(const struct explain *x, enum batch_op op, size_t layer, bool ends)
{
    if (x->leaves_out && op == OP_ATTENTION && ends && layer == x->o.no_layer)
        batch_leave_out(x->engine.batch, x->o.no_head);
}

static void without_op(void *arg, enum batch_op op, size_t layer, size_t n, bool ends)
{
    (void)n;
    explain_leave_out(arg, op, layer, ends);
}

/* Callback of decode_run: keep a token. */
static bool without_token(void *arg, const struct decode_token *t)
{
    struct explain *x = arg;
    x->without.tokens[x->without.n++] = (struct explain_token){
        .id = t->id, .source = (enum explain_source)t->source, .score = t->score
    };
    return true;
}

/* Write the text once more. */
static int without_write(struct explain *x, struct err *err)
{
    const struct batch_watch watch = { .op = without_op, .arg = x };
    const struct decode_options calls = { .emit = without_token, .arg = x };
    size_t most = session_context(x->session);
    struct decode_stats stats = { .finish = FINISH_LENGTH };
    uint32_t *ids = calloc(most + 1, sizeof(*ids));
    x->without.tokens = calloc(most - x->prompt + 1, sizeof(*x->without.tokens));
    int rc = ids && x->without.tokens ? OK : err_set(err, ERR_NOMEM, "out of memory");
    if (rc == OK) {
        memcpy(ids, x->ids, x->prompt * sizeof(*ids));
        rc = explain_decode(&stats, x, ids, &watch, &calls, err);
    }
    x->without.finish = stats.finish;
    free(ids);
    return rc;
}

int explain_without(struct explain *x, struct err *err)
{
    struct explain_position *at = calloc(x->positions, sizeof(*at));
    if (!at)
        return err_set(err, ERR_NOMEM, "out of memory");
    x->leaves_out = true;
    int rc = without_write(x, err);
    if (rc == OK)
        rc = explain_look(x, err);
    x->leaves_out = false;
    x->without.at = x->at; /* the next look sees the text with the head */
    x->at = at;
    return rc;
}

/* Print the verdict and the first choice of one position. */
static void without_row(const struct explain *x, const char *what,
                        const struct explain_position *at)
{
    char piece[EXPLAIN_PIECE_TEXT];
    explain_piece(piece, x, at->top[0].id);
    printf("%-9s", what);
    if (isnan(at->score))
        printf(" %8s  %-14s", "none", "");
    else
        printf(" %8.4f  %-14s", (double)at->score, at->routed ? "ask the cloud" : "it may stand");
    printf(" %7.3f%% %s (%u)\n", 100 * (double)at->top[0].p, piece, (unsigned)at->top[0].id);
}

/* Say for how many of the tokens written the head changes the verdict, or the first choice. */
static void without_changes(const struct explain *x)
{
    size_t verdicts = 0, choices = 0;
    char line[200];
    for (size_t p = x->prompt - 1; p + 1 < x->n; p++) {
        verdicts += x->at[p].routed != x->without.at[p].routed;
        choices += x->at[p].top[0].id != x->without.at[p].top[0].id;
    }
    snprintf(line, sizeof(line),
             "Over the %zu token%s written, it changes %zu of the router's verdicts and %zu of the "
             "small model's choices.",
             x->n - x->prompt, x->n - x->prompt == 1 ? "" : "s", verdicts, choices);
    explain_wrap(line, 0);
}

void explain_page_without(const struct explain *x, size_t pos)
{
    const struct explain_without *w = &x->without;
    char line[200];
    size_t same = 0, written = x->n - x->prompt;
    while (same < w->n && same < written && w->tokens[same].id == x->ids[x->prompt + same])
        same++;
    snprintf(line, sizeof(line),
             "Without head %zu of layer %zu, whose output is zero everywhere, after the same text "
             "up to position %zu",
             x->o.no_head, x->o.no_layer, pos);
    putchar('\n');
    explain_wrap(line, 0);
    puts("             score                 the small model's choice");
    without_row(x, "with it", &x->at[pos]);
    without_row(x, "without", &w->at[pos]);
    if (!written)
        return;
    without_changes(x);
    if (same == w->n && same == written) {
        explain_wrap("The text that is written without it is the same.", 0);
        return;
    }
    snprintf(line, sizeof(line), "The text that is written without it is another from %zu on%s",
             x->prompt + same, same < w->n ? ":" : ", where it ends.");
    explain_wrap(line, 0);
    if (same < w->n)
        explain_print_tokens(x, w->tokens + same, x->prompt + same, x->prompt + w->n);
}
