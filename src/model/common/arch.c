/* arch.c - reads and writes names of architectures, such as "deit_base_distilled_patch16_384".
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/arch.h"

#include <stdio.h>
#include <string.h>

/* text_dim and text_blocks: the text tower of a CLIP of that size. Its heads are 64 wide, and its
 * embeddings as wide as the tower. base and large are OpenAI's, huge is LAION's. */
static const struct size {
    const char *name;
    uint32_t dim, n_blocks, n_heads, text_dim, text_blocks;
} sizes[] = {
    {"tiny", 192, 12, 3, 192, 12},    {"small", 384, 12, 6, 384, 12},
    {"base", 768, 12, 12, 512, 12},   {"large", 1024, 24, 16, 768, 12},
    {"huge", 1280, 32, 16, 1024, 24},
};

/* Published widths whose heads are wider than 64: so400m, huge, giant, gigantic. */
static const uint32_t sixteen_heads[] = {1152, 1280, 1408, 1664};

static const uint32_t patch_sizes[] = {8, 14, 16, 32};

enum { MAX_IMAGE = 4096 };

const char *ry_arch_allowed(void)
{
    return "(vit|deit|clip_vit)_(tiny|small|base|large|huge)[_distilled]_patch(8|14|16|32)[_gap]_"
           "(input side, a multiple of the patch)";
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
        out->dim = sizes[i].dim;
        out->n_blocks = sizes[i].n_blocks;
        out->n_heads = sizes[i].n_heads;
        out->mlp_dim = 4 * sizes[i].dim;
        if (!out->is_clip) return 1;
        out->embed_dim = out->text_dim = sizes[i].text_dim;
        out->text_blocks = sizes[i].text_blocks;
        out->text_heads = sizes[i].text_dim / 64;
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

int ry_arch_parse(ry_arch *out, const char *name)
{
    *out = (ry_arch){0};
    out->is_clip = skip_text(&name, "clip_");
    out->is_deit = !out->is_clip && skip_text(&name, "deit_");
    if (!out->is_deit && !skip_text(&name, "vit_")) return 0;
    if (!skip_size(&name, out)) return 0;
    out->n_prefix = !out->is_clip && skip_text(&name, "_distilled") ? 2 : 1;
    if (!skip_text(&name, "_patch") || !skip_number(&name, &out->patch_size)) return 0;
    if (!out->is_clip && out->n_prefix == 1 && skip_text(&name, "_gap")) out->n_prefix = 0;
    if (!skip_text(&name, "_") || !skip_number(&name, &out->image_size)) return 0;
    return *name == '\0' && is_known_patch(out->patch_size) &&
           out->image_size % out->patch_size == 0;
}

void ry_arch_write(char *out, size_t capacity, const ry_arch *a)
{
    char unusual[48];
    const char *size = unusual;
    snprintf(unusual, sizeof unusual, "d%u_l%u", a->dim, a->n_blocks);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].dim == a->dim && sizes[i].n_blocks == a->n_blocks &&
            sizes[i].n_heads == a->n_heads && 4 * a->dim == a->mlp_dim)
            size = sizes[i].name;
    const char *family = a->is_clip ? "clip_vit" : a->is_deit ? "deit" : "vit";
    snprintf(out, capacity, "%s_%s%s_patch%u%s_%u", family, size,
             a->n_prefix == 2 ? "_distilled" : "", a->patch_size, a->n_prefix ? "" : "_gap",
             a->image_size);
}

uint32_t ry_arch_heads(uint32_t dim)
{
    for (size_t i = 0; i < sizeof sixteen_heads / sizeof sixteen_heads[0]; i++)
        if (sixteen_heads[i] == dim) return 16;
    return dim % 64 ? 0 : dim / 64;
}
