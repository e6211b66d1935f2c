/* gallery.h - photos as rows of numbers: many at once, in files, and the nearest to a question.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rows:    renyi_embed_photos, renyi_embed_texts (clip.h) -> renyi_embeddings_write
 * Search:  renyi_gallery_new or renyi_gallery_open -> renyi_gallery_update -> renyi_gallery_search
 *          -> renyi_gallery_save
 *
 * Any model will do; texts need a CLIP. The rest is as in renyi.h and eval.h.
 */
#ifndef RENYI_GALLERY_H
#define RENYI_GALLERY_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- photos to rows ------------------------------------------------------------------------ */

typedef struct renyi_embed_options {
    uint32_t struct_size;
    uint32_t batch;     /* photos run together; 0 = 8 */
    uint32_t n_threads; /* of the model; 0 = physical cores */
    uint32_t
        n_workers; /* threads that decode beside it; 0 = the cores that n_threads leaves free */
    uint32_t apply_exif;                /* 1 = turn photos as their EXIF orientation says */
    const char *policy;                 /* of pruning; NULL = "none" */
    const renyi_preprocess *preprocess; /* NULL = the model's; size must be the model's */
    renyi_limits limits;                /* of photos */
    renyi_allocator allocator;          /* an update of a gallery uses the gallery's */
    void *user;                         /* first argument of the callbacks; each may be NULL */
    void (*on_failure)(void *user, const char *path, const char *message); /* photo skipped */
    renyi_progress progress; /* after every batch: photos done of all. Non-zero stops:
                                RENYI_ERR_ABORTED; rows that are done are there */
} renyi_embed_options;

/* Read, decode, fit and embed n photos. rows: [n, embed_dim] of renyi_model_info, each of length 1.
 * is_done: [n] 1 = row i is there; 0 = the photo was reported and skipped, its row is zeros. */
RENYI_API RENYI_CHECK renyi_status renyi_embed_photos(const renyi_model *m,
                                                      const char *const *paths, size_t n,
                                                      const renyi_embed_options *opt, float *rows,
                                                      uint8_t *is_done, renyi_error *err);

/* ---- rows to files ------------------------------------------------------------------------- */

/* All borrowed for the call. */
typedef struct renyi_embeddings {
    uint32_t struct_size;
    uint32_t dim;
    size_t n_images, n_texts;
    const float *images;      /* [n_images, dim] */
    const float *texts;       /* [n_texts, dim] */
    const char *const *files; /* [n_images] names of the photos */
    const char *const *words; /* [n_texts] the texts themselves */
    const char *model;        /* name of what made them; NULL = not said */
    const char *policy;       /* of pruning; NULL = not said */
} renyi_embeddings;

typedef enum renyi_rows_format {
    RENYI_ROWS_SAFETENSORS = 0, /* tensors "image" and "text", F32, those that have rows; in the
                                   metadata "files" and "texts" (JSON lists), "model", "policy" */
    RENYI_ROWS_NPY = 1,         /* NumPy's: one array [n_images + n_texts, dim], images first */
    RENYI_ROWS_JSONL = 2 /* a line a row: {"file", "embedding"}, then {"text", "embedding"} */
} renyi_rows_format;

/* The file appears only when complete. Names that are not UTF-8 get U+FFFD for what is not. */
RENYI_API RENYI_CHECK renyi_status renyi_embeddings_write(const char *path,
                                                          renyi_rows_format format,
                                                          const renyi_embeddings *e,
                                                          renyi_error *err);

/* ---- galleries ----------------------------------------------------------------------------- */

/* The photos of a folder, a row for each, in memory and as a file ("index"): safetensors, as
 * renyi_embeddings_write makes it, and with what tells whether a photo has changed. */
typedef struct renyi_gallery renyi_gallery;

/* Of opt only allocator and limits are used; it may be NULL. Empty, or what a file holds: every
 * word of the file is checked. On success *out is owned by the caller (renyi_gallery_free). */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_new(renyi_gallery **out, const renyi_options *opt,
                                                     renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_gallery_open(renyi_gallery **out, const char *path,
                                                      const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_gallery_free(renyi_gallery *g);

/* What an update did. Photos that could not be read are in none but `failed`. */
typedef struct renyi_gallery_changes {
    size_t kept, added, changed, removed, failed;
    int is_anew; /* all rows were computed: others came from another model, policy, preprocessing or
                    folder */
} renyi_gallery_changes;

/* Make the gallery what the folder holds, all photos at and below it: embeds what is new or has
 * another size or time than before, forgets what is gone. `name` of the model is for people, and
 * kept. Whether a model is the one that the other rows come from is told by what it makes of a
 * picture that never changes. changes may be NULL. RENYI_ERR_ABORTED: the gallery holds what was
 * kept and what was done. After any other error it is as before. */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_update(renyi_gallery *g, const char *folder,
                                                        const renyi_model *m, const char *name,
                                                        const renyi_embed_options *opt,
                                                        renyi_gallery_changes *changes,
                                                        renyi_error *err);

/* RENYI_OK if the rows were made by this model in this way, else RENYI_ERR_ARG and why not. */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_check(const renyi_gallery *g, const renyi_model *m,
                                                       const renyi_embed_options *opt,
                                                       renyi_error *err);

/* Write the index. The file appears only when complete. */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_save(const renyi_gallery *g, const char *path,
                                                      renyi_error *err);

typedef struct renyi_gallery_info {
    size_t n_photos;
    uint32_t dim;       /* 0 = nothing was ever put in */
    const char *folder; /* as it was called when the gallery was last updated; "" = never */
    const char *model;  /* name of the model; "" likewise */
    const char *policy; /* in full; "" likewise */
} renyi_gallery_info;   /* strings are borrowed until the next update or renyi_gallery_free */
RENYI_API void renyi_gallery_get_info(const renyi_gallery *g, renyi_gallery_info *out);

typedef struct renyi_gallery_photo {
    const char *file;  /* below the folder */
    uint64_t size;     /* bytes of the file */
    int64_t time;      /* of its last change, nanoseconds since 1970 */
    const float *row;  /* [dim] of length 1 */
} renyi_gallery_photo; /* pointers are borrowed until the next update or renyi_gallery_free */
/* In byte order of the names; i < n_photos. */
RENYI_API void renyi_gallery_get_photo(const renyi_gallery *g, size_t i, renyi_gallery_photo *out);

typedef struct renyi_hit {
    size_t photo; /* for renyi_gallery_get_photo */
    double score; /* cosine: 1 = the same direction */
} renyi_hit;

/* The `most` photos that are nearest to a row [dim] of any length but zero, best first; equal
 * scores: in order of the photos. hits: [most]; *n of them are filled. */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_search(const renyi_gallery *g, const float *row,
                                                        size_t most, renyi_hit *hits, size_t *n,
                                                        renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
