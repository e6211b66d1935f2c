/* torch_tensor.h - one tensor of a PyTorch archive: a view of a storage, under a clean name.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TORCH_TENSOR_H
#define RY_TORCH_TENSOR_H

#include "formats/torch/pickle.h"
#include "formats/torch/zip.h"

typedef struct ry_torch_archive {
    const char *what;   /* the file, for messages */
    const char *prefix; /* [prefix_length] "name/" in front of every entry */
    size_t prefix_length;
    ry_zip zip;
} ry_torch_archive;

/* The entry "<prefix><name>", or NULL. */
const ry_zip_entry *ry_torch_entry(const ry_torch_archive *a, const char *name, size_t length);

/* Reports that an entry is compressed. */
renyi_status ry_torch_fail_packed(const ry_torch_archive *a, const ry_zip_entry *e,
                                  renyi_error *err);

typedef struct ry_torch_reader {
    ry_tensors *set; /* gets the tensors */
    const ry_pickle *p;
    const ry_torch_archive *a;
    uint64_t copied; /* bytes of tensors that were not row-major */
    renyi_error *err;
} ry_torch_reader;

/* Adds a tensor under the name module [length] + key, such as "visual." + "proj". A tensor that is
 * not row-major is copied into a block of the set; all copies together are at most as large as the
 * archive. */
renyi_status ry_torch_add_tensor(ry_torch_reader *s, const char *module, size_t length,
                                 const ry_pickle_node *key,
                                 const ry_pickle_node *tensor) RENYI_CHECK;

#endif
