/* folder_names.c - the names in a folder, for programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/folder.h"
#include "base/status.h"
#include "renyi/gallery.h"

renyi_status renyi_folder_names(const char *path, void (*on_name)(void *user, const char *name),
                                void *user, renyi_error *err)
{
    ry_folder list;
    if (!path || !on_name)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_folder_names: NULL argument");
    RY_TRY(ry_folder_read(&list, path, NULL, err));
    for (size_t i = 0; i < list.count; i++) on_name(user, list.items[i].name);
    ry_folder_free(&list);
    return RENYI_OK;
}
