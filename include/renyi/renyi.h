/* renyi.h - run Vision Transformers, exactly and fast, and drop the tokens they do not need.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Life of a program:  renyi_model_open -> renyi_session_new -> renyi_run* -> free in reverse order.
 *
 * Threads   one model may be shared by many sessions; one session belongs to one thread at a time.
 * Memory    every *_open/_new/_decode has one matching *_free; *_free(NULL) is a no-op.
 *           renyi_run_pixels and renyi_run_tensor allocate nothing.
 * Errors    every fallible call returns a renyi_status; pass a renyi_error to learn where and why.
 * State     the library has no writable globals, prints nothing, reads no environment, never exits.
 * Structs   zero means "the sane default" in every option; set struct_size to sizeof the struct.
 */
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
#define RENYI_VERSION_MINOR 1
#define RENYI_VERSION_PATCH 0

/* ---- errors -------------------------------------------------------------------------------- */

typedef enum renyi_status {
    RENYI_OK = 0,
    RENYI_ERR_ARG = -1,         /* the caller broke a documented precondition */
    RENYI_ERR_NOMEM = -2,       /* an allocation failed */
    RENYI_ERR_IO = -3,          /* the system refused to read or write */
    RENYI_ERR_FORMAT = -4,      /* the bytes are not what the format promises */
    RENYI_ERR_UNSUPPORTED = -5, /* valid, but not something this build does */
    RENYI_ERR_LIMIT = -6,       /* larger than renyi_limits allows */
    RENYI_ERR_ABORTED = -7      /* a progress callback asked to stop */
} renyi_status;

typedef struct renyi_error {
    renyi_status code;
    int64_t offset;    /* byte offset in the input, or -1 */
    char message[496]; /* one line, no newline, always NUL-terminated; names the file if there is
                          one */
} renyi_error;

/* Static string, never NULL. */
RENYI_API const char *renyi_status_name(renyi_status s);

/* "0.1.0". Static string. */
RENYI_API const char *renyi_version(void);

/* ---- options ------------------------------------------------------------------------------- */

/* All or none of the two functions. alloc returns memory aligned to `align` (a power of two) or
 * NULL; release gets back exactly the size it was asked for. Called from the thread that calls the
 * library, never from workers. */
typedef struct renyi_allocator {
    void *(*alloc)(void *user, size_t size, size_t align);
    void (*release)(void *user, void *ptr, size_t size);
    void *user;
} renyi_allocator;

typedef struct renyi_limits {
    uint64_t max_file_bytes; /* of a model file; 0 = 64 GiB */
    uint64_t
        max_header_bytes; /* JSON header, config or pickle; 0 = 100 MB (safetensors' own limit) */
    uint64_t max_image_bytes; /* of an encoded image; 0 = 256 MiB */
    uint64_t max_pixels;      /* width x height of a decoded image; 0 = 178,956,970 (Pillow's) */
    uint32_t max_image_side;  /* 0 = 32768 */
} renyi_limits;

/* CPU levels, each including those before. */
typedef enum renyi_cpu {
    RENYI_CPU_AUTO = 0,   /* the best of this machine */
    RENYI_CPU_SCALAR = 1, /* plain C: the specification of every kernel */
    RENYI_CPU_AVX2 = 2,   /* AVX2 + FMA + F16C */
    RENYI_CPU_AVX512 = 3  /* AVX-512 F/BW/DQ/VL */
} renyi_cpu;

/* Best level of this machine (CPUID and operating system asked). */
RENYI_API renyi_cpu renyi_cpu_detect(void);
RENYI_API const char *renyi_cpu_name(renyi_cpu level); /* "scalar", "avx2", "avx512" */

/* In what numbers the matrix products of the blocks are computed. All else is f32: LayerNorm,
 * softmax, scores, the residual stream; and so are patch embedding and head. */
typedef enum renyi_dtype {
    RENYI_DTYPE_DEFAULT = 0, /* what the file was made for: f32, or int8 if it is quantised */
    RENYI_DTYPE_F32 = 1,
    RENYI_DTYPE_BF16 = 2,
    RENYI_DTYPE_INT8 = 3, /* weights per channel, activations per token */
    RENYI_DTYPE_AUTO = 4, /* the fastest of this machine */
    RENYI_DTYPE_INT4 = 5  /* language models only (llava.h): weights in groups of 32 */
} renyi_dtype;

/* "f32", "bf16", "int8", "int4", "auto" */
RENYI_API const char *renyi_dtype_name(renyi_dtype dtype);

