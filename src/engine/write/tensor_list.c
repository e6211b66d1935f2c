/* tensor_list.c - the tensors of any checkpoint, without a model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/write/tensor_list.h"

#include "base/status.h"
#include "engine/core/engine_options.h"
#include "formats/checkpoint.h"

#include <string.h>

renyi_tensor_info ry_tensor_info(const ry_tensor *t)
{
    renyi_tensor_info info = {t->name, ry_dtype_name(t->dtype), t->n_dims, {0}, t->bytes};
    memcpy(info.shape, t->shape, t->n_dims * sizeof t->shape[0]);
    return info;
}

renyi_status renyi_visit_tensors(const char *path, const renyi_options *options,
                                 renyi_tensor_visitor each, void *user, renyi_error *err)
{
    renyi_options opt;
    ry_checkpoint ckpt = {0};
    if (!path || !each)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visit_tensors: %s is NULL",
                       path ? "each" : "path");
    RY_TRY(ry_options_read(&opt, options, err));
    renyi_status st = ry_checkpoint_open(&ckpt, path, &opt.limits, &opt.allocator, err);
    const size_t n = st == RENYI_OK ? ry_tensors_count(ckpt.tensors) : 0;
    for (size_t i = 0; st == RENYI_OK && i < n; i++) {
        const renyi_tensor_info info = ry_tensor_info(ry_tensors_at(ckpt.tensors, i));
        if (each(user, &info)) st = ry_fail(err, RENYI_ERR_ABORTED, -1, "%s: stopped", path);
    }
    ry_checkpoint_close(&ckpt, &opt.allocator);
    return st;
}
