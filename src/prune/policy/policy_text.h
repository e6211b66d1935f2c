/* policy_text.h - what reading and printing a policy share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POLICY_TEXT_H
#define RY_POLICY_TEXT_H

#include "prune/policy/policy_spec.h"

/* Bytes of the printed policy without the NUL, also when they are more than RY_MAX_POLICY_TEXT. */
size_t ry_policy_text_length(const ry_policy *p);

/* Does any cut fuse? */
int ry_policy_fuses(const ry_policy *p);

/* Of a rule that acts behind the tower: is this the tower of a LLaVA, and are there so many
 * patches? */
renyi_status ry_policy_check_visual(const ry_policy *p, const ry_policy_shape *shape,
                                    renyi_error *err) RENYI_CHECK;

#endif
