/* fuzz_tca.c - any bytes as the state of TCA: refused with a message and without a trace, or a
 * reservoir that pictures can be compared with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/tca/tca_adapt.h"
#include "formats/safetensors.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLASSES = 3, BLOCKS = 2, DIM = 4 };

/* One more picture, with everything that the state says of it. */
static void use(renyi_tca *t)
{
    static const float token[DIM] = {1.0f, -2.0f, 0.5f, 0.0f};
    float logits[CLASSES] = {1.0f, 2.0f, 0.0f};
    ry_tca_run r = {.tca = t, .n_threads = 1};
    (void)ry_tca_anchor(t, 1, token);
    ry_tca_begin(&r);
    for (uint32_t b = 0; b < BLOCKS; b++) ry_tca_tap(&r, b, token, 1);
    ry_tca_answered(&r, 0, logits);
    for (int c = 0; c < CLASSES; c++)
        if (!isfinite(logits[c])) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ry_tca_shape shape = {CLASSES, BLOCKS, DIM, 42};
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
    if (!st) use(t);
    ry_tensors_free(set);
    renyi_tca_free(t);
    return 0;
}
