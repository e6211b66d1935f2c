/* net_cut.c - cuts of a net in training: the rows that stay, and the gradients through a cut and
 * through the weights of fused tokens.
 *
 * A cut sends token j with weight w_j to row t(j), so from the gradient d of the new rows token j
 * gets w_j d_t(j); dropped tokens get zero. The weights of a fused token get a gradient from the
 * rows they multiply.
 *
 * Rows that were scaled to a length of their members (mosaic), with u = sum w_j y_j and
 * m = sum v_j |y_j|, where v_j is the share of j in the patches of its row (for the largest length:
 * 1 for the longest member, else 0), are m u / |u|, so that
 *   du = m/|u| (d - u <d, u> / |u|^2),   dm = <d, u> / |u|,   dy_j = w_j du + v_j dm y_j / |y_j|.
 * The weights of merged tokens are constants, also where mosaic takes them from attention.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "train/net/net_run.h"

#include <math.h>
#include <string.h>

/* ---- forward ------------------------------------------------------------------------------- */

ry_block_state ry_net_block_state(const ry_net_worker *w, uint32_t i, const float *x)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    return (ry_block_state){.block = i,
                            .n_images = w->n,
                            .stride = net->n_tokens,
                            .rows = &b->rows,
                            .config = &net->config,
                            .kernels = &net->kernels,
                            .x = x,
                            .qkv = b->qkv_rows,
                            .heads = b->heads,
                            .qkv_row = ry_net_row(net, 3 * (size_t)net->config.dim),
                            .heads_row = ry_net_row(net, net->config.dim),
                            .sizes = ry_net_sizes(net, i, 0, b->rows.in),
                            .log_sizes = net->tokens[net->tokens[i].facts].log_sizes,
                            .class_row = net->class_row,
                            .columns = net->columns,
                            .column_parts = net->column_parts,
                            .cut = b->cut,
                            .scratch = net->scratch,
                            .scratch_each = net->scratch_each};
}

/* Sizes and patches of the tokens after the cut of an image. */
static void reduce_facts(const ry_net_worker *w, uint32_t i, size_t image, const ry_cut *cut)
{
    const ry_net *net = w->net;
    const ry_block_rows *b = &net->blocks[i].rows;
    const ry_net_tokens *from = &net->tokens[net->tokens[i].facts], *to = &net->tokens[i + 1];
    if (b->sized || b->needs.sizes)
        ry_token_sizes(to->sizes + image * b->out, to->log_sizes + image * b->out,
                       ry_net_sizes(net, i, image, b->in), cut, b->in, b->log_factor);
    for (uint32_t r = 0; r < b->out; r++)
        to->patch[image * b->out + r] = cut->source[r] == RY_NO_TOKEN
                                            ? RY_NO_TOKEN
                                            : from->patch[image * b->in + cut->source[r]];
}

void ry_net_reduce(ry_net_worker *w, uint32_t i, const float *from, float *to)
{
    const ry_block_rows *b = &w->net->blocks[i].rows;
    const size_t C = w->net->config.dim;
    const ry_block_state s = ry_net_block_state(w, i, NULL);
    ry_step step = ry_runner_step(w->run, w->n * ry_token_chunks(b->out));
    for (size_t t; ry_step_next(&step, &t);) {
        const ry_token_chunk at = ry_token_chunk_of(b->out, t);
        const ry_cut cut = ry_block_cut(&s, at.image);
        const ry_row_lists l = {from + at.image * b->in * C, to + at.image * b->out * C, C, C};
        ry_token_reduce(&l, &cut, b->in, at.first, at.last);
        if (b->needs.length)
            ry_token_lengths(&l, &cut, ry_net_sizes(w->net, i, at.image, b->in), b->in,
                             b->needs.length, at.first, at.last);
        if (at.first == 0) reduce_facts(w, i, at.image, &cut);
    }
    ry_step_end(&step);
}

