/* llama_tensors.h - the tensors of a Llama in a file: their names, alone or inside a LLaVA, their
 * shapes, and matrices that a file stores packed.
 *
 * `renyi quantize` writes matrices as the kernels read them (kernels/linear/panels.h), so that the
 * file is mapped and used without converting it. The tensors of the language model then have names
 * of their own:
 *   renyi_lm.embed_tokens.weight, .norm.weight, .layers.#.input_layernorm.weight,
 *   .layers.#.post_attention_layernorm.weight     floats, as in the original
 *   renyi_lm.layers.#.qkv|proj|gate_up|down.panels, renyi_lm.head.panels
 *                                                 U8 [panels, bytes of a panel]
 *   ....columns                                   F32 [1 or 2, outputs]: scale, for int8 also sum
 *
 * q, k and v are stacked in one matrix, and so are gate and up. Tower and projector of a LLaVA keep
 * their names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAMA_TENSORS_H
#define RY_LLAMA_TENSORS_H

#include "model/common/weight_loader.h"
#include "model/llama/llama.h"

/* ---- names --------------------------------------------------------------------------------- */

/* Prefix of names in a file with packed matrices, and the name of its layout. */
#define RY_STORED "renyi_lm."
#define RY_STORED_LAYOUT "renyi"

/* Names of llama.cpp; a tensor that is read by none of them. */
#define RY_GGUF_LAYOUT "gguf"
#define RY_GGUF_ROPE "rope_freqs.weight"

/* 1 if the token table of a known layout is among the tensors, else 0. RY_GROUP_HEAD is the output
 * matrix. */
int ry_llama_naming_find(ry_tensor_naming *out, const ry_tensors *set);

/* Naming for a model to be written: "llama", "llava-hf", "llava-hf-5" or RY_STORED_LAYOUT. */
ry_tensor_naming ry_llama_naming(const char *layout, uint32_t n_layers);

/* The extents of a model with this configuration. */
void ry_llama_extents(uint64_t out[RY_X_COUNT], const ry_llama_config *c);

/* ---- matrices ------------------------------------------------------------------------------ */

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

/* The tensors that a matrix is joined from, to be read as floats; `n` is the naming of the set. */
ry_parts ry_llama_parts(const ry_llama_config *c, const ry_tensor_naming *n, const ry_tensors *set,
                        ry_llama_matrix which, uint32_t layer);

/* The blocks of the file that a matrix keeps in `dtype` (ry_parts_blocks); and 1 if all keep those
 * of Q4_0. */
ry_linear_blocks ry_llama_blocks(const ry_llama_config *c, const ry_tensor_naming *n,
                                 const ry_tensors *set, ry_llama_matrix which, uint32_t layer,
                                 renyi_dtype dtype);
int ry_llama_is_q4(const ry_llama_config *c, const ry_tensor_naming *n, const ry_tensors *set);

/* ---- packed matrices ----------------------------------------------------------------------- */

typedef enum ry_stored_part {
    RY_STORED_PANELS,
    RY_STORED_COLUMNS,
    RY_N_STORED_PARTS
} ry_stored_part;

/* Name, type and shape of one tensor of a packed matrix; t->name is `name`. */
void ry_llama_stored_tensor(ry_tensor *t, char name[RY_NAME_MAX], const ry_llama_config *c,
                            ry_llama_matrix which, uint32_t layer, ry_stored_part part,
                            renyi_dtype dtype);

/* Width of the MLPs in the file; 0 if unknown. */
uint64_t ry_llama_stored_mlp(const ry_tensors *set);

/* Sets c->stored (the rest of c must be set) and checks every tensor of a packed matrix. */
renyi_status ry_llama_stored_check(ry_llama_config *c, const ry_tensors *set,
                                   renyi_error *err) RENYI_CHECK;

/* A linear that borrows from the set. */
renyi_status ry_llama_stored_linear(ry_linear **out, const ry_llama_config *c,
                                    const ry_tensors *set, ry_llama_matrix which, uint32_t layer,
                                    renyi_cpu level, const renyi_allocator *al,
                                    renyi_error *err) RENYI_CHECK;

#endif
