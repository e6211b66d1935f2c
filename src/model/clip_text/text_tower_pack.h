/* text_tower_pack.h - texts as a list of tokens without padding. What two texts have in common at
 * their beginning stands in the list once: with causal attention a token's numbers depend on those
 * before it alone, so they are the same in both. A thousand class names in one template share its
 * first words.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEXT_TOWER_PACK_H
#define RY_TEXT_TOWER_PACK_H

#include "base/arena.h"

#include <stdint.h>

/* A text as it came. */
typedef struct ry_text_line {
    const int32_t *ids; /* [length]; borrowed */
    uint32_t length;    /* at least 1 */
    uint32_t index;     /* where its answer goes */
} ry_text_line;

/* A text in a pass. */
typedef struct ry_text_span {
    uint32_t length; /* tokens */
    uint32_t shared; /* of them: those that a text before it has computed */
    uint32_t index;
} ry_text_span;

/* Some texts that are computed at the same time. */
typedef struct ry_text_pass {
    uint32_t n_rows, n_texts;
    uint32_t max_rows, context; /* R: most rows, and most texts; most tokens of a text */
    int32_t *ids;               /* [R] of each row */
    uint32_t *positions;        /* [R] in its text */
    ry_text_span *texts;        /* [R] */
    uint32_t *paths;            /* [R, context] rows of each text */
} ry_text_pass;

/* Takes the lists of a pass from the arena; max_rows and context are set. */
void ry_text_pass_layout(ry_arena *a, ry_text_pass *p);

/* Bring texts that begin alike together. The order is the same whatever it was before. */
void ry_text_sort(ry_text_line *lines, size_t n);

/* Fill the pass with the first of n sorted texts; returns how many there was room for, at least
 * one. */
size_t ry_text_pack(ry_text_pass *p, const ry_text_line *lines, size_t n);

#endif
