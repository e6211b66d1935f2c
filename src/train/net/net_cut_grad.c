/* net_cut_grad.c - the way back through a cut. A cut sends token j with weight w_j to row t(j), so
 * the gradient d of the rows it leaves goes back as w_j d_t(j), and nowhere else; dropped tokens
 * get none. A fused token's weights get theirs from what they multiply.
 *
 * Rows that were scaled to the mean length of their members (mosaic), with u = sum w_j y_j and
 * m = sum w_j |y_j|, are m u / |u|, so that
 *   du = m/|u| (d - u <d, u> / |u|^2),   dm = <d, u> / |u|,   dy_j = w_j (du + dm y_j / |y_j|).
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/common/token_rows.h"
#include "train/net/net_run.h"

#include <string.h>

/* The cut of one image. */
typedef struct image_cut {
    ry_cut cut;
    uint32_t n_tokens;
    size_t C, row;     /* width, and floats between padded rows */
    const float *from; /* [N, C] what was cut */
    const float *d;    /* [n_out, C padded] */
    float *to;         /* [N, C padded] */
    float *sum;        /* [C] scratch */
} image_cut;

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0.0;
    for (size_t k = 0; k < n; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

/* to_j = w_j d_t(j) for the tokens of rows first .. last-1; chunk 0 also clears those that went
 * nowhere. */
static void scatter(const image_cut *c, uint32_t first, uint32_t last)
{
    for (uint32_t j = 0; j < c->n_tokens; j++) {
        const uint32_t r = c->cut.target[j];
        float *to = c->to + j * c->row;
        if (r >= first && r < last)
            ry_row_scale(to, c->d + r * c->row, c->cut.weight[j], c->C);
        else if (r == RY_NO_TOKEN && first == 0)
            memset(to, 0, c->C * sizeof *to);
    }
}

/* u = sum w_j y_j over the members of row r; returns m = sum w_j |y_j|, and their number */
static double gather_members(const image_cut *c, uint32_t r, uint32_t *members)
{
    double mean = 0.0;
    *members = 0;
    memset(c->sum, 0, c->C * sizeof *c->sum);
    for (uint32_t j = 0; j < c->n_tokens; j++) {
        if (c->cut.target[j] != r) continue;
        const float *y = c->from + j * c->C;
        ry_row_add(c->sum, y, c->cut.weight[j], c->C);
        mean += (double)c->cut.weight[j] * (double)ry_row_length(y, c->C);
        ++*members;
    }
    return mean;
}

/* Rows of merged tokens that were scaled to the mean length of their members. */
static void scatter_length(const image_cut *c, uint32_t r)
{
    uint32_t members;
    const double mean = gather_members(c, r, &members);
    const double length = (double)ry_row_length(c->sum, c->C);
    if (members < 2 || !(length > 0.0)) return; /* left as it was: the plain rule holds */
    const float *d = c->d + r * c->row;
    const double along = dot(d, c->sum, c->C) / length;
    for (uint32_t j = 0; j < c->n_tokens; j++) {
        if (c->cut.target[j] != r) continue;
        const float *y = c->from + j * c->C;
        const double weight = (double)c->cut.weight[j], own = (double)ry_row_length(y, c->C);
        float *to = c->to + j * c->row;
        ry_row_scale(to, d, (float)(weight * mean / length), c->C);
        ry_row_add(to, c->sum, (float)(-weight * mean * along / (length * length)), c->C);
        if (own > 0.0) ry_row_add(to, y, (float)(weight * along / own), c->C);
    }
}

/* Tokens that were fused: rows without a source. */
static int is_fused(const ry_cut *cut, uint32_t j)
{
    const uint32_t r = cut->target[j];
    return r != RY_NO_TOKEN && cut->source[r] == RY_NO_TOKEN;
}

static image_cut image_of(const ry_net_worker *w, uint32_t i, size_t image, const float *from)
{
    const ry_net *net = w->net;
    const ry_block_rows *b = &net->blocks[i].rows;
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    return (image_cut){.cut = ry_net_cut_of(w, i, image),
                       .n_tokens = b->in,
                       .C = C,
                       .row = row,
                       .from = from + image * b->in * C,
                       .d = ry_net_d(w) + image * b->out * row,
                       .to = net->d[!w->d_now] + image * b->in * row,
                       .sum = ry_net_scratch(w) + net->matrix_scratch};
}

static size_t chunks_of(const ry_block_rows *b)
{
    return (b->out + RY_TOKEN_CHUNK - 1) / RY_TOKEN_CHUNK;
}

void ry_net_cut_back(ry_net_worker *w, uint32_t i, const float *from)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t chunks = chunks_of(&b->rows);
    ry_step step = ry_net_begin(w, w->n * chunks);
    for (size_t t; ry_step_next(&step, &t);) {
        const image_cut c = image_of(w, i, t / chunks, from);
        const uint32_t first = (uint32_t)(t % chunks) * RY_TOKEN_CHUNK;
        const uint32_t last =
            b->rows.out - first < RY_TOKEN_CHUNK ? b->rows.out : first + RY_TOKEN_CHUNK;
        scatter(&c, first, last);
        for (uint32_t r = first; b->rows.needs.mean_length && r < last; r++) scatter_length(&c, r);
        if (first || b->weights == RY_WEIGHTS_CONSTANT) continue;
        float *dweight = net->dweight + t / chunks * b->rows.in;
        for (uint32_t j = 0; j < b->rows.in; j++)
            dweight[j] = is_fused(&c.cut, j)
                             ? (float)dot(c.from + j * c.C, c.d + c.cut.target[j] * c.row, c.C)
                             : 0.0f;
    }
    ry_step_end(&step);
    w->d_now = !w->d_now;
}

