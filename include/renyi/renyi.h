/* renyi.h - runs Vision Transformers on the CPU and prunes the tokens they do not need.
 *
 * Call order: renyi_model_open -> renyi_session_new -> renyi_run (any number) -> free in reverse
 * order.
 *
 * Threads   Many sessions may share one model. A session is used by one thread at a time.
 * Fork      Objects may be used after fork() in parent and child, unless another thread was using
 *           them. OpenMP's idle threads end before each fork() and start again when needed.
 * Memory    Every *_open, *_new and *_decode has one matching *_free; *_free(NULL) does nothing.
 *           renyi_run_pixels and renyi_run_tensor allocate nothing.
 * Errors    Every function that can fail returns a renyi_status. `err` gets the reason and may be
 *           NULL. On failure the output pointer is NULL.
 * State     The library has no writable globals, prints nothing, reads no environment variables
 *           and never exits.
 * Options   Zero means the default in every option struct; NULL means all defaults. Set
 *           struct_size to sizeof the struct.
 * Borrowed  A borrowed pointer is owned by the library; its comment says how long it is valid.
 *           Arguments are borrowed for the call unless the comment says otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_RENYI_H
#define RENYI_RENYI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RENYI_API __attribute__((visibility("default")))
#define RENYI_CHECK __attribute__((warn_unused_result))
#else
#define RENYI_API
#define RENYI_CHECK
#endif

#define RENYI_VERSION_MAJOR 0
#define RENYI_VERSION_MINOR 2
#define RENYI_VERSION_PATCH 0

/* ---- errors ---------------------------------------------------------------------------------- */

/* Functions return RENYI_OK (0) or a negative status: `if (renyi_x(...)) goto failed;` works. */

typedef enum renyi_status {
    RENYI_OK = 0,
    RENYI_ERR_ARG = -1,         /* the caller broke a documented precondition */
    RENYI_ERR_NOMEM = -2,       /* an allocation failed */
    RENYI_ERR_IO = -3,          /* the system could not read or write */
    RENYI_ERR_FORMAT = -4,      /* the bytes do not follow the format */
    RENYI_ERR_UNSUPPORTED = -5, /* valid, but not supported by this build, model or CPU */
    RENYI_ERR_LIMIT = -6,       /* larger than renyi_limits allows */
    RENYI_ERR_ABORTED = -7      /* a callback returned non-zero */
} renyi_status;

typedef struct renyi_error {
    renyi_status code;
    int64_t offset;    /* byte offset of the error in the input, or -1 */
    char message[496]; /* one line without newline, NUL-terminated; names the file, if any */
} renyi_error;

/* Static strings, never NULL: the name of a status; the version, "1.2.3"; what the library was
 * built with: "oneDNN, libspng", or that oneDNN is missing and what follows. */
RENYI_API const char *renyi_status_name(renyi_status s);
RENYI_API const char *renyi_version(void);
RENYI_API const char *renyi_build_options(void);

/* ---- text ------------------------------------------------------------------------------------ */

/* Names, labels, metadata and answers come from files and models as they are. Before you print one,
 * replace what it hides, or it can rewrite the terminal:
 *   for (; size; text += n, size -= n) {
 *       n = renyi_text_next(text, size, &code, &is_hidden);
 *       if (is_hidden) fputs("?", stdout); else fwrite(text, 1, n, stdout);
 *   } */

/* Reads the first character of UTF-8 text of `size` >= 1 bytes and returns its length in bytes.
 * *is_hidden = 1 for characters that are invisible and change what is seen: controls (line ends and
 * tabs, too), marks of the writing direction, zero-width spaces, line separators, tags; and for
 * bytes that are not UTF-8, whose *code is U+FFFD. Joiners, which Persian, Indic scripts and emoji
 * need, are not hidden. */
RENYI_API size_t renyi_text_next(const char *text, size_t size, uint32_t *code, int *is_hidden);

/* ---- options --------------------------------------------------------------------------------- */

/* Allocator, limits, CPU level, number format and progress callback: the parts of renyi_options,
 * which renyi_model_open takes. Other option structs use some of them. */

/* Memory functions of the caller. Set both functions or neither; neither means the C heap. `alloc`
 * returns memory aligned to `align` (a power of two) or NULL. `release` gets the size that was
 * allocated. Both are called from the thread that calls the library, never from worker threads. */
