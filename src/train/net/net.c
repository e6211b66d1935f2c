/* net.c - creates a net, updates its weights and its cuts, and reports its properties.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/net/net_state.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/policy_api.h"
#include "kernels/rows/rows.h"

#include <omp.h>
#include <string.h>

enum { USUAL_ROWS = 1600, MAX_BATCH = 4096, MAX_THREADS = 1024 };

/* ---- creating ------------------------------------------------------------------------------ */

renyi_status ry_net_trains(const ry_vit_config *c, renyi_error *err)
{
    if (c->rope_theta > 0.0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: a DINOv3, with rotary positions, is not trained here; DINOv2 and other "
                       "ViTs are",
                       c->architecture);
    if (!c->is_clip) return RENYI_OK;
    return ry_fail(
        err, RENYI_ERR_UNSUPPORTED, -1,
        "%s: a CLIP compares images with texts and has no classifier to train; its image "
        "tower under timm's names (vit_*_clip_*) can be trained with one",
        c->architecture);
}

static renyi_status check_config(const ry_vit_config *c, renyi_error *err)
{
    RY_TRY(ry_net_trains(c, err));
    if (!c->n_classes || !c->n_blocks || !c->dim || !c->n_heads || c->dim % c->n_heads ||
        !c->patch_size || c->image_size < c->patch_size)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "no model to train: %u classes, %u blocks, dim %u with %u heads, images of "
                       "%u pixels in patches of %u",
                       c->n_classes, c->n_blocks, c->dim, c->n_heads, c->image_size, c->patch_size);
    const int reads_class = c->pool == RY_POOL_TOKEN || c->pool == RY_POOL_CLASS_MEAN;
    const int reads_mean = c->pool != RY_POOL_TOKEN;
    const uint32_t class_rows = ry_vit_class_rows(c);
    if ((reads_class && class_rows == 0) || (reads_mean && class_rows > 1))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a head cannot read the %s of a model with %u tokens before its patches",
                       reads_class ? "class token" : "mean", c->n_prefix);
    return RENYI_OK;
}

static renyi_status read_taps(ry_net *net, const ry_net_options *opt, renyi_error *err)
{
    if (!opt->n_taps || !opt->feature_dim) return RENYI_OK;
    net->taps = ry_calloc(&net->al, opt->n_taps, sizeof *net->taps);
    if (!net->taps) return ry_fail_nomem(err, opt->n_taps * sizeof *net->taps);
    net->n_taps = opt->n_taps;
    if (opt->direct && opt->feature_dim != net->config.dim)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "tokens of %u numbers cannot be compared directly with a teacher's of %u",
                       net->config.dim, opt->feature_dim);
    for (uint32_t i = 0; i < opt->n_taps; i++) {
        net->taps[i].block = opt->taps[i];
        if (opt->taps[i] >= net->config.n_blocks || (i && opt->taps[i] <= opt->taps[i - 1]))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "features after block %u; blocks 0 to %u in ascending order are allowed",
                           opt->taps[i], net->config.n_blocks - 1);
    }
    return RENYI_OK;
}

static renyi_status read_options(ry_net *net, const ry_net_options *opt, renyi_error *err)
{
    const uint32_t usual = (USUAL_ROWS + net->n_tokens / 2) / net->n_tokens;
    RY_TRY(ry_cpu_choose(opt->level, &net->level, err));
    const int best = opt->dtype == RENYI_DTYPE_AUTO;
    const renyi_dtype wanted = best ? RENYI_DTYPE_BF16 : opt->dtype;
    const renyi_status st = ry_dtype_choose(wanted, net->level, &net->dtype, err);
    if (st && !best) return st;
    if (st) net->dtype = RENYI_DTYPE_F32;
    if (net->dtype == RENYI_DTYPE_INT8)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "dtype int8 does not train; f32 and bf16 do");
    net->max_batch = opt->micro_batch ? opt->micro_batch : usual ? usual : 1;
    net->team.n_threads = opt->n_threads ? opt->n_threads : ry_cpu_threads(1);
    if (net->max_batch > MAX_BATCH || net->team.n_threads > MAX_THREADS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "a micro-batch of %u on %u threads; at most %d and %d accepted",
                       net->max_batch, net->team.n_threads, MAX_BATCH, MAX_THREADS);
    net->checkpoint_activations = opt->checkpoint_activations;
    net->feature_dim = opt->feature_dim;
    net->feature_prefix = opt->feature_prefix;
    net->direct = opt->direct && opt->n_taps;
    return read_taps(net, opt, err);
}

