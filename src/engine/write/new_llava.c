/* new_llava.c - renyi_lvlm_init: a LLaVA of any size with random weights, written piece by piece in
 * shards, with its configs.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/half.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/rng.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/write/new_model.h"
#include "formats/safetensors.h"
#include "model/llama/llama_tensors.h"
#include "model/llava/visual.h"
#include "renyi/llava.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEVIATION 0.02
#define SHARD_BYTES UINT64_C(5000000000) /* as Hugging Face cuts them */
#define TOWER "vision_tower."
enum {
    TABLE = 1 << 16,
    LANES = 4, /* numbers from one word of the generator */
    MAX_DIM = 1 << 14,
    MAX_MLP = 1 << 17,
    MAX_LAYERS = 1024
};

typedef struct llava_config {
    ry_llama_config lm;
    ry_vit_config tower;
    uint32_t mid_dim; /* inside the projector */
    int has_tiles;    /* LLaVA-NeXT */
} llava_config;

/* ---- configuration ------------------------------------------------------------------------- */

static const struct published {
    const char *name;
    uint32_t dim, n_layers, n_heads, mlp_dim;
    int has_tiles;
} published[] = {{"llava-1.5-7b", 4096, 32, 32, 11008, 0},
                 {"llava-1.5-13b", 5120, 40, 40, 13824, 0},
                 {"llava-1.6-7b", 4096, 32, 32, 11008, 1},
                 {"llava-1.6-13b", 5120, 40, 40, 13824, 1}};

static uint32_t value_or(uint32_t value, uint32_t otherwise) { return value ? value : otherwise; }
static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

static renyi_status lm_config(ry_llama_config *c, const struct published *p,
                              const renyi_lvlm_init_options *opt, renyi_error *err)
{
    *c = (ry_llama_config){.layout = "llava-hf",
                           .dim = value_or(opt->dim, p->dim),
                           .n_layers = value_or(opt->n_layers, p->n_layers),
                           .n_heads = value_or(opt->n_heads, p->n_heads),
                           .mlp_dim = value_or(opt->mlp_dim, p->mlp_dim),
                           .vocab = 32064, /* of llava-hf: 32000 and a few more, padded */
                           .context = 4096,
                           .bos = 1,
                           .eos = 2,
                           .image = 32000,
                           .rope_theta = 10000.0,
                           .norm_eps = 1e-5};
    if (c->dim > MAX_DIM || c->mlp_dim > MAX_MLP || c->n_layers > MAX_LAYERS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "width %u, MLP width %u, %u layers; at most %d, %d, %d are allowed", c->dim,
                       c->mlp_dim, c->n_layers, MAX_DIM, MAX_MLP, MAX_LAYERS);
    if (c->dim % c->n_heads || c->dim / c->n_heads % 2)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%u heads do not divide dim %u into even parts; set n_heads (--heads)",
                       c->n_heads, c->dim);
    c->n_kv_heads = c->n_heads;
    c->head_dim = c->dim / c->n_heads;
    return RENYI_OK;
}

/* Sizes of a LLaVA from its name; the tower is never larger than the language model. */
static renyi_status configure_llava(llava_config *out, const char *architecture,
                                    const renyi_lvlm_init_options *opt, renyi_error *err)
{
    const char *const clip = "clip_vit_large_patch14_336";
    const size_t n = sizeof published / sizeof *published;
    size_t i = 0;
    ry_vit_config large;
    while (i < n && strcmp(architecture, published[i].name) != 0) i++;
    if (i == n)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "architecture '%.60s' is not known; llava-1.5-7b, llava-1.5-13b, llava-1.6-7b "
            "and llava-1.6-13b are",
            architecture);
    *out = (llava_config){0};
    RY_TRY(lm_config(&out->lm, &published[i], opt, err));
    RY_TRY(ry_new_model_config(&large, clip, NULL, err));
    renyi_init_options tower = {.struct_size = sizeof tower,
                                .dim = smaller(large.dim, out->lm.dim),
                                .n_blocks = smaller(large.n_blocks, out->lm.n_layers)};
    if (tower.dim < large.dim) tower.n_heads = out->lm.n_heads;
    RY_TRY(ry_new_model_config(&out->tower, clip, &tower, err));
    out->mid_dim = out->lm.dim;
    out->has_tiles = published[i].has_tiles;
    return RENYI_OK;
}

