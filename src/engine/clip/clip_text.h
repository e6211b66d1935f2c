/* clip_text.h - what stands behind a renyi_text: a text tower that sessions of several threads may
 * share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CLIP_TEXT_H
#define RY_CLIP_TEXT_H

#include "model/clip_text/text_tower.h"
#include "renyi/clip.h"

struct renyi_text {
    renyi_allocator al; /* of everything below, and of the sessions */
    renyi_cpu level;
    renyi_dtype dtype; /* never AUTO */
    ry_text tower;
};

const renyi_text *ry_text_session_tower(const renyi_text_session *s); /* that it runs; borrowed */

#endif
