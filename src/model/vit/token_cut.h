/* token_cut.h - cuts of the token list inside a block, for inference and for training: how many
 * rows each step has, what the hook sees, its decision, and the rows that a cut makes.
 *
 * Letters as everywhere: B images of a batch, N tokens of an image, C width. The rows of all images
 * follow each other in every buffer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TOKEN_CUT_H
#define RY_TOKEN_CUT_H

#include "model/common/hook.h"
#include "model/common/runner.h"
#include "model/vit/vit.h"

/* ---- rows of each step, known before an image is seen; for plans and for costs ------------- */

/* The order of a block's steps. Rows that nothing reads are not computed. */
typedef enum ry_block_path {
    RY_PATH_WHOLE,  /* every row goes through every step */
    RY_PATH_PREFIX, /* last block, if only class rows are read: all keys, class rows only */
    RY_PATH_LISTED, /* decide by the class row alone, then attend only for the rows that stay */
    RY_PATH_BEFORE, /* attend for all rows, decide, reduce, then project the rows that stay */
    RY_PATH_AFTER,  /* attend and project all rows, decide by the new rows, reduce */
    RY_PATH_END     /* decide by attention, but reduce after the MLP */
} ry_block_path;

typedef struct ry_block_rows {
    ry_block_path path;
    ry_block_needs needs;
    int decide;                    /* the hook is called in this block */
    int sized;                     /* tokens that enter may stand for several patches */
    float logit_factor;            /* of the attention of this block */
    float log_factor;              /* log(size) of tokens that leave counts this often in logits */
    int anchored;                  /* an anchor takes part in attention; in a plan: it may */
    uint32_t in;                   /* tokens that enter */
    uint32_t attend, project, mlp; /* rows of each step */
    uint32_t out;                  /* tokens that leave */
} ry_block_rows;

typedef struct ry_rows_options {
    const ry_token_hook *hook; /* NULL = dense */
    int all_rows;              /* finish every row of the last block */
    renyi_output output;       /* what is read after it */
} ry_rows_options;

/* rows: [config->n_blocks] */
void ry_vit_rows(ry_block_rows *rows, const ry_vit_config *config, uint32_t n_patches,
                 const ry_rows_options *opt);

/* Leading blocks that are the same as without a hook: no cut, no decision, every row. At most
 * n_blocks - 1, so that a run from there has a last block. */
uint32_t ry_plain_blocks(const ry_block_rows *rows, uint32_t n_blocks);

/* Fits a block of a plan to one image, if an adaptive cut before it left only `in` tokens or one
 * inside it leaves `after`; both are at most the plan's. `after` is ignored without a cut. */
void ry_block_rows_fit(ry_block_rows *r, const ry_vit_config *config, uint32_t in, uint32_t after);

/* Multiply-accumulates of the matrix products of one block with these rows. */
double ry_block_rows_macs(const ry_block_rows *r, const ry_vit_config *config);

/* The same of the attention-pooling head over n_tokens tokens; 0 if the model has none. */
double ry_vit_pool_macs(const ry_vit_config *config, uint32_t n_tokens);

/* ---- a block of a running pass ------------------------------------------------------------- */

/* Where a pass keeps what the cut of a block reads and writes. Pointers are those of image 0. */
typedef struct ry_block_state {
    uint32_t block;
    uint32_t first_image; /* number that the hook gets for image 0 */
    size_t n_images;
    size_t stride; /* tokens of an image before any cut: distance between two decisions */
    const ry_block_rows *rows;
    const ry_vit_config *config;
    const ry_kernels *kernels;
    const float *x;   /* [B in, C] the rows that the hook may read */
    const float *qkv; /* [B (in + anchor), qkv_row] */
    float *heads;     /* [B attend, heads_row] attention's output */
    size_t qkv_row, heads_row;
    const float *sizes, *log_sizes; /* [B in] patches that tokens stand for; NULL = 1 each */
    const uint32_t *row_list;       /* [in] 0, 1, ...: query rows if an anchor is a key */
    float *class_row, *columns;     /* [B in] */
    double *column_parts;           /* [B, row blocks, sets, in] */
    ry_cut cut;                     /* the decision; each list is [B, stride] */
    uint32_t *n_out;                /* result of an adaptive cut */
    float *scratch;                 /* [threads, scratch_each] for attention */
    size_t scratch_each;
} ry_block_state;

/* The parts of image `image`. */
ry_cut ry_block_cut(const ry_block_state *s, size_t image);
ry_attention ry_block_attention(const ry_block_state *s, size_t image);
ry_block_view ry_block_view_of(const ry_block_state *s, size_t image);

/* Runs the hook's decision for every image. On RY_PATH_LISTED attention has not run yet; the class
 * row is then computed here. */
void ry_block_decide(ry_runner *r, const ry_token_hook *hook, const ry_block_state *s);

/* ---- rows that a cut makes ----------------------------------------------------------------- */

/* New rows are made in chunks. Tile t is one chunk of one image. */
enum { RY_TOKEN_CHUNK = 16 };
typedef struct ry_token_chunk {
    size_t image;
    uint32_t first, last; /* rows first .. last-1 */
} ry_token_chunk;
size_t ry_token_chunks(uint32_t n_out); /* of one image */
ry_token_chunk ry_token_chunk_of(uint32_t n_out, size_t t);

/* One list of rows and the list that a cut makes of it. */
typedef struct ry_row_lists {
    const float *from; /* [N, row] */
    float *to;         /* [n_out, row] */
    size_t row, width; /* floats from one row to the next, and floats of a row that are used */
} ry_row_lists;

/* New rows first .. last-1: each is its source token times its weight, plus the tokens that join
 * it. */
void ry_token_reduce(const ry_row_lists *l, const ry_cut *cut, uint32_t n_tokens, uint32_t first,
                     uint32_t last);

/* Scales rows made of several tokens to the mean length of these, each counted sizes[j] times
 * (NULL = once), or to the largest: the mean of vectors of different directions is shorter than
 * they are. At most RY_TOKEN_CHUNK rows. */
void ry_token_lengths(const ry_row_lists *l, const ry_cut *cut, const float *sizes,
                      uint32_t n_tokens, ry_merged_length kind, uint32_t first, uint32_t last);

/* The sum of the weights of all tokens that go to row r. */
float ry_token_weight_sum(const ry_cut *cut, uint32_t n_tokens, uint32_t r);

/* Number of patches that each new row stands for, and log_factor times its logarithm; a fused token
 * counts as one. from: [N], NULL = 1 each; to, log_to: [n_out]. */
void ry_token_sizes(float *to, float *log_to, const float *from, const ry_cut *cut,
                    uint32_t n_tokens, float log_factor);

/* to [width] = mean of the rows first .. n_tokens-1, each counted sizes[j] times (NULL = once);
 * summed in a fixed order. */
void ry_token_mean(float *to, const float *rows, size_t row, size_t width, const float *sizes,
                   size_t first, size_t n_tokens);

#endif
