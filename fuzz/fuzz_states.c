/* fuzz_states.c - files that renyi writes and reads again: classifiers, TCA states, gallery
 * indexes, training checkpoints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "engine/clip/clip_handles.h"
#include "engine/tca/tca_adapt.h"
#include "eval/gallery/gallery_index.h"
#include "formats/safetensors.h"
#include "fuzz_targets.h"
#include "train/files/run_state.h"
#include "train/settings/settings_use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- classifier ------------------------------------------------------------------------------ */

/* Any bytes as the cache file of a classifier. */
int fuzz_classifier(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"cat", "golf_ball"}, *const templates[] = {"a {}."};
    enum { CLASSES = 2, WIDTH = 4 };
    float rows[CLASSES * WIDTH];
    renyi_classifier c = {.info = {.n_classes = CLASSES, .embed_dim = WIDTH, .key = 42},
                          .rows = rows};
    const ry_prompts p = {
        .names = names, .templates = templates, .n_classes = CLASSES, .n_templates = 1};
    renyi_error err = {0};
    if (ry_classifier_cache_parse(&c, &p, data, size, &err)) {
        if (!err.message[0]) abort();
        return 0;
    }
    for (size_t i = 0; i < CLASSES * WIDTH; i++) /* accepted rows are usable */
        if (!(fabsf(rows[i]) <= 1.001f)) abort();
    return 0;
}

/* ---- tca ------------------------------------------------------------------------------------- */

/* Any bytes as the state of TCA: refused with a message and without side effects, or a reservoir
 * that images can be compared with. */
enum { TCA_CLASSES = 3, TCA_BLOCKS = 2, TCA_DIM = 4 };

/* Runs one image against the state. */
static void use_tca(renyi_tca *t)
{
    static const float token[TCA_DIM] = {1.0f, -2.0f, 0.5f, 0.0f};
    float logits[TCA_CLASSES] = {1.0f, 2.0f, 0.0f};
    ry_tca_run r = {.tca = t, .n_threads = 1};
    (void)ry_tca_anchor(t, 1, token);
    ry_tca_begin(&r);
    for (uint32_t b = 0; b < TCA_BLOCKS; b++) ry_tca_tap(&r, b, token, 1);
    ry_tca_answered(&r, 0, logits);
    for (int c = 0; c < TCA_CLASSES; c++)
        if (!isfinite(logits[c])) abort();
}

int fuzz_tca(const uint8_t *data, size_t size)
{
    const ry_tca_shape shape = {TCA_CLASSES, TCA_BLOCKS, TCA_DIM, 42};
    const renyi_tca_options opt = {
        .struct_size = sizeof opt, .size = 2, .scale = 0.1, .lambda = 3.0, .beta = 5.0};
    renyi_tca *t;
    ry_tensors *set = NULL;
    renyi_error err = {0};
    if (ry_tca_create(&t, &shape, &opt, NULL, NULL) || ry_tca_reserve(t, 1, NULL)) return 0;
    renyi_status st = ry_safetensors_parse(&set, data, size, "it", NULL, NULL, &err);
    if (!st) st = ry_tca_read(t, set, &err);
    if (st && !err.message[0]) abort();
    if (st && t->n_used != 1) abort();
    if (!st) use_tca(t);
    ry_tensors_free(set);
    renyi_tca_free(t);
    return 0;
}

/* ---- gallery --------------------------------------------------------------------------------- */

/* Any bytes as the index of a gallery. */
/* What was accepted can be used. */
static void use_gallery(const renyi_gallery *g)
{
    renyi_gallery_info info;
    renyi_hit hits[3];
    size_t n;
    renyi_gallery_get_info(g, &info);
    for (size_t i = 0; i < info.n_photos; i++) {
        renyi_gallery_photo p;
        renyi_gallery_get_photo(g, i, &p);
        if (p.file[0] == '/' || strstr(p.file, "../")) abort();
        for (uint32_t k = 0; k < info.dim; k++)
            if (!(fabsf(p.row[k]) <= 1.001f)) abort();
        if (renyi_gallery_search(g, p.row, 3, hits, &n, NULL) || !n || n > 3) abort();
    }
}

int fuzz_gallery(const uint8_t *data, size_t size)
{
    renyi_gallery *g;
    ry_tensors *set = NULL;
    renyi_error err = {0};
    if (renyi_gallery_new(&g, NULL, &err)) abort();
    if (!ry_safetensors_parse(&set, data, size, "it", NULL, NULL, &err) &&
        !ry_gallery_read(g, set, "it", &err))
        use_gallery(g);
    else if (!err.message[0])
        abort();
    ry_tensors_free(set);
    renyi_gallery_free(g);
    return 0;
}

/* ---- train_checkpoint ------------------------------------------------------------------------ */

/* The metadata of a training checkpoint: any bytes give a state with
 * settings that print and read back the same, or an error. */
/* What was read is written, read again and written again: the same text. */
static void check_round_trip(const ry_run_state *s, const ry_settings_owned *settings)
{
    ry_settings_owned again;
    ry_run_state t;
    renyi_error err;
    char *first = NULL, *second = NULL;
    if (ry_json_text(&first, ry_run_state_json(s, &settings->opt), NULL, &err) || !first) abort();
    if (ry_settings_copy(&again, &settings->opt, NULL, &err)) abort();
    if (ry_run_state_parse(&t, &again, first, strlen(first), "again", NULL, &err)) abort();
    if (ry_json_text(&second, ry_run_state_json(&t, &again.opt), NULL, &err) || !second) abort();
    if (strcmp(first, second) != 0) abort();
    ry_settings_free(&again, NULL);
    ry_free(NULL, first);
    ry_free(NULL, second);
}

int fuzz_train_checkpoint(const uint8_t *bytes, size_t size)
{
    renyi_train_options defaults;
    ry_settings_owned settings;
    ry_run_state s;
    renyi_error err;
    renyi_train_defaults(&defaults);
    if (ry_settings_copy(&settings, &defaults, NULL, &err)) abort();
    if (!ry_run_state_parse(&s, &settings, (const char *)bytes, size, "fuzz", NULL, &err)) {
        check_round_trip(&s, &settings);
        (void)!ry_settings_check(&settings.opt, &err);
    }
    ry_settings_free(&settings, NULL);
    return 0;
}