/* The grids of LLaVA-1.6, [height, width] in pixels; takes over `to`. NULL = no memory. */
static json_t *with_grids(json_t *to, uint32_t side)
{
    const int one = (int)side, two = 2 * one, three = 3 * one;
    json_t *grids = json_pack("[[i, i], [i, i], [i, i], [i, i], [i, i]]", one, two, two, one, two,
                              two, three, one, one, three);
    if (grids && !json_object_set_new(to, "image_grid_pinpoints", grids)) return to;
    json_decref(to);
    return NULL;
}

/* config.json as llava-hf has it; NULL if there is no memory. */
static json_t *config_json(const llava_config *m)
{
    const ry_llama_config *c = &m->lm;
    const ry_vit_config *t = &m->tower;
    json_t *text = json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:i, s:i}", "model_type",
        "llama", "hidden_act", "silu", "hidden_size", (int)c->dim, "intermediate_size",
        (int)c->mlp_dim, "num_hidden_layers", (int)c->n_layers, "num_attention_heads",
        (int)c->n_heads, "num_key_value_heads", (int)c->n_kv_heads, "head_dim", (int)c->head_dim,
        "vocab_size", (int)c->vocab, "max_position_embeddings", (int)c->context, "rms_norm_eps",
        c->norm_eps, "rope_theta", c->rope_theta, "bos_token_id", (int)c->bos, "eos_token_id",
        (int)c->eos);
    json_t *vision =
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f}", "model_type",
                  "clip_vision_model", "hidden_act", "quick_gelu", "hidden_size", (int)t->dim,
                  "intermediate_size", (int)t->mlp_dim, "num_hidden_layers", (int)t->n_blocks,
                  "num_attention_heads", (int)t->n_heads, "image_size", (int)t->image_size,
                  "patch_size", (int)t->patch_size, "layer_norm_eps", t->norm_eps);
    /* json_pack takes over the parts even if it fails */
    json_t *all = json_pack(
        "{s:s, s:[s], s:i, s:i, s:s, s:s, s:b, s:o, s:o}", "model_type",
        m->has_tiles ? "llava_next" : "llava", "architectures",
        m->has_tiles ? "LlavaNextForConditionalGeneration" : "LlavaForConditionalGeneration",
        "image_token_index", (int)c->image, "vision_feature_layer", -2,
        "vision_feature_select_strategy", "default", "projector_hidden_act", "gelu",
        "tie_word_embeddings", 0, "text_config", text, "vision_config", vision);
    return m->has_tiles ? with_grids(all, t->image_size) : all;
}

static json_t *preprocessor_json(const llava_config *m)
{
    const renyi_preprocess *p = &m->tower.preprocess;
    const int side = (int)m->tower.image_size;
    json_t *all = json_pack(
        "{s:s, s:{s:i}, s:{s:i, s:i}, s:i, s:b, s:b, s:b, s:b, s:[f, f, f], s:[f, f, f]}",
        "image_processor_type", m->has_tiles ? "LlavaNextImageProcessor" : "CLIPImageProcessor",
        "size", "shortest_edge", side, "crop_size", "height", side, "width", side, "resample", 3,
        "do_resize", 1, "do_center_crop", 1, "do_normalize", 1, "do_convert_rgb", 1, "image_mean",
        p->mean[0], p->mean[1], p->mean[2], "image_std", p->std[0], p->std[1], p->std[2]);
    return m->has_tiles ? with_grids(all, m->tower.image_size) : all;
}

typedef char name_text[RY_NAME_MAX];

typedef struct job {
    const char *folder;
    renyi_lvlm_init_options opt;
    llava_config model;
    uint64_t extents[RY_X_COUNT]; /* of the part that is being listed */
    const char *prefix;
    ry_tensor *tensors; /* [n] all, in file order */
    name_text *names;
    uint8_t *is_one; /* [n] weights of norms are 1 */
    size_t n;
    uint16_t *table;      /* [TABLE] */
    uint64_t done, total; /* bytes */
} job;

/* ---- random tensors ------------------------------------------------------------------------ */

static void count_name(void *user, const ry_tensor_naming *n, const ry_tensor_name *row,
                       uint32_t block)
{
    (void)n, (void)row, (void)block;
    ((job *)user)->n++;
}

