/* llama_tensors.c - names, shapes and sizes of a Llama's tensors, and matrices stored as panels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llama/llama_tensors.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/linear/panels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define AGAIN "; make the file again with 'renyi quantize'"

/* ---- names --------------------------------------------------------------------------------- */

/* clang-format off: a table reads by columns */
#define NAMES(prefix, layer, head)                                                         \
    {RY_TOKEN_EMBED, RY_GROUP_CORE, prefix "embed_tokens.weight", {RY_X_VOCAB, RY_X_DIM}}, \
        {RY_NORM1_W, RY_GROUP_CORE, layer "input_layernorm.weight", {RY_X_DIM}},           \
        {RY_Q_W, RY_GROUP_CORE, layer "self_attn.q_proj.weight", {RY_X_Q, RY_X_DIM}},      \
        {RY_K_W, RY_GROUP_CORE, layer "self_attn.k_proj.weight", {RY_X_KV, RY_X_DIM}},     \
        {RY_V_W, RY_GROUP_CORE, layer "self_attn.v_proj.weight", {RY_X_KV, RY_X_DIM}},     \
        {RY_PROJ_W, RY_GROUP_CORE, layer "self_attn.o_proj.weight", {RY_X_DIM, RY_X_Q}},   \
        {RY_NORM2_W, RY_GROUP_CORE, layer "post_attention_layernorm.weight", {RY_X_DIM}},  \
        {RY_FC1_W, RY_GROUP_CORE, layer "mlp.gate_proj.weight", {RY_X_MLP, RY_X_DIM}},     \
        {RY_UP_W, RY_GROUP_CORE, layer "mlp.up_proj.weight", {RY_X_MLP, RY_X_DIM}},        \
        {RY_FC2_W, RY_GROUP_CORE, layer "mlp.down_proj.weight", {RY_X_DIM, RY_X_MLP}},     \
        {RY_NORM_W, RY_GROUP_CORE, prefix "norm.weight", {RY_X_DIM}},                      \
    {                                                                                      \
        RY_HEAD_W, RY_GROUP_HEAD, head "lm_head.weight", { RY_X_VOCAB, RY_X_DIM }          \
    }

static const ry_tensor_name inside_names[] = {
    NAMES("language_model.model.", "language_model.model.layers.#.", "language_model.")};
static const ry_tensor_name inside_5_names[] = {
    NAMES("model.language_model.", "model.language_model.layers.#.", "")};
static const ry_tensor_name plain_names[] = {NAMES("model.", "model.layers.#.", "")};
static const ry_tensor_name stored_names[] = {
    {RY_TOKEN_EMBED, RY_GROUP_CORE, RY_STORED "embed_tokens.weight", {RY_X_VOCAB, RY_X_DIM}},
    {RY_NORM1_W, RY_GROUP_CORE, RY_STORED "layers.#.input_layernorm.weight", {RY_X_DIM}},
    {RY_NORM2_W, RY_GROUP_CORE, RY_STORED "layers.#.post_attention_layernorm.weight", {RY_X_DIM}},
    {RY_NORM_W, RY_GROUP_CORE, RY_STORED "norm.weight", {RY_X_DIM}}};