/* RENYI_OK if products of this kind are faster than f32 at this CPU level, else
 * RENYI_ERR_UNSUPPORTED with the reason. cpu 0 = the best of this machine. */
RENYI_API RENYI_CHECK renyi_status renyi_dtype_check(renyi_dtype dtype, renyi_cpu cpu,
                                                     renyi_error *err);

/* Called from time to time in long work with how far it is; return 0 to go on, anything else to
 * stop: the call then returns RENYI_ERR_ABORTED. */
typedef int (*renyi_progress)(void *user, uint64_t done, uint64_t total);

typedef struct renyi_options {
    uint32_t struct_size; /* sizeof(renyi_options) */
    renyi_cpu cpu;        /* 0 = best; RENYI_ERR_UNSUPPORTED if the machine does not have it */
    uint32_t image_size;  /* input side in pixels; 0 = what the model was made for */
    renyi_limits limits;
    renyi_allocator allocator;
    renyi_progress progress; /* while weights are loaded and packed */
    void *progress_user;
    renyi_dtype dtype; /* RENYI_ERR_UNSUPPORTED if this machine gains nothing by it */
} renyi_options;

/* ---- images -------------------------------------------------------------------------------- */

/* A picture: 8-bit interleaved RGB rows. As an argument it is borrowed for the call. */
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

typedef struct renyi_image_options {
    uint32_t struct_size;
    uint32_t apply_exif; /* 1 = turn the picture as its EXIF orientation says (timm does not) */
    renyi_limits limits;
    renyi_allocator allocator;
} renyi_image_options;

/* Decode JPEG, PNG, WebP or binary PPM/PGM; the bytes decide the format, not a file name. On
 * success out->rgb is owned by the caller (renyi_image_free with the same options). */
RENYI_API RENYI_CHECK renyi_status renyi_image_decode(renyi_image *out, const void *bytes,
                                                      size_t size, const renyi_image_options *opt,
                                                      renyi_error *err);
/* The same for a regular file, which is read as a whole. The message does not repeat the path. */
RENYI_API RENYI_CHECK renyi_status renyi_image_load(renyi_image *out, const char *path,
                                                    const renyi_image_options *opt,
                                                    renyi_error *err);
RENYI_API void renyi_image_free(renyi_image *image, const renyi_image_options *opt);
RENYI_API renyi_image_format renyi_image_sniff(const void *bytes, size_t size);

typedef enum renyi_interpolation {
    RENYI_BICUBIC = 0, /* Pillow's: a = -0.5, antialiased */
    RENYI_BILINEAR = 1,
    RENYI_LANCZOS = 2
} renyi_interpolation;

typedef enum renyi_crop_mode {
    RENYI_CROP_CENTER = 0, /* shorter side to size / crop_pct, centre crop (timm "center") */
    RENYI_CROP_SQUASH = 1, /* both sides to size / crop_pct, then centre crop (timm "squash") */
    RENYI_CROP_BORDER =
        2 /* longer side to size / crop_pct, grey border, then crop (timm "border") */
} renyi_crop_mode;

/* From a photo to the model's input. */
typedef struct renyi_preprocess {
    uint32_t size; /* side of the input in pixels */
    renyi_crop_mode crop_mode;
    renyi_interpolation interpolation;
    double crop_pct;
    double mean[3], std[3]; /* of pixel / 255 */
} renyi_preprocess;

/* Resize and crop to [size, size, 3] bytes in `out`; stride 3 * size. */
RENYI_API RENYI_CHECK renyi_status renyi_image_fit(uint8_t *out, const renyi_image *image,
                                                   const renyi_preprocess *spec,
                                                   const renyi_allocator *allocator,
                                                   renyi_error *err);

/* From a file to the input of renyi_run_pixels: renyi_image_load, then renyi_image_fit into
 * pixels [size, size, 3]. The message does not repeat the path. */
RENYI_API RENYI_CHECK renyi_status renyi_image_load_pixels(uint8_t *pixels, const char *path,
                                                           const renyi_preprocess *spec,
                                                           const renyi_image_options *opt,
                                                           renyi_error *err);

/* From pixels [n, size, size, 3] to the input of renyi_run_tensor, chw [n, 3, size, size]: values
 * (pixel / 255 - mean) / std, each step rounded to float as in torchvision. */
RENYI_API void renyi_image_normalize(float *chw, const uint8_t *pixels, uint32_t n,
                                     const renyi_preprocess *spec);

/* ---- model --------------------------------------------------------------------------------- */

typedef struct renyi_model renyi_model; /* weights and shape; immutable after open */

