/* collections.c - the table of known datasets (lists/collections.txt, built in), and where one is
 * on the disk: in the layout of CoOp, of TCA, or just its images.
 * SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "eval/data/collections.h"

#include "base/decimal.h"
#include "base/folder.h"
#include "base/status.h"
#include "eval/data/classes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

extern const char ry_collections_txt[];

enum { COLUMNS = 13 };

static int is_ignored(char c) { return c == '-' || c == '_' || c == ' '; }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Are two names equal, without case, '-', '_' and blanks? */
static int is_same_name(ry_text a, ry_text b)
{
    for (;;) {
        while (a.n && is_ignored(*a.at)) a.at++, a.n--;
        while (b.n && is_ignored(*b.at)) b.at++, b.n--;
        if (!a.n || !b.n) return a.n == b.n;
        if (lower(*a.at++) != lower(*b.at++)) return 0;
        a.n--, b.n--;
    }
}

/* ---- the table ----------------------------------------------------------------------------- */

static void read_text(char out[RENYI_COLLECTION_TEXT], ry_text cell)
{
    const int is_empty = cell.n == 1 && *cell.at == '-';
    snprintf(out, RENYI_COLLECTION_TEXT, "%.*s", is_empty ? 0 : (int)cell.n, cell.at);
}

static double read_number(ry_text cell)
{
    double value = 0;
    return ry_read_decimal(cell.at, cell.n, &value) ? value : 0;
}

static renyi_layout read_layout(ry_text cell)
{
    if (ry_text_compare(cell, ry_text_of("split")) == 0) return RENYI_LAYOUT_SPLIT;
    if (ry_text_compare(cell, ry_text_of("variants")) == 0) return RENYI_LAYOUT_VARIANTS;
    return RENYI_LAYOUT_IMAGENET;
}

static void split_columns(ry_text line, ry_text cells[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++) {
        const char *bar = line.n ? memchr(line.at, '|', line.n) : NULL;
        const size_t n = bar ? (size_t)(bar - line.at) : line.n;
        cells[i] = ry_text_trim((ry_text){line.at, n});
        line = (ry_text){line.at + n + (bar != NULL), line.n - n - (bar != NULL)};
    }
}

/* The columns are in the order of the header in the file. */
static void read_line(ry_text line, renyi_collection *out)
{
    ry_text cells[COLUMNS];
    split_columns(line, cells);
    *out = (renyi_collection){.layout = read_layout(cells[3]),
                              .is_subset = ry_text_compare(cells[3], ry_text_of("subset")) == 0,
                              .tca_scale = read_number(cells[10]),
                              .tca_lambda = read_number(cells[11]),
                              .tca_beta = read_number(cells[12])};
    read_text(out->name, cells[0]);
    read_text(out->title, cells[1]);
    read_text(out->aliases, cells[2]);
    if (!ry_text_number(cells[4], &out->n_classes)) out->n_classes = 0;
    read_text(out->folder, cells[5]);
    read_text(out->photos, cells[6]);
    read_text(out->list, cells[7]);
    read_text(out->templates, cells[8]);
    if (!ry_text_number(cells[9], &out->tca_size)) out->tca_size = 0;
}

/* Line i of the table, comments not counted; 0 = the table is shorter. */
static int find_line(size_t i, ry_text *line)
{
    ry_lines l = ry_lines_of(ry_collections_txt, strlen(ry_collections_txt));
    while (ry_lines_next(&l, line))
        if (line->n && *line->at != '#' && i-- == 0) return 1;
    return 0;
}

size_t renyi_collection_count(void)
{
    size_t n = 0;
    for (ry_text line; find_line(n, &line);) n++;
    return n;
}

void renyi_collection_get(size_t i, renyi_collection *out)
{
    ry_text line;
    *out = (renyi_collection){.n_classes = 0};
    if (find_line(i, &line)) read_line(line, out);
}

/* ---- by name ------------------------------------------------------------------------------- */

static int has_name(const renyi_collection *c, ry_text name)
{
    ry_text rest = ry_text_of(c->aliases), alias;
    if (is_same_name(name, ry_text_of(c->name)) || is_same_name(name, ry_text_of(c->title)) ||
        is_same_name(name, ry_text_of(c->folder)))
        return 1;
    while (ry_text_next_word(&rest, &alias))
        if (is_same_name(name, alias)) return 1;
    return 0;
}