typedef struct renyi_allocator {
    void *(*alloc)(void *user, size_t size, size_t align);
    void (*release)(void *user, void *ptr, size_t size);
    void *user;
} renyi_allocator;

typedef struct renyi_limits {
    uint64_t max_file_bytes;   /* size of a model file; 0 = 64 GiB */
    uint64_t max_header_bytes; /* size of a JSON header, config or pickle; 0 = 100 MB */
    uint64_t max_image_bytes;  /* size of an encoded image; 0 = 256 MiB */
    uint64_t max_pixels;       /* width x height of a decoded image; 0 = 178,956,970 (as Pillow) */
    uint32_t max_image_side;   /* width or height of a decoded image; 0 = 32768 */
} renyi_limits;

/* CPU levels. Each includes the ones before it. */
typedef enum renyi_cpu {
    RENYI_CPU_AUTO = 0,   /* the best level of this machine */
    RENYI_CPU_SCALAR = 1, /* plain C, the reference for every kernel */
    RENYI_CPU_AVX2 = 2,   /* x86-64: AVX2 + FMA + F16C */
    RENYI_CPU_NEON = 2,   /* ARM64: NEON. The same number: both are vectors of 8 floats */
    RENYI_CPU_AVX512 = 3  /* x86-64: AVX-512 F/BW/DQ/VL */
} renyi_cpu;

RENYI_API renyi_cpu renyi_cpu_detect(void); /* the best that CPU and operating system support */
RENYI_API const char *renyi_cpu_name(renyi_cpu level); /* "scalar", "avx2" or "neon", ... */

/* Number format of the matrix products in the blocks. Everything else is computed in f32:
 * LayerNorm, softmax, scores, the residual stream, the patch embedding and the head. */
typedef enum renyi_dtype {
    RENYI_DTYPE_DEFAULT = 0, /* the file's format: int8 if it is quantized, else f32 */
    RENYI_DTYPE_F32 = 1,
    RENYI_DTYPE_BF16 = 2,
    RENYI_DTYPE_INT8 = 3, /* weights quantized per channel, activations per token */
    RENYI_DTYPE_AUTO = 4, /* the fastest format on this machine */
    RENYI_DTYPE_INT4 = 5  /* language models only (lm.h): weights in groups of 32 */
} renyi_dtype;

RENYI_API const char *renyi_dtype_name(renyi_dtype dtype); /* "default", "f32", ...; static */

/* RENYI_OK if this format is faster than f32 at this CPU level, else RENYI_ERR_UNSUPPORTED with the
 * reason. cpu: 0 = the best level of this machine. */
RENYI_API RENYI_CHECK renyi_status renyi_dtype_check(renyi_dtype dtype, renyi_cpu cpu,
                                                     renyi_error *err);

/* Called during long work. Returns 0 to continue; else the function ends: RENYI_ERR_ABORTED. */
typedef int (*renyi_progress)(void *user, uint64_t done, uint64_t total);

typedef struct renyi_options {
    uint32_t struct_size; /* sizeof(renyi_options) */
    renyi_cpu cpu;        /* 0 = best; RENYI_ERR_UNSUPPORTED if this machine lacks it */
    uint32_t image_size;  /* input side in pixels; 0 = the size the model was made for */
    renyi_limits limits;
    renyi_allocator allocator;
    renyi_progress progress; /* called while weights are loaded and packed */
    void *progress_user;
    renyi_dtype dtype; /* RENYI_ERR_UNSUPPORTED if this machine gains nothing from it */
} renyi_options;

/* ---- images ---------------------------------------------------------------------------------- */

/* From an image file to the input of a model, in three steps or fewer:
 *   renyi_image_load or renyi_image_decode -> renyi_image_fit -> renyi_image_normalize
 * renyi_run does the last two steps itself. renyi_image_*_pixels do the first two. */

/* An image: 8-bit interleaved RGB rows. */
typedef struct renyi_image {
    const uint8_t *rgb; /* [height, stride] */
    uint32_t width, height;
    size_t stride; /* bytes from one row to the next; 0 = 3 * width */
} renyi_image;

typedef enum renyi_image_format {
    RENYI_IMAGE_UNKNOWN = 0,
    RENYI_IMAGE_JPEG = 1,
    RENYI_IMAGE_PNG = 2,
    RENYI_IMAGE_WEBP = 3,
    RENYI_IMAGE_PPM = 4
} renyi_image_format;

