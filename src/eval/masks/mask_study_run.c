/* mask_study_run.c - renyi_masks_run: runs images in batches through the dense model and every
 * policy, and compares the result with the masks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/masks/mask_study.h"

#include <math.h>
#include <string.h>

/* ---- one image and its mask: any thread, C heap --------------------------------------------- */

/* folder/name with the suffix of `name` replaced by .png; owned (ry_free with NULL). */
static char *mask_path(const char *folder, const char *name)
{
    const char *base = strrchr(name, '/'), *dot = strrchr(base ? base : name, '.');
    const size_t f = strlen(folder), n = dot ? (size_t)(dot - name) : strlen(name);
    char *path = ry_alloc(NULL, f + n + sizeof "/.png", 1);
    if (!path) return NULL;
    memcpy(path, folder, f);
    path[f] = '/';
    memcpy(path + f + 1, name, n);
    memcpy(path + f + 1 + n, ".png", sizeof ".png");
    return path;
}

/* The mask has the name of the image; with its subfolders, or else without. */
static renyi_status read_mask_file(const renyi_masks *s, const char *file, uint8_t **bytes,
                                   size_t *size, renyi_error *err)
{
    const char *slash = strrchr(file, '/');
    const char *const names[] = {file, slash ? slash + 1 : NULL};
    for (size_t i = 0; i < 2 && names[i]; i++) {
        int is_missing = 0;
        char *path = mask_path(s->folder, names[i]);
        if (!path) return ry_fail_nomem(err, strlen(names[i]));
        const renyi_status st =
            ry_file_read(bytes, size, path, s->mask.limits.max_image_bytes, NULL, &is_missing, err);
        ry_free(NULL, path);
        if (!is_missing) return st;
    }
    return ry_fail(err, RENYI_ERR_IO, -1, "no .png file of this name in %.300s", s->folder);
}

static renyi_status load_mask(const renyi_masks *s, const char *file, const uint32_t size[2],
                              ry_mask_item *item)
{
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    renyi_error why = {0};
    renyi_status st = read_mask_file(s, file, &bytes, &n_bytes, &why);
    if (!st) st = ry_mask_read(item->sides, &item->kind, bytes, n_bytes, size, &s->mask, &why);
    ry_free(NULL, bytes);
    return st ? ry_fail(&item->err, st, -1, "mask: %.480s", why.message) : RENYI_OK;
}

static void load_item(const renyi_masks *s, ry_mask_item *item)
{
    renyi_dataset_image image;
    renyi_image decoded;
    item->err = (renyi_error){0};
    item->n_object = item->n_background = 0;
    renyi_dataset_get_image(s->data, item->index, &image);
    if (renyi_image_load(&decoded, image.path, &s->image.load, &item->err)) return;
    const uint32_t size[2] = {decoded.width, decoded.height};
    const renyi_status st =
        renyi_image_fit(item->pixels, &decoded, &s->image.preprocess, NULL, &item->err);
    renyi_image_free(&decoded, &s->image.load);
    if (st) return;
    if (load_mask(s, image.file, size, item)) return;
    for (uint32_t p = 0; p < s->info.n_patches; p++) {
        item->n_object += item->sides[p] == RY_OBJECT;
        item->n_background += item->sides[p] == RY_BACKGROUND;
    }
}

/* ---- one batch ------------------------------------------------------------------------------ */

static renyi_status fail_image(renyi_masks *s, size_t index, const char *message, renyi_error *err)
{
    renyi_dataset_image image;
    renyi_dataset_get_image(s->data, index, &image);
    char *copy = ry_pool_copy(&s->pool, ry_text_of(message));
    if (!copy || !ry_grow(&s->al, (void **)&s->failures, &s->failure_capacity, s->n_failures,
                          sizeof *s->failures))
        return ry_fail_nomem(err, strlen(message));
    s->failures[s->n_failures++] = (renyi_eval_failure){image.file, copy};
    s->info.failed++;
    if (s->o.on_failure) s->o.on_failure(s->o.user, image.file, copy);
    return RENYI_OK;
}