static renyi_status build_net(ry_net *net, const ry_net_options *opt, renyi_error *err)
{
    const uint32_t L = net->config.n_blocks;
    RY_TRY(read_options(net, opt, err));
    ry_kernels_init(&net->kernels, net->level);
    ry_grad_kernels_init(&net->grad, net->level);
    const ry_epilogue activation = net->config.activation;
    net->activation = activation == RY_EPI_QUICKGELU   ? net->grad.quick_gelu
                      : activation == RY_EPI_GELU_TANH ? net->grad.gelu_tanh
                                                       : net->grad.gelu;
    net->activation_grad = activation == RY_EPI_QUICKGELU   ? net->grad.quick_gelu_grad
                           : activation == RY_EPI_GELU_TANH ? net->grad.gelu_tanh_grad
                                                            : net->grad.gelu_grad;
    net->blocks = ry_calloc(&net->al, L, sizeof *net->blocks);
    net->tokens = ry_calloc(&net->al, (size_t)L + 1, sizeof *net->tokens);
    if (!net->blocks || !net->tokens) return ry_fail_nomem(err, L * sizeof *net->blocks);
    RY_TRY(ry_net_make_params(net, err));
    RY_TRY(ry_net_make_linears(net, err));
    RY_TRY(ry_net_make_arena(net, err));
    return ry_net_prune(net, NULL, err);
}

renyi_status ry_net_new(ry_net **out, const ry_vit_config *config, const ry_net_options *opt,
                        const renyi_allocator *al, renyi_error *err)
{
    *out = NULL;
    RY_TRY(check_config(config, err));
    ry_net *net = ry_calloc(al, 1, sizeof *net);
    if (!net) return ry_fail_nomem(err, sizeof *net);
    if (al) net->al = *al;
    net->config = *config;
    const uint32_t side = config->image_size / config->patch_size;
    net->n_patches = side * side;
    net->n_tokens = net->n_patches + config->n_prefix;
    const renyi_status st = build_net(net, opt, err);
    if (st) {
        ry_net_free(net);
        return st;
    }
    *out = net;
    return RENYI_OK;
}

void ry_net_free(ry_net *net)
{
    if (!net) return;
    const renyi_allocator al = net->al;
    ry_net_free_linears(net);
    ry_pruner_free(net->pruner, &al);
    if (net->params.files != net->params.list) ry_free(&al, net->params.files);
    ry_free(&al, net->params.list);
    ry_free(&al, net->params.value);
    ry_free(&al, net->params.grad);
    ry_free(&al, net->blocks);
    ry_free(&al, net->tokens);
    ry_free(&al, net->taps);
    ry_free(&al, net->arena);
    ry_free(&al, net);
}

/* ---- weights ------------------------------------------------------------------------------- */

enum { ENDS = 8 }; /* matrices outside the blocks and the taps; some models lack some of them */

/* Matrix k of a net: the ends, then four per block, then the taps. */
static ry_net_matrix *matrix_at(ry_net *net, uint32_t k)
{
    ry_net_pool *p = &net->pool;
    ry_net_matrix *const ends[ENDS] = {&net->patch_embed, &net->head[0], &net->head[1],
                                       &net->feature,     &p->kv,        &p->proj,
                                       &p->fc1,           &p->fc2};
    const uint32_t L = net->config.n_blocks;
    if (k < ENDS) return ends[k];
    if (k >= ENDS + 4 * L) return &net->taps[k - ENDS - 4 * L].proj;
    ry_net_block *b = &net->blocks[(k - ENDS) / 4];
    ry_net_matrix *const of_block[] = {&b->qkv, &b->proj, &b->fc1, &b->fc2};
    return of_block[k % 4];
}

/* Weights and bias times layer scale, in this thread's part of net->folded. */
static const float *fold_scale(const ry_net *net, const ry_net_matrix *m, const float **bias)
{
    float *w = net->folded + (size_t)omp_get_thread_num() * ry_net_scaled_floats(net);
    float *b = w + m->w->size;
    const float *gamma = ry_net_value(net, m->gamma);
    const size_t n_out = ry_net_outputs(m), n_in = m->w->size / n_out;
    for (size_t j = 0; j < n_out; j++) {
        ry_row_scale(w + j * n_in, ry_net_value(net, m->w) + j * n_in, gamma[j], n_in);
        b[j] = gamma[j] * ry_net_value(net, m->b)[j];
    }
    *bias = b;
    return w;
}

static renyi_status pack_matrix(ry_net *net, uint32_t k, renyi_error *err)
{
    const ry_net_matrix *m = matrix_at(net, k);
    if (!m->ahead) return RENYI_OK;
    const float *w = ry_net_value(net, m->w), *b = m->b ? ry_net_value(net, m->b) : NULL;
    if (m->gamma) w = fold_scale(net, m, &b);
    RY_TRY(ry_linear_update(m->ahead, w, 0, b, err));
    return m->back ? ry_linear_update(m->back, w, 1, NULL, err) : RENYI_OK;
}

renyi_status ry_net_update(ry_net *net, renyi_error *err)
{
    const int count = ENDS + 4 * (int)net->config.n_blocks + (int)net->n_taps;
    int failed = 0;
    net->n_last = 0;
#pragma omp parallel for num_threads(net->team.n_threads) schedule(dynamic) reduction(| : failed)
    for (int k = 0; k < count; k++) failed |= pack_matrix(net, (uint32_t)k, NULL) != RENYI_OK;
    for (int k = 0; failed && k < count; k++)
        RY_TRY(pack_matrix(net, (uint32_t)k, err)); /* again, for the message */
    return RENYI_OK;
}