#define BLK "blk.#."
static const ry_tensor_name gguf_names[] = {
    {RY_TOKEN_EMBED, RY_GROUP_CORE, "token_embd.weight", {RY_X_VOCAB, RY_X_DIM}},
    {RY_NORM1_W, RY_GROUP_CORE, BLK "attn_norm.weight", {RY_X_DIM}},
    {RY_Q_W, RY_GROUP_CORE, BLK "attn_q.weight", {RY_X_Q, RY_X_DIM}},
    {RY_K_W, RY_GROUP_CORE, BLK "attn_k.weight", {RY_X_KV, RY_X_DIM}},
    {RY_V_W, RY_GROUP_CORE, BLK "attn_v.weight", {RY_X_KV, RY_X_DIM}},
    {RY_PROJ_W, RY_GROUP_CORE, BLK "attn_output.weight", {RY_X_DIM, RY_X_Q}},
    {RY_NORM2_W, RY_GROUP_CORE, BLK "ffn_norm.weight", {RY_X_DIM}},
    {RY_FC1_W, RY_GROUP_CORE, BLK "ffn_gate.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_UP_W, RY_GROUP_CORE, BLK "ffn_up.weight", {RY_X_MLP, RY_X_DIM}},
    {RY_FC2_W, RY_GROUP_CORE, BLK "ffn_down.weight", {RY_X_DIM, RY_X_MLP}},
    {RY_NORM_W, RY_GROUP_CORE, "output_norm.weight", {RY_X_DIM}},
    {RY_HEAD_W, RY_GROUP_HEAD, "output.weight", {RY_X_VOCAB, RY_X_DIM}}};
/* clang-format on */

/* ry_llama_stored_check checks the panels; the rest is as in the file it was made from. */
static const char *const stored_others[] = {RY_STORED "layers.",
                                            RY_STORED "head.",
                                            "vision_tower.",
                                            "multi_modal_projector.",
                                            "image_newline",
                                            "model.vision_tower.",
                                            "model.multi_modal_projector.",
                                            "model.mm_projector.",
                                            "model.image_newline",
                                            NULL};
static const char *const inside_others[] = {"vision_tower.", "multi_modal_projector.",
                                            "image_newline", NULL};
static const char *const inside_5_others[] = {"model.vision_tower.", "model.multi_modal_projector.",
                                              "model.image_newline", NULL};
static const char *const plain_others[] = {"model.vision_tower.", "model.mm_projector.",
                                           "model.image_newline", NULL};

static const char *const no_others[] = {NULL};

/* Longer names first: the first name of a plain Llama is the end of the others'. */
#define TABLE(table) .names = table, .count = sizeof table / sizeof table[0]
static const ry_tensor_layout layouts[] = {
    {.id = RY_LAYOUT_HF,
     .vendor = RY_STORED_LAYOUT,
     TABLE(stored_names),
     .others = stored_others,
     .what = "a quantized Llama"},
    {.id = RY_LAYOUT_HF,
     .vendor = "llava-hf", /* transformers 4 */
     TABLE(inside_names),
     .others = inside_others,
     .what = "a Llama"},
    {.id = RY_LAYOUT_HF,
     .vendor = "llava-hf-5", /* transformers 5 */
     TABLE(inside_5_names),
     .others = inside_5_others,
     .what = "a Llama"},
    {.id = RY_LAYOUT_HF,
     .vendor = "llama", /* and LLaVA's own layout */
     TABLE(plain_names),
     .others = plain_others,
     .what = "a Llama"},
    {.id = RY_LAYOUT_HF,
     .vendor = RY_GGUF_LAYOUT,
     TABLE(gguf_names),
     .others = no_others,
     .what = "a Llama"},
};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

int ry_llama_naming_find(ry_tensor_naming *out, const ry_tensors *set)
{
    return ry_tensor_naming_among(out, set, layouts, N_LAYOUTS);
}

ry_tensor_naming ry_llama_naming(const char *layout, uint32_t n_layers)
{
    const ry_tensor_layout *l = layouts;
    while (strcmp(l->vendor, layout) != 0) l++;
    return (ry_tensor_naming){.layout = l->id,
                              .of = l,
                              .table = l->names,
                              .n_names = l->count,
                              .n_blocks = n_layers,
                              .groups = RY_GROUP_CORE | RY_GROUP_HEAD};
}

void ry_llama_extents(uint64_t out[RY_X_COUNT], const ry_llama_config *c)
{
    memset(out, 0, RY_X_COUNT * sizeof *out);
    out[RY_X_DIM] = c->dim;
    out[RY_X_MLP] = c->mlp_dim;
    out[RY_X_VOCAB] = c->vocab;
    out[RY_X_Q] = ry_llama_q(c);
    out[RY_X_KV] = ry_llama_kv(c);
}

/* ---- sizes, from the configuration alone --------------------------------------------------- */

ry_matrix_shape ry_llama_shape(const ry_llama_config *c, ry_llama_matrix which)
{
    switch (which) {
    case RY_LLAMA_QKV: return (ry_matrix_shape){ry_llama_qkv(c), c->dim};
    case RY_LLAMA_PROJ: return (ry_matrix_shape){c->dim, ry_llama_q(c)};
    case RY_LLAMA_GATE_UP: return (ry_matrix_shape){2 * (size_t)c->mlp_dim, c->dim};
    case RY_LLAMA_DOWN: return (ry_matrix_shape){c->dim, c->mlp_dim};
    default: return (ry_matrix_shape){c->vocab, c->dim};
    }
}

static uint64_t norm_floats(const ry_llama_config *c)
{
    return (2 * (uint64_t)c->n_layers + 1) * c->dim;
}

ry_parts ry_llama_parts(const ry_llama_config *c, const ry_tensor_naming *n, const ry_tensors *set,
                        ry_llama_matrix which, uint32_t layer)
{
    static const ry_tensor_role roles[][3] = {
        {RY_Q_W, RY_K_W, RY_V_W}, {RY_PROJ_W}, {RY_FC1_W, RY_UP_W}, {RY_FC2_W}, {RY_HEAD_W}};
    static const uint32_t counts[] = {3, 1, 2, 1, 1};
    ry_parts p = {.n = counts[which], .n_in = ry_llama_shape(c, which).n_in, .set = set};
    p.paired_head = which == RY_LLAMA_QKV && c->paired ? c->head_dim : 0;
    for (uint32_t i = 0; i < p.n; i++) {
        const int tied = which == RY_LLAMA_HEAD && c->tied;
        p.part[i] = ry_tensor_of_role(n, set, tied ? RY_TOKEN_EMBED : roles[which][i], layer);
    }
    return p;
}

static uint32_t matrix_count(const ry_llama_config *c, ry_llama_matrix which)
{
    return which == RY_LLAMA_HEAD ? 1 : c->n_layers;
}

ry_linear_blocks ry_llama_blocks(const ry_llama_config *c, const ry_tensor_naming *n,
                                 const ry_tensors *set, ry_llama_matrix which, uint32_t layer,
                                 renyi_dtype dtype)
{
    if (c->stored) return RY_BLOCKS_NONE;
    const ry_parts parts = ry_llama_parts(c, n, set, which, layer);
    return ry_parts_blocks(&parts, dtype);
}

int ry_llama_is_q4(const ry_llama_config *c, const ry_tensor_naming *n, const ry_tensors *set)
{
    for (ry_llama_matrix which = RY_LLAMA_QKV; which < RY_N_LLAMA_MATRICES; which++)
        for (uint32_t i = 0; i < matrix_count(c, which); i++)
            if (!ry_llama_blocks(c, n, set, which, i, RENYI_DTYPE_INT4)) return 0;
    return 1;
}

uint64_t ry_llama_params(const ry_llama_config *c)
{
    uint64_t n = norm_floats(c);
    for (int i = 0; i < RY_N_LLAMA_MATRICES; i++) {
        const ry_matrix_shape s = ry_llama_shape(c, (ry_llama_matrix)i);
        n += (uint64_t)matrix_count(c, (ry_llama_matrix)i) * s.n_out * s.n_in;
    }
    return c->tied ? n : n + (uint64_t)c->vocab * c->dim; /* the token table */
}

/* The last panel is padded. */
static uint64_t matrix_bytes(ry_matrix_shape s, renyi_dtype dtype, ry_linear_blocks blocks)
{
    const uint64_t panels = ry_panels_of(s.n_out);
    if (blocks) return panels * ry_groups_panel(ry_groups_of(blocks), s.n_in);
    if (dtype == RENYI_DTYPE_INT8 || dtype == RENYI_DTYPE_INT4)
        return panels * ry_panel_bytes(dtype, s.n_in);
    return panels * RY_PANEL * s.n_in * (dtype == RENYI_DTYPE_BF16 ? 2 : 4);
}

uint64_t ry_llama_bytes(const ry_llama_config *c, const ry_checkpoint *ckpt, renyi_dtype dtype)
{
    ry_tensor_naming n;
    if (!ry_llama_naming_find(&n, ckpt->tensors)) return 0; /* ry_llama_configure found it */
    uint64_t bytes = ry_tensor_of_role(&n, ckpt->tensors, RY_TOKEN_EMBED, 0)->bytes;
    bytes += norm_floats(c) * sizeof(float);
    for (ry_llama_matrix which = RY_LLAMA_QKV; which < RY_N_LLAMA_MATRICES; which++)
        for (uint32_t i = 0; i < matrix_count(c, which); i++)
            bytes += matrix_bytes(ry_llama_shape(c, which), dtype,
                                  ry_llama_blocks(c, &n, ckpt->tensors, which, i, dtype));
    return bytes;
}

/* ---- packed matrices ----------------------------------------------------------------------- */

static void write_stored_name(char out[RY_NAME_MAX], ry_llama_matrix which, uint32_t layer,
                              ry_stored_part part)
{
    static const char *const names[] = {"qkv", "proj", "gate_up", "down", "head"};
    static const char *const parts[] = {"panels", "columns"};
    if (which == RY_LLAMA_HEAD)
        snprintf(out, RY_NAME_MAX, RY_STORED "head.%s", parts[part]);
    else
        snprintf(out, RY_NAME_MAX, RY_STORED "layers.%u.%s.%s", layer, names[which], parts[part]);
}

void ry_llama_stored_tensor(ry_tensor *t, char name[RY_NAME_MAX], const ry_llama_config *c,
                            ry_llama_matrix which, uint32_t layer, ry_stored_part part,
                            renyi_dtype dtype)
{
    const ry_matrix_shape s = ry_llama_shape(c, which);
    write_stored_name(name, which, layer, part);
    *t = (ry_tensor){.name = name, .n_dims = 2};
    t->dtype = part == RY_STORED_PANELS ? RY_U8 : RY_F32;
    t->shape[0] = part == RY_STORED_PANELS    ? ry_panels_of(s.n_out)
                  : dtype == RENYI_DTYPE_INT8 ? 2
                                              : 1;
    t->shape[1] = part == RY_STORED_PANELS ? ry_panel_bytes(dtype, s.n_in) : s.n_out;
}

static const ry_tensor *find_stored(const ry_tensors *set, ry_llama_matrix which, uint32_t layer,
                                    ry_stored_part part)
{
    char name[RY_NAME_MAX];
    write_stored_name(name, which, layer, part);
    return ry_tensors_find(set, name);
}

uint64_t ry_llama_stored_mlp(const ry_tensors *set)
{
    const ry_tensor *t = find_stored(set, RY_LLAMA_GATE_UP, 0, RY_STORED_COLUMNS);
    return t && t->n_dims == 2 ? t->shape[1] / 2 : 0;
}

static renyi_status check_stored_tensor(const ry_llama_config *c, const ry_tensors *set,
                                        ry_llama_matrix which, uint32_t layer, ry_stored_part part,
                                        renyi_error *err)
{
    char name[RY_NAME_MAX];
    ry_tensor want;
    ry_llama_stored_tensor(&want, name, c, which, layer, part, c->stored);
    const ry_tensor *t = ry_tensors_find(set, name);
    if (!t) return ry_fail(err, RENYI_ERR_FORMAT, -1, "tensor '%s' is missing" AGAIN, name);
    if (t->dtype == want.dtype && t->n_dims == 2 && t->shape[0] == want.shape[0] &&
        t->shape[1] == want.shape[1])
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "tensor '%s' is %s of %u dimensions [%" PRIu64 ", %" PRIu64 "]; %s [%" PRIu64
                   ", %" PRIu64 "] expected for %s" AGAIN,
                   name, ry_dtype_name(t->dtype), t->n_dims, t->shape[0],
                   t->n_dims > 1 ? t->shape[1] : 0, ry_dtype_name(want.dtype), want.shape[0],
                   want.shape[1], c->stored == RENYI_DTYPE_INT4 ? "int4" : "int8");
}

