/* write_file.c - see write_file.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/write_file.h"

#include "cli/kit/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *path)
{
    cli_error("%s: %s", path, strerror(errno));
    return -1;
}

/* Under another name first: a reader never sees half of it. */
int write_whole_file(const char *path, const char *bytes, size_t size)
{
    char *part = cli_format("%s.part", path);
    FILE *f = fopen(part, "wb");
    int code = f ? 0 : fail(part);

    if (f) {
        const int is_bad = fwrite(bytes, 1, size, f) != size;
        if (fclose(f) || is_bad || rename(part, path)) {
            code = fail(path);
            unlink(part);
        }
    }
    free(part);
    return code;
}
