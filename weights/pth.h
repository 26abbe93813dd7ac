/* pth.h - read the tensors of a PyTorch checkpoint without running anything in it.
 *
 * It reads torch.save's zip form (stored or deflated members) and its legacy form. The pickle is
 * interpreted by a machine that can build dicts, lists, tuples, numbers and strings and knows a
 * fixed list of globals (collections.OrderedDict, torch._utils._rebuild_tensor_v2,
 * _rebuild_parameter, torch.*Storage, torch.Size); any other global is refused by name. Wrappers
 * are removed: "state_dict", "model_state_dict" or "model" around the tensors, "module." in front
 * of each name. */
#ifndef WEIGHTS_PTH_H
#define WEIGHTS_PTH_H

#include <stdbool.h>

#include "weights/weights.h"

/* True when a regular file begins like a PyTorch file, that is a zip archive or a pickle, and is
 * not a safetensors file whose header length has the same first byte. False for a file that cannot
 * be read: whatever opens it next reports why. */
bool pth_is(const char *path);

/* Open a checkpoint: its tensors, each contiguous, and as keys what stands beside a wrapped state
 * dict: texts, numbers and booleans, and those of dicts there as GROUP.KEY. On error *out is NULL
 * and err names file and reason: ERR_FORMAT, ERR_IO or ERR_NOMEM. */
int pth_open(struct weights **out, const char *path, struct err *err);

#endif
