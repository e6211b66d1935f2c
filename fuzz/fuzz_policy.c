/* fuzz_policy.c - any bytes as a policy: refused with a message, or printed as a text that reads
 * back as the same policy, before and after a model has had its say.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/policy_spec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_read_back(const ry_policy *p)
{
    char text[RY_MAX_POLICY_TEXT];
    renyi_error err;
    ry_policy again;

    ry_policy_print(text, p);
    if (ry_policy_parse(&again, text, &err)) abort();
    if (memcmp(p, &again, sizeof again)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ry_policy_shape shapes[] = {{12, 196, 1, 14}, {24, 576, 0, 24}, {2, 4, 2, 2}};
    char *text = malloc(size + 1); /* exact size: the sanitizer sees overreads */
    renyi_error err = {0};
    ry_policy p;

    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (ry_policy_parse(&p, text, &err)) {
        if (!err.message[0] || err.offset < 0 || (size_t)err.offset > size) abort();
        free(text);
        return 0;
    }
    free(text);
    must_read_back(&p);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        ry_policy q = p;
        if (ry_policy_check(&q, &shapes[s], &err)) continue;
        must_read_back(&q);
        uint32_t n = shapes[s].n_prefix + shapes[s].n_patches, by_class, by_column;
        for (uint32_t i = 0; i < q.n_cuts; i++) {
            const uint32_t after = ry_policy_tokens_after(&q, i, n, shapes[s].n_prefix);
            if (after > n || after <= shapes[s].n_prefix) abort();
            ry_policy_split(&q, after, &by_class, &by_column);
            if (by_class + by_column != after || by_class > after) abort();
            n = after;
        }
    }
    return 0;
}
