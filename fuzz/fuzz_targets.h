/* fuzz_targets.h - the fuzz targets: each takes any bytes, returns 0, and aborts on a fault.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_FUZZ_TARGETS_H
#define RENYI_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

typedef int fuzz_target(const uint8_t *data, size_t size);

fuzz_target fuzz_jpeg, fuzz_png, fuzz_ppm, fuzz_webp, fuzz_mask, fuzz_safetensors, fuzz_torch,
    fuzz_gguf, fuzz_gguf_model, fuzz_json, fuzz_checkpoint, fuzz_model, fuzz_text_model,
    fuzz_visual_model, fuzz_lm_model, fuzz_classifier, fuzz_tca, fuzz_gallery,
    fuzz_train_checkpoint, fuzz_merges, fuzz_vocab, fuzz_tokens, fuzz_spm, fuzz_lm_tokenizer_json,
    fuzz_labels, fuzz_split, fuzz_log, fuzz_runs, fuzz_policy, fuzz_grid, fuzz_vqa, fuzz_manifest,
    fuzz_request, fuzz_multipart, fuzz_data_url;

#endif
