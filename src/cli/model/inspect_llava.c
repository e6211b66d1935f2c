/* inspect_llava.c - renyi inspect of LLaVA and Llama models, by names and shapes of the tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/model/inspect.h"
#include "cli/shared/models.h"

#include "renyi/llava.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const renyi_dtype dtypes[] = {RENYI_DTYPE_F32, RENYI_DTYPE_BF16, RENYI_DTYPE_INT8,
                                     RENYI_DTYPE_INT4};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

/* The parts of a model; a missing part is NULL, and `no_...` says why. */
typedef struct parts {
    const char *name;
    renyi_lm_info lm;
    uint64_t bytes[N_DTYPES]; /* of the language model in each dtype; 0 = not possible */
    double lost[N_DTYPES];    /* renyi_lm_info.weight_error in each */
    renyi_visual *visual;
    renyi_lm_tokenizer *tokenizer;
    renyi_error no_visual, no_tokenizer;
    tensor_list tensors; /* of the model's own files */
} parts;

/* ---- opening the parts --------------------------------------------------------------------- */

static void open_parts(parts *p, const char *path, const renyi_options *opt)
{
    for (int i = 0; i < N_DTYPES; i++) {
        const renyi_options o = {.struct_size = sizeof o, .dtype = dtypes[i]};
        renyi_lm_info info;
        if (renyi_lm_describe(path, &o, &info, NULL) != RENYI_OK) continue;
        p->bytes[i] = info.bytes;
        p->lost[i] = info.weight_error;
    }
    if (renyi_visual_open(&p->visual, path, NULL, opt, &p->no_visual) != RENYI_OK &&
        (p->no_visual.code != RENYI_ERR_UNSUPPORTED || p->lm.is_llava)) /* else a plain Llama */
        cli_warn("%s", p->no_visual.message);
    if (renyi_lm_tokenizer_open(&p->tokenizer, path, NULL, &p->no_tokenizer) != RENYI_OK &&
        p->no_tokenizer.code != RENYI_ERR_IO)
        cli_warn("%s", p->no_tokenizer.message);
    renyi_error err = {0};
    if (renyi_visit_tensors(path, NULL, tensor_list_add, &p->tensors, &err) != RENYI_OK)
        cli_warn("%s", err.message);
}

static void free_parts(parts *p)
{
    renyi_visual_free(p->visual);
    renyi_lm_tokenizer_free(p->tokenizer);
    tensor_list_free(&p->tensors);
}

/* ---- text ---------------------------------------------------------------------------------- */

static const char *architecture_name(const parts *p)
{
    renyi_visual_info v;

    if (!p->visual) return "Llama";
    renyi_visual_get_info(p->visual, &v);
    return v.n_grids ? "LLaVA-NeXT" : "LLaVA";
}

static void put_memory(const parts *p)
{
    const char *between = "";

    printf("  memory        ");
    for (int i = 0; i < N_DTYPES; i++) {
        if (!p->bytes[i]) continue;
        const int is_large = p->bytes[i] >= 1000000000;
        printf("%s%.2f %s in %s", between, (double)p->bytes[i] * (is_large ? 1e-9 : 1e-6),
               is_large ? "GB" : "MB", renyi_dtype_name(dtypes[i]));
        between = ", ";
    }
    printf("; %s if --dtype is silent\n", renyi_dtype_name(p->lm.dtype));
}

/* Nothing for packed files, which keep their format, and for formats that keep all bits but those
 * of a GGUF's blocks. */
static void put_rounding(const parts *p)
{
    const char *between = "  rounding      ";
    const int has_blocks = strcmp(p->lm.layout, "gguf") == 0;

    for (int i = 0; i < N_DTYPES; i++) {
        const int is_few = dtypes[i] == RENYI_DTYPE_INT8 || dtypes[i] == RENYI_DTYPE_INT4;
        if (!p->bytes[i] || (p->lost[i] <= 0.0 && !(has_blocks && is_few))) continue;
        printf("%s", between);
        if (p->lost[i] > 0.0)
            printf("%.2g %% in %s", 100.0 * p->lost[i], renyi_dtype_name(dtypes[i]));
        if (p->lost[i] <= 0.0) printf("none in %s", renyi_dtype_name(dtypes[i]));
        between = ", ";
    }
    if (*between == ',') puts(" (rms error of the weights, on some rows)");
}

