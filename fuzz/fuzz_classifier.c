/* fuzz_classifier.c - any bytes as the file that keeps a classifier's rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/clip/clip_handles.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
