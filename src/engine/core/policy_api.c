/* policy_api.c - policies of the public API: reading, printing, names, and the pruner behind one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/policy_api.h"

#include "base/status.h"
#include "engine/core/model_handle.h"

#include <string.h>

_Static_assert(RENYI_POLICY_MAX == RY_MAX_POLICY_TEXT, "the header promises this size");

static ry_policy_shape shape_of(const ry_vit_config *c, uint32_t n_patches)
{
    return (ry_policy_shape){.n_blocks = c->n_blocks,
                             .n_patches = n_patches,
                             .n_prefix = c->n_prefix,
                             .grid = c->image_size / c->patch_size};
}

renyi_status ry_policy_for(ry_policy *out, const char *text, const ry_vit_config *config,
                           uint32_t n_patches, renyi_error *err)
{
    const ry_policy_shape shape = shape_of(config, n_patches);
    RY_TRY(ry_policy_parse(out, text ? text : "none", err));
    return ry_policy_check(out, &shape, err);
}

renyi_status ry_policy_for_visual(ry_policy *out, const char *text, const ry_vit_config *config,
                                  uint32_t n_patches, renyi_error *err)
{
    ry_policy_shape shape = shape_of(config, n_patches);
    shape.visual = 1;
    RY_TRY(ry_policy_parse(out, text ? text : "none", err));
    return ry_policy_check(out, &shape, err);
}

renyi_status ry_policy_pruner(ry_pruner **out, const ry_policy *policy, const ry_vit_config *config,
                              uint32_t n_patches, uint32_t max_batch, renyi_cpu level,
                              const renyi_allocator *al, renyi_error *err)
{
    const ry_pruner_spec spec = {.policy = policy,
                                 .shape = shape_of(config, n_patches),
                                 .dim = config->dim,
                                 .n_heads = config->n_heads,
                                 .max_batch = max_batch,
                                 .level = level};
    *out = NULL;
    if (policy->rule == RY_RULE_NONE || ry_policy_is_visual(policy)) return RENYI_OK;
    return ry_pruner_new(out, &spec, al, err);
}

renyi_status renyi_policy_check(const char *text, const renyi_model *m, char *full, size_t size,
                                renyi_error *err)
{
    ry_policy policy;
    char print[RY_MAX_POLICY_TEXT];
    if (!text) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_policy_check: NULL argument");
    if (m)
        RY_TRY(ry_policy_for(&policy, text, &m->vit.config, m->vit.n_patches, err));
    else
        RY_TRY(ry_policy_parse(&policy, text, err));
    if (!full) return RENYI_OK;
    ry_policy_print(print, &policy);
    if (strlen(print) >= size)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_policy_check: %zu bytes, %zu needed", size,
                       strlen(print) + 1);
    memcpy(full, print, strlen(print) + 1);
    return RENYI_OK;
}

size_t renyi_preset_count(void)
{
    size_t count;
    ry_presets(&count);
    return count;
}

void renyi_preset_get(size_t i, renyi_preset *out)
{
    size_t count;
    const ry_preset *presets = ry_presets(&count);
    *out = i < count ? (renyi_preset){presets[i].name, presets[i].text, presets[i].about}
                     : (renyi_preset){NULL, NULL, NULL};
}