/* The grids of a LLaVA-NeXT. */
static void put_grids(const renyi_visual_info *v)
{
    if (!v->n_grids) return;
    printf("  tiles         ");
    for (uint32_t i = 0; i < v->n_grids; i++)
        printf("%s%ux%u", i ? ", " : "", v->grids[i][0], v->grids[i][1]);
    printf(" (across x down) besides the base; at most %u visual tokens\n", v->most_rows);
}

static json_t *grids_json(const renyi_visual_info *v)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < v->n_grids; i++)
        json_array_append_new(list, json_pack("[i, i]", (int)v->grids[i][0], (int)v->grids[i][1]));
    return list;
}

static void put_visual(const parts *p)
{
    renyi_visual_info v;

    if (!p->visual) {
        puts("image tower     none");
        return;
    }
    renyi_visual_get_info(p->visual, &v);
    const renyi_preprocess *pre = &v.preprocess;
    printf("image tower     CLIP, names as in %s\n", v.layout);
    printf("  input         %u x %u, patches of %u: %u tokens\n", v.image_size, v.image_size,
           v.patch_size, v.n_patches);
    put_grids(&v);
    printf("  photos        %s, %s, mean %g %g %g, std %g %g %g\n",
           v.n_grids         ? "base and tiles"
           : v.pad_to_square ? "padded to a square"
                             : "cropped to a square",
           interpolation_name(pre->interpolation), pre->mean[0], pre->mean[1], pre->mean[2],
           pre->std[0], pre->std[1], pre->std[2]);
    printf("  width         %u, %u heads, hidden %u, %u of %u blocks are run, eps %g\n", v.dim,
           v.n_heads, v.mlp_dim, v.n_blocks_run, v.n_blocks, v.norm_eps);
    printf("  parameters    %" PRIu64 " (%.2f M) with the projector, products in %s\n", v.n_params,
           (double)v.n_params * 1e-6, renyi_dtype_name(v.dtype));
    printf("projector       from %u to %u\n", v.dim, v.lm_dim);
}

static void put_language(const parts *p)
{
    const renyi_lm_info *m = &p->lm;

    if (!m->n_layers) {
        puts("language model  none: it is in another file, which -m of 'renyi ask' names");
        return;
    }
    printf("language model  Llama, names as in %s\n", m->layout);
    printf("  width         %u, %u heads of %u (%u of keys), hidden %u, %u layers, eps %g\n",
           m->dim, m->n_heads, m->head_dim, m->n_kv_heads, m->mlp_dim, m->n_layers, m->norm_eps);
    printf("  tokens        %u%s, context of %u, rope theta %g", m->vocab,
           m->tied ? " (one table for input and output)" : "", m->context, m->rope_theta);
    if (m->image >= 0) printf(", image token %d", m->image);
    printf("\n  parameters    %" PRIu64 " (%.2f M)\n", m->n_params, (double)m->n_params * 1e-6);
    put_memory(p);
    put_rounding(p);
}

