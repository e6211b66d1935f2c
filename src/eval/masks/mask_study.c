/* mask_study.c - renyi_masks: creates a study of metrics and policies over masks and returns its
 * results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/masks/mask_study.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/limits.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_BATCH = 8, MAX_BATCH = 1024, MAX_THREADS = 1024, MAX_POLICIES = 1024 };
#define DEFAULT_KEEP 0.7 /* of the paper's tables */

const char *const *renyi_masks_default_metrics(int has_class_token, uint32_t *count)
{
    static const char *const metrics[] = {"cls",     "col n=1",   "col n=2",  "col n=3",
                                          "col n=4", "col n=inf", "colv n=4", "renyi n=2",
                                          "shannon", "random"};
    const uint32_t all = sizeof metrics / sizeof *metrics, skip = has_class_token ? 0 : 1;
    *count = all - skip;
    return metrics + skip;
}

/* ---- options -------------------------------------------------------------------------------- */

static renyi_status check_options(renyi_masks_options *o, renyi_error *err)
{
    if (!o->folder) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_masks_options: folder is NULL");
    if ((o->n_metrics && !o->metrics) || (o->n_policies && !o->policies))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_masks_options: metrics or policies is NULL");
    if ((unsigned)o->kind > RENYI_MASK_BINARY)
        return ry_fail(err, RENYI_ERR_ARG, -1, "mask kind %d is not known", (int)o->kind);
    if (o->keep == 0.0) o->keep = DEFAULT_KEEP;
    if (!o->batch) o->batch = DEFAULT_BATCH;
    if (!o->n_threads) o->n_threads = ry_cpu_threads(1);
    if (o->batch > MAX_BATCH || o->n_threads > MAX_THREADS || o->n_policies > MAX_POLICIES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%u images per batch, %u threads, %u policies; the limits are %d, %d and %d",
                       o->batch, o->n_threads, o->n_policies, MAX_BATCH, MAX_THREADS, MAX_POLICIES);
    return RENYI_OK;
}

static renyi_status read_model_info(renyi_masks *s, const renyi_model *m, renyi_error *err)
{
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    const renyi_preprocess *p = s->o.preprocess ? s->o.preprocess : &info.preprocess;
    if (p->size != info.image_size)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "images of %u pixels for a model that takes %u; open the model with that "
                       "image_size",
                       p->size, info.image_size);
    s->n_prefix = info.n_prefix;
    s->n_outputs = info.n_classes ? info.n_classes : info.embed_dim;
    s->info.n_blocks = info.n_blocks;
    s->info.n_patches = info.n_patches;
    s->image = ry_image_spec_of(p, &s->o.limits, s->o.apply_exif, RENYI_DECODE_EXACT);
    s->mask = (ry_mask_spec){.kind = s->o.kind,
                             .border_is_object = s->o.border_is_object != 0,
                             .apply_exif = s->o.apply_exif != 0,
                             .limits = ry_limits(&s->o.limits),
                             .preprocess = *p,
                             .patch = info.patch_size};
    s->normalize = memcmp(p->mean, info.preprocess.mean, sizeof p->mean) != 0 ||
                   memcmp(p->std, info.preprocess.std, sizeof p->std) != 0;
    if (!s->o.n_metrics)
        s->o.metrics =
            renyi_masks_default_metrics(info.n_prefix > info.n_registers, &s->o.n_metrics);
    return RENYI_OK;
}

/* ---- sessions and memory -------------------------------------------------------------------- */

static renyi_status open_policy(renyi_masks *s, const renyi_model *m, uint32_t i, renyi_error *err)
{
    const renyi_session_options o = {.struct_size = sizeof o,
                                     .max_batch = s->o.batch,
                                     .n_threads = s->o.n_threads,
                                     .policy = s->o.policies[i],
                                     .trace = 1};
    ry_mask_policy *p = &s->policies[i];
    RY_TRY(renyi_session_new(&p->session, m, &o, err));
    const char *full = renyi_session_policy(p->session);
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(full, renyi_session_policy(s->policies[j].session)) == 0)
            return ry_fail(err, RENYI_ERR_ARG, -1, "policy \"%s\" is given twice", full);
    p->blocks = ry_calloc(&s->al, s->info.n_blocks, sizeof *p->blocks);
    return p->blocks ? RENYI_OK : ry_fail_nomem(err, s->info.n_blocks * sizeof *p->blocks);
}

