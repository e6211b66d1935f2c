/* options.c - see options.h. SPDX-License-Identifier: Apache-2.0 */
#include "engine/options.h"

#include "base/status.h"

#include <string.h>

renyi_status ry_options_read(renyi_options *out, const renyi_options *opt, renyi_error *err)
{
    *out = (renyi_options){0};
    if (!opt) return RENYI_OK;
    if (opt->struct_size < sizeof opt->struct_size || opt->struct_size > sizeof *out)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_options: struct_size %u, this library knows %zu", opt->struct_size,
                       sizeof *out);
    memcpy(out, opt, opt->struct_size);
    if (!out->allocator.alloc != !out->allocator.release)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "renyi_options: allocator has one of alloc and release; both or none wanted");
    return RENYI_OK;
}
