/* llava_model.h - what stands behind a renyi_lvlm: three parts that conversations of several
 * threads may share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAVA_MODEL_H
#define RY_LLAVA_MODEL_H

#include "renyi/llava.h"

struct renyi_lvlm {
    renyi_allocator al; /* of everything below, and of the conversations */
    renyi_visual *visual;
    renyi_lm *lm;
    renyi_lm_tokenizer
        *tokenizer; /* NULL = none was found; no_words says where it was looked for */
    char *no_words;
    renyi_visual_info visual_info;
    renyi_lm_info lm_info;
    renyi_lm_tokenizer_info words; /* without a tokenizer all ids are -1 */
};

/* Weights in memory. */
uint64_t ry_lvlm_bytes(const renyi_lvlm *m);

/* Is this where the visual rows go; does an answer end here? */
static inline int ry_lvlm_is_image(const renyi_lvlm *m, int32_t id)
{
    return id == RENYI_LVLM_IMAGE || (id >= 0 && (id == m->lm_info.image || id == m->words.image));
}
static inline int ry_lvlm_is_end(const renyi_lvlm *m, int32_t id)
{
    return id >= 0 && (id == m->lm_info.eos || id == m->words.eos);
}

#endif
