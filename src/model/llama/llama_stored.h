/* llama_stored.h - a Llama whose matrices a file keeps as kernels read them
 * (kernels/linear/panels.h), so that it is mapped and run without a pass over its bytes.
 *
 * In such a file the tensors of the language model have names of their own:
 *   renyi_lm.embed_tokens.weight, .norm.weight, .layers.#.input_layernorm.weight,
 *   .layers.#.post_attention_layernorm.weight     floats, as in the original
 *   renyi_lm.layers.#.qkv|proj|gate_up|down.panels, renyi_lm.head.panels
 *                                                  U8 [panels, bytes of a panel]
 *   ....columns                                    F32 [1 or 2, outputs]: scale, and of int8 the
 * sum q, k and v stand below each other, and so do gate and up. Tower and projector of a LLaVA keep
 * their names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAMA_STORED_H
#define RY_LLAMA_STORED_H

#include "model/llama/llama.h"
#include "model/llama/llama_names.h"

typedef enum ry_llama_matrix {
    RY_LLAMA_QKV,
    RY_LLAMA_PROJ,
    RY_LLAMA_GATE_UP,
    RY_LLAMA_DOWN,
    RY_LLAMA_HEAD, /* one; the others are in every layer */
    RY_N_LLAMA_MATRICES
} ry_llama_matrix;

typedef struct ry_matrix_shape {
    size_t n_out, n_in;
} ry_matrix_shape;
ry_matrix_shape ry_llama_shape(const ry_llama_config *c, ry_llama_matrix which);

typedef enum ry_stored_part {
    RY_STORED_PANELS,
    RY_STORED_COLUMNS,
    RY_N_STORED_PARTS
} ry_stored_part;

/* Name, type and shape of a tensor of a matrix; t->name is `name`. */
void ry_llama_stored_tensor(ry_tensor *t, char name[RY_NAME_MAX], const ry_llama_config *c,
                            ry_llama_matrix which, uint32_t layer, ry_stored_part part,
                            renyi_dtype dtype);

/* What MLPs are wide by the file; 0 if it does not say. */
uint64_t ry_llama_stored_mlp(const ry_tensors *set);

/* Finds c->stored, all else of which is known, and checks every tensor of a matrix. */
renyi_status ry_llama_stored_check(ry_llama_config *c, const ry_tensors *set,
                                   renyi_error *err) RENYI_CHECK;

/* A linear that borrows from the set. */
renyi_status ry_llama_stored_linear(ry_linear **out, const ry_llama_config *c,
                                    const ry_tensors *set, ry_llama_matrix which, uint32_t layer,
                                    renyi_cpu level, const renyi_allocator *al,
                                    renyi_error *err) RENYI_CHECK;

#endif
