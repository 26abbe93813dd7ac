/* assets.h - the files of the pages of serve and explain, which the build turns into arrays
 * (assets.sh, Makefile). */
#ifndef TOOLS_CLI_ASSETS_H
#define TOOLS_CLI_ASSETS_H

#include <stddef.h>

extern const unsigned char asset_serve_html[], asset_serve_css[], asset_serve_js[];
extern const size_t asset_serve_html_size, asset_serve_css_size, asset_serve_js_size;
extern const unsigned char asset_explain_html[], asset_explain_css[], asset_explain_js[];
extern const size_t asset_explain_html_size, asset_explain_css_size, asset_explain_js_size;

#endif
