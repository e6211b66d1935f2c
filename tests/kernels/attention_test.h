/* attention_test.h - what the tests of attention share: problems solved in double arithmetic, and
 * the levels to run them at. The 16-lane body is also compiled in plain C, so that its logic is
 * tested where AVX-512 is missing. SPDX-License-Identifier: Apache-2.0 */
#ifndef ATTENTION_TEST_H
#define ATTENTION_TEST_H

#include "kernel_test.h"

#define RY_SIMD_EMU16
#include "kernels/attention_body.h"

typedef struct problem {
    size_t N, H, d;
    float *qkv;        /* [N, 3*H*d] */
    float *key_bias;   /* [N], or NULL */
    float *row_weight; /* [N] 1, 2 or 3 */
    double *a;         /* [H, N, N] the probabilities */
    double *out;       /* [N, H*d] */
} problem;

/* p->a of head h, row i; then its share of p->out */
static inline void reference_row(problem *p, size_t h, size_t i)
{
    const size_t C = p->H * p->d, N = p->N;
    double *row = p->a + (h * N + i) * N, top = -INFINITY, sum = 0.0;
    for (size_t j = 0; j < N; j++) {
        double dot = 0.0;
        for (size_t c = 0; c < p->d; c++)
            dot += (double)p->qkv[i * 3 * C + h * p->d + c] *
                   (double)p->qkv[j * 3 * C + C + h * p->d + c];
        row[j] = dot / sqrt((double)p->d) + (p->key_bias ? (double)p->key_bias[j] : 0.0);
        top = fmax(top, row[j]);
    }
    for (size_t j = 0; j < N; j++) sum += row[j] = exp(row[j] - top);
    for (size_t j = 0; j < N; j++) {
        row[j] /= sum;
        for (size_t c = 0; c < p->d; c++)
            p->out[i * C + h * p->d + c] +=
                row[j] * (double)p->qkv[j * 3 * C + 2 * C + h * p->d + c];
    }
}

static inline problem problem_new(size_t N, size_t H, size_t d, int with_bias)
{
    const size_t C = H * d;
    problem p = {.N = N, .H = H, .d = d};
    p.qkv = malloc(N * 3 * C * sizeof(float));
    p.row_weight = malloc(N * sizeof(float));
    p.a = calloc(H * N * N, sizeof(double));
    p.out = calloc(N * C, sizeof(double));
    for (size_t i = 0; i < N * 3 * C; i++) p.qkv[i] = 3.0f * unit();
    for (size_t j = 0; j < N; j++) p.row_weight[j] = (float)(1 + j % 3);
    if (with_bias) {
        p.key_bias = malloc(N * sizeof(float));
        for (size_t j = 0; j < N; j++) p.key_bias[j] = logf(1.0f + (float)(j % 5));
    }
    for (size_t h = 0; h < H; h++)
        for (size_t i = 0; i < N; i++) reference_row(&p, h, i);
    return p;
}

static inline void problem_free(problem *p)
{
    free(p->qkv), free(p->key_bias), free(p->row_weight), free(p->a), free(p->out);
}

/* What a test asks for; NULL = not wanted. */
typedef struct request {
    float *out;           /* [rows, H*d] */
    float *class_row;     /* [N] */
    float *columns;       /* [N] */
    ry_column_spec spec;  /* of columns */
    const uint32_t *rows; /* [n_rows], or NULL for all */
    size_t n_rows;
} request;

static inline void solve(const problem *p, const ry_kernels *k, const request *r)
{
    const size_t blocks = ry_attention_blocks(r->rows ? r->n_rows : p->N, k->attention_rows);
    const size_t floats = ry_attention_scratch(p->N, p->d, k->attention_rows);
    float *scratch = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
    double *parts = malloc(blocks * ry_column_sets(&r->spec, p->H) * p->N * sizeof(double));
    const ry_attention at = {.n_tokens = p->N,
                             .n_heads = p->H,
                             .head = p->d,
                             .qkv = p->qkv,
                             .out = r->out,
                             .qkv_row = 3 * p->H * p->d,
                             .out_row = p->H * p->d,
                             .key_bias = p->key_bias,
                             .rows = r->rows,
                             .n_rows = r->n_rows,
                             .class_row = r->class_row,
                             .column_parts = r->columns ? parts : NULL,
                             .columns = r->spec,
                             .row_weight = p->row_weight};
    for (size_t b = blocks; b-- > 0;) k->attention(&at, b, scratch); /* any order will do */
    if (r->columns) ry_attention_scores(r->columns, &at, blocks);
    free(parts);
    free(scratch);
}

static inline void at_every_level(void (*check)(const ry_kernels *k))
{
    const ry_kernels sixteen = {.attention = attention_block, .attention_rows = BLOCK};
    check(&sixteen);
    for (int level = RENYI_CPU_SCALAR; level <= RENYI_CPU_AVX512; level++) {
        ry_kernels k;
        if (level > (int)renyi_cpu_detect()) { /* even filling the table may need them */
            printf("SKIP: %s kernels: this machine lacks the instructions\n",
                   renyi_cpu_name((renyi_cpu)level));
            continue;
        }
        ry_kernels_init(&k, (renyi_cpu)level);
        check(&k);
    }
}

#endif
