/* explain_html.c - writes the page for a browser: page/page.html, whose marks <!--NAME--> are
 * replaced by style, scripts, the document, and what can be read without scripts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "kernels/sys/sha256.h"
#include "kernels/sys/text.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "net/http/buf.h"
#include "net/http/gzip.h"
#include "tools/bench/bench_model.h"
#include "tools/cli/assets.h"
#include "tools/explain/explain_internal.h"

/* Write text that anybody may have written: markup becomes entities, a newline
 * an arrow, and other characters that are not harmless \xNN. */
static void html_text(FILE *to, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t len = text_shown(s + i, n - i);
        if (s[i] == '\n')
            fputs("\xe2\x86\xb5", to); /* an arrow, as the scripts show it */
        else if (!len)
            fprintf(to, "\\x%02x", (unsigned char)s[i]);
        else if (len == 1 && strchr("<>&\"'", s[i]))
            fprintf(to, "&#%d;", s[i]);
        else
            fwrite(s + i, 1, len, to);
        i += len ? len : 1;
    }
}

static void html_string(FILE *to, const char *s)
{
    html_text(to, s, strlen(s));
}

static void html_piece(FILE *to, const struct explain *x, uint32_t id)
{
    size_t n;
    const char *s = tokenizer_bytes(x->engine.tokenizer, id, &n);
    if (s)
        html_text(to, s, n);
}

static void html_base64(FILE *to, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0U) |
                     (left > 2 ? p[i + 2] : 0U);
        const char four[] = { digits[v >> 18], digits[v >> 12 & 63],
                              left > 1 ? digits[v >> 6 & 63] : '=',
                              left > 2 ? digits[v & 63] : '=' };
        fwrite(four, 1, sizeof(four), to);
    }
}

/* Write the source of a Content-Security-Policy that allows these bytes inline. */
static void html_hash(FILE *to, const unsigned char *p, size_t n)
{
    unsigned char hash[SHA256_BYTES];
    struct sha256 s;
    sha256_begin(&s);
    sha256_add(&s, p, n);
    sha256_end(hash, &s);
    fputs("'sha256-", to);
    html_base64(to, hash, sizeof(hash));
    fputc('\'', to);
}

static void html_policy(FILE *to, const struct explain *x)
{
    (void)x;
    fputs("default-src 'none'; script-src ", to);
    html_hash(to, asset_explain_js, asset_explain_js_size);
    fputs("; style-src ", to);
    html_hash(to, asset_explain_css, asset_explain_css_size);
    fputs("; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
          "trusted-types 'none'",
          to);
}

static void html_style(FILE *to, const struct explain *x)
{
    (void)x;
    fwrite(asset_explain_css, 1, asset_explain_css_size, to);
}

static void html_script(FILE *to, const struct explain *x)
{
    (void)x;
    fwrite(asset_explain_js, 1, asset_explain_js_size, to);
}

/* Write what was asked, of which model, on which machine. */
static void html_facts(FILE *to, const struct explain *x)
{
    const struct model_config *c = model_config(x->engine.model);
    html_string(to, x->engine.name);
    fprintf(to,
            ": %zu layers of %zu heads, %zu hidden values, %zu tokens in the vocabulary, weights "
            "of type %s. Policy %s. ",
            c->layers, c->heads, c->hidden, c->vocab, model_type_name(x->engine.model),
            policy_name(x->routing.policy));
    html_string(to, cpu_name());
    fprintf(to, ", kernels %s, %zu threads.", x->engine.kernels.isa, pool_threads(x->engine.pool));
    if (x->o.reference) {
        fputs(" The right answer: ", to);
        html_string(to, x->o.reference);
    }
    char cut[EXPLAIN_WHY];
    if (explain_cut(cut, x))
        fprintf(to, " %s.", cut);
}

/* Write the text as a list of tokens; page.css marks their writers. */
static void html_tokens(FILE *to, const struct explain *x)
{
    for (size_t i = 0; i < x->n; i++) {
        fprintf(to, "<li class=\"t %s\"><span>", explain_source_name(x->tokens[i].source));
        html_piece(to, x, x->ids[i]);
        fputs("</span></li>\n", to);
    }
}

/* Write a row for each token: what is known of it in a line. */
static void html_rows(FILE *to, const struct explain *x)
{
    char why[EXPLAIN_WHY];
    for (size_t i = 0; i < x->n; i++) {
        const struct explain_token *t = &x->tokens[i];
        const struct explain_position *at = i ? &x->at[i - 1] : NULL;
        explain_why(why, x, i);
        fprintf(to, "<tr><th scope=\"row\">%zu</th><td>%u</td><td class=\"p\">", i,
                (unsigned)t->id);
        html_piece(to, x, t->id);
        fprintf(to, "</td><td>%s</td><td class=\"p\">", explain_source_name(t->source));
        if (at)
            html_piece(to, x, at->top[0].id);
        fputs("</td><td>", to);
        if (at && isfinite(at->top[0].p))
            fprintf(to, "%.1f", 100 * (double)at->top[0].p);
        fputs("</td><td>", to);
        if (at && isfinite(at->score))
            fprintf(to, "%.4f", (double)at->score);
        fputs("</td><td>", to);
        if (t->source != EXPLAIN_PROMPT)
            fprintf(to, "%.3f", t->ms);
        fputs("</td><td class=\"why\">", to);
        if (t->source != EXPLAIN_PROMPT)
            html_string(to, why);
        fputs("</td></tr>\n", to);
    }
}

