/* optim.h - AdamW with decoupled weight decay, the norm of the gradient, and a running mean of the
 * weights (EMA), all over the flat arrays of ry_params.
 *
 * An update: norm = ry_optim_norm(o, 1 / batch); scale = ry_optim_clip(norm, max) / batch;
 * ry_optim_step(o, lr, scale); ry_optim_average(o, decay); ry_net_update(...).
 * Elements are independent and the norm is summed over fixed chunks in a fixed order: the same bits
 * for any number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_OPTIM_H
#define RY_OPTIM_H

#include "kernels/grad/update.h"
#include "train/net/params.h"

typedef struct ry_optim_options {
    renyi_cpu level;
    unsigned n_threads; /* at least 1 */
    double beta1, beta2, eps, weight_decay;
    int average; /* keep a running mean of the weights */
} ry_optim_options;

/* beta 0.9 and 0.999, eps 1e-8, no decay, one thread: PyTorch's, but no decay of 0.01. */
ry_optim_options ry_optim_defaults(void);

/* The state of a run is step, m, v and ema: with them, the weights and the options a run continues
 * bit for bit. A checkpoint may overwrite them. */
typedef struct ry_optim {
    ry_optim_options opt;
    ry_params *params; /* borrowed */
    uint64_t step;     /* updates done; the same for all parameters */
    float *m, *v;      /* [params->total] moments; 0 where a parameter is frozen */
    float *ema;        /* [params->total] running mean of the weights; NULL = not kept */
    double *lr_scale;  /* [params->n] factor of each parameter's learning rate; 1 */
    /* private */
    renyi_allocator al;
    ry_update_kernels kernels;
    struct ry_optim_chunk *chunks;
    size_t n_chunks;
    double *sums; /* [n_chunks] */
} ry_optim;

/* Borrows params, whose list, sizes and arrays must stay; which of them are frozen may change.
 * The running mean begins as a copy of the current weights. */
renyi_status ry_optim_new(ry_optim **out, ry_params *params, const ry_optim_options *opt,
                          const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_optim_free(ry_optim *o);

/* Layer-wise learning rates as timm's layer_decay: lr_scale = decay^(L + 1 - layer), where layer is
 * 0 for patch embedding, tokens and positions, 1 .. L for the blocks, L + 1 for all after them.
 * decay 1 = the same for all. */
void ry_optim_layer_decay(ry_optim *o, double decay);

/* Norm of scale * gradient over all parameters that are not frozen; NaN or infinite if one is. */
double ry_optim_norm(const ry_optim *o, double scale);

/* What torch.nn.utils.clip_grad_norm_ multiplies gradients with: max / (norm + 1e-6), at most 1.
 * max 0 = no clipping. NaN if norm is. */
double ry_optim_clip(double norm, double max);

/* One update with `grad_scale` times the current gradients. Frozen parameters and their
 * moments stay as they are. */
void ry_optim_step(ry_optim *o, double lr, double grad_scale);

/* ema += (1 - decay) (weights - ema), i.e. decay * ema + (1 - decay) * weights. Nothing without a
 * running mean. */
void ry_optim_average(ry_optim *o, double decay);

#endif