typedef enum renyi_decode_mode {
    RENYI_DECODE_EXACT = 0, /* every pixel, as Pillow */
    RENYI_DECODE_SCALED = 1 /* large JPEG, WebP at 1/2, 1/4 or 1/8: faster, nearly the same */
} renyi_decode_mode;
typedef struct renyi_image_options {
    uint32_t struct_size;
    uint32_t apply_exif; /* 1 = apply the EXIF orientation (timm does not) */
    renyi_limits limits; /* of the size in the file, at any scale */
    renyi_allocator allocator;
    renyi_decode_mode decode; /* only of renyi_image_*_pixels; others decode every pixel */
} renyi_image_options;

/* Decodes JPEG, PNG, WebP or binary PPM/PGM. The format is found from the bytes, not from a file
 * name. On success out->rgb is owned by the caller (renyi_image_free with the same options). */
RENYI_API RENYI_CHECK renyi_status renyi_image_decode(renyi_image *out, const void *bytes,
                                                      size_t size, const renyi_image_options *opt,
                                                      renyi_error *err);
/* The same for a regular file. err->message does not repeat the path. */
RENYI_API RENYI_CHECK renyi_status renyi_image_load(renyi_image *out, const char *path,
                                                    const renyi_image_options *opt,
                                                    renyi_error *err);
RENYI_API void renyi_image_free(renyi_image *image, const renyi_image_options *opt);
RENYI_API renyi_image_format renyi_image_sniff(const void *bytes, size_t size);

typedef enum renyi_interpolation {
    RENYI_BICUBIC = 0, /* as Pillow: a = -0.5, antialiased */
    RENYI_BILINEAR = 1,
    RENYI_LANCZOS = 2
} renyi_interpolation;

typedef enum renyi_crop_mode {
    RENYI_CROP_CENTER = 0, /* shorter side to size / crop_pct, then center crop (timm "center") */
    RENYI_CROP_SQUASH = 1, /* both sides to size / crop_pct, then center crop (timm "squash") */
    RENYI_CROP_BORDER = 2  /* longer side to size / crop_pct, gray border, crop (timm "border") */
} renyi_crop_mode;

/* How an image becomes the input of a model. */
typedef struct renyi_preprocess {
    uint32_t size; /* side of the input, pixels */
    renyi_crop_mode crop_mode;
    renyi_interpolation interpolation;
    double crop_pct;
    double mean[3], std[3]; /* of pixel / 255, per channel */
} renyi_preprocess;

/* Resizes and crops an image. out: [size, size, 3] bytes. Equal to Pillow bit for bit. */
RENYI_API RENYI_CHECK renyi_status renyi_image_fit(uint8_t *out, const renyi_image *image,
                                                   const renyi_preprocess *spec,
                                                   const renyi_allocator *allocator,
                                                   renyi_error *err);

/* Decode or load, then fit. pixels: [size, size, 3], the input of renyi_run_pixels. full_size: [2]
 * width and height of the whole image, or NULL. err->message does not repeat the path. */