renyi_status ry_llama_stored_check(ry_llama_config *c, const ry_tensors *set, renyi_error *err)
{
    const ry_tensor *head = find_stored(set, RY_LLAMA_HEAD, 0, RY_STORED_PANELS);
    const int is_int4 =
        head && head->n_dims == 2 && head->shape[1] == ry_panel_bytes(RENYI_DTYPE_INT4, c->dim);
    c->stored = is_int4 ? RENYI_DTYPE_INT4 : RENYI_DTYPE_INT8;
    for (int which = 0; which < RY_N_LLAMA_MATRICES; which++)
        for (uint32_t i = 0; i < (which == RY_LLAMA_HEAD ? 1 : c->n_layers); i++)
            for (int part = 0; part < RY_N_STORED_PARTS; part++)
                RY_TRY(check_stored_tensor(c, set, (ry_llama_matrix)which, i, (ry_stored_part)part,
                                           err));
    return RENYI_OK;
}

/* Copies the floats: a tensor in a file may be at any address. */
static renyi_status read_columns(float *out, const ry_tensor *t, renyi_error *err)
{
    const size_t n = (size_t)ry_tensor_elements(t);
    RY_TRY(ry_tensor_to_f32(t, out, err));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(out[i]))
            return ry_fail(
                err, RENYI_ERR_FORMAT, -1,
                "tensor '%.120s' holds %s at element %zu of %zu; finite numbers expected: "
                "the file is damaged, download or convert it again",
                t->name, isnan(out[i]) ? "NaN" : "infinity", i, n);
    return RENYI_OK;
}