/* y = reduced x + (factor * sum - 1) b for each row: the projection adds b once. */
static void start_rows(const ry_net_worker *w, uint32_t i, const ry_token_chunk *at,
                       const ry_cut *cut, float *y)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t C = net->config.dim;
    const float factor = ry_net_factor(w, 2 * i, at->image);
    const ry_row_lists l = {net->tokens[i].x + at->image * b->rows.in * C,
                            y + at->image * b->rows.out * C, C, C};
    ry_token_reduce(&l, cut, b->rows.in, at->first, at->last);
    for (uint32_t r = at->first; r < at->last; r++) {
        const int fused = cut->source[r] == RY_NO_TOKEN;
        const float sum = fused ? ry_token_weight_sum(cut, b->rows.in, r) : 1.0f;
        if (fused || factor != 1.0f)
            ry_row_add(l.to + r * C, ry_linear_bias(b->proj.ahead), factor * sum - 1.0f, C);
    }
    if (at->first == 0) reduce_facts(w, i, at->image, cut);
}

void ry_net_reduce_heads(ry_net_worker *w, uint32_t i, float *y, float *heads, int scaled)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    const ry_block_state s = ry_net_block_state(w, i, NULL);
    ry_step step = ry_runner_step(w->run, w->n * ry_token_chunks(b->rows.out));
    for (size_t t; ry_step_next(&step, &t);) {
        const ry_token_chunk at = ry_token_chunk_of(b->rows.out, t);
        const ry_cut cut = ry_block_cut(&s, at.image);
        const float factor = scaled ? ry_net_factor(w, 2 * i, at.image) : 1.0f;
        const ry_row_lists l = {b->heads + at.image * b->rows.in * row,
                                heads + at.image * b->rows.out * row, row, C};
        ry_token_reduce(&l, &cut, b->rows.in, at.first, at.last);
        for (uint32_t r = at.first; factor != 1.0f && r < at.last; r++)
            ry_row_scale(l.to + r * row, l.to + r * row, factor, C);
        if (y) start_rows(w, i, &at, &cut, y);
    }
    ry_step_end(&step);
}

/* ---- gradients of rows --------------------------------------------------------------------- */

