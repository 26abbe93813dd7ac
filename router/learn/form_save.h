/* form_save.h - writes a router's file. */
#ifndef ROUTER_LEARN_FORM_SAVE_H
#define ROUTER_LEARN_FORM_SAVE_H

struct err;
struct router_form;

/* Write a form as the safetensors file that router_form_read reads; all values must be finite.
 * ERR_NOMEM; errors of safetensors_write. */
int form_save(const char *path, const struct router_form *f, struct err *err);

#endif
