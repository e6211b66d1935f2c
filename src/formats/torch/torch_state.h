/* torch_state.h - from the graph that a checkpoint's pickle describes to named tensors over the
 * archive's storages.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TORCH_STATE_H
#define RY_TORCH_STATE_H

#include "formats/torch/pickle.h"
#include "formats/torch/zip.h"

typedef struct ry_torch_archive {
    const char *what;   /* the file, for messages */
    const char *prefix; /* [prefix_length] "name/" in front of every entry */
    size_t prefix_length;
    ry_zip zip;
} ry_torch_archive;

/* "<prefix><name>"; NULL if there is no such entry. */
const ry_zip_entry *ry_torch_entry(const ry_torch_archive *a, const char *name, size_t length);

/* Add every tensor of the state dict to `set`, or of a TorchScript module and those inside it,
 * whose names are joined by dots. A top-level key `model`, `state_dict`, `module` or
 * `model_state` that holds a dict is followed. Tensors whose strides are not row-major are copied
 * into blocks of the set's own, all together at most as large as the archive. */
renyi_status ry_torch_state_read(ry_tensors *set, const ry_pickle *p, const ry_torch_archive *a,
                                 renyi_error *err) RENYI_CHECK;

#endif
