/* lm_tokenizer.h - what a renyi_lm_tokenizer is, for those in this room.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LM_TOKENIZER_H
#define RY_LM_TOKENIZER_H

#include "text/spm.h"

struct renyi_lm_tokenizer {
    renyi_allocator al;
    ry_spm *spm;
    char *source;
};

/* How every call ends that writes ids: their number, and an error when they did not fit. */
renyi_status ry_lm_ids_end(const ry_id_sink *sink, size_t *n, renyi_error *err) RENYI_CHECK;

#endif
