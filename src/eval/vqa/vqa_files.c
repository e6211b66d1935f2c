/* vqa_files.c - see vqa.h: files and folders of a benchmark.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int ry_vqa_pope_kind(const char *path, char kind[64])
{
    static const char head[] = "coco_pope_", tail[] = ".json";
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t n = strlen(name), fixed = sizeof head + sizeof tail - 2;
    if (n <= fixed || n - fixed >= 64 || strncmp(name, head, sizeof head - 1) != 0 ||
        strcmp(name + n - sizeof tail + 1, tail) != 0)
        return 0;
    memcpy(kind, name + sizeof head - 1, n - fixed);
    kind[n - fixed] = 0;
    return 1;
}

int ry_vqa_is_folder(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

renyi_status ry_vqa_list(ry_pool *pool, const char *folder, int (*is_wanted)(const char *name),
                         const char ***paths, size_t *n, renyi_error *err)
{
    const char **list = NULL;
    size_t capacity = 0;
    renyi_status st = RENYI_OK;
    DIR *dir = opendir(folder);
    *paths = NULL;
    *n = 0;
    if (!dir) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", folder, strerror(errno));
    for (const struct dirent *e; !st && (e = readdir(dir));) {
        if (!is_wanted(e->d_name)) continue;
        const char *path = ry_pool_join(pool, ry_text_of(folder), ry_text_of(e->d_name));
        if (path && ry_grow(pool->al, (void **)&list, &capacity, *n, sizeof *list))
            list[(*n)++] = path;
        else
            st = ry_fail_nomem(err, capacity * sizeof *list);
    }
    closedir(dir);
    if (!st && *n) {
        qsort(list, *n, sizeof *list, by_name);
        *paths = ry_pool_take(pool, *n, sizeof *list);
        if (*paths)
            memcpy(*paths, list, *n * sizeof *list);
        else
            st = ry_fail_nomem(err, *n * sizeof *list);
    }
    ry_free(pool->al, list);
    return st;
}

renyi_status ry_vqa_load(unsigned char **bytes, size_t *size, const char *path, uint64_t max_bytes,
                         renyi_error *err)
{
    const renyi_status st = ry_file_read(bytes, size, path, max_bytes, NULL, NULL, err);
    return st ? ry_fail_in(err, st, path) : RENYI_OK;
}
