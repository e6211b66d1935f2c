/* mmproj.h - the visual side of a LLaVA as llama.cpp's users keep it: image tower and projector in
 * a GGUF of their own (mmproj).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MMPROJ_H
#define RY_MMPROJ_H

#include "formats/checkpoint.h"

/* 1 if the checkpoint is such a file. */
int ry_mmproj_is(const ry_checkpoint *file);

/* The same as a checkpoint in Hugging Face's names and settings, which the rest of the program
 * reads. It borrows the tensors: `file` must outlive it. Every tensor must be there; shapes are
 * checked by the reader. On failure *out is zero. */
renyi_status ry_mmproj_read(ry_checkpoint *out, const ry_checkpoint *file,
                            const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
