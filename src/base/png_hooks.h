/* png_hooks.h - what reader and writer share in builds with libpng: its errors become a text,
 * and its memory comes from an allocator.
 * SPDX-License-Identifier: Apache-2.0
 *
 * libpng reports errors by longjmp. A function that calls it begins with
 * `if (setjmp(png_jmpbuf(lib))) return -1;` and changes no local variable after that.
 */
#ifndef RY_PNG_HOOKS_H
#define RY_PNG_HOOKS_H

#include "base/alloc.h"

#include <png.h>

typedef struct ry_png_hooks {
    const renyi_allocator *al; /* NULL = the C heap */
    size_t wanted;             /* bytes that could not be allocated; 0 = memory did not run out */
    char reason[96];           /* of the last error */
} ry_png_hooks;

/* `hooks` must live as long as the result. Freed by png_destroy_*_struct. NULL = no memory. */
png_structp ry_png_new(ry_png_hooks *hooks, int is_writer);

#endif
