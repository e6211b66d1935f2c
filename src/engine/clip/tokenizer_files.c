/* tokenizer_files.c - finds and loads the files of a tokenizer.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/clip/tokenizer.h"
#include "formats/gunzip.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

renyi_status ry_file_load(const ry_file_reader *r, const char *path, ry_file_text *out,
                          renyi_error *err)
{
    uint8_t *bytes = NULL, *text = NULL;
    size_t size = 0;
    renyi_status st = ry_file_read(&bytes, &size, path, r->max_bytes, NULL, NULL, err);
    if (st) return ry_fail_in(err, st, path);
    if (ry_is_gzip(bytes, size)) {
        st = ry_gunzip(&text, &out->size, bytes, size, path, r->max_bytes, r->al, err);
    } else if ((text = ry_alloc(r->al, size, 1))) {
        memcpy(text, bytes, size);
        out->size = size;
    } else {
        st = ry_fail_nomem(err, size);
    }
    ry_free(NULL, bytes);
    out->text = (char *)text;
    return st;
}

/* folder + "/" + name; the folder is the first n characters of path, n = 0 the working folder. */
static char *in_folder(const ry_file_reader *r, const char *path, size_t n, const char *name)
{
    const size_t size = n + strlen(name) + 2;
    char *out = ry_alloc(r->al, size, 1);
    if (out) snprintf(out, size, "%.*s%s%s", (int)n, path, n ? "/" : "", name);
    return out;
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
}

char *ry_file_beside(const ry_file_reader *r, const char *path, const char *name)
{
    return in_folder(r, path, folder_length(path), name);
}

int ry_file_exists(const char *path)
{
    struct stat st;
    return !stat(path, &st);
}

static int is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Is this a file of weights? Its tokenizer is in the same folder. */
static int is_weights(const char *path)
{
    static const char *const tails[] = {
        ".safetensors", ".safetensors.index.json", ".pt", ".pth", ".bin", ".gguf"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        const size_t m = strlen(tails[i]);
        if (n > m && !strcmp(path + n - m, tails[i])) return 1;
    }
    return 0;
}

renyi_status ry_file_find(const ry_file_reader *r, const char *path, const char *const *names,
                          const char *looked_for, char **out, renyi_error *err)
{
    const int is_in = is_folder(path);
    const size_t length = strlen(path);
    if (!is_in && !is_weights(path)) {
        *out = ry_strdup(r->al, path);
        return *out ? RENYI_OK : ry_fail_nomem(err, length + 1);
    }
    const size_t n = is_in ? length : folder_length(path);
    for (; *names; names++) {
        *out = in_folder(r, path, n, *names);
        if (!*out) return ry_fail_nomem(err, n + strlen(*names) + 2);
        if (ry_file_exists(*out)) return RENYI_OK;
        ry_free(r->al, *out);
        *out = NULL;
    }
    return ry_fail(err, RENYI_ERR_IO, -1,
                   "%.200s: no tokenizer %s: looked for %s; put one there or give the file", path,
                   is_in ? "in this folder" : "beside it", looked_for);
}

renyi_status ry_json_beside(const ry_file_reader *r, const char *path, const char *name,
                            int is_reals, json_t **out, renyi_error *err)
{
    const ry_json_limits limits = {r->max_bytes, 0, 0};
    char *other = ry_file_beside(r, path, name);
    ry_file_text f = {0};
    renyi_status st = RENYI_OK;
    *out = NULL;
    if (!other) return ry_fail_nomem(err, strlen(path) + strlen(name));
    if (ry_file_exists(other)) {
        st = ry_file_load(r, other, &f, err);
        if (!st)
            st = is_reals ? ry_json_parse_reals(out, f.text, f.size, other, &limits, err)
                          : ry_json_parse(out, f.text, f.size, other, &limits, err);
        ry_free(r->al, f.text);
    }
    ry_free(r->al, other);
    return st;
}
