/* explain_page.c - the page of one position for a terminal: 80 columns, no colour. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "tools/lab/explain/explain.h"

enum { COLUMNS = 80, LENS = 2, HEADS = 8 }; /* shown of a layer, of a span */
enum { PIECE = 10, PIECE_TEXT = 64 };

/* Write a token's piece in quotes, cut to PIECE columns; return the columns. What is not ASCII
 * counts as two, as it may be wide. */
static size_t page_piece(char out[PIECE_TEXT], const struct explain *x, uint32_t id)
{
    size_t n, width = 0, at = 0;
    const char *s = tokenizer_bytes(x->engine.tokenizer, id, &n);
    out[at++] = '"';
    for (size_t i = 0; s && i < n;) {
        size_t len = text_shown(s + i, n - i), wide = len == 0 ? 4 : len == 1 ? 1 : 2;
        if (width + wide > PIECE - (i + (len ? len : 1) < n ? 2 : 0)) {
            memcpy(out + at, "..", 2);
            at += 2;
            width += 2;
            break;
        }
        if (len)
            memcpy(out + at, s + i, len);
        else
            snprintf(out + at, 5, "\\x%02x", (unsigned char)s[i]);
        at += len ? len : 4;
        i += len ? len : 1;
        width += wide;
    }
    out[at++] = '"';
    out[at] = '\0';
    return width + 2;
}

/* Print a token's piece; pad: to the columns that the longest takes. */
static void page_put_piece(const struct explain *x, uint32_t id, bool pad)
{
    char text[PIECE_TEXT];
    size_t width = page_piece(text, x, id);
    printf("%s%*s", text, pad ? (int)(PIECE + 2 - width) : 0, "");
}

/* Print a text in lines, broken at blanks; all but the first are indented. */
static void page_wrap(const char *text, int indent)
{
    size_t column = 0;
    while (*text) {
        size_t blank = strspn(text, " "), word = strcspn(text + blank, " ");
        if (column && column + blank + word > COLUMNS) {
            printf("\n%*s", indent, "");
            column = (size_t)indent;
            text += blank;
            blank = 0;
        }
        fwrite(text, 1, blank + word, stdout);
        column += blank + word;
        text += blank + word;
    }
    putchar('\n');
}

/* Print all tokens with their positions; those that the cloud wrote are marked. */
static void page_tokens(const struct explain *x)
{
    size_t column = 0;
    for (size_t i = 0; i < x->n; i++) {
        char piece[PIECE_TEXT], entry[2 * PIECE_TEXT];
        static const char *const marks[] = { "", " cloud", " fallback", "" };
        size_t width = page_piece(piece, x, x->ids[i]);
        size_t more =
            (size_t)snprintf(entry, sizeof(entry), "%s%zu %s%s", i == x->prompt ? "| " : "", i,
                             piece, marks[x->tokens[i].source]) -
            strlen(piece);
        if (column && column + 2 + width + more > COLUMNS) {
            putchar('\n');
            column = 0;
        }
        printf("%s%s", column ? "  " : "", entry);
        column += (column ? 2 : 0) + width + more;
    }
    putchar('\n');
}

/* Print which token this is and which one followed, and why. */
static void page_title(const struct explain *x, size_t pos)
{
    char piece[PIECE_TEXT], why[EXPLAIN_WHY], line[2 * EXPLAIN_WHY];
    static const char *const who[] = {
        "written by the small model", "written by the cloud",
        "written by the small model as the cloud failed or a limit held", "which is given"
    };
    page_piece(piece, x, x->ids[pos]);
    snprintf(line, sizeof(line), "Position %zu: %s, id %u, %s", pos, piece, (unsigned)x->ids[pos],
             who[x->tokens[pos].source]);
    putchar('\n');
    page_wrap(line, 4);
    if (pos + 1 >= x->n)
        return;
    page_piece(piece, x, x->ids[pos + 1]);
    explain_why(why, x, pos + 1);
    snprintf(line, sizeof(line), "Then comes %s, id %u, %s: %s", piece, (unsigned)x->ids[pos + 1],
             who[x->tokens[pos + 1].source], why);
    page_wrap(line, 4);
}

/* Return a share in percent that fits three digits. */
static int page_percent(float p)
{
    return isfinite(p) ? (int)lrintf(100 * p) : 0;
}

static void page_layers(const struct explain *x, size_t pos)
{
    putchar('\n');
    page_wrap("The residual stream of each layer: lengths of the vector that enters, of what "
              "attention adds, of the sum, of what the MLP adds, and of the sum that leaves "
              "(only vectors add up, not lengths); the likeliest if this layer were the last",
              0);
    puts("layer  enters   attn between    MLP  leaves");
    for (size_t l = 0; l < x->engine.model->config.layers; l++) {
        const struct explain_layer *y = explain_layer(x, pos, l);
        printf("%5zu %7.4g %6.3g %7.4g %6.3g %7.4g", l, (double)y->in, (double)y->attention,
               (double)y->middle, (double)y->mlp, (double)y->out);
        for (size_t i = 0; i < LENS; i++) {
            printf(" %3d%% ", page_percent(y->lens[i].p));
            page_put_piece(x, y->lens[i].id, i + 1 < LENS);
        }
        putchar('\n');
    }
}

