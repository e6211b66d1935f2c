/* engine_options.h - completes and checks the option structs of callers, and chooses the CPU level
 * and the number format that a model computes in.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ENGINE_OPTIONS_H
#define RY_ENGINE_OPTIONS_H

#include "renyi/renyi.h"

/* ---- structs that begin with struct_size ---- */

/* Copies `given` to out [size] bytes. A caller built with an older header passes a shorter struct;
 * the rest of `out` is zero, the default. NULL = all defaults. `what` names the struct in errors.
 */
renyi_status ry_struct_read(void *out, size_t size, const void *given, const char *what,
                            renyi_error *err) RENYI_CHECK;

/* An allocator has both functions, or neither: then the library's own is used. */
renyi_status ry_allocator_check(const renyi_allocator *al, const char *what,
                                renyi_error *err) RENYI_CHECK;

/* ry_struct_read and ry_allocator_check of renyi_options. */
renyi_status ry_options_read(renyi_options *out, const renyi_options *opt,
                             renyi_error *err) RENYI_CHECK;

/* 0 becomes the number of cores; more than 1024 is an error. */
renyi_status ry_threads_choose(uint32_t *n_threads, renyi_error *err) RENYI_CHECK;
/* Images of a run that gives each stream (0 = one) a batch. The session checks their number. */
renyi_status ry_streams_batch(uint32_t *images, uint32_t batch, uint32_t n_streams,
                              renyi_error *err) RENYI_CHECK;

/* ---- what a model computes in ---- */

typedef struct ry_compute {
    renyi_cpu level;   /* the CPU level that weights are packed for */
    renyi_dtype dtype; /* never DEFAULT or AUTO */
} ry_compute;

/* Reads the options with which a vision or text tower is opened. */
renyi_status ry_compute_choose(ry_compute *out, renyi_options *opt, const renyi_options *given,
                               renyi_error *err) RENYI_CHECK;

/* F32, BF16 or INT8 for what was wanted. A format that is no faster than f32 at this level is an
 * error that says why. */
renyi_status ry_dtype_choose(renyi_dtype wanted, renyi_cpu level, renyi_dtype *out,
                             renyi_error *err) RENYI_CHECK;

/* F32, BF16, INT8 or INT4 for a language model. Its speed is bound by the bytes of its weights, so
 * fewer bits are faster at every CPU level. DEFAULT = F32 (lm_model.c may choose less for a large
 * model), AUTO = INT8. */
renyi_status ry_dtype_choose_lm(renyi_dtype wanted, renyi_dtype *out, renyi_error *err) RENYI_CHECK;

/* What RENYI_DTYPE_DEFAULT means for a file of 8-bit weights: INT8, or F32 where that is faster. */
renyi_dtype ry_dtype_of_quantized(renyi_cpu level);

#endif