static renyi_status open_sessions(renyi_masks *s, const renyi_model *m, renyi_error *err)
{
    const ry_scores_options o = {.n_metrics = s->o.n_metrics,
                                 .metrics = s->o.metrics,
                                 .keep = s->o.keep,
                                 .max_batch = s->o.batch,
                                 .n_threads = s->o.n_threads};
    RY_TRY(ry_scores_new(&s->scores, m, &o, err));
    s->info.n_metrics = s->o.n_metrics;
    s->info.keep = s->o.keep;
    s->info.n_kept = ry_scores_kept(s->scores);
    s->policies = ry_calloc(&s->al, s->o.n_policies, sizeof *s->policies);
    if (!s->policies) return ry_fail_nomem(err, s->o.n_policies * sizeof *s->policies);
    s->info.n_policies = s->o.n_policies;
    for (uint32_t i = 0; i < s->o.n_policies; i++) RY_TRY(open_policy(s, m, i, err));
    return RENYI_OK;
}

static renyi_status allocate_buffers(renyi_masks *s, renyi_error *err)
{
    const renyi_allocator *al = &s->al;
    const size_t side = s->image.preprocess.size, values = 3 * side * side, B = s->o.batch;
    const size_t P = s->info.n_patches, N = P + s->n_prefix;
    const size_t each = (size_t)s->info.n_metrics * s->info.n_blocks; /* at most 64 x blocks */
    s->folder = ry_strdup(al, s->o.folder);
    s->auc = ry_alloc(al, s->n_images, each * sizeof *s->auc);
    s->kept = ry_calloc(al, each, sizeof *s->kept);
    s->items = ry_calloc(al, B, sizeof *s->items);
    s->pixels = ry_alloc(al, B, values);
    s->sides = ry_alloc(al, B, P);
    s->chw = s->normalize ? ry_alloc(al, B, values * sizeof *s->chw) : NULL;
    s->logits = ry_alloc(al, B, s->n_outputs * sizeof *s->logits);
    s->order = ry_alloc(al, N, sizeof *s->order);
    s->rows = ry_alloc(al, N, sizeof *s->rows);
    s->members = ry_alloc(al, N, sizeof *s->members);
    s->radix = ry_alloc(al, N, 2 * sizeof *s->radix);
    s->fate = ry_alloc(al, P, 1);
    if (s->folder && s->auc && s->kept && s->items && s->pixels && s->sides && s->logits &&
        s->order && s->rows && s->members && s->radix && s->fate && (s->chw || !s->normalize))
        return RENYI_OK;
    return ry_fail_nomem(err, s->n_images * each * sizeof *s->auc + B * values);
}

static renyi_status prepare_study(renyi_masks *s, const renyi_model *m, renyi_error *err)
{
    renyi_dataset_info data;
    renyi_dataset_get_info(s->data, &data);
    s->n_images = (size_t)data.n_images;
    RY_TRY(check_options(&s->o, err));
    RY_TRY(read_model_info(s, m, err));
    RY_TRY(open_sessions(s, m, err));
    return allocate_buffers(s, err);
}

renyi_status renyi_masks_new(renyi_masks **out, const renyi_model *m, const renyi_dataset *d,
                             const renyi_masks_options *opt, renyi_error *err)
{
    renyi_masks_options o = {0};
    if (!out || !m || !d || !opt)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_masks_new: NULL argument");
    *out = NULL;
    if (opt->struct_size < sizeof o.struct_size || opt->struct_size > sizeof o)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_masks_options: struct_size %u, this library knows %zu",
                       opt->struct_size, sizeof o);
    memcpy(&o, opt, opt->struct_size);
    renyi_masks *s = ry_calloc(&o.allocator, 1, sizeof *s);
    if (!s) return ry_fail_nomem(err, sizeof *s);
    s->al = o.allocator;
    s->o = o;
    s->data = d;
    s->pool.al = &s->al;
    const renyi_status st = prepare_study(s, m, err);
    /* Borrowed for the call only. */
    s->o.folder = NULL;
    s->o.metrics = s->o.policies = NULL;
    s->o.preprocess = NULL;
    if (st) {
        renyi_masks_free(s);
        return st;
    }
    *out = s;
    return RENYI_OK;
}