void ry_net_zero_grad(ry_net *net)
{
    memset(net->params.grad, 0, net->params.total * sizeof *net->params.grad);
}

/* ---- cuts ---------------------------------------------------------------------------------- */

static ry_net_weights weights_of(const ry_policy *p, uint32_t block)
{
    for (uint32_t i = 0; i < p->n_cuts; i++) {
        if (p->cuts[i].layer != block || p->cuts[i].reduce != RY_REDUCE_FUSE) continue;
        if (p->weights == RY_FUSE_POOL || p->metric == RY_METRIC_POOL) return RY_WEIGHTS_CONSTANT;
        if (p->weights == RY_FUSE_CLS || p->metric == RY_METRIC_CLS) return RY_WEIGHTS_CLASS_ROW;
        if (p->metric == RY_METRIC_COL || p->metric == RY_METRIC_CORRECT) return RY_WEIGHTS_COLUMNS;
    }
    return RY_WEIGHTS_CONSTANT;
}

/* RY_PATH_LISTED (attention only for the rows that stay) is replaced: the backward kernel supports
 * only queries at the beginning of the list. */
static void use_rows(ry_net *net, const ry_block_rows *rows, uint32_t i)
{
    ry_net_block *b = &net->blocks[i];
    b->rows = rows[i];
    if (b->rows.path == RY_PATH_LISTED) {
        b->rows.path = RY_PATH_BEFORE;
        b->rows.attend = b->rows.in;
    }
    b->weights = b->rows.decide ? weights_of(&net->policy, i) : RY_WEIGHTS_CONSTANT;
    const int cut = b->rows.decide && b->rows.needs.place != RY_CUT_NONE;
    net->tokens[i + 1].facts = cut ? i + 1 : net->tokens[i].facts;
}

renyi_status ry_net_prune(ry_net *net, const ry_policy *policy, renyi_error *err)
{
    const uint32_t L = net->config.n_blocks;
    const ry_policy none = {.rule = RY_RULE_NONE};
    ry_pruner *pruner = NULL;
    if (!policy) policy = &none;
    if (policy->rule == RY_RULE_ATS)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "ats keeps a number of tokens that depends on the image; training takes "
                       "rules with a fixed one: naive, evit, mosaic, tome");
    if (policy->likeness > 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "likeness=%g: the number of tokens depends on the image; train mosaic "
                       "without likeness",
                       policy->likeness);
    if (policy->rule == RY_RULE_TCA)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "tca is for models that are not trained; training takes naive, evit, "
                       "mosaic, tome");
    ry_block_rows *rows = ry_calloc(&net->al, L, sizeof *rows);
    if (!rows) return ry_fail_nomem(err, L * sizeof *rows);
    const renyi_status st = ry_policy_pruner(&pruner, policy, &net->config, net->n_patches,
                                             net->max_batch, net->level, &net->al, err);
    if (!st) {
        ry_pruner_free(net->pruner, &net->al);
        net->pruner = pruner;
        net->policy = *policy;
        if (pruner) net->hook = ry_pruner_hook(pruner);
        const ry_rows_options opt = {pruner ? &net->hook : NULL, ry_net_all_rows(net),
                                     RENYI_OUTPUT_AUTO};
        ry_vit_rows(rows, &net->config, net->n_patches, &opt);
        for (uint32_t i = 0; i < L; i++) use_rows(net, rows, i);
        net->n_last = 0;
    }
    ry_free(&net->al, rows);
    return st;
}

/* ---- properties ---------------------------------------------------------------------------- */

ry_params *ry_net_params(ry_net *net) { return &net->params; }
const ry_vit_config *ry_net_config(const ry_net *net) { return &net->config; }
uint32_t ry_net_patches(const ry_net *net) { return net->n_patches; }
uint32_t ry_net_micro_batch(const ry_net *net) { return net->max_batch; }
int ry_net_is_distilled(const ry_net *net) { return net->head[1].w != NULL; }
size_t ry_net_activation_bytes(const ry_net *net) { return net->arena_bytes; }

void ry_net_features(const ry_net *net, ry_net_features_view *out)
{
    *out = (ry_net_features_view){net->features, net->feature_patch, ry_net_last_patches(net)};
}

double ry_net_macs(const ry_net *net)
{
    const ry_vit_config *c = &net->config;
    const double C = c->dim, M = c->mlp_dim;
    double macs =
        3.0 * c->patch_size * c->patch_size * C * net->n_patches + C * ry_vit_head_width(c);
    if (c->pool == RY_POOL_ATTENTION) /* keys and values; projection and MLP */
        macs += (double)ry_net_last_rows(net) * 2.0 * C * C + C * C + 2.0 * C * M;
    for (uint32_t i = 0; !net->direct && i < net->n_taps; i++)
        macs += (double)net->blocks[net->taps[i].block].rows.out * C * net->feature_dim;
    if (ry_net_final_features(net)) macs += (double)ry_net_last_patches(net) * C * net->feature_dim;
    for (uint32_t i = 0; i < c->n_blocks; i++) macs += ry_block_rows_macs(&net->blocks[i].rows, c);
    return macs;
}
