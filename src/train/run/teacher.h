/* teacher.h - a model that a student learns from: its logits for the student's classes and its
 * patch tokens, computed from the same input tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEACHER_H
#define RY_TEACHER_H

#include "model/vit/vit.h"
#include "renyi/renyi.h"

typedef struct ry_teacher ry_teacher;

typedef enum ry_teacher_tokens {
    RY_TOKENS_NONE,  /* only logits: the last block computes only what the head reads */
    RY_TOKENS_WHITE, /* after the final LayerNorm, then each token to mean 0 and variance 1: so that
                        distances do not depend on the scale of the teacher */
    RY_TOKENS_NORM,  /* after the final LayerNorm */
    RY_TOKENS_RAW    /* of taps: as they are */
} ry_teacher_tokens;

typedef struct ry_teacher_options {
    uint32_t max_batch;
    unsigned n_threads;        /* at least 1; it works on the caller's OpenMP threads */
    const uint32_t *class_map; /* [student's classes] the teacher's class of each; copied; NULL =
                                  the same, if there are as many */
    ry_teacher_tokens tokens;
    const uint32_t *taps; /* [n_taps] its own blocks, ascending: tokens after each of them (raw, or
                             to mean 0 and variance 1), not those of the end; copied */
    uint32_t n_taps;
} ry_teacher_options;

/* Borrows model, of any dtype, opened at the student's image size; with tokens it must have the
 * student's patch size. */
renyi_status ry_teacher_new(ry_teacher **out, const renyi_model *model,
                            const ry_vit_config *student, const ry_teacher_options *opt,
                            const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_teacher_free(ry_teacher *t);

uint32_t ry_teacher_dim(const ry_teacher *t); /* of its tokens; 0 without */
uint32_t ry_teacher_patches(const ry_teacher *t);
uint32_t ry_teacher_prefix(const ry_teacher *t); /* class (and distillation) tokens */
uint32_t ry_teacher_rows(const ry_teacher *t);   /* of `tokens` for each image and tap */
double ry_teacher_macs(const ry_teacher *t);     /* multiply-accumulates per image */

/* n <= max_batch images of the student: chw [n, 3, S, S], normalized for the student.
 * logits: [n, student's classes]; tokens: [n, patches, dim], with taps [taps, max_batch, patches +
 * prefix, dim]; either may be NULL. Allocates nothing. */
renyi_status ry_teacher_run(ry_teacher *t, const float *chw, uint32_t n, float *logits,
                            float *tokens, renyi_error *err) RENYI_CHECK;

/* The teacher's class of each of the student's n. map: [n].
 *
 * By name: a WordNet id of ImageNet's 1000 (a folder like n01440764) or a label of the teacher.
 * names: [n]; may be NULL, or hold NULLs. If no name is known and both have n classes, they are
 * taken to be the same. RENYI_ERR_ARG names the class that the teacher does not know. */
renyi_status ry_teacher_classes(uint32_t *map, const renyi_model *teacher, const char *const *names,
                                uint32_t n, const renyi_allocator *al,
                                renyi_error *err) RENYI_CHECK;

/* From n entries separated by commas, each an index, a WordNet id or a label: "0,217,482". */
renyi_status ry_teacher_class_list(uint32_t *map, const renyi_model *teacher, const char *list,
                                   uint32_t n, const renyi_allocator *al,
                                   renyi_error *err) RENYI_CHECK;

#endif
