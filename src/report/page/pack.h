/* pack.h - long lists of numbers inside a text, as base64 of little-endian bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PACK_H
#define RY_PACK_H

#include "report/page/markup.h"

/* Start with ry_pack_to; ry_pack_end writes what was added to `s`, without quotes, and must be
 * called. Memory that is short shows in `s`. */
typedef struct ry_pack {
    ry_sink *s;
    ry_sink bytes;
} ry_pack;

static inline ry_pack ry_pack_to(ry_sink *s) { return (ry_pack){s, {.al = s->al}}; }
void ry_pack_u16(ry_pack *p, uint16_t v);
void ry_pack_f32(ry_pack *p, float v); /* every NaN is the same one */
void ry_pack_end(ry_pack *p);

#endif
