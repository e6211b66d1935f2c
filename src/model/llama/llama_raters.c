/* llama_raters.c - which rows after an image rate its rows: those that the visual rows are most
 * like, as SparseVLM finds them before the first layer. In double and in one order, so that the
 * bits do not depend on threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/common/weight_loader.h"
#include "model/llama/llama_plan.h"

#include <math.h>
#include <string.h>

/* stream [n, C] = the rows before the first layer */
static void embed(ry_llama_plan *p, const renyi_lm_input *in, uint32_t n)
{
    const size_t C = p->model->config.dim;
    for (uint32_t r = 0; r < n; r++)
        if (in[r].embedding)
            memcpy(p->stream + r * C, in[r].embedding, C * sizeof *p->stream);
        else
            ry_token_table_row(&p->model->tokens, (size_t)in[r].token, p->stream + r * C);
}

/* mean [n] += softmax of the products of a visual row with the n rows of the text */
static void add_softmax(double *mean, double *weight, const float *row, const float *text,
                        uint32_t n, size_t C)
{
    double top = -INFINITY, sum = 0.0;
    for (uint32_t t = 0; t < n; t++) {
        weight[t] = ry_row_dot_double(row, text + t * C, C);
        if (weight[t] > top) top = weight[t];
    }
    for (uint32_t t = 0; t < n; t++) sum += weight[t] = exp(weight[t] - top);
    for (uint32_t t = 0; t < n; t++) mean[t] += weight[t] / sum;
}

/* Rows above the mean; all of them if there is none, as with a single row. */
void ry_llama_find_raters(ry_llama_plan *p, const renyi_lm_input *in, uint32_t n, uint32_t first,
                          uint32_t n_visual)
{
    const size_t C = p->model->config.dim;
    const uint32_t end = first + n_visual, n_text = n - end;
    double *mean = p->sums.sum, total = 0.0;
    uint32_t count = 0;
    embed(p, in, n);
    for (uint32_t t = 0; t < n_text; t++) mean[t] = 0.0;
    for (uint32_t v = first; v < end; v++)
        add_softmax(mean, p->sums.top, p->stream + v * C, p->stream + end * C, n_text, C);
    for (uint32_t t = 0; t < n_text; t++) total += mean[t];
    for (uint32_t t = 0; t < n_text; t++) count += p->raters[t] = mean[t] > total / n_text;
    if (!count) memset(p->raters, 1, n_text);
}
