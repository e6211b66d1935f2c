/* settings_table.c - the table of all settings with their defaults, and the recipes (settings that
 * belong together, under a name).
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/settings/settings.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(renyi_train_options, field)
#define TEXT RENYI_SETTING_TEXT, 1
#define COUNT RENYI_SETTING_COUNT, 1
#define REAL RENYI_SETTING_REAL, 1
#define REAL2 RENYI_SETTING_REAL, 2
#define REAL3 RENYI_SETTING_REAL, 3
#define FLAG RENYI_SETTING_FLAG, 1
#define CHOICE RENYI_SETTING_CHOICE, 1
#define CHANGES RY_SETTING_CHANGES
#define AUTO RY_SETTING_AUTO

/* clang-format off */
static const ry_setting table[] = {
    {"recipe", "model", TEXT, AT(recipe), 0, 0, "NAME", 0, "", "defaults from a recipe; options override them, before or after it"},
    {"model", "model", TEXT, AT(model), 0, 0, "MODEL", 0, "", "weights to begin with: file, directory, Hugging Face name in the cache, builtin"},
    {"arch", "model", TEXT, AT(arch), 0, 0, "NAME", 0, "", "begin with random weights: vit_tiny_patch16_224, ..."},
    {"dim", "model", COUNT, AT(dim), 0, 16384, "N", AUTO, "auto", "width, with --arch (from its name)"},
    {"blocks", "model", COUNT, AT(depth), 0, 1024, "N", AUTO, "auto", "blocks, with --arch (from its name)"},
    {"heads", "model", COUNT, AT(heads), 0, 1024, "N", AUTO, "auto", "attention heads, with --arch (from its name)"},
    {"mlp-dim", "model", COUNT, AT(mlp), 0, 65536, "N", AUTO, "auto", "hidden width, with --arch (four times the width)"},
    {"patch", "model", COUNT, AT(patch), 0, 512, "N", AUTO, "auto", "side of a patch, with --arch (from its name)"},
    {"classes", "model", COUNT, AT(classes), 0, 1000000, "N", AUTO, "auto", "of the head (the model's where the images have them, else a new head for their folders)"},
    {"image-size", "model", COUNT, AT(image_size), 0, 4096, "N", AUTO, "auto", "input side in pixels (the model's)"},
    {"mean", "model", REAL3, AT(mean), -10, 10, "R,G,B", AUTO, "auto", "subtracted from pixel / 255 (the model's)"},
    {"std", "model", REAL3, AT(std), 0, 10, "R,G,B", AUTO, "auto", "divisor after that (the model's)"},
    {"crop-mode", "model", CHOICE, AT(crop_mode), 0, 0, "auto|center|squash|border", 0, "auto", "of images to evaluate or classify (the model's)"},
    {"crop-pct", "model", REAL, AT(crop_pct), 0, 1, "X", AUTO, "auto", "share of the resized image that such a crop keeps (the model's)"},
    {"freeze", "model", TEXT, AT(freeze), 0, 0, "NAMES", 0, "", "parameters that stay as they are: 'pos_embed,blocks.*.norm1.*'"},
    {"freeze-layers", "model", TEXT, AT(freeze_layers), 0, 0, "L,...", 0, "", "blocks that stay as they are, from 0: 0-5"},

    {"data-dir", "data", TEXT, AT(data), 0, 0, "DIR", CHANGES, "", "training images: DIR/class/*.jpg or a list; DIR/train if there is one"},
    {"val-dir", "data", TEXT, AT(val), 0, 0, "DIR", CHANGES, "", "images to evaluate on (DIR/val of --data-dir if there is one)"},
    {"class-map", "data", TEXT, AT(class_map), 0, 0, "FILE", 0, "", "class names: one a line, 'name index', or JSON"},
    {"exif", "data", FLAG, AT(exif), 0, 0, "", 0, "off", "rotate images by their EXIF orientation"},
    {"cache-mb", "data", COUNT, AT(cache_mb), 0, 1e9, "N", CHANGES, "0", "megabytes of decoded images to keep in memory"},
    {"limit", "data", COUNT, AT(limit), 0, 0, "N", AUTO, "auto", "at most N training images, drawn at random (all)"},
    {"val-limit", "data", COUNT, AT(val_limit), 0, 0, "N", AUTO, "auto", "at most N images to evaluate on, drawn at random (all)"},

    {"epochs", "length", COUNT, AT(epochs), 1, 1000000, "N", CHANGES, "30", "passes over the images"},
    {"steps", "length", COUNT, AT(steps), 0, 1e12, "N", AUTO | CHANGES, "auto", "stop after so many updates in all (at the end of the epochs)"},
    {"batch-size", "length", COUNT, AT(batch), 1, 1048576, "N", 0, "64", "samples of an update"},
    {"micro-batch", "length", COUNT, AT(micro_batch), 0, 1024, "N", AUTO, "auto", "samples at a time; their gradients add up to the batch's (about 1600 tokens)"},

    {"lr", "learning rate", REAL, AT(lr), 0, 1000, "X", 0, "5e-4", "peak"},
    {"lr-scale", "learning rate", FLAG, AT(lr_scale), 0, 0, "", 0, "off", "multiply --lr by batch / 512"},
    {"min-lr", "learning rate", REAL, AT(min_lr), 0, 1000, "X", 0, "1e-6", "at the end"},
    {"warmup-epochs", "learning rate", REAL, AT(warmup_epochs), 0, 1000000, "X", 0, "1", "epochs of a straight line to the peak"},
    {"warmup-lr", "learning rate", REAL, AT(warmup_lr), 0, 1000, "X", 0, "1e-6", "where that line begins"},
    {"warmup-prefix", "learning rate", FLAG, AT(warmup_prefix), 0, 0, "", 0, "off", "the shape begins after the warm-up"},
    {"schedule", "learning rate", CHOICE, AT(schedule), 0, 0, "step|epoch|epoch-late", 0, "step", "when it changes; epoch-late: by the epoch before, as DeiT and EViT do"},
    {"lr-shape", "learning rate", CHOICE, AT(shape), 0, 0, "cosine|linear|constant", 0, "cosine", "from the peak to the end"},
    {"layer-decay", "learning rate", REAL, AT(layer_decay), 0, 1, "X", 0, "1", "its factor from each block to the one before"},

    {"weight-decay", "optimizer", REAL, AT(weight_decay), 0, 1000, "X", 0, "0.05", "of matrices; not of biases, LayerNorm, positions and tokens"},
    {"betas", "optimizer", REAL2, AT(betas), 0, 1, "A,B", 0, "0.9,0.999", "of AdamW"},
    {"eps", "optimizer", REAL, AT(eps), 0, 1, "X", 0, "1e-8", "of AdamW"},
    {"clip", "optimizer", REAL, AT(clip), 0, 1e9, "X", 0, "1", "largest norm of the gradient; 0: no limit"},
    {"ema", "optimizer", REAL, AT(ema), 0, 1, "X", 0, "0", "decay of a running mean of the weights, saved and evaluated too; 0: none"},

    {"drop-path", "regularization", REAL, AT(drop_path), 0, 1, "X", 0, "0", "stochastic depth of the last block"},
    {"smoothing", "regularization", REAL, AT(smoothing), 0, 1, "X", 0, "0.1", "of labels"},
    {"mixup", "regularization", REAL, AT(mixup), 0, 1000, "X", 0, "0.8", "alpha; 0: off"},
    {"cutmix", "regularization", REAL, AT(cutmix), 0, 1000, "X", 0, "1", "alpha; 0: off"},
    {"mixup-prob", "regularization", REAL, AT(mixup_prob), 0, 1, "X", 0, "1", "that a batch is mixed at all"},
    {"mixup-switch", "regularization", REAL, AT(mixup_switch), 0, 1, "X", 0, "0.5", "that it is cutmix, where both are on"},

    {"scale", "augmentation", REAL2, AT(crop_scale), 0, 1, "A,B", 0, "0.08,1", "area of a random crop; 0,0: no crop"},
    {"ratio", "augmentation", REAL2, AT(crop_ratio), 0.01, 100, "A,B", 0, "0.75,1.3333333333333333", "its width / height"},
    {"flip", "augmentation", REAL, AT(flip), 0, 1, "X", 0, "0.5", "mirror left and right, with this probability"},
    {"randaugment", "augmentation", TEXT, AT(randaugment), 0, 0, "SPEC", 0, "m9-mstd0.5-inc1", "as timm spells it (n: operations, p: probability of each); none"},
    {"color-jitter", "augmentation", REAL, AT(color_jitter), 0, 1, "X", 0, "0", "brightness, contrast, saturation"},
    {"three-augment", "augmentation", FLAG, AT(three_augment), 0, 0, "", 0, "off", "one of gray, solarize, blur (DeiT III)"},
    {"erasing", "augmentation", REAL, AT(erasing), 0, 1, "X", 0, "0.25", "a box becomes noise, with this probability"},
    {"repeats", "augmentation", COUNT, AT(repeats), 1, 64, "N", 0, "1", "repeated augmentation: each image N times, an epoch has 1 / N of the images"},

    {"prune", "pruning", TEXT, AT(prune), 0, 0, "POLICY", 0, "none", "train with cuts: a policy or preset ('renyi policies')"},
    {"shrink-start", "pruning", COUNT, AT(shrink_start), 0, 1000000, "N", 0, "0", "epochs before the keep rate falls from 1"},
    {"shrink-epochs", "pruning", COUNT, AT(shrink_epochs), 0, 1000000, "N", 0, "0", "epochs that it takes to reach the policy's"},

    {"teacher", "distillation", TEXT, AT(teacher), 0, 0, "MODEL", CHANGES, "", "a model to learn from"},
    {"distill", "distillation", CHOICE, AT(distill), 0, 0, "soft|hard", 0, "soft", "its probabilities, or its best class"},
    {"distill-alpha", "distillation", REAL, AT(distill_alpha), 0, 1, "X", 0, "0.5", "weight of its answer in the loss; the labels have the rest"},
    {"distill-tau", "distillation", REAL, AT(distill_tau), 0.001, 1000, "X", 0, "1", "temperature of soft"},
    {"teacher-classes", "distillation", TEXT, AT(teacher_classes), 0, 0, "N,...", 0, "", "its class for each of ours: indices, names or WordNet ids (by the folders' names)"},
    {"features", "distillation", REAL, AT(features_weight), 0, 1e6, "X", 0, "0", "weight of a loss between the patch tokens of both"},
    {"features-loss", "distillation", CHOICE, AT(features), 0, 0, "smooth-l1|mse|cosine", 0, "smooth-l1", "how they are compared"},
    {"features-layers", "distillation", TEXT, AT(features_layers), 0, 0, "L,...", 0, "", "compare after these blocks, class token included, not at the end; the teacher's at the same depth: 0-11"},
    {"mimic", "distillation", CHOICE, AT(mimic), 0, 0, "project|direct|forced", 0, "project", "compare them projected, as they are, or with each block's input taken from the teacher"},
    {"teacher-dtype", "distillation", CHOICE, AT(teacher_dtype), 0, 0, "file|f32|bf16|int8|auto", 0, "file", "data type that it computes with"},

    {"seed", "run", COUNT, AT(seed), 0, 0, "N", 0, "42", "of all random numbers"},
    {"dtype", "run", CHOICE, AT(dtype), 0, 0, "auto|f32|bf16", 0, "f32", "data type of the blocks' products; weights stay f32"},
    {"threads", "run", COUNT, AT(threads), 0, 1024, "N", AUTO | CHANGES, "auto", "threads of the model (physical cores)"},
    {"workers", "run", COUNT, AT(workers), 0, 1024, "N", AUTO | CHANGES, "auto", "threads that prepare images while the model runs (the cores that -t leaves free)"},
    {"checkpoint-activations", "run", FLAG, AT(checkpoint_activations), 0, 0, "", CHANGES, "off", "less memory, more time: blocks run forward twice"},
    {"eval-every", "run", COUNT, AT(eval_every), 0, 1000000, "N", CHANGES, "1", "evaluate after every N epochs; 0: at the end"},
    {"eval-start", "run", FLAG, AT(eval_start), 0, 0, "", CHANGES, "off", "evaluate before the first update too"},
    {"checkpoint-every", "run", COUNT, AT(checkpoint_every), 0, 1e12, "N", CHANGES, "200", "updates between checkpoints; each epoch ends with one too; 0: only those"},
    {"save-dtype", "run", CHOICE, AT(save_dtype), 0, 0, "f32|f16", CHANGES, "f32", "of model files"},
};
/* clang-format on */

