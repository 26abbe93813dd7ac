/* serve_page.c - the page. Its policy forbids everything but its own files. */
#include <string.h>

#include "tools/cli/assets.h"
#include "tools/serve/serve_exchange.h"

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

void serve_page(struct serve_exchange *x)
{
    const char *const headers[][2] = { { "Content-Security-Policy", policy },
                                       { "Referrer-Policy", "no-referrer" },
                                       { "Cross-Origin-Opener-Policy", "same-origin" },
                                       { "Cross-Origin-Resource-Policy", "same-origin" },
                                       { NULL, NULL } };
    const char *path = server_path(x->r);
    bool css = strcmp(path, "/page.css") == 0, js = strcmp(path, "/page.js") == 0;
    struct buf text = { 0 };
    if (css  ? buf_add(&text, asset_serve_css, asset_serve_css_size)
        : js ? buf_add(&text, asset_serve_js, asset_serve_js_size)
             : buf_add(&text, asset_serve_html, asset_serve_html_size))
        serve_routes_send(x, 200,
                          css  ? "text/css; charset=utf-8"
                          : js ? "text/javascript; charset=utf-8"
                               : "text/html; charset=utf-8",
                          &text, headers);
    buf_free(&text);
}