/* Write a cell with a number, empty where there is none. */
static void html_cell(FILE *to, const char *form, double v)
{
    fputs("<td>", to);
    if (isfinite(v) && v > 0)
        fprintf(to, form, v);
    fputs("</td>", to);
}

static void html_operation(FILE *to, const struct explain *x, const struct explain_times *t,
                           enum batch_op op)
{
    const struct op_sum *s = &t->operations->of[op];
    double ns = (double)s->ns;
    struct op_speed speed = op_speed(&x->limits, x->engine.model, op, ns, s->bytes, s->ops);
    fprintf(to, "<tr><th scope=\"row\">%s</th><td>%zu</td>", op_name(op), s->calls);
    html_cell(to, "%.3f", ns / 1e6);
    html_cell(to, "%.1f", 100 * ns / 1e6 / t->ms);
    html_cell(to, "%.3f", s->bytes / 1e6);
    html_cell(to, "%.3f", s->ops / 1e6);
    html_cell(to, "%.2f", speed.gb_s);
    html_cell(to, "%.2f", speed.gop_s);
    fprintf(to, "<td>%s</td>", speed.limit);
    html_cell(to, "%.1f", 100 * speed.reached);
    fputs("</tr>\n", to);
}

static void html_time(FILE *to, const char *what, double ms, double all_ms)
{
    fprintf(to, "<tr><th scope=\"row\">%s</th><td></td>", what);
    html_cell(to, "%.3f", ms);
    html_cell(to, "%.1f", 100 * ms / all_ms);
    fputs("<td></td><td></td><td></td><td></td><td></td><td></td></tr>\n", to);
}

/* Write the rows of one part of the text: the prompt, or what came after the first token. */
static void html_part(FILE *to, const struct explain *x, bool reading)
{
    const struct explain_times t = explain_times(x, reading);
    double rest = t.ms - t.router_ms - t.cloud_ms;
    if (!t.passes && !t.tokens)
        return;
    fprintf(to,
            "<tbody><tr><th scope=\"rowgroup\" colspan=\"10\">%s: %zu token%s, %.3f ms</th></tr>\n",
            reading ? "Reading the prompt, up to the first token written" : "Writing the rest",
            reading ? x->prompt : t.tokens, (reading ? x->prompt : t.tokens) == 1 ? "" : "s", t.ms);
    for (size_t op = 0; op < BATCH_OPS; op++) {
        if (t.operations->of[op].calls)
            html_operation(to, x, &t, (enum batch_op)op);
        rest -= (double)t.operations->of[op].ns / 1e6;
    }
    html_time(to, "router", t.router_ms, t.ms);
    if (t.cloud_ms > 0)
        html_time(to, "cloud, waiting", t.cloud_ms, t.ms);
    html_time(to, "all else", rest, t.ms);
    fputs("</tbody>\n", to);
}

static void html_times(FILE *to, const struct explain *x)
{
    html_part(to, x, true);
    html_part(to, x, false);
}

struct html_mark {
    const char *name;
    void (*write)(FILE *to, const struct explain *x); /* NULL: the document */
};

/* Return the mark <!--NAME--> that s[n] begins with, or NULL. */
static const struct html_mark *html_mark(const char *s, size_t n)
{
    static const struct html_mark marks[] = {
        { "policy", html_policy }, { "style", html_style }, { "facts", html_facts },
        { "tokens", html_tokens }, { "rows", html_rows },   { "times", html_times },
        { "script", html_script }, { "data", NULL },
    };
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        size_t len = strlen(marks[i].name);
        if (n >= len + 7 && memcmp(s, "<!--", 4) == 0 && memcmp(s + 4, marks[i].name, len) == 0 &&
            memcmp(s + 4 + len, "-->", 3) == 0)
            return &marks[i];
    }
    return NULL;
}

/* Write the document: JSON, compressed, in base64, so no text of it can end the script element. */
static bool html_document(FILE *to, const struct explain *x)
{
    char *text = NULL;
    size_t n = 0;
    struct buf packed = { 0 };
    FILE *f = open_memstream(&text, &n);
    bool complete = f && explain_json_page(f, x);
    if (f && fclose(f) != 0)
        complete = false;
    if (complete && gzip_add(&packed, text, n))
        html_base64(to, (const unsigned char *)packed.p, packed.n);
    else
        complete = false;
    free(text);
    buf_free(&packed);
    return complete;
}

bool explain_html(FILE *to, const struct explain *x)
{
    const char *s = (const char *)asset_explain_html, *end = s + asset_explain_html_size;
    bool complete = true;
    while (s < end) {
        const struct html_mark *m = html_mark(s, (size_t)(end - s));
        if (!m)
            fputc(*s, to);
        else if (m->write)
            m->write(to, x);
        else
            complete = html_document(to, x);
        s += m ? strlen(m->name) + 7 : 1;
    }
    return fflush(to) == 0 && !ferror(to) && complete;
}
