/* pth.h - read the tensors of a PyTorch checkpoint without running anything in it.
 *
 * torch.save's zip form (stored or deflated members) and its legacy form. The pickle is
 * interpreted by a machine that can build dicts, lists, tuples, numbers and strings and knows a
 * fixed list of globals (collections.OrderedDict, torch._utils._rebuild_tensor_v2,
 * _rebuild_parameter, torch.*Storage, torch.Size ...); any other global is refused by name.
 * Wrappings are unwound: "state_dict", "model_state_dict", "model" inside a checkpoint, "module."
 * in front of each name. */
#ifndef WEIGHTS_PTH_H
#define WEIGHTS_PTH_H

#include <stdbool.h>
#include <stddef.h>

#include "weights/weights.h"

struct pth;

/* True where a regular file begins as one of PyTorch's, a zip archive or a pickle, and not as a
 * safetensors file whose length has the same first byte. A file that cannot be read is none of
 * them: whoever opens it next says why. */
bool pth_is(const char *path);

/* ERR_FORMAT says file and reason. */
int pth_open(struct pth **out, const char *path, struct err *err);
void pth_close(struct pth *p);
size_t pth_ntensors(const struct pth *p);
const struct tensor *pth_tensor(const struct pth *p, size_t i); /* contiguous, borrowed */
const struct tensor *pth_find(const struct pth *p, const char *name);

#endif
