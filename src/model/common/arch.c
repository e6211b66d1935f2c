/* arch.c - reads and writes names of architectures, such as "deit_base_distilled_patch16_384".
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/arch.h"

#include <stdio.h>
#include <string.h>

/* text_dim and text_blocks: the text tower of a CLIP of that size. Its heads are 64 wide, and its
 * embeddings as wide as the tower. base and large are OpenAI's, huge is LAION's; so400m and
 * giantopt are SigLIP's. SigLIP's text towers have the sizes of its image towers. */
static const struct size {
    const char *name;
    uint32_t dim, n_blocks, n_heads, mlp_dim, text_dim, text_blocks;
} sizes[] = {
    {"tiny", 192, 12, 3, 768, 192, 12},       {"small", 384, 12, 6, 1536, 384, 12},
    {"base", 768, 12, 12, 3072, 512, 12},     {"large", 1024, 24, 16, 4096, 768, 12},
    {"huge", 1280, 32, 16, 5120, 1024, 24},   {"medium", 512, 12, 8, 2048, 0, 0},
    {"so400m", 1152, 27, 16, 4304, 1152, 27}, {"giantopt", 1536, 40, 16, 6144, 1152, 27},
    {"giant", 1536, 40, 24, 4096, 0, 0},
};

/* Published widths whose heads are wider than 64: so400m, huge, giant, gigantic. */
static const uint32_t sixteen_heads[] = {1152, 1280, 1408, 1664};

static const uint32_t patch_sizes[] = {8, 14, 16, 32};

enum {
    MAX_IMAGE = 4096,
    MAX_REGISTERS = 256,
    DINO_PATCH = 14,
    DINO_IMAGE = 518,
    DINO3_IMAGE = 256,
    DINO3_REGISTERS = 4
};

const char *ry_arch_allowed(void)
{
    return "known are names such as vit_small_patch16_224, deit_base_distilled_patch16_384, "
           "deit3_base_patch16_224, vit_medium_patch16_reg4_gap_256, vit_small_patch14_reg4_dinov2, "
           "vit_small_plus_patch16_dinov3, vit_base_patch16_siglip_224, vit_base_patch16_clip_224, "
           "with texts clip_vit_base_patch16_224, siglip_base_patch16_224; other sizes, patches of "
           "8, 14, 16 or 32, an input side that is a multiple of the patch";
}

/* 1 if `text` is at *at, which is then moved behind it. */
static int skip_text(const char **at, const char *text)
{
    const size_t n = strlen(text);
    if (strncmp(*at, text, n) != 0) return 0;
    *at += n;
    return 1;
}

static int skip_number(const char **at, uint32_t *out)
{
    uint32_t v = 0;
    if (**at < '1' || **at > '9') return 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if ((v = v * 10 + (uint32_t)(**at - '0')) > MAX_IMAGE) return 0;
    *out = v;
    return 1;
}

static int skip_size(const char **at, ry_arch *out)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (!skip_text(at, sizes[i].name)) continue;
        if (out->is_clip && !sizes[i].text_dim) return 0;
        out->dim = sizes[i].dim;
        out->n_blocks = sizes[i].n_blocks;
        out->n_heads = sizes[i].n_heads;
        out->mlp_dim = sizes[i].mlp_dim;
        if (!out->has_texts) return 1;
        out->embed_dim = out->text_dim = sizes[i].text_dim;
        out->text_blocks = sizes[i].text_blocks;
        out->text_heads = sizes[i].text_dim / 64;
        if (!out->is_siglip) return 1;
        /* the embedding is the pooled row, without a projection */
        out->embed_dim = 0;
        out->text_dim = sizes[i].n_blocks == 40 ? sizes[i].text_dim : sizes[i].dim;
        out->text_blocks = sizes[i].n_blocks == 40 ? sizes[i].text_blocks : sizes[i].n_blocks;
        out->text_heads = ry_arch_heads(out->text_dim);
        return 1;
    }
    return 0;
}

