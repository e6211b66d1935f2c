/* llama_sizes.c - how large a Llama is, from its configuration alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linear/panels.h"
#include "model/llama/llama_stored.h"

static uint64_t norms_of(const ry_llama_config *c)
{
    return (2 * (uint64_t)c->n_layers + 1) * c->dim;
}

static uint64_t count_of(const ry_llama_config *c, ry_llama_matrix which)
{
    return which == RY_LLAMA_HEAD ? 1 : c->n_layers;
}

uint64_t ry_llama_params(const ry_llama_config *c)
{
    uint64_t n = norms_of(c);
    for (int i = 0; i < RY_N_LLAMA_MATRICES; i++) {
        const ry_matrix_shape s = ry_llama_shape(c, (ry_llama_matrix)i);
        n += count_of(c, (ry_llama_matrix)i) * s.n_out * s.n_in;
    }
    return c->tied ? n : n + (uint64_t)c->vocab * c->dim; /* the table of tokens */
}

/* Outputs beyond the last are padding. */
static uint64_t matrix_bytes(ry_matrix_shape s, renyi_dtype dtype)
{
    const uint64_t panels = ry_panels_of(s.n_out);
    if (dtype == RENYI_DTYPE_INT8 || dtype == RENYI_DTYPE_INT4)
        return panels * ry_panel_bytes(dtype, s.n_in);
    return panels * RY_PANEL * s.n_in * (dtype == RENYI_DTYPE_BF16 ? 2 : 4);
}

uint64_t ry_llama_bytes(const ry_llama_config *c, renyi_dtype dtype, uint64_t table_bytes)
{
    uint64_t bytes = table_bytes + norms_of(c) * sizeof(float);
    for (int i = 0; i < RY_N_LLAMA_MATRICES; i++)
        bytes += count_of(c, (ry_llama_matrix)i) *
                 matrix_bytes(ry_llama_shape(c, (ry_llama_matrix)i), dtype);
    return bytes;
}
