/* explain_html.c - writes the page for a browser: page/page.html, whose marks <!--NAME--> are
 * replaced by style, scripts and the document of --json, which the scripts draw. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/buf.h"
#include "kernels/sys/sha256.h"
#include "tools/lab/stand_in/gzip.h"
#include "tools/cli/assets.h"
#include "tools/lab/eval/base64.h"
#include "tools/lab/explain/explain.h"

/* Write the source of a Content-Security-Policy that allows these bytes inline. */
static void html_hash(FILE *to, const unsigned char *p, size_t n)
{
    unsigned char hash[SHA256_BYTES];
    struct sha256 s;
    sha256_begin(&s);
    sha256_add(&s, p, n);
    sha256_end(hash, &s);
    fputs("'sha256-", to);
    base64_write(to, hash, sizeof(hash));
    fputc('\'', to);
}

static void html_policy(FILE *to)
{
    fputs("default-src 'none'; script-src ", to);
    html_hash(to, asset_explain_js, asset_explain_js_size);
    fputs("; style-src ", to);
    html_hash(to, asset_explain_css, asset_explain_css_size);
    fputs("; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
          "trusted-types 'none'",
          to);
}

/* Write the document: JSON, compressed, in base64, so no text of it can end the script element. */
static bool html_document(FILE *to, const struct explain *x)
{
    char *text = NULL;
    size_t n = 0;
    struct buf packed = { 0 };
    FILE *f = open_memstream(&text, &n);
    bool complete = f && explain_json(f, x);
    if (f && fclose(f) != 0)
        complete = false;
    if (complete && gzip_add(&packed, text, n))
        base64_write(to, (const unsigned char *)packed.p, packed.n);
    else
        complete = false;
    free(text);
    buf_free(&packed);
    return complete;
}

bool explain_html(FILE *to, const struct explain *x)
{
    static const char *const marks[] = { "<!--policy-->", "<!--style-->", "<!--data-->",
                                         "<!--script-->" }; /* in the page's order */
    const char *s = (const char *)asset_explain_html, *end = s + asset_explain_html_size;
    bool complete = true;
    for (size_t i = 0; i < 4; i++) {
        size_t n = strlen(marks[i]);
        while (s + n <= end && memcmp(s, marks[i], n) != 0)
            fputc(*s++, to);
        s += n;
        if (i == 0)
            html_policy(to);
        else if (i == 1)
            fwrite(asset_explain_css, 1, asset_explain_css_size, to);
        else if (i == 2)
            complete = html_document(to, x);
        else
            fwrite(asset_explain_js, 1, asset_explain_js_size, to);
    }
    fwrite(s, 1, (size_t)(end - s), to);
    return fflush(to) == 0 && !ferror(to) && complete;
}
