/* fuzz_lm_tokenizer_json.c - any bytes as tokenizer.json of a language model, or as pieces.json.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "spm_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ry_json_limits limits = {1 << 20, 100000, 0};
    json_t *root;
    ry_spm *s;
    renyi_error err = {0};
    if (ry_json_parse(&root, (const char *)data, size, "fuzz", &limits, &err)) return 0;
    const renyi_status st = json_is_array(root) ? ry_spm_read_pieces(&s, root, "fuzz", NULL, &err)
                                                : ry_spm_read_json(&s, root, "fuzz", NULL, &err);
    fuzz_spm(st, s, &err);
    json_decref(root);
    return 0;
}
