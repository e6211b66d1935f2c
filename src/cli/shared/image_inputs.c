/* image_inputs.c - see image_inputs.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/image_inputs.h"

#include "cli/kit/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 32 }; /* of --recursive; a loop of links ends here */
static const size_t max_list_bytes = 64u << 20;

void image_inputs_fail(image_inputs *inputs, const char *path, const char *reason)
{
    cli_error("%s: %s", path, reason);
    cli_strings_add(&inputs->failed, cli_copy(path));
    cli_strings_add(&inputs->reasons, cli_copy(reason));
    inputs->n_failed++;
}

void image_inputs_free(image_inputs *inputs)
{
    cli_strings_free(&inputs->paths);
    cli_strings_free(&inputs->failed);
    cli_strings_free(&inputs->reasons);
}

static int has_image_name(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".webp", ".ppm", ".pgm", ".pnm"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0) return 1;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory, sorted, without hidden ones; -1 with errno set. */
static int list_directory(const char *path, cli_strings *names)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;

    if (!dir) return -1;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.') cli_strings_add(names, cli_copy(entry->d_name));
    closedir(dir);
    if (names->count) qsort(names->items, names->count, sizeof *names->items, compare_names);
    return 0;
}

/* max_depth = 1: only the files of this directory. */
static void add_directory(image_inputs *out, const char *path, int depth, int max_depth)
{
    cli_strings names = {0};
    const size_t length = strlen(path);
    const char *slash = length && path[length - 1] == '/' ? "" : "/";

    if (list_directory(path, &names)) image_inputs_fail(out, path, strerror(errno));
    for (size_t i = 0; i < names.count; i++) {
        char *child = cli_format("%s%s%s", path, slash, names.items[i]);
        struct stat st;
        const int exists = stat(child, &st) == 0;
        if (exists && S_ISDIR(st.st_mode)) {
            if (depth + 1 < max_depth) add_directory(out, child, depth + 1, max_depth);
        } else if (has_image_name(child)) {
            cli_strings_add(&out->paths, child);
            continue;
        }
        free(child);
    }
    cli_strings_free(&names);
}

static void add_path(image_inputs *out, const char *path, int recursive)
{
    struct stat st;

    if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        const size_t files = out->paths.count, failures = out->n_failed;
        add_directory(out, path, 0, recursive ? MAX_DEPTH : 1);
        if (out->paths.count == files && out->n_failed == failures)
            image_inputs_fail(out, path,
                              recursive
                                  ? "no images in this directory or below"
                                  : "no images in this directory (--recursive looks below it)");
        return;
    }
    cli_strings_add(&out->paths, cli_copy(path)); /* reading it will tell what is wrong with it */
}

static void add_list(image_inputs *out, const char *list, int recursive)
{
    file_bytes bytes;
    char *why;

    if (read_file(list, max_list_bytes, &bytes, &why)) {
        image_inputs_fail(out, list, why);
        free(why);
        return;
    }
    for (char *line = (char *)bytes.data; line;) {
        char *next = strchr(line, '\n');
        if (next) *next++ = 0;
        line[strcspn(line, "\r")] = 0;
        if (*line) add_path(out, line, recursive);
        line = next;
    }
    free(bytes.data);
}

void image_inputs_collect(image_inputs *out, const cli_strings *words, const char *list,
                          int recursive)
{
    *out = (image_inputs){0};
    for (size_t i = 0; i < words->count; i++) add_path(out, words->items[i], recursive);
    if (list) add_list(out, list, recursive);
}
