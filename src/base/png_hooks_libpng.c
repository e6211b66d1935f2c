/* png_hooks_libpng.c - memory and errors of libpng.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/png_hooks.h"

#include <stdio.h>

static void *take(png_structp lib, png_alloc_size_t size)
{
    ry_png_hooks *h = png_get_mem_ptr(lib);
    void *memory = ry_alloc(h->al, size, 1);
    if (!memory) h->wanted = size;
    return memory;
}

static void give_back(png_structp lib, void *memory)
{
    const ry_png_hooks *h = png_get_mem_ptr(lib);
    ry_free(h->al, memory);
}

static PNG_NORETURN void stop(png_structp lib, const char *reason)
{
    ry_png_hooks *h = png_get_error_ptr(lib);
    snprintf(h->reason, sizeof h->reason, "%s", reason);
    png_longjmp(lib, 1);
}

static void ignore_warning(png_structp lib, const char *text) { (void)lib, (void)text; }

png_structp ry_png_new(ry_png_hooks *hooks, int is_writer)
{
    const char *version = PNG_LIBPNG_VER_STRING;
    return is_writer ? png_create_write_struct_2(version, hooks, stop, ignore_warning, hooks, take,
                                                 give_back)
                     : png_create_read_struct_2(version, hooks, stop, ignore_warning, hooks, take,
                                                give_back);
}