typedef struct renyi_model_info {
    const char *family;       /* "vit", "deit", "deit-distilled", "clip": the tower of its images */
    const char *layout;       /* whose names the file uses: "timm", "huggingface", "openai" */
    const char *architecture; /* e.g. "vit_tiny_patch16_224", from the config or from the shapes */
    uint32_t image_size, patch_size, n_patches;
    uint32_t n_prefix; /* class (and distillation) tokens in front of the patches; 0 = none */
    uint32_t dim, n_blocks, n_heads, mlp_dim;
    uint32_t n_classes; /* 0: no classifier, and runs answer with embeddings */
    double norm_eps;
    uint64_t n_params;
    double macs; /* multiply-accumulates of one image, dense (docs/PRUNING.md, cost) */
    renyi_preprocess preprocess;
    const char *preprocess_source; /* where it comes from: "config.json (pretrained_cfg)", ... */
    renyi_cpu cpu;                 /* level the model was packed for */
    const char *pool;  /* what the head reads: "token", or "avg", the mean of the patches; static */
    renyi_dtype dtype; /* of the matrix products in the blocks */
    const char *quantization; /* how the file's 8-bit weights were made; NULL = it has none */
    uint32_t embed_dim; /* width of an embedding: of CLIP's projection; of a ViT its dim, twice if
                           it is distilled */
    const char *activation; /* of the MLPs: "gelu", "quick_gelu"; static */
} renyi_model_info;         /* strings are borrowed until renyi_model_free */

typedef struct renyi_tensor_info {
    const char *name;  /* borrowed until renyi_model_free */
    const char *dtype; /* "F32", "F16", "BF16", ...; static */
    uint32_t n_dims;
    uint64_t shape[8];
    uint64_t bytes;
} renyi_tensor_info;

/* Open a checkpoint: a .safetensors file, a PyTorch zip (.pth, .bin, .pt), or a directory with
 * config.json and model.safetensors (or shards with model.safetensors.index.json, or
 * pytorch_model.bin). A config.json beside a single file is read too; without one, the text under
 * that name in a safetensors file's metadata.
 * On success *out is owned by the caller (renyi_model_free). On failure *out is NULL. */
RENYI_API RENYI_CHECK renyi_status renyi_model_open(renyi_model **out, const char *path,
                                                    const renyi_options *opt, renyi_error *err);

/* As a path: the small model inside the library. A file of that name is "./builtin". */
#define RENYI_MODEL_BUILTIN "builtin"

/* Open a safetensors file that is in memory; the bytes are not needed after the call. */
RENYI_API RENYI_CHECK renyi_status renyi_model_open_bytes(renyi_model **out, const void *bytes,
                                                          size_t size, const renyi_options *opt,
                                                          renyi_error *err);
RENYI_API void renyi_model_free(renyi_model *m);
RENYI_API void renyi_model_get_info(const renyi_model *m, renyi_model_info *info);
/* The tensors of the checkpoint as stored, in file order. NULL-safe range: i < count. */
RENYI_API size_t renyi_model_tensor_count(const renyi_model *m);
RENYI_API void renyi_model_tensor(const renyi_model *m, size_t i, renyi_tensor_info *info);
/* The same of any checkpoint, language models too, without opening a model or reading weights.
 * `each` sees the tensors in file order (names are borrowed for the call); non-zero ends it,
 * RENYI_ERR_ABORTED. Of `opt` limits and allocator count. */
typedef int (*renyi_tensor_visitor)(void *user, const renyi_tensor_info *tensor);
RENYI_API RENYI_CHECK renyi_status renyi_visit_tensors(const char *path, const renyi_options *opt,
                                                       renyi_tensor_visitor each, void *user,
                                                       renyi_error *err);
/* Name of class i if the checkpoint's config carries labels (id2label), else NULL. Borrowed. */
RENYI_API const char *renyi_model_label(const renyi_model *m, uint32_t i);

/* Write a random model (timm names, truncated normal 0.02) of an architecture such as
 * "vit_small_patch16_224", "deit_tiny_patch16_224", "deit_base_distilled_patch16_384", or
 * "vit_tiny_patch16_gap_224" (no class token, mean of the patches), to a .safetensors file. A
 * "clip_vit_base_patch16_224" has both towers and Hugging Face's names. The same seed gives the
 * same bytes. The file appears only when complete. */
typedef struct renyi_init_options {
    uint32_t struct_size;
    uint64_t seed;
    uint32_t n_classes;                       /* 0 = 1000; CLIP has none */
    uint32_t dim, n_blocks, n_heads, mlp_dim; /* 0 = as the name says */
} renyi_init_options;
RENYI_API RENYI_CHECK renyi_status renyi_model_init_file(const char *path, const char *architecture,
                                                         const renyi_init_options *opt,
                                                         renyi_error *err);

