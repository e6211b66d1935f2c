/* gallery_index.h - the struct behind renyi_gallery, and the options of embedding images.
 *
 * The file is safetensors: `time` I64 [n] and `size` U64 [n] of the image files, `image` F32
 * [n, dim], `probe` F32 [1, dim]; in the metadata "renyi.index" (the version), "files" (a JSON list
 * of names below the folder, in byte order), "folder", "model", "policy", "recipe".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_GALLERY_INDEX_H
#define RY_GALLERY_INDEX_H

#include "base/buffer.h"
#include "formats/tensor.h"
#include "renyi/gallery.h"

#define RY_INDEX_KEY "renyi.index"
#define RY_INDEX_VERSION "1"

enum { RY_GALLERY_MOST = 1000000 }; /* images */

/* An image in a gallery. */
typedef struct ry_gallery_image {
    const char *file; /* in the pool */
    uint64_t size;
    int64_t time;
} ry_gallery_image;

/* How the rows of a gallery were made; rows of different origin cannot be compared. */
typedef struct ry_row_origin {
    const char *folder, *model, *policy; /* in the pool */
    const char *recipe;                  /* in the pool: the preprocessing that rows depend on */
    const float *probe;                  /* [dim] in the pool: row of a fixed test image */
} ry_row_origin;

struct renyi_gallery {
    renyi_allocator al;
    renyi_limits limits;
    ry_pool pool; /* texts, images and the probe; all replaced together */
    ry_row_origin origin;
    ry_gallery_image *images; /* [n] in byte order of their names, which are unique */
    float *rows;              /* [n, dim] */
    size_t n;
    uint32_t dim;
};

/* gallery.c: reads and checks the tensors of a file into an empty gallery; `what` names it. */
renyi_status ry_gallery_read(renyi_gallery *g, const ry_tensors *set, const char *what,
                             renyi_error *err) RENYI_CHECK;

/* gallery_write.c: writes the rows that are there. Without any nothing is written. */
typedef struct ry_index_part {
    const ry_row_origin *origin;
    const ry_gallery_image *images; /* [n] in byte order of their names */
    const float *rows;              /* [n, dim] */
    const uint8_t *has_row;         /* [n] 1 = row i is filled; NULL = all are */
    size_t n;
    uint32_t dim;
} ry_index_part;
renyi_status ry_index_write(const char *path, const ry_index_part *part, const renyi_allocator *al,
                            renyi_error *err) RENYI_CHECK;

/* embed_images.c: fills in defaults of the options and finds the preprocessing. */
renyi_status ry_embed_options_read(renyi_embed_options *out, renyi_preprocess *preprocess,
                                   const renyi_model *m, const renyi_embed_options *given,
                                   renyi_error *err) RENYI_CHECK;
renyi_status ry_embed_session(renyi_session **out, const renyi_model *m,
                              const renyi_embed_options *o, uint32_t batch,
                              renyi_error *err) RENYI_CHECK;

#endif
