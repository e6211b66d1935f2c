/* user_cache.c - see user_cache.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/user_cache.h"

#include "cli/kit/cli.h"
#include "cli/pull/hub_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *user_cache_folder(const char *name)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = NULL;

    if (xdg && *xdg == '/') /* a relative one is to be ignored, says its specification */
        path = cli_format("%s/renyi/%s", xdg, name);
    else if (home && *home)
        path = cli_format("%s/.cache/renyi/%s", home, name);
    if (path && hub_make_directories(path) == 0) return path;
    cli_detail("no cache: %s%s%s", path ? path : "neither XDG_CACHE_HOME nor HOME is set",
               path ? ": " : "", path ? strerror(errno) : "");
    free(path);
    return NULL;
}