/* ---- session ------------------------------------------------------------------------------- */

typedef struct renyi_session
    renyi_session; /* a plan and its activations; for one caller at a time */

typedef struct renyi_tca renyi_tca; /* what a session that adapts has learnt: clip.h */

/* What a run writes: one row a picture. */
typedef enum renyi_output {
    RENYI_OUTPUT_AUTO = 0,     /* logits if the model has a classifier, else the embedding */
    RENYI_OUTPUT_EMBEDDING = 1 /* what CLIP compares with texts, not normalised (clip.h); of a ViT
                                  what its head would read */
} renyi_output;

typedef struct renyi_session_options {
    uint32_t struct_size;
    uint32_t max_batch;      /* images per call; 0 = 1 */
    uint32_t n_threads;      /* 0 = as many as there are physical cores */
    const char *policy;      /* pruning policy text (docs/PRUNING.md); NULL = "none"; copied */
    renyi_progress progress; /* during a run: blocks done of all blocks */
    void *progress_user;
    uint32_t trace; /* 1 = remember what every cut decided: renyi_session_cut */
    renyi_output output;
    renyi_tca *adapt; /* pictures run one after the other, and logits come corrected (clip.h); NULL
                         = no picture knows of another. Borrowed until renyi_session_free */
} renyi_session_options;

/* Borrows m: it must outlive the session. Everything a run needs is allocated here. */
RENYI_API RENYI_CHECK renyi_status renyi_session_new(renyi_session **out, const renyi_model *m,
                                                     const renyi_session_options *opt,
                                                     renyi_error *err);
RENYI_API void renyi_session_free(renyi_session *s);

/* Floats of a row that renyi_run* write: n_classes or embed_dim. */
RENYI_API uint32_t renyi_session_outputs(const renyi_session *s);

/* Bytes that the session holds: activations, scratch of the pruning rule, trace, pixels. */
RENYI_API size_t renyi_session_bytes(const renyi_session *s);

/* Multiply-accumulates that a run of this session really does per image. Less than the `macs` of
 * renyi_model_info even without pruning: in the last block only the rows that the head reads are
 * finished. With a rule that keeps a different number of tokens of every picture (ats) this is the
 * most it may be; renyi_session_last_macs is the mean over the pictures of the last run, and 0
 * before the first. */
RENYI_API double renyi_session_macs(const renyi_session *s);
RENYI_API double renyi_session_last_macs(const renyi_session *s);

/* Preprocess and run n <= max_batch pictures. out: [n, renyi_session_outputs], logits or
 * embeddings; caller's memory. */
RENYI_API RENYI_CHECK renyi_status renyi_run(renyi_session *s, const renyi_image *images,
                                             uint32_t n, float *out, renyi_error *err);

/* The same for pictures already fitted by renyi_image_fit: pixels [n, size, size, 3] bytes. */
RENYI_API RENYI_CHECK renyi_status renyi_run_pixels(renyi_session *s, const uint8_t *pixels,
                                                    uint32_t n, float *out, renyi_error *err);

/* The same for tensors the caller normalised: [n, 3, size, size] floats. */
RENYI_API RENYI_CHECK renyi_status renyi_run_tensor(renyi_session *s, const float *chw, uint32_t n,
                                                    float *out, renyi_error *err);

/* ---- pruning ------------------------------------------------------------------------------- */

/* Read a policy such as "mosaic keep=0.7 layers=0,3,6" or a preset's name and print it in full,
 * every default said, into `full` (RENYI_POLICY_MAX bytes are enough). RENYI_ERR_ARG: err->message
 * names the word at fault and what is allowed, err->offset is its place in the text. With a model,
 * layers and counts are checked against it too (err->offset is then -1); m may be NULL. */
#define RENYI_POLICY_MAX 1024
RENYI_API RENYI_CHECK renyi_status renyi_policy_check(const char *text, const renyi_model *m,
                                                      char *full, size_t size, renyi_error *err);

/* Policies that have a name: each row of the paper, and the recommended ones. Static strings. */
typedef struct renyi_preset {
    const char *name, *policy, *about;
} renyi_preset;
RENYI_API size_t renyi_preset_count(void);
RENYI_API void renyi_preset_get(size_t i, renyi_preset *out);

/* The session's policy in full. Borrowed until renyi_session_free. */
RENYI_API const char *renyi_session_policy(const renyi_session *s);