/* The cut of one image. */
typedef struct image_cut {
    ry_cut cut;
    uint32_t n_tokens;
    size_t C, row;      /* width, and floats between padded rows */
    const float *from;  /* [N, C] what was cut */
    const float *sizes; /* [N] patches that tokens stand for; NULL = 1 each */
    const float *d;     /* [n_out, C padded] */
    float *to;          /* [N, C padded] */
    float *sum;         /* [C] scratch */
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

static double size_of(const image_cut *c, uint32_t j)
{
    return c->sizes ? (double)c->sizes[j] : 1.0;
}

/* The members of a row, and the lengths m that it may have been scaled to. */
typedef struct row_members {
    uint32_t n, longest; /* how many; the first with the largest length */
    double patches, mean, largest;
} row_members;

/* Also u = sum w_j y_j over the members of row r. */
static row_members gather_members(const image_cut *c, uint32_t r)
{
    row_members m = {.largest = -1.0};
    memset(c->sum, 0, c->C * sizeof *c->sum);
    for (uint32_t j = 0; j < c->n_tokens; j++) {
        if (c->cut.target[j] != r) continue;
        const float *y = c->from + j * c->C;
        const double length = (double)ry_row_length(y, c->C);
        ry_row_add(c->sum, y, c->cut.weight[j], c->C);
        m.mean += size_of(c, j) * length;
        m.patches += size_of(c, j);
        m.n++;
        if (length > m.largest) m.largest = length, m.longest = j;
    }
    m.mean /= m.patches;
    return m;
}

/* Rows of merged tokens that were scaled to a length of their members. */
static void scatter_length(const image_cut *c, uint32_t r, ry_merged_length kind)
{
    const row_members m = gather_members(c, r);
    const double scaled = kind == RY_LENGTH_LARGEST ? m.largest : m.mean;
    const double length = (double)ry_row_length(c->sum, c->C);
    if (m.n < 2 || !(length > 0.0)) return; /* was not scaled */
    const float *d = c->d + r * c->row;
    const double along = dot(d, c->sum, c->C) / length;
    for (uint32_t j = 0; j < c->n_tokens; j++) {
        if (c->cut.target[j] != r) continue;
        const float *y = c->from + j * c->C;
        const double weight = (double)c->cut.weight[j], own = (double)ry_row_length(y, c->C);
        float *to = c->to + j * c->row;
        const double share = kind == RY_LENGTH_LARGEST ? j == m.longest : size_of(c, j) / m.patches;
        ry_row_scale(to, d, (float)(weight * scaled / length), c->C);
        ry_row_add(to, c->sum, (float)(-weight * scaled * along / (length * length)), c->C);
        if (own > 0.0) ry_row_add(to, y, (float)(share * along / own), c->C);
    }
}

/* 1 if token j was fused: its row has no source. */
static int is_fused(const ry_cut *cut, uint32_t j)
{
    const uint32_t r = cut->target[j];
    return r != RY_NO_TOKEN && cut->source[r] == RY_NO_TOKEN;
}

static image_cut image_of(const ry_net_worker *w, uint32_t i, size_t image, const float *from)
{
    const ry_block_state s = ry_net_block_state(w, i, NULL);
    const ry_net *net = w->net;
    const ry_block_rows *b = &net->blocks[i].rows;
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    return (image_cut){.cut = ry_block_cut(&s, image),
                       .n_tokens = b->in,
                       .C = C,
                       .row = row,
                       .from = from + image * b->in * C,
                       .sizes = ry_net_sizes(net, i, image, b->in),
                       .d = ry_net_d(w) + image * b->out * row,
                       .to = net->d[!w->d_now] + image * b->in * row,
                       .sum = ry_net_scratch(w) + net->matrix_scratch};
}

void ry_net_cut_back(ry_net_worker *w, uint32_t i, const float *from)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const uint32_t n_out = b->rows.out;
    ry_step step = ry_runner_step(w->run, w->n * ry_token_chunks(n_out));
    for (size_t t; ry_step_next(&step, &t);) {
        const ry_token_chunk at = ry_token_chunk_of(n_out, t);
        const image_cut c = image_of(w, i, at.image, from);
        scatter(&c, at.first, at.last);
        for (uint32_t r = at.first; b->rows.needs.length && r < at.last; r++)
            scatter_length(&c, r, b->rows.needs.length);
        if (at.first || b->weights == RY_WEIGHTS_CONSTANT) continue;
        float *dweight = net->dweight + at.image * b->rows.in;
        for (uint32_t j = 0; j < b->rows.in; j++)
            dweight[j] = is_fused(&c.cut, j)
                             ? (float)dot(c.from + j * c.C, c.d + c.cut.target[j] * c.row, c.C)
                             : 0.0f;
    }
    ry_step_end(&step);
    w->d_now = !w->d_now;
}

/* ---- gradients of cuts before the projection ----------------------------------------------- */

/* y_r = sum w_j x_j + f ((sum w_j h_j) P + sum w_j b): w_j gets three terms from d_r. */
static float weight_grad(const ry_net *net, const ry_net_block *b, const image_cut *c, size_t image,
                         uint32_t j, const float *ds)
{
    const uint32_t r = c->cut.target[j];
    const float *heads = b->heads + (image * b->rows.in + j) * c->row;
    const float *dheads = net->dheads[0] + (image * b->rows.out + r) * c->row;
    const float *dsr = ds + (image * b->rows.out + r) * c->row;
    return (float)(dot(c->from + j * c->C, c->d + r * c->row, c->C) + dot(heads, dheads, c->C) +
                   dot(ry_linear_bias(b->proj.ahead), dsr, c->C));
}