static int is_known_patch(uint32_t patch)
{
    for (size_t i = 0; i < sizeof patch_sizes / sizeof patch_sizes[0]; i++)
        if (patch_sizes[i] == patch) return 1;
    return 0;
}

/* The end of a DINOv3's name, behind "_dinov3". */
static int skip_dino3(const char **at, ry_arch *out)
{
    out->is_dino3 = 1;
    out->n_registers = DINO3_REGISTERS;
    out->n_prefix = 1 + DINO3_REGISTERS;
    out->n_qkv_bias = skip_text(at, "_qkvb") ? 2 : 0;
    out->image_size = DINO3_IMAGE;
    if (out->gated && out->dim == 1280) out->n_heads = 20; /* H+ */
    return (!skip_text(at, "_") || skip_number(at, &out->image_size)) && **at == '\0';
}

/* What follows "patch(N)": registers, pooling, input side. */
static int skip_tail(const char **at, ry_arch *out)
{
    const int plain = !out->has_texts && !out->is_deit && !out->is_deit3 && !out->is_distilled;
    int has_class = !out->is_siglip;
    if (plain && skip_text(at, "_dinov3")) return skip_dino3(at, out);
    if (out->gated) return 0; /* only DINOv3 has a size "plus" */
    if (!out->has_texts && !out->is_deit && !out->is_deit3 && skip_text(at, "_reg") &&
        (!skip_number(at, &out->n_registers) || out->n_registers > MAX_REGISTERS))
        return 0;
    if (!out->is_distilled && !out->has_texts && !out->is_deit3) {
        if (!out->is_deit && !out->n_registers && skip_text(at, "_siglip"))
            out->is_siglip = 1, has_class = 0;
        else if (skip_text(at, "_gap"))
            has_class = 0;
        else if (!out->is_deit && !out->n_registers && skip_text(at, "_clip"))
            out->pre_norm = 1, out->quick_gelu = skip_text(at, "_quickgelu");
    }
    out->is_dino =
        has_class && !out->is_deit && !out->is_clip && !out->pre_norm && skip_text(at, "_dinov2");
    if (out->is_dino)
        out->image_size = DINO_IMAGE;
    else if (!skip_text(at, "_") || !skip_number(at, &out->image_size))
        return 0;
    if (out->n_registers && has_class && !out->is_dino) return 0; /* timm has none of this form */
    out->n_prefix = (uint32_t)has_class + (uint32_t)out->is_distilled + out->n_registers;
    return **at == '\0';
}

/* What timm's models of this name have besides their size. */
static void set_variant(ry_arch *a)
{
    const int is_base = a->dim == 768;
    a->layer_scale = 1;
    a->rope_theta = a->is_dino3 ? 100.0 : 0.0;
    if (a->is_dino3) return;
    a->n_qkv_bias = 3;
    a->layer_scale = a->is_deit3 || a->is_dino || (a->n_registers && !is_base);
    a->n_placed = a->is_deit3 || a->n_registers ? 0 : a->n_prefix;
    a->gated = a->is_dino && a->dim == 1536;
    a->pre_norm |= a->is_clip;
}

/* Some sizes exist only in some families. */
static int size_fits(const ry_arch *a)
{
    if (a->dim == 512 && a->n_blocks == 12)
        return a->is_deit3 || (a->n_registers && !a->is_dino && !a->is_dino3);
    if (a->dim == 1152 || (a->n_heads == 16 && a->dim == 1536)) return a->is_siglip;
    return a->dim != 1536 || a->is_dino;
}

