/* fuzz_merges.c - any bytes as a merges file, plain or gzip.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "bpe_target.h"
#include "formats/gunzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *unpacked = NULL;
    size_t n = size;
    ry_bpe *b;
    renyi_error err = {0};
    if (ry_is_gzip(data, size)) {
        const renyi_status st = ry_gunzip(&unpacked, &n, data, size, "fuzz", 1 << 20, NULL, &err);
        if ((st != RENYI_OK) != (unpacked == NULL) || (st && !err.message[0])) abort();
        if (st) return 0;
    }
    const char *text = (const char *)(unpacked ? unpacked : data);
    const renyi_status st = ry_bpe_read_merges(&b, text, n, "fuzz", NULL, &err);
    fuzz_vocabulary(st, b, &err);
    ry_free(NULL, unpacked);
    return 0;
}
