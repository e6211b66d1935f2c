/* visual_side.h - what stands behind a renyi_visual: tower and projector that sessions of several
 * threads may share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_SIDE_H
#define RY_VISUAL_SIDE_H

#include "model/llava/visual.h"
#include "renyi/llava.h"

struct renyi_visual {
    renyi_allocator al;  /* of everything below, and of the sessions */
    renyi_limits limits; /* of photos too */
    renyi_cpu level;
    renyi_dtype dtype; /* never AUTO */
    ry_visual side;
};

#endif
