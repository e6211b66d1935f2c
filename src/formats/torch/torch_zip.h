/* torch_zip.h - PyTorch's zip checkpoints (torch.save since 1.6), tensors only: the pickle is
 * interpreted by a machine that can build tensors and nothing else.
 *
 * Archive: stored (uncompressed) entries <name>/data.pkl, <name>/data/<key> (one storage each),
 * <name>/byteorder, <name>/version. A top-level key `model`, `state_dict`, `module` or
 * `model_state` is followed. Of a TorchScript archive (torch.jit.save) only the weights are read,
 * by the names that state_dict() would give them; its code is never read. The format from before
 * 1.6 is refused with a message.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TORCH_ZIP_H
#define RY_TORCH_ZIP_H

#include "formats/tensor.h"

/* Maps the file; the set keeps it mapped. On success *out is owned by the caller (ry_tensors_free),
 * on failure it is NULL. */
renyi_status ry_torch_open(ry_tensors **out, const char *path, const renyi_limits *limits,
                           const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* The same over bytes that the caller keeps alive as long as the set; `what` names it in
 * messages. */
renyi_status ry_torch_parse(ry_tensors **out, const void *bytes, size_t size, const char *what,
                            const renyi_limits *limits, const renyi_allocator *al,
                            renyi_error *err) RENYI_CHECK;

#endif
