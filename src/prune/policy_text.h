/* policy_text.h - what reading and printing a policy share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PRUNE_POLICY_TEXT_H
#define RY_PRUNE_POLICY_TEXT_H

#include "prune/policy.h"

/* Bytes of the printed policy without the NUL, also when they are more than RY_MAX_POLICY_TEXT. */
size_t ry_policy_text_length(const ry_policy *p);

/* Does any cut fuse? */
int ry_policy_fuses(const ry_policy *p);

#endif
