/* gallery.h - embeds many images, writes embeddings to files and searches images by similarity.
 *
 * Call orders:
 *   photos  renyi_session_new -> renyi_run_photos
 *   files   renyi_embed_photos, renyi_embed_texts (clip.h) -> renyi_embeddings_write
 *   search  renyi_gallery_new or renyi_gallery_open -> renyi_gallery_update -> renyi_gallery_search
 *           -> renyi_gallery_save -> renyi_gallery_free
 *
 * Images work with any model; texts need a CLIP. The rules of renyi.h and eval.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_GALLERY_H
#define RENYI_GALLERY_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- running images -------------------------------------------------------------------------- */

/* Replaces reading and decoding, for images that are not regular files: image number `index` to
 * pixels [size, size, 3]. Called on several threads at the same time. */
typedef renyi_status (*renyi_photo_loader)(void *user, uint8_t *pixels, size_t index,
                                           renyi_error *err);

/* The answer about an image, or why there is none. Valid during the callback. */
typedef struct renyi_photo {
    size_t index;         /* in the list */
    const char *failure;  /* NULL = there are outputs */
    const float *outputs; /* [renyi_session_outputs] */
    uint32_t place;       /* in the session's last run: the `image` of renyi_session_cut */
    double ms;            /* of the run, divided by its images */
    double ms_decode;     /* reading, decoding, fitting */
} renyi_photo;

typedef struct renyi_photos_options {
    uint32_t struct_size;
    uint32_t n_workers;  /* threads that decode while the model runs; 0 = the cores that the session
                            leaves free. While the model waits for images, all cores decode */
    uint32_t apply_exif; /* 1 = apply the EXIF orientation */
    renyi_decode_mode decode;
    const renyi_preprocess *preprocess; /* NULL = the model's; size must be the model's */
    renyi_limits limits;                /* limits for images */
    renyi_allocator allocator;
    void *user;              /* first argument of the callbacks; each may be NULL */
    renyi_photo_loader load; /* NULL = files are read as the options above say */
    /* Called for each image in the order of the list, on the caller's thread. Non-zero stops. */
    int (*on_photo)(void *user, const renyi_photo *photo);
    renyi_progress progress; /* called after every batch: images done, all images. Non-zero stops:
                                RENYI_ERR_ABORTED */
} renyi_photos_options;

/* Reads, decodes, fits and runs n image files, as many at a time as the session takes. The next
 * images are decoded meanwhile; memory for them is bounded. */
RENYI_API RENYI_CHECK renyi_status renyi_run_photos(renyi_session *s, const char *const *paths,
                                                    size_t n, const renyi_photos_options *opt,
                                                    renyi_error *err);

/* ---- embedding images ------------------------------------------------------------------------ */

/* renyi_embed_photos does all steps for a list of files. The model must be open. */

typedef struct renyi_embed_options {
    uint32_t struct_size;
    uint32_t batch;      /* images per run; 0 = 8 */
    uint32_t n_threads;  /* threads of the model; 0 = as in renyi_session_options */
    uint32_t n_workers;  /* threads that decode images; 0 = the cores that n_threads leaves free */
    uint32_t apply_exif; /* 1 = apply the EXIF orientation */
    const char *policy;  /* pruning policy; NULL = "none" */
    const renyi_preprocess *preprocess; /* NULL = the model's; size must be the model's */
    renyi_limits limits;                /* limits for images */
    renyi_allocator allocator;          /* renyi_gallery_update uses the gallery's allocator
                                           instead */
    void *user;                         /* first argument of the callbacks; each may be NULL */
    /* Called for each image that is skipped, and each subfolder that cannot be read. */
    void (*on_failure)(void *user, const char *path, const char *message);
    renyi_progress progress; /* called after every batch: images done, all images. Non-zero stops:
                                RENYI_ERR_ABORTED; finished rows remain */
    const char *save_to; /* renyi_gallery_update: index file that gets the finished rows while the
                            update runs, so that a killed process does not lose them; NULL = none.
                            Written every 2 seconds, or less often: at most 1/20 of the time */
    void (*on_note)(void *user, const char *text); /* renyi_gallery_update: as in
                                                      renyi_dataset_options */
    renyi_output output; /* what a row is; RENYI_OUTPUT_AUTO = the embedding. Patch rows have length
                            1 each, one after the other; an index takes none */
    renyi_decode_mode decode; /* how image files are decoded */
    uint32_t n_streams;       /* batches run at the same time (renyi_session_options); 0 = 1 */
} renyi_embed_options;

/* Reads, decodes, fits and embeds n image files. rows: [n, embed_dim] of renyi_model_info, or
 * [n, renyi_model_outputs] of another output, each of length 1. is_done: [n] 1 = row i was
 * computed; 0 = the image was reported and skipped, and its row is zeros. */
RENYI_API RENYI_CHECK renyi_status renyi_embed_photos(const renyi_model *m,
                                                      const char *const *paths, size_t n,
                                                      const renyi_embed_options *opt, float *rows,
                                                      uint8_t *is_done, renyi_error *err);

/* ---- writing embeddings ---------------------------------------------------------------------- */

/* Call order: renyi_embed_photos, renyi_embed_texts -> fill a renyi_embeddings ->
 * renyi_embeddings_write. */

