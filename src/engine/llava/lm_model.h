/* lm_model.h - what stands behind a renyi_lm: a Llama that sessions of several threads may share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LM_MODEL_H
#define RY_LM_MODEL_H

#include "model/llama/llama.h"
#include "renyi/lm.h"

struct renyi_lm {
    renyi_allocator al; /* of everything below, and of the sessions */
    renyi_cpu level;
    renyi_dtype dtype; /* never AUTO */
    ry_llama model;
    ry_tensors *kept; /* what a stored model borrows from, or NULL */
};

#endif
