/* settings_recipes.c - settings that belong together, by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "train/settings/settings.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
/* finetune.sh and main.py of EViT (docs/TRAINING.md). The model is in
 * evaluation mode there, so nothing is dropped; fp16 is not a choice here. */
static const char *const paper_evit[] = {
    "epochs", "30", "batch-size", "2048",
    "lr", "2e-5", "lr-scale", "on", "min-lr", "2e-6", "warmup-epochs", "0", "schedule", "epoch-late", "lr-shape", "cosine",
    "weight-decay", "1e-6", "betas", "0.9,0.999", "eps", "1e-8", "clip", "0", "ema", "0.99996",
    "drop-path", "0", "smoothing", "0.1", "mixup", "0.8", "cutmix", "1", "mixup-prob", "1", "mixup-switch", "0.5",
    "scale", "0.08,1", "ratio", "0.75,1.3333333333333333", "flip", "0.5", "randaugment", "m9-mstd0.5-inc1",
    "erasing", "0.25", "repeats", "3",
    "prune", "evit keep=0.7 layers=0,3,6 metric=cls fuse", "shrink-start", "0", "shrink-epochs", "0", "seed", "0",
    NULL};

/* From runs of a ViT of 2.8 M parameters on 9469 photos, with a teacher. */
static const char *const small[] = {
    "epochs", "30", "batch-size", "16", "micro-batch", "16",
    "lr", "1e-3", "min-lr", "1e-5", "warmup-epochs", "0.2", "schedule", "step",
    "weight-decay", "0.05", "clip", "1", "smoothing", "0.1",
    "mixup", "0", "cutmix", "0", "scale", "0.35,1", "randaugment", "none", "color-jitter", "0.3", "erasing", "0",
    NULL};

static const char *const finetune[] = {
    "epochs", "10", "batch-size", "64",
    "lr", "5e-5", "min-lr", "1e-6", "warmup-epochs", "0.5", "schedule", "step",
    "weight-decay", "0.01", "clip", "1", "mixup", "0", "cutmix", "0", "scale", "0.35,1", "randaugment", "none", "erasing", "0",
    NULL};
/* clang-format on */

static const renyi_recipe recipes[] = {
    {"paper-evit", "the paper's fine-tuning of a ViT with pruned tokens, by EViT's script",
     paper_evit},
    {"small", "a small model from random weights on few photos", small},
    {"finetune", "good weights, for other photos", finetune},
};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };

size_t renyi_recipe_count(void) { return N_RECIPES; }
void renyi_recipe_get(size_t i, renyi_recipe *out) { *out = recipes[i]; }

static renyi_status apply(const renyi_recipe *r, renyi_train_options *opt, renyi_error *err)
{
    for (const char *const *at = r->settings; at[0]; at += 2) {
        size_t i = 0;
        const ry_setting *s = ry_setting_find(at[0], &i);
        if (!s) return ry_fail(err, RENYI_ERR_ARG, -1, "recipe %s: no setting %s", r->name, at[0]);
        if (opt->given[i / 64] >> i % 64 & 1) continue;
        RY_TRY(ry_setting_read(s, opt, at[1], err));
    }
    opt->recipe = r->name;
    return RENYI_OK;
}

renyi_status renyi_train_recipe(renyi_train_options *opt, const char *name, renyi_error *err)
{
    char names[200] = "";
    if (!opt || !name) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_train_recipe: NULL argument");
    for (size_t i = 0; i < N_RECIPES; i++) {
        if (strcmp(recipes[i].name, name) == 0) return apply(&recipes[i], opt, err);
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", recipes[i].name);
    }
    return ry_fail(err, RENYI_ERR_ARG, -1, "recipe '%.60s' is not known; there are %s", name,
                   names);
}
