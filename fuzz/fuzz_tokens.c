/* fuzz_tokens.c - any bytes as a text for the tokenizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bpe_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char merges[] =
        "t h\nth e</w>\na a\naa aa\naaaa a</w>\na n\nan d</w>\ne r\ni n\n. .\n";
    ry_bpe *b;
    renyi_error err = {0};
    if (ry_bpe_read_merges(&b, merges, sizeof merges - 1, "merges", NULL, &err)) abort();
    fuzz_encode(b, (const char *)data, size);
    ry_bpe_free(b);
    return 0;
}