void ry_net_cut_back_heads(ry_net_worker *w, uint32_t i, const float *ds)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const uint32_t n_out = b->rows.out;
    ry_step step = ry_runner_step(w->run, w->n * ry_token_chunks(n_out));
    for (size_t t; ry_step_next(&step, &t);) {
        const ry_token_chunk at = ry_token_chunk_of(n_out, t);
        const image_cut c = image_of(w, i, at.image, net->tokens[i].x);
        image_cut heads = c;
        heads.d = net->dheads[0] + at.image * n_out * c.row;
        heads.to = net->dheads[1] + at.image * b->rows.in * c.row;
        scatter(&c, at.first, at.last);
        scatter(&heads, at.first, at.last);
        if (at.first || b->weights == RY_WEIGHTS_CONSTANT) continue;
        float *dweight = net->dweight + at.image * b->rows.in;
        for (uint32_t j = 0; j < b->rows.in; j++)
            dweight[j] = is_fused(&c.cut, j) ? weight_grad(net, b, &c, at.image, j, ds) : 0.0f;
    }
    ry_step_end(&step);
    w->d_now = !w->d_now;
}

/* Columns first .. last-1 of the bias. In double, because the gradient of a short fused row is
 * large and its share is small. */
static void bias_columns(const ry_net_worker *w, uint32_t i, const float *ds, size_t first,
                         size_t last)
{
    const ry_net_block *b = &w->net->blocks[i];
    const size_t row = ry_net_row(w->net, w->net->config.dim);
    const ry_block_state s = ry_net_block_state(w, i, NULL);
    double sum[RY_CONVERT_ROWS] = {0.0};
    for (size_t image = 0; image < w->n; image++) {
        const ry_cut cut = ry_block_cut(&s, image);
        for (uint32_t r = 0; r < b->rows.out; r++) {
            const int fused = cut.source[r] == RY_NO_TOKEN;
            const double share = fused ? (double)ry_token_weight_sum(&cut, b->rows.in, r) : 1.0;
            const float *from = ds + (image * b->rows.out + r) * row;
            for (size_t k = first; k < last; k++) sum[k - first] += share * (double)from[k];
        }
    }
    for (size_t k = first; k < last; k++)
        ry_net_bias_grad(w->net, &b->proj)[k] += (float)sum[k - first];
}

void ry_net_fused_bias_grad(ry_net_worker *w, uint32_t i, const float *ds)
{
    const size_t C = w->net->config.dim;
    if (ry_net_is_frozen(&w->net->blocks[i].proj)) return;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(C));
    for (size_t t; ry_step_next(&step, &t);)
        bias_columns(w, i, ds, t * RY_CONVERT_ROWS, ry_row_end(t, C));
    ry_step_end(&step);
}

/* ---- gradients of weights ------------------------------------------------------------------ */

/* From the weights of a fused token to the attention matrix, if they are Col-Ln scores
 * (weights=score):
 *
 *   w_j = S_j / T,  T = sum_k S_k + 1e-6        dS_j = (dw_j - sum_k dw_k w_k) / T
 *   S_j = (sum_i A_ij^n)^(1/n)                  dA_ij = dS_j (A_ij / S_j)^(n-1)
 *
 * over the rows and entries that the policy counts. A is the head mean; with heads=each it is one
 * head's own, and S_j the mean over heads. */

/* dS_j from the gradients of the weights. */
typedef struct shares {
    const float *dweight, *score; /* [N] */
    double total, mean;           /* T; sum_k dw_k w_k */
} shares;

static shares shares_of(const ry_net_worker *w, uint32_t i, size_t image)
{
    const ry_net *net = w->net;
    const size_t N = net->blocks[i].rows.in;
    shares s = {net->dweight + image * N, net->blocks[i].cut.score + image * net->n_tokens, 1e-6,
                0.0};
    for (size_t j = 0; j < N; j++) {
        s.total += (double)s.score[j];
        s.mean += (double)s.dweight[j] * (double)s.score[j];
    }
    s.mean /= s.total;
    return s;
}

