/* safetensors_write.h - write a small safetensors file, such as a router. */
#ifndef ROUTER_LEARN_SAFETENSORS_WRITE_H
#define ROUTER_LEARN_SAFETENSORS_WRITE_H

#include <stddef.h>

#include "weights/weights.h"

/* Write n tensors, whose data the caller owns. meta holds pairs of terminated strings for
 * "__metadata__", ended by NULL; it may be NULL. The file is written beside path, then renamed. */
int safetensors_write(const char *path, const struct tensor *tensors, size_t n,
                      const char *const *meta, struct err *err);

#endif