static void add_name(void *user, const ry_tensor_naming *n, const ry_tensor_name *row,
                     uint32_t block)
{
    job *j = user;
    const size_t i = j->n++;
    name_text name;
    ry_tensor *t = &j->tensors[i];
    ry_tensor_name_write(name, n, row, block);
    snprintf(j->names[i], sizeof *j->names, "%.16s%.170s", j->prefix, name);
    *t = (ry_tensor){.name = j->names[i], .dtype = RY_F16};
    for (; t->n_dims < 4 && row->shape[t->n_dims]; t->n_dims++)
        t->shape[t->n_dims] = j->extents[row->shape[t->n_dims]];
    t->bytes = ry_tensor_elements(t) * ry_dtype_size(t->dtype);
    j->is_one[i] = row->role == RY_NORM_W || row->role == RY_NORM1_W || row->role == RY_NORM2_W ||
                   row->role == RY_PRE_NORM_W;
    j->total += t->bytes;
}

/* The row that ends a line of patches. */
static const ry_tensor_name newline = {RY_FC2_B, RY_GROUP_CORE, "image_newline", {RY_X_EMBED}};

/* Tower, projector, language model: the order of the published files. */
static void each_tensor(job *j, ry_tensor_name_visitor see)
{
    ry_tensor_naming tower = ry_vit_naming_clip(j->model.tower.n_blocks);
    const ry_tensor_naming projector = ry_visual_projector_naming();
    const ry_tensor_naming lm = ry_llama_naming("llava-hf", j->model.lm.n_layers);
    tower.groups &= ~(unsigned)RY_GROUP_EMBED;
    j->prefix = TOWER;
    ry_vit_extents(j->extents, &j->model.tower);
    ry_tensor_names_each(&tower, see, j);
    j->prefix = "";
    j->extents[RY_X_MLP] = j->model.mid_dim;
    j->extents[RY_X_EMBED] = j->model.lm.dim;
    ry_tensor_names_each(&projector, see, j);
    if (j->model.has_tiles) see(j, &projector, &newline, 0);
    ry_llama_extents(j->extents, &j->model.lm);
    ry_tensor_names_each(&lm, see, j);
}

static renyi_status list_tensors(job *j, renyi_error *err)
{
    each_tensor(j, count_name);
    j->tensors = ry_calloc(NULL, j->n, sizeof *j->tensors);
    j->names = ry_alloc(NULL, j->n, sizeof *j->names);
    j->is_one = ry_alloc(NULL, j->n, 1);
    j->table = ry_alloc(NULL, TABLE, sizeof *j->table);
    if (!j->tensors || !j->names || !j->is_one || !j->table)
        return ry_fail_nomem(err, j->n * sizeof *j->names);
    j->n = 0;
    each_tensor(j, add_name);
    ry_rng rng = ry_rng_new(j->opt.seed);
    for (size_t i = 0; i < TABLE; i++)
        j->table[i] = ry_half_of((float)(ry_rng_truncated_normal(&rng) * DEVIATION));
    return RENYI_OK;
}

/* ry_safetensors_fill; pieces begin at multiples of LANES numbers. A number comes from a table of
 * 65,536 halves, chosen by a hash of seed, tensor and place: to draw 14 GB of normal numbers one by
 * one would take minutes. */
static renyi_status fill_tensor(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                                renyi_error *err)
{
    job *j = user;
    const size_t index = (size_t)(t - j->tensors), count = n / sizeof(uint16_t);
    const uint16_t one = ry_half_of(1.0f);
    uint16_t *to = out;
    ry_rng mix = ry_rng_at(j->opt.seed, TABLE + index);
    ry_rng rng = ry_rng_at(ry_rng_next(&mix), at / sizeof(uint16_t) / LANES);
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++, word >>= 16) {
        if (i % LANES == 0) word = ry_rng_next(&rng);
        to[i] = j->is_one[index] ? one : j->table[word & (TABLE - 1)];
    }
    j->done += n;
    if (j->opt.progress && j->opt.progress(j->opt.progress_user, j->done, j->total))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    return RENYI_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