renyi_status ry_llama_stored_linear(ry_linear **out, const ry_llama_config *c,
                                    const ry_tensors *set, ry_llama_matrix which, uint32_t layer,
                                    renyi_cpu level, const renyi_allocator *al, renyi_error *err)
{
    const ry_tensor *panels = find_stored(set, which, layer, RY_STORED_PANELS);
    const ry_tensor *columns = find_stored(set, which, layer, RY_STORED_COLUMNS);
    const ry_matrix_shape s = ry_llama_shape(c, which);
    float *floats = ry_alloc(al, 2 * s.n_out, sizeof *floats);
    if (!floats) return ry_fail_nomem(err, 2 * s.n_out * sizeof *floats);
    const ry_linear_stored stored = {panels->data, floats, floats + s.n_out};
    const int adds = which == RY_LLAMA_PROJ || which == RY_LLAMA_DOWN;
    const ry_linear_spec spec = {.n_out = s.n_out,
                                 .n_in = s.n_in,
                                 .epilogue = adds ? RY_EPI_RESIDUAL : RY_EPI_NONE,
                                 .dtype = c->stored,
                                 .stored = &stored,
                                 .few_rows = 1};
    renyi_status st = read_columns(floats, columns, err);
    if (!st) st = ry_linear_new(out, &spec, level, al, err);
    ry_free(al, floats);
    return st;
}
