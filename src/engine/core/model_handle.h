/* model_handle.h - what stands behind a renyi_model: packed weights and the facts about the file.
 * Immutable after open, so sessions of several threads may share it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MODEL_HANDLE_H
#define RY_MODEL_HANDLE_H

#include "engine/core/label_file.h"
#include "model/vit/vit.h"
#include "renyi/renyi.h"

struct renyi_model {
    renyi_allocator al; /* of everything below, and of the sessions of this model */
    renyi_cpu level;
    renyi_dtype dtype; /* the CPU level the weights are packed for; never AUTO */
    ry_vit vit;
    double macs;                /* of one image, dense, without LayerNorm */
    renyi_tensor_info *tensors; /* [n_tensors] of the checkpoint, in file order */
    size_t n_tensors;
    char *tensor_names; /* one block that tensors[].name point into */
    ry_labels labels;   /* [n_classes] */
    /* Of a zero-shot model (zeroshot.c) the model whose tower it borrows: of all above, only the
     * labels and vit.words are its own. Else NULL. */
    const renyi_model *tower;
    uint64_t words_hash; /* of the rows of its words; 0 without them */
    renyi_model *owned;  /* what is freed with it: that tower, or NULL */
};

#endif