/* 1 if entry (i, j) of the matrix counts in its column. */
static int entry_counts(const ry_column_spec *spec, size_t i, size_t j)
{
    return (i >= spec->skip_rows || i < spec->count_rows) && !(spec->skip_diagonal && i == j);
}

static double largest(const ry_column_spec *spec, const float *a, size_t N, size_t j, size_t *at)
{
    double top = 0.0;
    *at = 0;
    for (size_t i = 0; i < N; i++)
        if (entry_counts(spec, i, j) && (double)a[i * N + j] > top) {
            top = (double)a[i * N + j];
            *at = i;
        }
    return top;
}

/* Column j of a [N, N] becomes that of its gradient. */
static void column_back(const ry_column_spec *spec, float *a, size_t N, size_t j, double ds)
{
    const double n = spec->order;
    size_t at;
    const double top = largest(spec, a, N, j, &at);
    double sum = 0.0;
    for (size_t i = 0; i < N && top > 0.0 && !isinf(n); i++)
        if (entry_counts(spec, i, j)) sum += pow((double)a[i * N + j] / top, n);
    const double root = isinf(n) ? 1.0 : pow(sum, 1.0 / n); /* S_j / top */
    for (size_t i = 0; i < N; i++) {
        double g = 0.0;
        if (top > 0.0 && entry_counts(spec, i, j))
            g = isinf(n) ? (i == at ? ds : 0.0)
                         : ds * pow((double)a[i * N + j] / (top * root), n - 1.0);
        a[i * N + j] = (float)g;
    }
}

static void matrix_back(const ry_net_worker *w, uint32_t i, size_t image, float *a)
{
    const ry_block_rows *b = &w->net->blocks[i].rows;
    const shares s = shares_of(w, i, image);
    for (size_t j = 0; j < b->in; j++)
        column_back(&b->needs.columns, a, b->in, j, ((double)s.dweight[j] - s.mean) / s.total);
}

void ry_net_weights_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const size_t N = net->blocks[i].rows.in;
    const ry_block_state s = ry_net_block_state(w, i, NULL);
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t image; ry_step_next(&step, &image);) {
        const ry_attention at = ry_block_attention(&s, image);
        const ry_attention_grad g = {.n_tokens = N,
                                     .n_heads = at.n_heads,
                                     .head = at.head,
                                     .qkv = at.qkv,
                                     .qkv_row = at.qkv_row,
                                     .key_bias = at.key_bias,
                                     .logit_factor = at.logit_factor,
                                     .n_rows = N};
        float *a = net->dmean + image * N * N;
        net->grad.attention_mean(&g, a, ry_net_scratch(w));
        matrix_back(w, i, image, a);
    }
    ry_step_end(&step);
}

/* Copies the queries and keys of one head, as if the model had no other. The attention kernel
 * divides the gradient of the mean by the number of heads; dS of one head is that of the mean, so
 * this is right here too. */
const float *ry_net_head_matrix(ry_net_worker *w, uint32_t i, const ry_attention_grad *g,
                                size_t image, size_t head)
{
    const ry_net *net = w->net;
    const size_t N = g->n_tokens, d = g->head, C = net->config.dim;
    float *own = ry_net_scratch(w) + net->matrix_scratch; /* [N, 3 d], values left out */
    float *a = net->dmean + w->run->thread * N * N;
    for (size_t j = 0; j < N; j++) {
        const float *row = g->qkv + j * g->qkv_row + head * d;
        memcpy(own + j * 3 * d, row, d * sizeof *own);
        memcpy(own + j * 3 * d + d, row + C, d * sizeof *own);
    }
    const ry_attention_grad alone = {.n_tokens = N,
                                     .n_heads = 1,
                                     .head = d,
                                     .qkv = own,
                                     .qkv_row = 3 * d,
                                     .key_bias = g->key_bias,
                                     .logit_factor = g->logit_factor,
                                     .n_rows = N};
    net->grad.attention_mean(&alone, a, ry_net_scratch(w));
    matrix_back(w, i, image, a);
    return a;
}