const ry_setting *ry_settings(size_t *count)
{
    *count = sizeof table / sizeof *table;
    return table;
}

/* What settings were called in the files of older runs. */
static const struct {
    const char *name, *old_name;
} old_names[] = {{"blocks", "depth"}, {"image-size", "img-size"}};

const char *ry_setting_old_name(const char *name)
{
    for (size_t i = 0; i < sizeof old_names / sizeof *old_names; i++)
        if (strcmp(old_names[i].name, name) == 0) return old_names[i].old_name;
    return name;
}

const ry_setting *ry_setting_find(const char *name, size_t *index)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0 ||
            strcmp(ry_setting_old_name(table[i].name), name) == 0) {
            if (index) *index = i;
            return &table[i];
        }
    return NULL;
}

/* ---- recipes --------------------------------------------------------------------------------- */

/* clang-format off */
/* finetune.sh and main.py of EViT (docs/TRAINING.md). The model is in evaluation mode there, so
 * nothing is dropped; fp16 is not available here. The two recipes differ in the policy. */
#define PAPER_EVIT(policy)                                                                                              \
    "epochs", "30", "batch-size", "2048",                                                                               \
    "lr", "2e-5", "lr-scale", "on", "min-lr", "2e-6", "warmup-epochs", "0", "schedule", "epoch-late", "lr-shape", "cosine", \
    "weight-decay", "1e-6", "betas", "0.9,0.999", "eps", "1e-8", "clip", "0", "ema", "0.99996",                         \
    "drop-path", "0", "smoothing", "0.1", "mixup", "0.8", "cutmix", "1", "mixup-prob", "1", "mixup-switch", "0.5",      \
    "scale", "0.08,1", "ratio", "0.75,1.3333333333333333", "flip", "0.5", "randaugment", "m9-mstd0.5-inc1",             \
    "erasing", "0.25", "repeats", "3",                                                                                  \
    "prune", policy, "shrink-start", "0", "shrink-epochs", "0", "seed", "0", NULL
static const char *const paper_evit[] = {PAPER_EVIT("paper:evit-036")};
static const char *const paper_evit_ours[] = {PAPER_EVIT("paper:evit-ours-036")};

/* Found with a ViT of 2.8 M parameters on 9469 images, with a teacher. */
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
    {"paper-evit", "Table 13, column CLS at 0,3,6: the paper's fine-tuning with EViT (Table 16)",
     paper_evit},
    {"paper-evit-ours", "Table 13, column Ours at 0,3,6: the same with metric=correct, c=0.8",
     paper_evit_ours},
    {"small", "a small model from random weights on few images", small},
    {"finetune", "trained weights, adapted to other images", finetune},
};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };

size_t renyi_recipe_count(void) { return N_RECIPES; }
void renyi_recipe_get(size_t i, renyi_recipe *out) { *out = recipes[i]; }

static renyi_status apply_recipe(const renyi_recipe *r, renyi_train_options *opt, renyi_error *err)
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
        if (strcmp(recipes[i].name, name) == 0) return apply_recipe(&recipes[i], opt, err);
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", recipes[i].name);
    }
    return ry_fail(err, RENYI_ERR_ARG, -1, "recipe '%.60s' is not known; there are %s", name,
                   names);
}
