/* engine_options.c - see options.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/engine_options.h"

#include "base/status.h"

#include <string.h>

renyi_status ry_struct_read(void *out, size_t size, const void *given, const char *what,
                            renyi_error *err)
{
    uint32_t struct_size;
    memset(out, 0, size);
    if (!given) return RENYI_OK;
    memcpy(&struct_size, given, sizeof struct_size);
    if (struct_size < sizeof struct_size || struct_size > size)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s: struct_size %u, this library knows %zu", what,
                       struct_size, size);
    memcpy(out, given, struct_size);
    return RENYI_OK;
}

renyi_status ry_options_read(renyi_options *out, const renyi_options *opt, renyi_error *err)
{
    RY_TRY(ry_struct_read(out, sizeof *out, opt, "renyi_options", err));
    if (!out->allocator.alloc != !out->allocator.release)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "renyi_options: allocator has one of alloc and release; both or none wanted");
    return RENYI_OK;
}