renyi_status renyi_collection_find(const char *word, renyi_collection *out, renyi_error *err)
{
    char names[320] = "";
    if (!word || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_collection_find: NULL argument");
    for (size_t i = 0, n = renyi_collection_count(); i < n; i++) {
        renyi_collection_get(i, out);
        if (has_name(out, ry_text_of(word))) return RENYI_OK;
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", out->name);
    }
    *out = (renyi_collection){.n_classes = 0};
    return ry_fail(err, RENYI_ERR_ARG, -1, "unknown dataset \"%.60s\"; known are: %s", word, names);
}

/* ---- on the disk --------------------------------------------------------------------------- */

static int is_file(const char *path)
{
    struct stat s;
    return path && stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

/* "folder/name", and the folder itself for "."; NULL = no memory */
static const char *join_path(ry_pool *pool, const char *folder, ry_text name)
{
    if (name.n == 1 && *name.at == '.') return folder;
    return ry_pool_join(pool, ry_text_of(folder), name);
}

/* *found: is there a folder whose name is a class of ImageNet? */
static renyi_status has_imagenet_folders(int *found, const char *path, const renyi_allocator *al,
                                         renyi_error *err)
{
    ry_folder list;
    uint32_t index;
    *found = 0;
    const renyi_status st = ry_folder_read(&list, path, al, err);
    if (st) return st == RENYI_ERR_NOMEM ? st : RENYI_OK;
    for (size_t i = 0; !*found && i < list.count; i++) {
        const ry_text name = ry_text_of(list.items[i].name);
        *found = ry_imagenet_index(name) != RENYI_NO_CLASS ||
                 (ry_text_number(name, &index) && index < RY_IMAGENET_CLASSES);
    }
    ry_folder_free(&list);
    return RENYI_OK;
}

/* The first folder of c->photos that exists, and has class folders if the layout needs them. */
static renyi_status find_images(ry_place *out, const renyi_collection *c, ry_pool *pool,
                                renyi_error *err)
{
    ry_text rest = ry_text_of(c->photos), word;
    while (ry_text_next_word(&rest, &word)) {
        const char *path = join_path(pool, out->root, word);
        if (!path) return ry_fail_nomem(err, word.n);
        if (!ry_is_folder(path)) continue;
        int is_right = 1;
        if (c->layout == RENYI_LAYOUT_IMAGENET)
            RY_TRY(has_imagenet_folders(&is_right, path, pool->al, err));
        if (!is_right) continue;
        out->images = path;
        return RENYI_OK;
    }
    return RENYI_OK;
}

/* Sets *out only if the dataset is at `root`. */
static renyi_status try_root(ry_place *out, const renyi_collection *c, const char *root,
                             ry_pool *pool, renyi_error *err)
{
    ry_place p = {.root = root};
    if (!ry_is_folder(root)) return RENYI_OK;
    if (*c->list) {
        p.list = join_path(pool, root, ry_text_of(c->list));
        if (!p.list) return ry_fail_nomem(err, strlen(c->list));
        if (!is_file(p.list)) return RENYI_OK;
    }
    RY_TRY(find_images(&p, c, pool, err));
    if (p.list || p.images) *out = p;
    return RENYI_OK;
}

/* The same; for Aircraft also in the folder "data", as in its archive. */
static renyi_status try_folder(ry_place *out, const renyi_collection *c, const char *folder,
                               ry_pool *pool, renyi_error *err)
{
    RY_TRY(try_root(out, c, folder, pool, err));
    if (out->root || c->layout != RENYI_LAYOUT_VARIANTS) return RENYI_OK;
    const char *data = join_path(pool, folder, ry_text_of("data"));
    return data ? try_root(out, c, data, pool, err) : ry_fail_nomem(err, strlen(folder));
}

/* `path` itself, and the folders below it that have a name of the dataset. */
static renyi_status try_roots(ry_place *out, const renyi_collection *c, const char *path,
                              ry_pool *pool, renyi_error *err)
{
    const ry_text names[] = {ry_text_of("."), ry_text_of(c->folder), ry_text_of(c->name),
                             ry_text_of(c->aliases)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ry_text rest = names[i], word;
        while (!out->root && ry_text_next_word(&rest, &word)) {
            const char *folder = join_path(pool, path, word);
            if (!folder) return ry_fail_nomem(err, word.n);
            RY_TRY(try_folder(out, c, folder, pool, err));
        }
    }
    return RENYI_OK;
}

/* A split file of any dataset: the first in byte order, so that messages are stable. */
static const char *find_any_split(const char *path, ry_pool *pool)
{
    static const char prefix[] = "split_zhou_";
    const char *first = NULL;
    ry_folder list;
    if (ry_folder_read(&list, path, pool->al, NULL)) return NULL;
    for (size_t i = 0; !first && i < list.count; i++)
        if (strncmp(list.items[i].name, prefix, sizeof prefix - 1) == 0)
            first = ry_pool_text(pool, list.items[i].name);
    ry_folder_free(&list);
    return first;
}

static renyi_status fail_absent(const renyi_collection *c, const char *path, ry_pool *pool,
                                renyi_error *err)
{
    const char *other = find_any_split(path, pool);
    if (!ry_is_folder(path))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%.200s: no folder of %s", path, c->title);
    if (*c->list)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%.160s: not %s: no %s here or in %s/%s%.60s%s",
                       path, c->title, c->list, c->folder, other ? "; but there is " : "",
                       other ? other : "", other ? ", of another dataset" : "");
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.160s: not %s: no class folders (n01440764, ... or 0, 1, ...) here, in %s or "
                   "in %s/%s%.60s%s",
                   path, c->title, c->photos, c->folder, other ? "; but there is " : "",
                   other ? other : "", other ? ", of another dataset" : "");
}

