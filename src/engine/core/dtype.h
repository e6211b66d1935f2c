/* dtype.h - which numbers a machine multiplies fastest.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_DTYPE_H
#define RY_DTYPE_H

#include "renyi/renyi.h"

/* F32, BF16 or INT8 for what was wanted; an error that says why not. */
renyi_status ry_dtype_choose(renyi_dtype wanted, renyi_cpu level, renyi_dtype *out,
                             renyi_error *err) RENYI_CHECK;

/* F32, BF16, INT8 or INT4 for a language model, whose products are bound by the bytes of weights:
 * fewer bits are faster at every CPU level. DEFAULT = F32, which lm_model.c makes
 * smaller where it is much; AUTO = INT8. */
renyi_status ry_dtype_choose_lm(renyi_dtype wanted, renyi_dtype *out, renyi_error *err) RENYI_CHECK;

/* What RENYI_DTYPE_DEFAULT means for a file of 8-bit weights: INT8, or F32 where that is faster. */
renyi_dtype ry_dtype_of_quantised(renyi_cpu level);

#endif