/* folder/name, owned by the caller */
static char *path_in(const job *j, const char *name)
{
    const size_t size = strlen(j->folder) + strlen(name) + 2;
    char *out = ry_alloc(NULL, size, 1);
    if (out) snprintf(out, size, "%s/%s", j->folder, name);
    return out;
}

static renyi_status write_json(const job *j, const char *name, json_t *json, renyi_error *err)
{
    char *text = NULL, *path = path_in(j, name);
    ry_output_file f;
    renyi_status st = json && path
                          ? ry_json_text(&text, json, NULL, err)
                          : ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for %s", name);
    if (!st) st = ry_output_file_open(&f, path, NULL, err);
    if (!st) {
        st = ry_output_file_write(&f, text, strlen(text), err);
        st = ry_output_file_close(&f, st, NULL, err);
    }
    ry_free(NULL, text);
    ry_free(NULL, path);
    return st;
}

/* The end of the file that begins with tensor `first`. */
static size_t shard_end(const job *j, size_t first)
{
    const uint64_t most = j->opt.shard_bytes ? j->opt.shard_bytes : SHARD_BYTES;
    uint64_t bytes = j->tensors[first].bytes;
    size_t end = first + 1;
    while (end < j->n && j->tensors[end].bytes <= most && bytes <= most - j->tensors[end].bytes)
        bytes += j->tensors[end++].bytes;
    return end;
}

static void shard_name(char out[48], size_t i, size_t n)
{
    if (n == 1)
        snprintf(out, 48, "model.safetensors");
    else
        snprintf(out, 48, "model-%05zu-of-%05zu.safetensors", i + 1, n);
}

static renyi_status write_shard(job *j, const char *name, size_t first, size_t end,
                                renyi_error *err)
{
    static const char *const meta[] = {"format", "pt", "generator", "renyi init", NULL};
    const ry_safetensors_content content = {j->tensors + first, end - first, meta, fill_tensor, j};
    char *path = path_in(j, name);
    if (!path) return ry_fail_nomem(err, strlen(j->folder) + 64);
    const renyi_status st = ry_safetensors_write(path, &content, NULL, err);
    ry_free(NULL, path);
    return st;
}

/* map: gets the file of every tensor. */
static renyi_status write_shards(job *j, size_t n_shards, json_t *map, renyi_error *err)
{
    for (size_t i = 0, first = 0, end; i < n_shards; i++, first = end) {
        char name[48];
        end = shard_end(j, first);
        shard_name(name, i, n_shards);
        RY_TRY(write_shard(j, name, first, end, err));
        for (size_t k = first; k < end; k++)
            if (json_object_set_new(map, j->names[k], json_string(name)))
                return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the index");
    }
    return RENYI_OK;
}

static renyi_status write_all(job *j, renyi_error *err)
{
    size_t n_shards = 0;
    for (size_t at = 0; at < j->n; at = shard_end(j, at)) n_shards++;
    if (mkdir(j->folder, 0777) && errno != EEXIST)
        return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", j->folder, strerror(errno));
    json_t *map = json_object();
    renyi_status st = map ? write_shards(j, n_shards, map, err)
                          : ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the index");
    if (!st && n_shards > 1)
        st = write_json(j, "model.safetensors.index.json",
                        json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)j->total,
                                  "weight_map", map),
                        err);
    json_decref(map);
    if (!st) st = write_json(j, "preprocessor_config.json", preprocessor_json(&j->model), err);
    /* last, so that a folder with a config is a complete model */
    return st ? st : write_json(j, "config.json", config_json(&j->model), err);
}

renyi_status renyi_lvlm_init(const char *folder, const char *architecture,
                             const renyi_lvlm_init_options *opt, renyi_error *err)
{
    job j = {.folder = folder};
    if (!folder || !architecture)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lvlm_init: %s is NULL",
                       folder ? "architecture" : "folder");
    RY_TRY(ry_struct_read(&j.opt, sizeof j.opt, opt, "renyi_lvlm_init_options", err));
    RY_TRY(configure_llava(&j.model, architecture, &j.opt, err));
    renyi_status st = list_tensors(&j, err);
    if (!st) st = write_all(&j, err);
    ry_free(NULL, j.tensors);
    ry_free(NULL, j.names);
    ry_free(NULL, j.is_one);
    ry_free(NULL, j.table);
    return st;
}