static void put_text(const parts *p, int tensors)
{
    renyi_lm_tokenizer_info t;

    printf("architecture    %s\n", architecture_name(p));
    put_visual(p);
    put_language(p);
    printf("tokenizer       ");
    if (p->tokenizer) {
        renyi_lm_tokenizer_get_info(p->tokenizer, &t);
        cli_put_clean(stdout, t.source);
        printf(": %s, %u ids%s\n", t.kind, t.n_ids,
               t.n_ids > p->lm.vocab ? ", more than the language model has" : "");
    } else {
        puts("none beside it; --tokenizer PATH of 'renyi ask' says where it is");
    }
    tensor_list_put_dtypes(&p->tensors);
    if (tensors) tensor_list_put(&p->tensors);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *language_json(const parts *p)
{
    const renyi_lm_info *m = &p->lm;

    if (!m->n_layers) return json_null();
    json_t *memory = json_object();
    json_t *lost = json_object();

    for (int i = 0; i < N_DTYPES; i++) {
        if (!p->bytes[i]) continue;
        json_object_set_new(memory, renyi_dtype_name(dtypes[i]),
                            json_integer((json_int_t)p->bytes[i]));
        json_object_set_new(lost, renyi_dtype_name(dtypes[i]), json_real(p->lost[i]));
    }
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:b, s:I, s:s, s:o, "
                     "s:o}",
                     "layout", m->layout, "dim", (int)m->dim, "n_layers", (int)m->n_layers,
                     "n_heads", (int)m->n_heads, "n_kv_heads", (int)m->n_kv_heads, "head_dim",
                     (int)m->head_dim, "mlp_dim", (int)m->mlp_dim, "vocab", (int)m->vocab,
                     "context", (int)m->context, "norm_eps", m->norm_eps, "rope_theta",
                     m->rope_theta, "tied", m->tied, "parameters", (json_int_t)m->n_params, "dtype",
                     renyi_dtype_name(m->dtype), "memory_bytes", memory, "rounding", lost);
}

static json_t *visual_json(const parts *p)
{
    renyi_visual_info v;

    if (!p->visual) return json_null();
    renyi_visual_get_info(p->visual, &v);
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:o, s:i, s:I, s:s}",
                     "layout", v.layout, "image_size", (int)v.image_size, "patch_size",
                     (int)v.patch_size, "n_patches", (int)v.n_patches, "dim", (int)v.dim, "n_heads",
                     (int)v.n_heads, "mlp_dim", (int)v.mlp_dim, "n_blocks", (int)v.n_blocks,
                     "n_blocks_run", (int)v.n_blocks_run, "projected_dim", (int)v.lm_dim,
                     "pad_to_square", (int)v.pad_to_square, "grids", grids_json(&v),
                     "most_visual_tokens", (int)v.most_rows, "parameters", (json_int_t)v.n_params,
                     "dtype", renyi_dtype_name(v.dtype));
}

static json_t *tokenizer_json(const parts *p)
{
    renyi_lm_tokenizer_info t;

    if (!p->tokenizer) return json_null();
    renyi_lm_tokenizer_get_info(p->tokenizer, &t);
    return json_pack("{s:o, s:s, s:i}", "file", json_text(t.source), "kind", t.kind, "ids",
                     (int)t.n_ids);
}

static void put_json(const parts *p)
{
    json_print(json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "model", json_text(p->name),
                         "architecture", architecture_name(p), "image_tower", visual_json(p),
                         "language_model", language_json(p), "tokenizer", tokenizer_json(p),
                         "tensors", tensor_list_json(&p->tensors)));
}

/* A file with tower and projector alone: llama.cpp's mmproj. */
static void put_projector_file(parts *p, const char *path, int json, int tensors)
{
    renyi_error err = {0};

    if (renyi_visit_tensors(path, NULL, tensor_list_add, &p->tensors, &err) != RENYI_OK)
        cli_warn("%s", err.message);
    if (json)
        put_json(p);
    else
        put_text(p, tensors);
}

/* ---- all of it ----------------------------------------------------------------------------- */

int inspect_llava(const char *name, const renyi_options *opt, int json, int tensors, int *code)
{
    parts p = {.name = name};
    renyi_error err = {0};
    char *path = model_path_resolve(name);

    *code = CLI_FAILED;
    if (!path) return 1;
    const renyi_status st = renyi_lm_describe(path, NULL, &p.lm, &err);
    if (st == RENYI_OK) {
        open_parts(&p, path, opt);
        if (json)
            put_json(&p);
        else
            put_text(&p, tensors);
        *code = CLI_OK;
    } else if (p.lm.layout) {
        cli_error("%s", err.message);
    } else if (renyi_visual_open(&p.visual, path, NULL, opt, NULL) == RENYI_OK) {
        put_projector_file(&p, path, json, tensors);
        *code = CLI_OK;
    }
    const int is_known = st == RENYI_OK || p.lm.layout || p.visual;
    free_parts(&p);
    free(path);
    return is_known;
}
