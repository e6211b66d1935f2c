/* part_files.c - see part_files.h.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/run/part_files.h"

#include "base/alloc.h"
#include "base/status.h"
#include "eval/data/text_lines.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char part_mark[] = ".rank";

char *ry_part_path(const char *file, uint32_t rank, const renyi_allocator *al)
{
    const size_t room = strlen(file) + sizeof part_mark + 10;
    char *path = ry_alloc(al, room, 1);
    if (path) snprintf(path, room, "%s%s%u", file, part_mark, rank);
    return path;
}

/* The number at the end of "name.rank<r>"; 0 if it is no part of the file `name`. */
static uint32_t part_number(const char *entry, const char *name)
{
    const size_t n = strlen(name);
    uint32_t number = 0;
    if (strncmp(entry, name, n) != 0 || strncmp(entry + n, part_mark, sizeof part_mark - 1) != 0)
        return 0;
    const char *digits = entry + n + sizeof part_mark - 1;
    return digits[0] != '0' && ry_text_number(ry_text_of(digits), &number) ? number : 0;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

renyi_status ry_part_list(const char *file, uint32_t **numbers, size_t *count,
                          const renyi_allocator *al, renyi_error *err)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    char *folder = ry_strdup(al, slash ? file : ".");
    size_t capacity = 0;
    *numbers = NULL;
    *count = 0;
    renyi_status st = folder ? RENYI_OK : ry_fail_nomem(err, strlen(file));
    if (folder && slash) folder[slash == file ? 1 : slash - file] = 0;
    DIR *dir = folder ? opendir(folder) : NULL;
    for (const struct dirent *e; dir && !st && (e = readdir(dir));) {
        const uint32_t number = part_number(e->d_name, name);
        if (!number) continue;
        if (ry_grow(al, (void **)numbers, &capacity, *count, sizeof **numbers))
            (*numbers)[(*count)++] = number;
        else
            st = ry_fail_nomem(err, capacity * sizeof **numbers);
    }
    if (dir) closedir(dir);
    ry_free(al, folder);
    if (*count) qsort(*numbers, *count, sizeof **numbers, by_number);
    return st;
}