void renyi_masks_free(renyi_masks *s)
{
    if (!s) return;
    const renyi_allocator al = s->al;
    for (uint32_t i = 0; s->policies && i < s->info.n_policies; i++) {
        renyi_session_free(s->policies[i].session);
        ry_free(&al, s->policies[i].blocks);
    }
    ry_scores_free(s->scores);
    void *const blocks[] = {s->policies, s->folder,  s->auc,   s->kept,   s->items,
                            s->pixels,   s->sides,   s->chw,   s->logits, s->order,
                            s->rows,     s->members, s->radix, s->fate,   s->failures};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) ry_free(&al, blocks[i]);
    ry_pool_free(&s->pool);
    ry_free(&al, s);
}

/* ---- results -------------------------------------------------------------------------------- */

void renyi_masks_get_info(const renyi_masks *s, renyi_masks_info *out)
{
    *out = s->info;
    out->object = s->info.images ? s->patches[RY_OBJECT].mean : NAN;
    out->background = s->info.images ? s->patches[RY_BACKGROUND].mean : NAN;
    out->left_out = s->info.images ? s->patches[RY_NEITHER].mean : NAN;
}

const char *renyi_masks_metric(const renyi_masks *s, uint32_t metric)
{
    return ry_scores_name(s->scores, metric);
}

const char *renyi_masks_policy(const renyi_masks *s, uint32_t policy)
{
    return renyi_session_policy(s->policies[policy].session);
}

void renyi_masks_get_ranking(const renyi_masks *s, uint32_t metric, uint32_t block,
                             renyi_masks_ranking *out)
{
    const ry_mask_kept *kept = ry_mask_kept_at(s, metric, block);
    ry_moments auc = {0};
    for (size_t i = 0; i < s->info.images; i++)
        ry_moments_add(&auc, ry_mask_auc(s, i, metric)[block]);
    *out = (renyi_masks_ranking){ry_moments_estimate(&auc), ry_moments_estimate(&kept->object),
                                 ry_moments_estimate(&kept->background)};
}

void renyi_masks_get_difference(const renyi_masks *s, uint32_t a, uint32_t b, uint32_t block,
                                renyi_estimate *out)
{
    ry_moments difference = {0};
    for (size_t i = 0; i < s->info.images; i++)
        ry_moments_add(&difference, ry_mask_auc(s, i, b)[block] - ry_mask_auc(s, i, a)[block]);
    *out = ry_moments_estimate(&difference);
}

static renyi_masks_fates fates_of(const ry_moments m[RY_FATES])
{
    return (renyi_masks_fates){.alone = ry_moments_estimate(&m[RY_FATE_ALONE]),
                               .merged = ry_moments_estimate(&m[RY_FATE_MERGED]),
                               .fused = ry_moments_estimate(&m[RY_FATE_FUSED]),
                               .dropped = ry_moments_estimate(&m[RY_FATE_DROPPED])};
}

void renyi_masks_get_survival(const renyi_masks *s, uint32_t policy, uint32_t block,
                              renyi_masks_survival *out)
{
    const ry_mask_fates *b = &s->policies[policy].blocks[block];
    *out = (renyi_masks_survival){b->is_cut, fates_of(b->object), fates_of(b->background)};
}

size_t renyi_masks_failure_count(const renyi_masks *s) { return s->n_failures; }

void renyi_masks_get_failure(const renyi_masks *s, size_t i, renyi_eval_failure *out)
{
    *out = s->failures[i];
}