/* Moves item `from` to an earlier place, because sessions need the images side by side. */
static void move_item(renyi_masks *s, uint32_t to, uint32_t from)
{
    const size_t side = s->image.preprocess.size;
    ry_mask_item *into = &s->items[to], moved = s->items[from];
    if (to == from) return;
    memcpy(into->pixels, moved.pixels, 3 * side * side);
    memcpy(into->sides, moved.sides, s->info.n_patches);
    moved.pixels = into->pixels;
    moved.sides = into->sides;
    *into = moved;
}

/* Reports failures and counts the rest; moves the *count items that the model runs to the front. */
static renyi_status sort_items(renyi_masks *s, uint32_t n, uint32_t *count, renyi_error *err)
{
    *count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ry_mask_item *item = &s->items[i];
        if (item->err.code) {
            RY_TRY(fail_image(s, item->index, item->err.message, err));
            continue;
        }
        s->info.n_trimap += item->kind == RENYI_MASK_TRIMAP;
        s->info.n_binary += item->kind == RENYI_MASK_BINARY;
        if (item->n_object && item->n_background)
            move_item(s, (*count)++, i);
        else
            s->info.one_sided++;
    }
    return RENYI_OK;
}

/* Loads images first .. first+n-1 and their masks; the first *count items are to run. */
static renyi_status load_batch(renyi_masks *s, size_t first, uint32_t n, uint32_t *count,
                               renyi_error *err)
{
    const size_t side = s->image.preprocess.size, values = 3 * side * side;
    for (uint32_t i = 0; i < n; i++)
        s->items[i] = (ry_mask_item){.index = first + i,
                                     .pixels = s->pixels + i * values,
                                     .sides = s->sides + (size_t)i * s->info.n_patches};
#pragma omp parallel for schedule(dynamic) num_threads(s->o.n_threads)
    for (uint32_t i = 0; i < n; i++) load_item(s, &s->items[i]);
    RY_TRY(sort_items(s, n, count, err));
    for (uint32_t i = 0; s->normalize && i < *count; i++)
        renyi_image_normalize(s->chw + i * values, s->items[i].pixels, 1, &s->image.preprocess);
    return RENYI_OK;
}

static int has_nan(const renyi_masks *s, uint32_t image)
{
    for (uint32_t m = 0; m < s->info.n_metrics; m++)
        for (uint32_t b = 0; b < s->info.n_blocks; b++) {
            const float *score = ry_scores_get(s->scores, image, m, b);
            for (uint32_t p = 0; p < s->info.n_patches; p++)
                if (isnan(score[p])) return 1;
        }
    return 0;
}

/* Ranks the patches of one image by every metric at every block. */
static void rank_image(renyi_masks *s, uint32_t i)
{
    const ry_mask_item *item = &s->items[i];
    for (uint32_t m = 0; m < s->info.n_metrics; m++)
        for (uint32_t b = 0; b < s->info.n_blocks; b++) {
            ry_ranked r;
            ry_mask_rank(&r, ry_scores_get(s->scores, i, m, b), item->sides, s->info.n_patches,
                         s->info.n_kept, s->order, s->radix);
            ry_mask_auc(s, (size_t)s->info.images, m)[b] = r.auc;
            ry_moments_add(&ry_mask_kept_at(s, m, b)->object, r.kept_object);
            ry_moments_add(&ry_mask_kept_at(s, m, b)->background, r.kept_background);
        }
    ry_moments_add(&s->patches[RY_OBJECT], item->n_object);
    ry_moments_add(&s->patches[RY_BACKGROUND], item->n_background);
    ry_moments_add(&s->patches[RY_NEITHER],
                   s->info.n_patches - item->n_object - item->n_background);
    s->info.images++;
}