RENYI_API RENYI_CHECK renyi_status renyi_image_load_pixels(uint8_t *pixels, const char *path,
                                                           const renyi_preprocess *spec,
                                                           const renyi_image_options *opt,
                                                           renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_image_decode_pixels(uint8_t *pixels, uint32_t *full_size,
                                                             const void *bytes, size_t size,
                                                             const renyi_preprocess *spec,
                                                             const renyi_image_options *opt,
                                                             renyi_error *err);

/* Normalizes pixels [n, size, size, 3] to chw [n, 3, size, size], the input of renyi_run_tensor:
 * (pixel / 255 - mean) / std, each step rounded to float as in torchvision. */
RENYI_API void renyi_image_normalize(float *chw, const uint8_t *pixels, uint32_t n,
                                     const renyi_preprocess *spec);

/* ---- models ---------------------------------------------------------------------------------- */

/* A model holds packed weights and their shape. Call order: renyi_model_open ->
 * renyi_model_get_info -> sessions -> renyi_model_free. A model is immutable after open (only
 * renyi_model_add_rule adds to it) and must outlive its sessions. */

typedef struct renyi_model renyi_model; /* packed weights and shape */

typedef struct renyi_model_info {
    const char *family;       /* "vit", "deit", "deit-distilled", "deit3", "dinov2", "clip", ... */
    const char *layout;       /* names in the file: "timm", "huggingface", "openai", "meta" */
    const char *architecture; /* e.g. "vit_tiny_patch16_224"; from the config or the shapes */
    uint32_t image_size, patch_size, n_patches;
    uint32_t n_prefix; /* tokens before the patches: class, distillation, registers; 0 = none */
    uint32_t dim, n_blocks, n_heads, mlp_dim;
    uint32_t n_classes; /* 0 = no classifier: runs return embeddings */
    double norm_eps;
    uint64_t n_params;
    double macs; /* multiply-accumulates per image without pruning (docs/PRUNING.md) */
    renyi_preprocess preprocess;
    const char *preprocess_source; /* origin of `preprocess`, e.g. "config.json (pretrained_cfg)" */
    renyi_cpu cpu;                 /* CPU level the weights are packed for */
    const char *pool;              /* what the head reads: "token", "avg", "token+avg" or "map" */
    renyi_dtype dtype;             /* format of the matrix products in the blocks */
    const char *quantization;      /* how the 8-bit weights were made; NULL = not quantized */
    uint32_t embed_dim; /* width of an embedding: of CLIP's projection, dim, 2 dim if distilled */
    const char *activation; /* activation of the MLPs: "gelu", "quick_gelu", "swiglu"; static */
    double none_below; /* largest logits below this mean none of the classes ("renyi.none_below" in
                          the file's metadata); NaN = not known, and comparisons are false */
    uint32_t n_registers; /* tokens of n_prefix that no head reads and no rule drops */
    uint32_t is_sigmoid;  /* 1 = probabilities are sigmoids of the logits, 0 = a softmax */
} renyi_model_info;       /* strings are borrowed until renyi_model_free */

typedef struct renyi_tensor_info {
    const char *name;  /* borrowed until renyi_model_free */
    const char *dtype; /* "F32", "F16", "BF16", ...; static */
    uint32_t n_dims;
    uint64_t shape[8];
    uint64_t bytes;
} renyi_tensor_info;

/* Opens a checkpoint. `path` is
 * - a .safetensors file or a PyTorch zip (.pth, .bin, .pt); a config.json in the same folder is
 *   read too, otherwise the entry of that name in the metadata of a safetensors file;
 * - a folder with config.json and weights, which may be shards; RENYI_MODEL_BUILTIN.
 * On success *out is owned by the caller (renyi_model_free). */
RENYI_API RENYI_CHECK renyi_status renyi_model_open(renyi_model **out, const char *path,
                                                    const renyi_options *opt, renyi_error *err);

/* Path of the small built-in model. A file with this name is "./builtin". */
#define RENYI_MODEL_BUILTIN "builtin"

/* Opens a safetensors file in memory. `bytes` may be freed after the call. On success *out is owned
 * by the caller (renyi_model_free). */
RENYI_API RENYI_CHECK renyi_status renyi_model_open_bytes(renyi_model **out, const void *bytes,
                                                          size_t size, const renyi_options *opt,
                                                          renyi_error *err);
RENYI_API void renyi_model_free(renyi_model *m);
RENYI_API void renyi_model_get_info(const renyi_model *m, renyi_model_info *info);
/* 1 = timm's names; no config and no metadata has the architecture (docs/MODELS.md) */
RENYI_API int renyi_model_is_assumed(const renyi_model *m);
/* Tensors of the checkpoint as stored, in file order. i < renyi_model_tensor_count. */
RENYI_API size_t renyi_model_tensor_count(const renyi_model *m);
RENYI_API void renyi_model_tensor(const renyi_model *m, size_t i, renyi_tensor_info *info);
/* Lists the tensors of any checkpoint, without reading weights. `each` is called for each tensor in
 * file order; names are borrowed for that call. Non-zero from it stops: RENYI_ERR_ABORTED. Only
 * limits and allocator of `opt` are used. */
typedef int (*renyi_tensor_visitor)(void *user, const renyi_tensor_info *tensor);
RENYI_API RENYI_CHECK renyi_status renyi_visit_tensors(const char *path, const renyi_options *opt,
                                                       renyi_tensor_visitor each, void *user,
                                                       renyi_error *err);
/* Name of class i as the program prints it: from the config (id2label, label_names), where a
 * WordNet id stands for ImageNet's name; else, if there are 1000 classes, ImageNet's. NULL = it has
 * none, and the program prints "class 7". Borrowed until renyi_model_free. */
RENYI_API const char *renyi_model_label(const renyi_model *m, uint32_t i);

/* Writes a .safetensors file with random weights (truncated normal, deviation 0.02). Architectures:
 * "vit_small_patch16_224", "vit_tiny_patch16_gap_224" (no class token), "vit_base_patch16_clip_224"
 * (LayerNorm before the blocks), ... in timm's names, or "clip_vit_base_patch16_224" (both towers)
 * in Hugging Face's. The same seed gives the same bytes. The file appears only when complete. */
typedef struct renyi_init_options {
    uint32_t struct_size;
    uint64_t seed;
    uint32_t n_classes;                       /* 0 = 1000; CLIP has no classes */
    uint32_t dim, n_blocks, n_heads, mlp_dim; /* 0 = as the architecture's name says */
} renyi_init_options;
RENYI_API RENYI_CHECK renyi_status renyi_model_init_file(const char *path, const char *architecture,
                                                         const renyi_init_options *opt,
                                                         renyi_error *err);

/* ---- sessions -------------------------------------------------------------------------------- */

/* A session holds a plan and activations for one model, batch size and policy. Call order:
 * renyi_session_new -> renyi_run, renyi_run_pixels or renyi_run_tensor (any number) ->
 * renyi_session_free. All memory of a run is allocated by renyi_session_new. */

/* A plan and its activations. Used by one thread at a time. */
typedef struct renyi_session renyi_session;

typedef struct renyi_tca renyi_tca; /* state of a session that adapts (clip.h) */

/* What a run writes, one row per image. */
typedef enum renyi_output {
    RENYI_OUTPUT_AUTO = 0,      /* logits if the model has a classifier, else embeddings */
    RENYI_OUTPUT_EMBEDDING = 1, /* embeddings, not normalized: what CLIP compares with texts
                                   (clip.h), or the input of a ViT's head */
    RENYI_OUTPUT_CLASS = 2,     /* class row (and distillation row) after the last LayerNorm */
    RENYI_OUTPUT_MEAN = 3,   /* mean of the patch rows, of timm's fc_norm models before that norm */
    RENYI_OUTPUT_PATCHES = 4 /* [n_patches, dim]: the patch rows, likewise; not with a policy */
} renyi_output;

typedef struct renyi_session_options {
    uint32_t struct_size;
    uint32_t max_batch;      /* images per call; 0 = 1 */
    uint32_t n_threads;      /* 0 = OMP_NUM_THREADS, else the cores this process may use */
    const char *policy;      /* pruning policy text (docs/PRUNING.md); NULL = "none"; copied */
    renyi_progress progress; /* called during a run: blocks done, all blocks */
    void *progress_user;
    uint32_t trace; /* 1 = record what every cut did (renyi_session_cut); not with a cascade */
    renyi_output output;
    renyi_tca *adapt; /* NULL, or adapt to the images seen before (clip.h): images run one after the
                         other and logits are corrected. Borrowed until renyi_session_free */
    uint32_t n_streams; /* parts of a run at the same time, on a share of the threads each; 0 = 1 */
} renyi_session_options;

/* Borrows m until renyi_session_free. On success *out is the caller's (renyi_session_free). */
RENYI_API RENYI_CHECK renyi_status renyi_session_new(renyi_session **out, const renyi_model *m,
                                                     const renyi_session_options *opt,
                                                     renyi_error *err);
RENYI_API void renyi_session_free(renyi_session *s);

/* Floats per image that a run writes: n_classes, embed_dim, or those of the features. The second
 * asks before there is a session. */
RENYI_API uint32_t renyi_session_outputs(const renyi_session *s);
RENYI_API uint32_t renyi_model_outputs(const renyi_model *m, renyi_output output);

/* Bytes of memory that the session holds: activations, scratch memory, trace, pixels. */
RENYI_API size_t renyi_session_bytes(const renyi_session *s);

/* Multiply-accumulates per image that a run computes: less than renyi_model_info.macs, because the
 * last block computes only the rows that the head reads. If the cost depends on the image (ats,
 * cascades), the first is the upper bound; the second is the mean of the last run (0 before it). */
RENYI_API double renyi_session_macs(const renyi_session *s);
RENYI_API double renyi_session_last_macs(const renyi_session *s);
/* Passes of an image in the last run: 2 if the first of a cascade was not sure, else 1; 0: none. */
RENYI_API uint32_t renyi_session_passes(const renyi_session *s, uint32_t image);

/* Preprocesses and runs n <= max_batch images. out: [n, renyi_session_outputs], the caller's. */
RENYI_API RENYI_CHECK renyi_status renyi_run(renyi_session *s, const renyi_image *images,
                                             uint32_t n, float *out, renyi_error *err);

/* The same for images fitted by renyi_image_fit. pixels: [n, size, size, 3] bytes. */
RENYI_API RENYI_CHECK renyi_status renyi_run_pixels(renyi_session *s, const uint8_t *pixels,
                                                    uint32_t n, float *out, renyi_error *err);

/* The same for normalized tensors. chw: [n, 3, size, size] floats. */
RENYI_API RENYI_CHECK renyi_status renyi_run_tensor(renyi_session *s, const float *chw, uint32_t n,
                                                    float *out, renyi_error *err);

/* ---- pruning --------------------------------------------------------------------------------- */

/* A policy is a text such as "mosaic keep=0.7 layers=0,3,6", the name of a preset, or a cascade
 * (docs/PRUNING.md). Call order: renyi_policy_check and renyi_policy_cost (optional) ->
 * renyi_session_new with the policy -> renyi_run -> renyi_session_cut to see what each cut did. */

/* Parses a policy and writes it with all defaults to `full` (RENYI_POLICY_MAX bytes are enough). m:
 * the policy is also checked against this model; NULL = syntax only. RENYI_ERR_ARG: err->message
 * names the wrong word and what is allowed; err->offset is its position in the text, or -1 if the
 * policy is valid but does not fit the model. */
#define RENYI_POLICY_MAX 1024
RENYI_API RENYI_CHECK renyi_status renyi_policy_check(const char *text, const renyi_model *m,
                                                      char *full, size_t size, renyi_error *err);

/* Named policies: the rows of the paper and the recommended ones. Static strings. */
typedef struct renyi_preset {
    const char *name, *policy, *about;
} renyi_preset;
RENYI_API size_t renyi_preset_count(void);
RENYI_API void renyi_preset_get(size_t i, renyi_preset *out);

/* The session's policy with all defaults. Borrowed until renyi_session_free. */
RENYI_API const char *renyi_session_policy(const renyi_session *s);

/* What one cut did to one image. Tokens are numbered as they enter the cut; the first n_prefix are
 * the class token, distillation token and registers. Arrays are borrowed until the next run. */
typedef struct renyi_cut {
    uint32_t block;
    uint32_t n_prefix, n_in, n_out; /* tokens before and after, prefix and fused included */
    const int32_t *position; /* [n_in] patch of token i in raster order (of a merged token: the
                                patch it grew from), RENYI_PREFIX or RENYI_FUSED */
    const float *score;      /* [n_in] score of each token; NaN for the prefix */
    const uint8_t *rescued;  /* [n_in] 1 = kept by Col-Ln, not by class attention (Algorithm 2) */
    const uint32_t *source;  /* [n_out] token that row r continues; RENYI_NONE for a fused row */
    const uint32_t *target;  /* [n_in] row that token i became part of; RENYI_NONE = dropped */
    const float *size;       /* [n_out] number of patches in row r; 1 if nothing was merged */
} renyi_cut;
#define RENYI_PREFIX (-1)
#define RENYI_FUSED (-2)
#define RENYI_NONE UINT32_MAX

/* Number of cuts, and what cut i did to image `image` of the last run. Requires trace = 1 in
 * renyi_session_options. */
RENYI_API size_t renyi_session_cut_count(const renyi_session *s);
RENYI_API RENYI_CHECK renyi_status renyi_session_cut(const renyi_session *s, uint32_t image,
                                                     size_t i, renyi_cut *out, renyi_error *err);

/* Cost of one layer, computed from token counts alone. For a policy whose token count depends on
 * the image (ats) counts and costs are upper bounds. */
typedef struct renyi_layer_cost {
    uint32_t tokens_in, tokens_out; /* tokens that enter and leave the block */
    uint32_t tokens_mlp;            /* tokens that enter its MLP */
    uint64_t n_params;
    double macs_paper;    /* products, plus 5 per element of LayerNorm: "GFLOPs" of papers */
    double macs;          /* products only */
    double macs_executed; /* products that a session really computes */
} renyi_layer_cost;

typedef struct renyi_cost {
    renyi_layer_cost embed, head, total; /* before the blocks, after the blocks, everything */
    uint32_t n_blocks;
    renyi_layer_cost anchors; /* extra MACs once a session has anchors (clip.h); not in `total` */
    renyi_layer_cost second;  /* in `total`: the second pass of a cascade, if an image needs it */
} renyi_cost;

/* Cost of a policy for a model or, if m is NULL, for an architecture by name. layers: [max_layers]
 * or NULL; filled up to n_blocks; those of the first pass of a cascade. */
RENYI_API RENYI_CHECK renyi_status renyi_policy_cost(const renyi_model *m, const char *architecture,
                                                     const char *policy, renyi_cost *out,
                                                     renyi_layer_cost *layers, size_t max_layers,
                                                     renyi_error *err);

/* ---- rules of your own ----------------------------------------------------------------------- */

/* A rule of your own says which tokens stay, without a change to the library. Call order:
 * renyi_model_add_rule -> any function that takes this model and the policy "NAME keep=0.7
 * layers=3,6,9" (docs/PRUNING.md has all keys) -> renyi_model_free. */

/* What a rule sees of one image: N = n_tokens tokens of width C = dim. Borrowed for the call. */
typedef struct renyi_rule_view {
    uint32_t block, image;       /* the image's index in the batch */
    uint32_t n_tokens, n_prefix; /* the first n_prefix are class token, registers */
    uint32_t n_out;              /* tokens that leave the cut, prefix and fused included */
    uint32_t dim, n_heads, grid; /* grid: patches per side of the image */
    size_t qkv_row;              /* floats from a row of queries, keys or values to the next */
    const float *queries, *keys, *values; /* [N, C] before the softmax scale; heads in a row */
    const float *class_row;  /* [N] RENYI_NEED_CLASS_ROW: the class token's attention, head mean */
    const float *columns;    /* [N] RENYI_NEED_COLUMNS: Col-Ln, the norm of each token's column */
    const float *tokens;     /* [N, C] RENYI_NEED_TOKENS: the tokens after attention's residual */
    const float *sizes;      /* [N] patches that each token stands for; NULL = 1 each */
    const int32_t *position; /* [N] as in renyi_cut */
} renyi_rule_view;           /* pointers that the rule did not ask for are NULL */

enum {
    RENYI_NEED_CLASS_ROW = 1, /* the model must have a class token */
    RENYI_NEED_COLUMNS = 2,
    RENYI_NEED_TOKENS = 4, /* attention is then finished for all tokens, also those that go */
    RENYI_NEED_SIZES = 8   /* of `cut`, for merging: later attention counts each token as many times
                              as the patches it stands for */
};

/* Gives every token a score, the larger the better. score: [N], zeros before the call; those of the
 * prefix count only in the sum of weights=score. The best stay as with the built-in rules: ties to
 * the lower index, NaN last. Non-zero ends the run: RENYI_ERR_ABORTED. */
typedef int (*renyi_rule_score)(void *user, const renyi_rule_view *view, float *score);

/* A whole decision. The values before the call drop everything but the prefix, so a rule that only
 * drops fills `keep` alone. A kept token whose target is RENYI_NONE goes to its own row. */
typedef struct renyi_rule_choice {
    uint32_t *keep;   /* [n_out - n_prefix] token that row n_prefix + i continues, none twice;
                         RENYI_NONE (before the call) = a row only of tokens that `target` sends */
    uint32_t *target; /* [N] row that token i goes to; RENYI_NONE (before the call) = dropped */
    float *weight;    /* [N] its weight in that row; 1 before the call */
    float *score;     /* [N] for traces; 0 before the call */
} renyi_rule_choice;

/* Decides alone. A choice that breaks the rules above ends the run: RENYI_ERR_ARG. */
typedef int (*renyi_rule_cut)(void *user, const renyi_rule_view *view, renyi_rule_choice *choice);

/* Callbacks run on any thread, for several images at the same time, once for each image and cut. */
typedef struct renyi_rule {
    uint32_t struct_size;
    const char
        *name;      /* a-z, 0-9 and _, a letter first, at most 32 bytes; no rule, metric, preset */
    uint32_t needs; /* RENYI_NEED_* */
    double order;   /* n of the columns, if the policy does not give it; 0 = 2 */
    renyi_rule_score score; /* one of the two */
    renyi_rule_cut cut;
    void *user; /* borrowed until renyi_model_free */
} renyi_rule;

/* Copies `rule`; at most 64 per model. Sessions of m may run meanwhile; no other call may use m. */
RENYI_API RENYI_CHECK renyi_status renyi_model_add_rule(renyi_model *m, const renyi_rule *rule,
                                                        renyi_error *err);

/* ---- folders --------------------------------------------------------------------------------- */

/* Calls `each` with the name of every regular file in a folder, hidden ones too, in byte order of
 * the names; they are borrowed for that call. Non-zero from `each` stops: RENYI_ERR_ABORTED. Images
 * in folders and subfolders: renyi_dataset_open (eval.h). */
typedef int (*renyi_file_visitor)(void *user, const char *name);
RENYI_API RENYI_CHECK renyi_status renyi_visit_files(const char *folder, renyi_file_visitor each,
                                                     void *user, renyi_error *err);

/* ---- writing files --------------------------------------------------------------------------- */

/* A file that appears under its name only when it is complete and on disk. Call order:
 * renyi_output_file_open -> renyi_output_file_write (any number) -> renyi_output_file_close. Until
 * the end, and if anything fails, an older file of that name stays as it was. All functions of the
 * library that write whole files work like this. */

typedef struct renyi_output_file renyi_output_file;

/* Writes to PATH.*.tmp in the same folder; what killed processes left there of this file is
 * removed. A symbolic link is replaced, not followed. Pipes and devices are written straight. On
 * success *out is owned by the caller (renyi_output_file_close). */
RENYI_API RENYI_CHECK renyi_status renyi_output_file_open(renyi_output_file **out, const char *path,
                                                          renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_output_file_write(renyi_output_file *o, const void *bytes,
                                                           size_t size, renyi_error *err);
/* is_complete: 1 = give the file its name; 0 = remove what was written. Frees o. */
RENYI_API RENYI_CHECK renyi_status renyi_output_file_close(renyi_output_file *o, int is_complete,
                                                           renyi_error *err);

/* ---- measuring ------------------------------------------------------------------------------- */

/* Measures the highest f32 matrix-product speed of this machine, in GFLOP/s on `n_threads` threads,
 * with oneDNN on the shapes of ViT-B. Takes about a second. */
RENYI_API RENYI_CHECK renyi_status renyi_measure_peak(uint32_t n_threads, double *gflops,
                                                      renyi_error *err);

/* ---- several processes ----------------------------------------------------------------------- */

/* Several processes ("ranks") can share one evaluation or training, on one machine or on several.
 * The library does not use MPI itself: the caller fills this struct with functions that exchange
 * data. Each call of `start` is followed by calls of `finish` until it reports that the exchange is
 * complete. */

typedef struct renyi_ranks {
    uint32_t struct_size;
    uint32_t rank, n_ranks; /* rank < n_ranks */
    uint32_t n_sharing;     /* ranks that share this rank's cores, itself included; 0 = 1. Default
                               thread counts are divided by it */
    void *user;             /* first argument of the functions */
    /* Starts a gather: `size` bytes at `mine` of every rank are copied to `all` [n_ranks, size],
     * rank 0 first. All ranks call it equally often and with the same size. Both buffers stay in
     * use until `finish` reports completion; `start` is not called again before that. It may block
     * and do all work at once, but then the ranks wait for each other. */
    renyi_status (*start)(void *user, const void *mine, size_t size, void *all, renyi_error *err);
    /* Sets *is_done to 1 if the started gather is complete. With wait = 1 it returns only then. */
    renyi_status (*finish)(void *user, int wait, int *is_done, renyi_error *err);
    /* Replaces `values` [n] of every rank by the sum over all ranks, for training. All ranks must
     * get the same bits in every run, for example by adding in rank order. NULL = the library
     * gathers and adds, which sends n_ranks times as much. Not called between start and finish. */
    renyi_status (*sum)(void *user, float *values, size_t n, renyi_error *err);
} renyi_ranks;

#ifdef __cplusplus
}
#endif
#endif