int ry_arch_parse(ry_arch *out, const char *name)
{
    *out = (ry_arch){0};
    out->is_clip = skip_text(&name, "clip_");
    out->is_siglip = !out->is_clip && skip_text(&name, "siglip_");
    out->has_texts = out->is_clip || out->is_siglip;
    out->is_deit = !out->has_texts && skip_text(&name, "deit_");
    out->is_deit3 = !out->has_texts && skip_text(&name, "deit3_");
    if (!out->is_deit && !out->is_deit3 && !out->is_siglip && !skip_text(&name, "vit_")) return 0;
    if (!skip_size(&name, out)) return 0;
    out->gated = !out->has_texts && !out->is_deit && !out->is_deit3 && skip_text(&name, "_plus");
    out->is_distilled = !out->has_texts && !out->is_deit3 && skip_text(&name, "_distilled");
    if (!skip_text(&name, "_patch") || !skip_number(&name, &out->patch_size)) return 0;
    if (!skip_tail(&name, out) || !size_fits(out)) return 0;
    set_variant(out);
    const int has_rest = out->is_siglip && out->patch_size == 14 && out->image_size == 384;
    return is_known_patch(out->patch_size) && (has_rest || out->image_size % out->patch_size == 0);
}

static void write_dino3(char *out, size_t capacity, const ry_arch *a, const char *size)
{
    char side[16] = "";
    if (a->image_size != DINO3_IMAGE) snprintf(side, sizeof side, "_%u", a->image_size);
    snprintf(out, capacity, "vit_%s%s_patch%u_dinov3%s%s", size, a->gated ? "_plus" : "",
             a->patch_size, a->n_qkv_bias ? "_qkvb" : "", side);
}

void ry_arch_write(char *out, size_t capacity, const ry_arch *a)
{
    char unusual[48];
    const char *size = unusual;
    snprintf(unusual, sizeof unusual, "d%u_l%u", a->dim, a->n_blocks);
    const int huge_plus = a->is_dino3 && a->gated && a->dim == 1280 && a->n_heads == 20;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].dim == a->dim && sizes[i].n_blocks == a->n_blocks &&
            (sizes[i].n_heads == a->n_heads || huge_plus) && sizes[i].mlp_dim == a->mlp_dim)
            size = sizes[i].name;
    if (a->is_dino3) {
        write_dino3(out, capacity, a, size);
        return;
    }
    const int siglip = a->is_siglip && a->has_texts;
    const char *family = a->is_clip    ? "clip_vit"
                         : siglip      ? "siglip"
                         : a->is_deit3 ? "deit3"
                         : a->is_deit  ? "deit"
                                       : "vit";
    const int timm_clip = a->pre_norm && !a->is_clip && a->n_prefix > a->n_registers;
    const char *pooling = timm_clip && a->quick_gelu               ? "_clip_quickgelu"
                          : timm_clip                              ? "_clip"
                          : a->n_prefix > a->n_registers || siglip ? ""
                          : a->is_siglip                           ? "_siglip"
                                                                   : "_gap";
    char registers[16] = "", side[16];
    if (a->n_registers) snprintf(registers, sizeof registers, "_reg%u", a->n_registers);
    snprintf(side, sizeof side, "%u", a->image_size);
    const int usual = a->is_dino && a->patch_size == DINO_PATCH && a->image_size == DINO_IMAGE;
    snprintf(out, capacity, "%s_%s%s_patch%u%s%s_%s", family, size,
             a->is_distilled ? "_distilled" : "", a->patch_size, registers, pooling,
             usual ? "dinov2" : side);
}

uint32_t ry_arch_heads(uint32_t dim)
{
    for (size_t i = 0; i < sizeof sixteen_heads / sizeof sixteen_heads[0]; i++)
        if (sixteen_heads[i] == dim) return 16;
    return dim % 64 ? 0 : dim / 64;
}

uint32_t ry_arch_named_heads(const char *name, uint32_t dim)
{
    static const struct {
        const char *start;
        uint32_t dim, n_heads;
    } unusual[] = {{"vit_giantopt_patch16_siglip_gap_", 1536, 16},
                   {"vit_base_patch16_gap_", 768, 16}};
    ry_arch arch;
    for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
        if (unusual[i].dim == dim && !strncmp(name, unusual[i].start, strlen(unusual[i].start)))
            return unusual[i].n_heads;
    return ry_arch_parse(&arch, name) && arch.dim == dim ? arch.n_heads : 0;
}
