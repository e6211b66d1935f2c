/* viz_draw.c - the drawings of renyi viz: page and figures in files, figures in a terminal.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/files.h"
#include "cli/viz/viz_arguments.h"

#include "renyi/viz.h"
#include <stdlib.h>
#include <string.h>

/* ---- the terminal
 * -------------------------------------------------------------------------------- */

static int is_set(const char *name, const char *value)
{
    const char *text = getenv(name);

    return text && (!value || strcmp(text, value) == 0);
}

/* By --graphics, else by the environment. */
static renyi_terminal find_terminal(const char *name)
{
    if (name && strcmp(name, "auto") != 0)
        return strcmp(name, "kitty") == 0    ? RENYI_TERMINAL_KITTY
               : strcmp(name, "iterm2") == 0 ? RENYI_TERMINAL_ITERM2
                                             : RENYI_TERMINAL_BLOCKS;
    if (is_set("TMUX", NULL) || is_set("STY", NULL)) return RENYI_TERMINAL_BLOCKS;
    if (is_set("KITTY_WINDOW_ID", NULL) || is_set("TERM", "xterm-kitty") ||
        is_set("TERM", "xterm-ghostty") || is_set("TERM_PROGRAM", "ghostty"))
        return RENYI_TERMINAL_KITTY;
    if (is_set("TERM_PROGRAM", "iTerm.app") || is_set("TERM_PROGRAM", "WezTerm") ||
        is_set("TERM_PROGRAM", "mintty"))
        return RENYI_TERMINAL_ITERM2;
    return RENYI_TERMINAL_BLOCKS;
}

const char *viz_format(const char *path)
{
    static const char *const endings[] = {"html", "png", "svg"};
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot && i < 3; i++)
        if (strcmp(dot + 1, endings[i]) == 0) return endings[i];
    return NULL;
}

static renyi_figure_options figure_options(const viz_view *v)
{
    const viz_arguments *a = v->a;
    renyi_figure_options o = {.struct_size = sizeof o,
                              .tiles = v->tiles,
                              .is_dark = a->dark != 0,
                              .cell = (uint32_t)a->cell,
                              .scale = a->scale.given ? a->scale.values[0] : 0.0,
                              .opacity = a->opacity.given ? a->opacity.values[0] : 0.0,
                              .head = viz_head(a->attention),
                              .title = a->title};

    if (a->colours && strcmp(a->colours, "red-blue") == 0) o.colours = RENYI_COLOURS_RED_BLUE;
    for (int kind = 0; renyi_figure_name((renyi_figure_kind)kind); kind++)
        if (strcmp(renyi_figure_name((renyi_figure_kind)kind), a->figure) == 0)
            o.kind = (renyi_figure_kind)kind;
    return o;
}

/* ---- files --------------------------------------------------------------------------------- */

static int write_file(const char *path, renyi_status st, const char *bytes, size_t size,
                      const renyi_error *err)
{
    if (st) {
        cli_error("%s: %s", path, err->message);
        return -1;
    }
    if (write_whole_file(path, bytes, size)) return -1;
    cli_note("%s: %zu bytes", path, size);
    return 0;
}

/* A page shows base and tiles of a LLaVA-NeXT one by one, as images of their own. */
typedef struct page_images {
    renyi_viz_result *bases;         /* [n] copies with a longer name */
    const renyi_viz_result **images; /* [n_images] */
    size_t n, n_images;
} page_images;

static page_images list_images(const viz_view *v)
{
    page_images p = {.n = v->n, .bases = cli_alloc(v->n, sizeof *p.bases)};

    for (size_t i = 0; i < v->n; i++) {
        const renyi_viz_tiles *t = v->tiles ? v->tiles[i] : NULL;
        p.n_images += 1 + (t ? t->across * t->down : 0);
    }
    p.images = cli_alloc(p.n_images, sizeof *p.images);
    p.n_images = 0;
    for (size_t i = 0; i < v->n; i++) {
        const renyi_viz_tiles *t = v->tiles ? v->tiles[i] : NULL;
        p.bases[i] = *v->images[i];
        p.bases[i].photo.name = cli_format(t ? "base of %s" : "%s", v->images[i]->photo.name);
        p.images[p.n_images++] = &p.bases[i];
        for (uint32_t k = 0; t && k < t->across * t->down; k++)
            p.images[p.n_images++] = t->squares[k];
    }
    return p;
}

static void free_images(page_images *p)
{
    for (size_t i = 0; i < p->n; i++) free((void *)(uintptr_t)p->bases[i].photo.name);
    free(p->bases);
    free(p->images);
}

static int draw_page(const viz_view *v, const char *path)
{
    page_images list = list_images(v);
    const renyi_viz_page page = {.struct_size = sizeof page,
                                 .n_photos = (uint32_t)list.n_images,
                                 .photos = list.images,
                                 .title = v->a->title,
                                 .command = v->a->command};
    renyi_report_text text = {0};
    renyi_error err = {0};
    const renyi_status st = renyi_viz_html(&text, &page, &err);
    const int code = write_file(path, st, text.bytes, text.size, &err);

    renyi_report_text_free(&text);
    free_images(&list);
    return code;
}

static int draw_figure(const viz_view *v, const char *path, int is_svg)
{
    const renyi_figure_options o = figure_options(v);
    renyi_figure_file file = {0};
    renyi_error err = {0};
    const renyi_status st = is_svg ? renyi_figure_svg(&file, v->images, v->n, &o, &err)
                                   : renyi_figure_png(&file, v->images, v->n, &o, &err);
    const int code = write_file(path, st, file.bytes, file.size, &err);

    renyi_figure_free(&file);
    return code;
}

/* ---- stdout -------------------------------------------------------------------------------- */

static int draw_stdout(const viz_view *v)
{
    const renyi_figure_options o = figure_options(v);
    renyi_figure_file file = {0};
    renyi_error err = {0};
    const renyi_status st =
        v->a->svg ? renyi_figure_svg(&file, v->images, v->n, &o, &err)
                  : renyi_figure_terminal(&file, v->images, v->n, &o, find_terminal(v->a->graphics),
                                          cli_columns(20, 1000), &err);

    if (st) cli_error("%s", err.message);
    if (!st) fwrite(file.bytes, 1, file.size, stdout); /* cli_finish_output reports a failure */
    renyi_figure_free(&file);
    return st ? -1 : 0;
}

int viz_draw(const viz_view *v)
{
    for (size_t i = 0; i < v->a->outputs.count; i++) {
        const char *path = v->a->outputs.items[i], *format = viz_format(path);
        const int bad = strcmp(format, "html") == 0
                            ? draw_page(v, path)
                            : draw_figure(v, path, strcmp(format, "svg") == 0);
        if (bad) return -1;
    }
    return v->a->term || v->a->svg ? draw_stdout(v) : 0;
}
