/* safetensors_write.h - write a small safetensors file (routers). */
#ifndef WEIGHTS_SAFETENSORS_WRITE_H
#define WEIGHTS_SAFETENSORS_WRITE_H

#include <stddef.h>

#include "weights/weights.h"

/* tensors: data owned by the caller. meta: pairs of terminated strings for "__metadata__", ended by
 * NULL; may be NULL. Written beside path, then renamed. */
int safetensors_write(const char *path, const struct tensor *tensors, size_t n,
                      const char *const *meta, struct err *err);

#endif