static void add_fates(renyi_masks *s, const ry_mask_item *item, ry_mask_fates *block)
{
    double n[RY_FATES][3] = {{0}};
    for (uint32_t p = 0; p < s->info.n_patches; p++) n[s->fate[p]][item->sides[p]]++;
    for (int f = 0; f < RY_FATES; f++) {
        ry_moments_add(&block->object[f], n[f][RY_OBJECT] / item->n_object);
        ry_moments_add(&block->background[f], n[f][RY_BACKGROUND] / item->n_background);
    }
}

/* Follows the patches of one image through the cuts of a policy, block by block. */
static renyi_status follow_image(renyi_masks *s, ry_mask_policy *policy, uint32_t i,
                                 renyi_error *err)
{
    const size_t n_cuts = renyi_session_cut_count(policy->session);
    size_t next = 0;
    ry_fate_begin(s->fate, s->rows, s->info.n_patches, s->n_prefix);
    for (uint32_t b = 0; b < s->info.n_blocks; b++) {
        renyi_cut cut;
        if (next < n_cuts) {
            RY_TRY(renyi_session_cut(policy->session, i, next, &cut, err));
            if (cut.block == b) {
                ry_fate_cut(s->fate, s->rows, s->info.n_patches, &cut, s->members);
                policy->blocks[b].is_cut = 1;
                next++;
            }
        }
        add_fates(s, &s->items[i], &policy->blocks[b]);
    }
    return RENYI_OK;
}

/* An image with NaN scores is a failure, and its item is marked. */
static renyi_status run_batch(renyi_masks *s, uint32_t n, renyi_error *err)
{
    ry_scores_run(s->scores, s->chw ? NULL : s->pixels, s->chw, n);
    for (uint32_t i = 0; i < n; i++) {
        if (has_nan(s, i)) {
            s->items[i].err.code = RENYI_ERR_FORMAT;
            RY_TRY(fail_image(s, s->items[i].index, "the model's scores are NaN", err));
        } else {
            rank_image(s, i);
        }
    }
    for (uint32_t p = 0; p < s->info.n_policies; p++) {
        ry_mask_policy *policy = &s->policies[p];
        RY_TRY(s->chw ? renyi_run_tensor(policy->session, s->chw, n, s->logits, err)
                      : renyi_run_pixels(policy->session, s->pixels, n, s->logits, err));
        for (uint32_t i = 0; i < n; i++)
            if (!s->items[i].err.code) RY_TRY(follow_image(s, policy, i, err));
    }
    return RENYI_OK;
}

/* ---- all images ----------------------------------------------------------------------------- */

static void reset_results(renyi_masks *s)
{
    renyi_masks_info *i = &s->info;
    i->images = i->one_sided = i->failed = i->n_trimap = i->n_binary = 0;
    s->n_failures = 0;
    memset(s->patches, 0, sizeof s->patches);
    memset(s->kept, 0, (size_t)i->n_metrics * i->n_blocks * sizeof *s->kept);
    for (uint32_t p = 0; p < i->n_policies; p++)
        memset(s->policies[p].blocks, 0, i->n_blocks * sizeof *s->policies[p].blocks);
}

renyi_status renyi_masks_run(renyi_masks *s, renyi_error *err)
{
    if (!s) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_masks_run: NULL argument");
    const double start = ry_clock();
    reset_results(s);
    for (size_t done = 0; done < s->n_images;) {
        const size_t left = s->n_images - done;
        const uint32_t n = left < s->o.batch ? (uint32_t)left : s->o.batch;
        uint32_t count;
        RY_TRY(load_batch(s, done, n, &count, err));
        if (count) RY_TRY(run_batch(s, count, err));
        done += n;
        s->info.seconds = ry_clock() - start;
        if (s->o.progress && s->o.progress(s->o.user, done, s->n_images))
            return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    }
    return RENYI_OK;
}
