/* fuzz_lm_model.c - any safetensors file as a Llama that is opened and, if it is small, fed: as
 * renyi_lm_open does; config.json travels in the file's metadata.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llama/llama_plan.h"
#include "model_target.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 3, MAX_VOCAB = 4096 };

/* A pass of a few rows. */
static void feed(const ry_llama *m)
{
    static float logits[MAX_VOCAB];
    const renyi_lm_input in[ROWS] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    const ry_llama_plan_options opt = {RENYI_CPU_SCALAR, 2 * ROWS, ROWS, 1, 0};
    ry_llama_plan *p;
    if (m->config.vocab > MAX_VOCAB || m->config.n_layers > 8) return;
    if (ry_llama_plan_new(&p, m, &opt, NULL, NULL)) return;
    ry_llama_forward(p, in, ROWS, NULL);
    ry_llama_forward(p, in, 1, logits);
    ry_llama_plan_free(p, NULL);
}

static void load(const ry_checkpoint *ckpt, renyi_dtype dtype)
{
    const renyi_options opt = {.struct_size = sizeof opt};
    ry_llama_config config;
    ry_llama model;
    renyi_error err = {0};
    if (ry_llama_configure(&config, ckpt, &err)) {
        if (!err.message[0]) abort();
        return;
    }
    if (ry_llama_load(&model, &config, ckpt, &opt, RENYI_CPU_SCALAR, dtype, &err)) {
        if (!err.message[0] || model.layers) abort();
        return;
    }
    feed(&model);
    ry_llama_free(&model, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(load, data, size);
}
