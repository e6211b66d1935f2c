/* gallery_index.h - the inside of renyi_gallery, and how a call embeds.
 *
 * The file is safetensors: `time` I64 [n] and `size` U64 [n] of the photos' files, `image` F32
 * [n, dim], `probe` F32 [1, dim]; in the metadata "renyi.index" (the version), "files" (a JSON list
 * of names below the folder, in byte order), "folder", "model", "policy", "recipe".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_GALLERY_INDEX_H
#define RY_GALLERY_INDEX_H

#include "base/buffer.h"
#include "formats/tensor.h"
#include "renyi/gallery.h"

enum { RY_GALLERY_MOST = 1000000 }; /* photos */

/* A photo that a gallery holds, or is to hold. */
typedef struct ry_picture {
    const char *file; /* in the pool */
    uint64_t size;
    int64_t time;
} ry_picture;

/* How rows were made, and what tells another model. */
typedef struct ry_making {
    const char *folder, *model, *policy; /* in the pool */
    const char *recipe; /* in the pool: all about preprocessing that rows depend on */
    const float *probe; /* [dim] in the pool: row of a picture that never changes */
} ry_making;

struct renyi_gallery {
    renyi_allocator al;
    renyi_limits limits;
    ry_pool pool; /* texts, pictures and the probe; all replaced together */
    ry_making making;
    ry_picture *pictures; /* [n] in byte order of their names, no two alike */
    float *rows;          /* [n, dim] */
    size_t n;
    uint32_t dim;
};

/* gallery_file.c: what a file holds, checked, into an empty gallery; `what` names the file. */
renyi_status ry_gallery_take(renyi_gallery *g, const ry_tensors *set, const char *what,
                             renyi_error *err) RENYI_CHECK;

/* embed_images.c: the caller's options, complete, and the preprocessing that they mean. */
renyi_status ry_embed_options_read(renyi_embed_options *out, renyi_preprocess *preprocess,
                                   const renyi_model *m, const renyi_embed_options *given,
                                   renyi_error *err) RENYI_CHECK;
renyi_status ry_embed_session(renyi_session **out, const renyi_model *m,
                              const renyi_embed_options *o, uint32_t batch,
                              renyi_error *err) RENYI_CHECK;

/* gallery_probe.c: how `m` makes rows under these options; everything in the pool. folder and
 * model stay NULL. */
renyi_status ry_gallery_making(ry_making *out, ry_pool *pool, const renyi_model *m,
                               const renyi_embed_options *opt, renyi_error *err) RENYI_CHECK;
/* RENYI_OK if rows made in both ways can be compared, else RENYI_ERR_ARG and why not. */
renyi_status ry_gallery_same(const ry_making *a, const ry_making *b, size_t dim,
                             renyi_error *err) RENYI_CHECK;

#endif
