/* bpe_word.c - merges in one word: every byte is a symbol, and the table of merges is the rule.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "text/bpe.h"

int ry_bpe_rule(const void *self, const ry_merge_list *l, uint32_t left, uint32_t right,
                ry_join *out)
{
    const ry_merge *m = ry_bpe_merge_of(self, l->id[left], l->id[right]);
    if (m) *out = (ry_join){m->rank, m->whole};
    return m != NULL;
}

renyi_status ry_bpe_word(const ry_bpe *b, const char *text, size_t n, ry_merge_list *scratch,
                         ry_id_sink *out, renyi_error *err)
{
    const ry_merge_rule rule = {ry_bpe_rule, b};
    RY_TRY(ry_merge_list_reset(scratch, n, &b->al, err));
    for (uint32_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];
        const uint32_t id = b->byte_id[i + 1 == n][byte];
        if (id == UINT32_MAX)
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           "the vocabulary has no symbol for the byte 0x%02x%s", byte,
                           i + 1 == n ? " at the end of a word" : "");
        ry_merge_list_put(scratch, i, id);
    }
    ry_merge_list_run(scratch, &rule);
    for (uint32_t i = 0; i < n; i = scratch->behind[i]) /* RY_NOWHERE >= n */
        ry_id_put(out, scratch->id[i]);
    return RENYI_OK;
}