/* What one cut did to one image. Tokens are numbered as they entered the cut; the first n_prefix of
 * them are the class (and distillation) token. Arrays are borrowed until the next run. */
typedef struct renyi_cut {
    uint32_t block;
    uint32_t n_prefix, n_in, n_out; /* tokens before and after, prefix and fused counted in */
    const int32_t *position; /* [n_in] patch that token i was (raster order) or, merged, grew from;
                                RENYI_PREFIX or RENYI_FUSED */
    const float *score;      /* [n_in] what the tokens were ranked by; NaN for the prefix */
    const uint8_t *rescued;  /* [n_in] 1 = kept by Col-Ln, not by class attention (Algorithm 2) */
    const uint32_t *source;  /* [n_out] token that row r continues; RENYI_NONE for a fused one */
    const uint32_t *target;  /* [n_in] row that token i went into; RENYI_NONE = dropped */
    const float *size;       /* [n_out] patches that row r stands for; 1 where nothing merged */
} renyi_cut;
#define RENYI_PREFIX (-1)
#define RENYI_FUSED (-2)
#define RENYI_NONE UINT32_MAX

/* Cuts of the policy, and what cut i did to picture `image` of the last run. The session must have
 * been made with trace = 1. */
RENYI_API size_t renyi_session_cut_count(const renyi_session *s);
RENYI_API RENYI_CHECK renyi_status renyi_session_cut(const renyi_session *s, uint32_t image,
                                                     size_t i, renyi_cut *out, renyi_error *err);

/* What a policy costs, from token counts alone; for ats, from the most that may stay. */
typedef struct renyi_layer_cost {
    uint32_t tokens_in, tokens_out; /* that enter the block, and that leave it */
    uint32_t tokens_mlp;            /* that enter its MLP */
    uint64_t n_params;
    double macs_paper;    /* products and 5 per element of LayerNorm: the papers' "GFLOPs" */
    double macs;          /* products */
    double macs_executed; /* products that a session really does */
} renyi_layer_cost;

typedef struct renyi_cost {
    renyi_layer_cost embed, head, total; /* before the blocks, after them, everything */
    uint32_t n_blocks;
    renyi_layer_cost anchors; /* MACs that come on top in a session that adapts (clip.h) once it has
                                 anchors; not in the total */
} renyi_cost;

/* Of a model, or (m = NULL) of an architecture by name. layers: [max_layers] or NULL; filled up to
 * n_blocks. Token counts of a policy that adapts to the picture are its upper bound. */
RENYI_API RENYI_CHECK renyi_status renyi_policy_cost(const renyi_model *m, const char *architecture,
                                                     const char *policy, renyi_cost *out,
                                                     renyi_layer_cost *layers, size_t max_layers,
                                                     renyi_error *err);

/* ---- measuring ----------------------------------------------------------------------------- */

/* Best f32 matrix-product speed of this machine in GFLOP/s over `n_threads` threads, measured
 * now (about a second) with oneDNN on the shapes of ViT-B. */
RENYI_API RENYI_CHECK renyi_status renyi_measure_peak(uint32_t n_threads, double *gflops,
                                                      renyi_error *err);

/* ---- several processes ----------------------------------------------------------------------- */

/* Several processes ("ranks") that share one evaluation or training, on one machine or many. The
 * library knows no MPI: the caller says how bytes get from everyone to everyone. */
typedef struct renyi_ranks {
    uint32_t struct_size;
    uint32_t rank, n_ranks; /* rank < n_ranks */
    uint32_t n_sharing; /* ranks that run on this one's cores, itself included; 0 = 1. What threads
                           default to is divided by it */
    void *user;         /* first argument of the functions */
    /* Begin to gather: the `size` bytes at `mine` of every rank come to `all` [n_ranks, size], rank
     * 0 first. All ranks call it equally often and with the same size; the buffers are in use until
     * `finish` says that it is done, and only then it is called again. It may do all the work at
     * once, but then the ranks run in step. */
    renyi_status (*start)(void *user, const void *mine, size_t size, void *all, renyi_error *err);
    /* *is_done = 1: what was started is complete. With wait = 1 it returns only then. */
    renyi_status (*finish)(void *user, int wait, int *is_done, renyi_error *err);
    /* `values` [n] of every rank become the sum over all ranks, for training. All ranks must get
     * the same bits, in every run: say, added in the order of the ranks. NULL = the library gathers
     * and adds, which sends n_ranks times as much. Not called between start and finish. */
    renyi_status (*sum)(void *user, float *values, size_t n, renyi_error *err);
} renyi_ranks;

#ifdef __cplusplus
}
#endif
#endif
