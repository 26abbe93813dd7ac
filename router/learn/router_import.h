/* router_import.h - converts routers of others, and writes one as llama-route's. */
#ifndef ROUTER_LEARN_ROUTER_IMPORT_H
#define ROUTER_LEARN_ROUTER_IMPORT_H

struct err;

/* Read what router_form_read reads, fold it if it is CITER's, and write safetensors, or, to a name
 * that ends in .rmlp, llama-route's form, which has two layers and nothing else: no threshold, no
 * model. type: as in the form; ERR_ARG for matrices of another one already. -1: as they are. */
int router_import(const char *in, const char *out, int type, struct err *err);

#endif
