/* optim.c - AdamW, gradient norm and running mean of the weights over chunks of the parameters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/optim.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* Floats of a chunk: its values, gradients and moments are 256 KiB and fit the cache of a core. */
enum { CHUNK = 16384 };

/* A piece of one parameter. */
typedef struct ry_optim_chunk {
    size_t offset, size;
    uint32_t param;
} ry_optim_chunk;

ry_optim_options ry_optim_defaults(void)
{
    return (ry_optim_options){.n_threads = 1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
}

static size_t chunks_of(const ry_param *p) { return (p->size + CHUNK - 1) / CHUNK; }

static void make_chunks(ry_optim *o)
{
    ry_optim_chunk *c = o->chunks;
    for (uint32_t i = 0; i < o->params->n; i++) {
        const ry_param *p = &o->params->list[i];
        for (size_t at = 0; at < p->size; at += CHUNK) {
            const size_t left = p->size - at;
            *c++ = (ry_optim_chunk){p->offset + at, left < CHUNK ? left : CHUNK, i};
        }
    }
}

static renyi_status allocate_state(ry_optim *o, renyi_error *err)
{
    const size_t total = o->params->total;
    for (uint32_t i = 0; i < o->params->n; i++) o->n_chunks += chunks_of(&o->params->list[i]);
    o->m = ry_calloc(&o->al, total, sizeof *o->m);
    o->v = ry_calloc(&o->al, total, sizeof *o->v);
    o->ema = o->opt.average ? ry_alloc(&o->al, total, sizeof *o->ema) : NULL;
    if (!o->m || !o->v || (o->opt.average && !o->ema))
        return ry_fail_nomem(err, total * sizeof *o->m);
    o->lr_scale = ry_alloc(&o->al, o->params->n, sizeof *o->lr_scale);
    o->chunks = ry_alloc(&o->al, o->n_chunks, sizeof *o->chunks);
    o->sums = ry_alloc(&o->al, o->n_chunks, sizeof *o->sums);
    if (!o->lr_scale || !o->chunks || !o->sums)
        return ry_fail_nomem(err, o->n_chunks * sizeof *o->chunks);
    return RENYI_OK;
}

renyi_status ry_optim_new(ry_optim **out, ry_params *params, const ry_optim_options *opt,
                          const renyi_allocator *al, renyi_error *err)
{
    *out = NULL;
    ry_optim *o = ry_calloc(al, 1, sizeof *o);
    if (!o) return ry_fail_nomem(err, sizeof *o);
    if (al) o->al = *al;
    o->opt = *opt;
    o->params = params;
    const renyi_status st = allocate_state(o, err);
    if (st) {
        ry_optim_free(o);
        return st;
    }
    ry_update_kernels_init(&o->kernels, opt->level ? opt->level : renyi_cpu_detect());
    make_chunks(o);
    ry_optim_layer_decay(o, 1.0);
    if (o->ema) memcpy(o->ema, params->value, params->total * sizeof *o->ema);
    *out = o;
    return RENYI_OK;
}

void ry_optim_free(ry_optim *o)
{
    if (!o) return;
    const renyi_allocator al = o->al;
    ry_free(&al, o->m);
    ry_free(&al, o->v);
    ry_free(&al, o->ema);
    ry_free(&al, o->lr_scale);
    ry_free(&al, o->chunks);
    ry_free(&al, o->sums);
    ry_free(&al, o);
}

/* ---- layer-wise learning rates --------------------------------------------------------------- */

/* 0 before the blocks, 1 .. n_blocks, then n_blocks + 1. */
static uint32_t layer_of(const ry_param *p, uint32_t n_blocks)
{
    switch (p->role) {
    case RY_CLS_TOKEN:
    case RY_DIST_TOKEN:
    case RY_REGISTERS:
    case RY_POS_EMBED:
    case RY_PATCH_W:
    case RY_PATCH_B:
    case RY_PRE_NORM_W:
    case RY_PRE_NORM_B: return 0;
    default: return p->role >= RY_NORM1_W && p->role <= RY_FC2_B ? p->block + 1 : n_blocks + 1;
    }
}

void ry_optim_layer_decay(ry_optim *o, double decay)
{
    uint32_t n_blocks = 0;
    for (uint32_t i = 0; i < o->params->n; i++) {
        const uint32_t layer = layer_of(&o->params->list[i], 0);
        if (o->params->list[i].role >= RY_NORM1_W && o->params->list[i].role <= RY_FC2_B)
            n_blocks = layer > n_blocks ? layer : n_blocks;
    }
    for (uint32_t i = 0; i < o->params->n; i++) {
        const uint32_t layer = layer_of(&o->params->list[i], n_blocks);
        o->lr_scale[i] = pow(decay, n_blocks + 1 - layer);
    }
}

/* ---- one step -------------------------------------------------------------------------------- */

double ry_optim_norm(const ry_optim *o, double scale)
{
    const ptrdiff_t n = (ptrdiff_t)o->n_chunks;
    double sum = 0.0;
#pragma omp parallel for num_threads(o->opt.n_threads) schedule(dynamic)
    for (ptrdiff_t i = 0; i < n; i++) {
        const ry_optim_chunk *c = &o->chunks[i];
        const int frozen = o->params->list[c->param].frozen;
        o->sums[i] = frozen ? 0.0 : o->kernels.squares(o->params->grad + c->offset, c->size);
    }
    for (size_t i = 0; i < o->n_chunks; i++) sum += o->sums[i];
    return fabs(scale) * sqrt(sum);
}

double ry_optim_clip(double norm, double max)
{
    const double factor = max / (norm + 1e-6); /* torch.nn.utils.clip_grad_norm_'s own epsilon */
    return max == 0.0 || factor > 1.0 ? 1.0 : factor;
}

/* Constants of the kernel for parameter i at update o->step. */
static ry_adamw adamw_constants(const ry_optim *o, uint32_t i, double lr, double grad_scale)
{
    const ry_optim_options *p = &o->opt;
    const double rate = lr * o->lr_scale[i], t = (double)o->step;
    const double decay = o->params->list[i].decay ? p->weight_decay : 0.0;
    return (ry_adamw){.grad_scale = (float)grad_scale,
                      .keep = (float)(1.0 - rate * decay),
                      .rate = (float)(rate / (1.0 - pow(p->beta1, t))),
                      .correction = (float)sqrt(1.0 - pow(p->beta2, t)),
                      .rest1 = (float)(1.0 - p->beta1),
                      .beta2 = (float)p->beta2,
                      .rest2 = (float)(1.0 - p->beta2),
                      .eps = (float)p->eps};
}

void ry_optim_step(ry_optim *o, double lr, double grad_scale)
{
    const ptrdiff_t n = (ptrdiff_t)o->n_chunks;
    o->step++;
#pragma omp parallel for num_threads(o->opt.n_threads) schedule(dynamic)
    for (ptrdiff_t i = 0; i < n; i++) {
        const ry_optim_chunk *c = &o->chunks[i];
        if (o->params->list[c->param].frozen) continue;
        const ry_adamw a = adamw_constants(o, c->param, lr, grad_scale);
        o->kernels.adamw(&a, o->params->value + c->offset, o->m + c->offset, o->v + c->offset,
                         o->params->grad + c->offset, c->size);
    }
}

void ry_optim_average(ry_optim *o, double decay)
{
    const ptrdiff_t n = (ptrdiff_t)o->n_chunks;
    if (!o->ema) return;
#pragma omp parallel for num_threads(o->opt.n_threads) schedule(dynamic)
    for (ptrdiff_t i = 0; i < n; i++) {
        const ry_optim_chunk *c = &o->chunks[i];
        o->kernels.average(o->ema + c->offset, o->params->value + c->offset, (float)(1.0 - decay),
                           c->size);
    }
}