/* All pointers are borrowed for the call. */
typedef struct renyi_embeddings {
    uint32_t struct_size;
    uint32_t dim;
    size_t n_images, n_texts;
    const float *images;      /* [n_images, dim] */
    const float *texts;       /* [n_texts, dim] */
    const char *const *files; /* [n_images] names of the images */
    const char *const *words; /* [n_texts] the texts */
    const char *model;        /* name of the model; NULL = unknown */
    const char *policy;       /* pruning policy; NULL = unknown */
} renyi_embeddings;

typedef enum renyi_rows_format {
    RENYI_ROWS_SAFETENSORS = 0, /* tensors "image" and "text" in F32, if they have rows; metadata
                                   "files" and "texts" (JSON lists), "model", "policy" */
    RENYI_ROWS_NPY = 1,         /* NumPy: one array [n_images + n_texts, dim], images first */
    RENYI_ROWS_JSONL = 2 /* one line per row: {"file", "embedding"}, then {"text", "embedding"} */
} renyi_rows_format;

/* The file appears only when complete. In names, U+FFFD replaces what is not UTF-8. */
RENYI_API RENYI_CHECK renyi_status renyi_embeddings_write(const char *path,
                                                          renyi_rows_format format,
                                                          const renyi_embeddings *e,
                                                          renyi_error *err);

/* ---- galleries ------------------------------------------------------------------------------- */

/* A gallery has one row per image of a folder, in memory and in an index file. Call order:
 * renyi_gallery_new or renyi_gallery_open -> renyi_gallery_update -> renyi_gallery_search (any
 * number) -> renyi_gallery_save -> renyi_gallery_free. */

/* The index is a safetensors file as from renyi_embeddings_write, plus what is needed to detect
 * changed images. */
typedef struct renyi_gallery renyi_gallery;

/* An empty gallery, or the contents of an index file, which is checked completely. Only allocator
 * and limits of `opt` are used. On success *out is owned by the caller (renyi_gallery_free). */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_new(renyi_gallery **out, const renyi_options *opt,
                                                     renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_gallery_open(renyi_gallery **out, const char *path,
                                                      const renyi_options *opt, renyi_error *err);
RENYI_API void renyi_gallery_free(renyi_gallery *g);

/* Number of images by what an update did. Unreadable images are only in `failed`. */
typedef struct renyi_gallery_changes {
    size_t kept, added, changed, removed, failed;
    int is_anew; /* 1 = all rows were computed again, because model, policy, preprocessing or folder
                    had changed */
} renyi_gallery_changes;

/* Updates the gallery to the images in a folder and its subfolders: embeds images that are new or
 * whose size or time has changed, and removes those that are gone. `name` of the model is for
 * display; it is stored. A changed model is detected by its output for a fixed test image. changes
 * may be NULL. After RENYI_ERR_ABORTED the gallery has the old and the finished rows; after any
 * other error it is unchanged. */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_update(renyi_gallery *g, const char *folder,
                                                        const renyi_model *m, const char *name,
                                                        const renyi_embed_options *opt,
                                                        renyi_gallery_changes *changes,
                                                        renyi_error *err);

/* RENYI_OK if the rows were made with this model and these options, else RENYI_ERR_ARG with the
 * reason. */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_check(const renyi_gallery *g, const renyi_model *m,
                                                       const renyi_embed_options *opt,
                                                       renyi_error *err);

/* Writes the index. The file appears only when complete. */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_save(const renyi_gallery *g, const char *path,
                                                      renyi_error *err);

typedef struct renyi_gallery_info {
    size_t n_photos;
    uint32_t dim;       /* 0 = no image was ever added */
    const char *folder; /* as given to the last update; "" = never updated */
    const char *model;  /* name of the model; "" = never updated */
    const char *policy; /* with all defaults; "" = never updated */
} renyi_gallery_info;   /* strings are borrowed until the next update or renyi_gallery_free */
RENYI_API void renyi_gallery_get_info(const renyi_gallery *g, renyi_gallery_info *out);

typedef struct renyi_gallery_photo {
    const char *file;  /* path below the folder */
    uint64_t size;     /* size of the file in bytes */
    int64_t time;      /* time of the last change, nanoseconds since 1970 */
    const float *row;  /* [dim] of length 1 */
} renyi_gallery_photo; /* pointers are borrowed until the next update or renyi_gallery_free */
/* Image i < n_photos, in byte order of the names. */
RENYI_API void renyi_gallery_get_photo(const renyi_gallery *g, size_t i, renyi_gallery_photo *out);

typedef struct renyi_hit {
    size_t photo; /* index for renyi_gallery_get_photo */
    double score; /* cosine similarity, -1 to 1 */
} renyi_hit;

/* Finds the `most` images most similar to a row [dim], which may have any length but zero. Best
 * first; ties: the lower index first. hits: [most]; *n is the number found. */
RENYI_API RENYI_CHECK renyi_status renyi_gallery_search(const renyi_gallery *g, const float *row,
                                                        size_t most, renyi_hit *hits, size_t *n,
                                                        renyi_error *err);

/* ---- folders --------------------------------------------------------------------------------- */

/* Calls on_name for every name in a folder, in byte order, hidden ones too. */
RENYI_API RENYI_CHECK renyi_status renyi_folder_names(const char *path,
                                                      void (*on_name)(void *user, const char *name),
                                                      void *user, renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