static void page_heads(const struct explain *x, size_t pos, size_t layer)
{
    char line[80];
    snprintf(line, sizeof(line),
             "Where the heads of layer %zu look, and how much of them elsewhere", layer);
    putchar('\n');
    page_wrap(line, 0);
    for (size_t i = 0; i < x->engine.model->config.heads; i++) {
        const struct explain_head *h = explain_head(x, pos, layer, i);
        printf("%4zu ", i);
        for (size_t k = 0; k < h->n; k++) {
            printf(" %3d%% %4u ", page_percent(h->weight[k]), (unsigned)h->pos[k]);
            page_put_piece(x, x->ids[h->pos[k]], true);
        }
        printf(" %3d%%\n", page_percent(h->rest));
    }
}

static void page_top(const struct explain *x, size_t pos)
{
    puts("\nWhat the small model would write");
    for (size_t i = 0; i < EXPLAIN_TOP; i++) {
        const struct likeliest *g = &x->at[pos].top[i];
        char piece[PIECE_TEXT];
        page_piece(piece, x, g->id);
        printf("%7.3f%% %s (%u)\n", 100 * (double)g->p, piece, (unsigned)g->id);
    }
}

/* Print hidden units in one line each sign. */
static void page_units(const char *what, const struct explain_unit *u, size_t n)
{
    char line[512];
    size_t at = (size_t)snprintf(line, sizeof(line), "%s%s", what, n ? "" : " none");
    for (size_t i = 0; i < n && at < sizeof(line); i++)
        at += (size_t)snprintf(line + at, sizeof(line) - at, "%s %u %+.3f", i ? "," : "",
                               (unsigned)u[i].unit, (double)u[i].adds);
    page_wrap(line, 4);
}

static void page_router(const struct explain *x, size_t pos)
{
    const struct explain_position *at = &x->at[pos];
    const struct routing *r = &x->routing;
    if (isnan(at->score)) {
        printf("\nNo score: the policy is '%s'\n", policy_name(r->how.policy));
        return;
    }
    char line[160];
    snprintf(line, sizeof(line), "The score of %s is %.4f, the threshold %.4f: %s",
             routing_scorer(r), (double)at->score, (double)at->threshold,
             at->routed ? "ask the cloud" : "the small model's may stand");
    putchar('\n');
    page_wrap(line, 4);
    if (!policy_reads_network(r->how.policy))
        return;
    if (explain_sums(x))
        printf("  these add to %s:\n", explain_sums(x));
    char decided[EXPLAIN_WHY];
    bool sums = explain_decided(decided, x, pos);
    if (sums)
        page_wrap(decided, 4);
    page_units("  for the small model: unit", at->up, at->nup);
    page_units("  for the cloud:       unit", at->down, at->ndown);
    printf("  all other units %+.3f, bias %+.3f", (double)at->others, (double)x->bias);
    printf(sums ? ", threshold %+.3f\n" : "\n", (double)explain_threshold(at));
}

/* Say why this position is shown, and which options show more. */
static void page_choice(const struct explain *x, const char *why)
{
    char line[2 * EXPLAIN_WHY] = "";
    size_t last = x->engine.model->config.layers - 1;
    int n = !why ? 0
                 : snprintf(line, sizeof(line), "This is %s; --at N shows another, 0 to %zu. ", why,
                            x->positions - 1);
    if (x->layers.to - x->layers.from < last)
        snprintf(line + n, sizeof(line) - (size_t)n,
                 "--layers 0:%zu shows the heads of all layers.", last);
    page_wrap(line, 0);
}

/* Print the heads that look most at the span. */
static void page_span(const struct explain *x, size_t pos)
{
    const struct model_config *c = &x->engine.model->config;
    struct explain_share *list = explain_shares(x, pos);
    char line[400];
    snprintf(line, sizeof(line),
             "Which heads look at the span from position %zu: their attention to its tokens, "
             "summed; a head that looks everywhere alike would have %.1f%%",
             pos, 100 * explain_even(x, pos));
    putchar('\n');
    page_wrap(line, 0);
    puts("layer head    share");
    for (size_t i = 0; list && i < HEADS && i < c->layers * c->heads; i++)
        printf("%5zu %4zu %7.1f%%\n", list[i].layer, list[i].head, 100 * (double)list[i].share);
    free(list);
}

void explain_page(const struct explain *x)
{
    const char *why = NULL;
    size_t pos = x->o.at == SIZE_MAX ? explain_telling(x, &why) : x->o.at;
    page_tokens(x);
    char cut[EXPLAIN_WHY];
    if (explain_cut(cut, x))
        page_wrap(cut, 4);
    page_title(x, pos);
    page_choice(x, why);
    page_layers(x, pos);
    for (size_t l = x->layers.from; l <= x->layers.to; l++)
        page_heads(x, pos, l);
    page_top(x, pos);
    page_router(x, pos);
    if (x->o.span_of)
        page_span(x, pos);
}
