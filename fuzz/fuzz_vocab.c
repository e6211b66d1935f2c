/* fuzz_vocab.c - any bytes as tokenizer.json; or, up to a NUL, as vocab.json and behind it as
 * merges.txt.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "bpe_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ry_json_limits limits = {1 << 20, 100000, 0};
    const char *text = (const char *)data, *nul = size ? memchr(text, 0, size) : NULL;
    const size_t n = nul ? (size_t)(nul - text) : size;
    json_t *root;
    ry_bpe *b;
    renyi_error err = {0};
    renyi_status st = ry_json_parse(&root, text, n, "fuzz", &limits, &err);
    if (st) return 0;
    if (nul)
        st = ry_bpe_read_vocab(&b, root, "fuzz", nul + 1, size - n - 1, "merges", NULL, &err);
    else
        st = ry_bpe_read_tokenizer(&b, root, "fuzz", NULL, &err);
    fuzz_vocabulary(st, b, &err);
    json_decref(root);
    return 0;
}
