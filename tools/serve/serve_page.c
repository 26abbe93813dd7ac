/* serve_page.c - the page. Its policy forbids everything but its own files. */
#include "tools/cli/assets.h"
#include "tools/serve/serve_internal.h"

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

/* Send an embedded file. */
static void serve_page(struct serve_exchange *x, const char *type, const unsigned char *p, size_t n)
{
    const char *const headers[][2] = { { "Content-Security-Policy", policy },
                                       { "Referrer-Policy", "no-referrer" },
                                       { "Cross-Origin-Opener-Policy", "same-origin" },
                                       { "Cross-Origin-Resource-Policy", "same-origin" },
                                       { NULL, NULL } };
    struct buf text = { 0 };
    if (buf_add(&text, p, n))
        serve_routes_text(x, type, &text, headers);
    buf_free(&text);
}

void serve_page_html(struct serve_exchange *x, const json_t *in)
{
    (void)in;
    serve_page(x, "text/html; charset=utf-8", asset_serve_html, asset_serve_html_size);
}

void serve_page_css(struct serve_exchange *x, const json_t *in)
{
    (void)in;
    serve_page(x, "text/css; charset=utf-8", asset_serve_css, asset_serve_css_size);
}

void serve_page_js(struct serve_exchange *x, const json_t *in)
{
    (void)in;
    serve_page(x, "text/javascript; charset=utf-8", asset_serve_js, asset_serve_js_size);
}
