/* serve_assets.h - the files of page/, which the build turns into arrays (Makefile). */
#ifndef TOOLS_SERVE_SERVE_ASSETS_H
#define TOOLS_SERVE_SERVE_ASSETS_H

#include <stddef.h>

extern const unsigned char serve_assets_html[], serve_assets_css[], serve_assets_js[];
extern const size_t serve_assets_html_size, serve_assets_css_size, serve_assets_js_size;

#endif