/* ---- cuts before the projection ------------------------------------------------------------ */

/* y_r = sum w_j x_j + f ((sum w_j h_j) P + sum w_j b): three ways from d_r to w_j. */
static float weight_grad(const ry_net *net, const ry_net_block *b, const image_cut *c, size_t image,
                         uint32_t j, const float *ds)
{
    const uint32_t r = c->cut.target[j];
    const float *heads = b->heads + (image * b->rows.in + j) * c->row;
    const float *dheads = net->dheads[0] + (image * b->rows.out + r) * c->row;
    const float *dsr = ds + (image * b->rows.out + r) * c->row;
    return (float)(dot(c->from + j * c->C, c->d + r * c->row, c->C) + dot(heads, dheads, c->C) +
                   dot(ry_net_value(net, b->proj.b), dsr, c->C));
}

void ry_net_cut_back_heads(ry_net_worker *w, uint32_t i, const float *ds)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t chunks = chunks_of(&b->rows);
    ry_step step = ry_net_begin(w, w->n * chunks);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / chunks;
        const image_cut c = image_of(w, i, image, net->tokens[i].x);
        const uint32_t first = (uint32_t)(t % chunks) * RY_TOKEN_CHUNK;
        const uint32_t last =
            b->rows.out - first < RY_TOKEN_CHUNK ? b->rows.out : first + RY_TOKEN_CHUNK;
        image_cut heads = c;
        heads.d = net->dheads[0] + image * b->rows.out * c.row;
        heads.to = net->dheads[1] + image * b->rows.in * c.row;
        scatter(&c, first, last);
        scatter(&heads, first, last);
        if (first || b->weights == RY_WEIGHTS_CONSTANT) continue;
        float *dweight = net->dweight + image * b->rows.in;
        for (uint32_t j = 0; j < b->rows.in; j++)
            dweight[j] = is_fused(&c.cut, j) ? weight_grad(net, b, &c, image, j, ds) : 0.0f;
    }
    ry_step_end(&step);
    w->d_now = !w->d_now;
}

void ry_net_fused_bias_grad(ry_net_worker *w, uint32_t i, const float *ds)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    float *db = ry_net_grad(net, b->proj.b);
    if (b->rows.needs.drops || (b->proj.w->frozen && b->proj.b->frozen)) return;
    ry_step step = ry_net_begin(w, 1); /* one after the other: a fixed order of sums */
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t image = 0; image < w->n; image++) {
            const ry_cut cut = ry_net_cut_of(w, i, image);
            for (uint32_t r = 0; r < b->rows.out; r++)
                if (cut.source[r] == RY_NO_TOKEN)
                    ry_row_add(db, ds + (image * b->rows.out + r) * row,
                               ry_token_weight_sum(&cut, b->rows.in, r) - 1.0f, C);
        }
    ry_step_end(&step);
}