renyi_status ry_collection_place(ry_place *out, const renyi_collection *c, const char *path,
                                 ry_pool *pool, renyi_error *err)
{
    *out = (ry_place){0};
    if (is_file(path) && *c->list) {
        const ry_text folder = ry_text_folder(ry_text_of(path));
        out->root = folder.n ? ry_pool_copy(pool, folder) : ".";
        out->list = path;
        if (!out->root) return ry_fail_nomem(err, folder.n);
        RY_TRY(find_images(out, c, pool, err));
    } else {
        RY_TRY(try_roots(out, c, path, pool, err));
    }
    if (!out->root) return fail_absent(c, path, pool, err);
    if (!out->images)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.200s: %s is here, but the images of %s are not: no folder %s", out->root,
                       ry_text_file_name(ry_text_of(out->list)).at, c->title, c->photos);
    return RENYI_OK;
}

/* ---- guessing ------------------------------------------------------------------------------ */

/* Does the path end with "/name"? *stem: the part before. */
static int ends_in(ry_text path, ry_text name, ry_text *stem)
{
    if (path.n <= name.n || path.at[path.n - name.n - 1] != '/' ||
        memcmp(path.at + path.n - name.n, name.at, name.n) != 0)
        return 0;
    *stem = (ry_text){path.at, path.n - name.n - 1};
    return 1;
}

/* Does the folder have a name of the dataset, or is it the images folder in one that has? */
static int is_folder_of(const renyi_collection *c, ry_text path)
{
    ry_text rest = ry_text_of(c->photos), word, stem;
    while (ry_text_next_word(&rest, &word)) {
        if (word.n == 1 && *word.at == '.')
            stem = path;
        else if (!ends_in(path, word, &stem))
            continue;
        const ry_text name = ry_text_file_name(stem);
        if (is_same_name(name, ry_text_of(c->name)) || is_same_name(name, ry_text_of(c->folder)))
            return 1;
    }
    return is_same_name(ry_text_file_name(path), ry_text_of(c->name)) ||
           is_same_name(ry_text_file_name(path), ry_text_of(c->folder));
}

/* By its list, or by the name of its folder if that has class folders. */
static renyi_status check_collection(int *is_it, const renyi_collection *c, const char *path,
                                     ry_text absolute, ry_pool *pool, renyi_error *err)
{
    ry_place place = {0};
    *is_it = 0;
    if (is_file(path)) {
        *is_it = *c->list && strcmp(ry_text_file_name(ry_text_of(path)).at, c->list) == 0;
        return RENYI_OK;
    }
    if (!*c->list && !is_folder_of(c, absolute)) return RENYI_OK;
    RY_TRY(try_folder(&place, c, path, pool, err));
    *is_it = place.root != NULL;
    return RENYI_OK;
}

renyi_status ry_collection_guess(renyi_collection *out, const char *path, ry_pool *pool,
                                 renyi_error *err)
{
    char absolute[PATH_MAX];
    renyi_collection c;
    int is_it;
    *out = (renyi_collection){.n_classes = 0};
    const ry_text whole = ry_text_of(realpath(path, absolute) ? absolute : path);
    for (size_t i = 0, n = renyi_collection_count(); i < n; i++) {
        renyi_collection_get(i, &c);
        RY_TRY(check_collection(&is_it, &c, path, whole, pool, err));
        if (is_it && *out->name)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%.160s: this may be %s (%s) or %s (%s); name the dataset", path,
                           out->title, *out->list ? out->list : out->folder, c.title,
                           *c.list ? c.list : c.folder);
        if (is_it) *out = c;
    }
    return RENYI_OK;
}
