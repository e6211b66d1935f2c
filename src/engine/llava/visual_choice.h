/* visual_choice.h - a rule behind the tower inside a session: what it must see of a run of the
 * tower, and the rows that it chooses.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_CHOICE_H
#define RY_VISUAL_CHOICE_H

#include "engine/llava/relevance.h"
#include "prune/rules/visual_rules.h"

typedef struct ry_visual_choice ry_visual_choice;

/* policy: one of these rules, checked against `side`. */
typedef struct ry_visual_choice_spec {
    const ry_policy *policy;
    const ry_visual *side;            /* borrowed */
    const renyi_relevance *relevance; /* borrowed; NULL = none */
    unsigned n_threads;
    renyi_cpu level;
} ry_visual_choice_spec;
renyi_status ry_visual_choice_new(ry_visual_choice **out, const ry_visual_choice_spec *spec,
                                  const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_visual_choice_free(ry_visual_choice *c, const renyi_allocator *al);
size_t ry_visual_choice_bytes(const ry_visual_choice *c);

/* The hook of the tower's plan, NULL = none; does the plan need the block behind the tower? */
const ry_token_hook *ry_visual_choice_hook(const ry_visual_choice *c);
int ry_visual_choice_looks_behind(const ry_visual_choice *c);

/* The next images keep so many rows. */
void ry_visual_choice_set_count(ry_visual_choice *c, uint32_t count);

/* After a run of the tower: fills the features of the plan; returns how many. image_key: names the
 * image for random choices. */
uint32_t ry_visual_choice_run(ry_visual_choice *c, ry_visual_plan *plan, uint64_t image_key);
/* Then: the projected rows of the plan from these n features. */
void ry_visual_choice_project(const ry_visual_choice *c, ry_visual_plan *plan, uint32_t n);

/* Does the rule choose by a question? NULL = no. */
ry_relevance *ry_visual_choice_relevance(const ry_visual_choice *c);

const ry_visual_rule *ry_visual_choice_rule(const ry_visual_choice *c);

#endif
