/* builtin.c - includes the built-in model, the file RY_BUILTIN_FILE, in the read-only data. The
 * assembler copies the file; as a C array, megabytes of numbers would take a minute to compile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/builtin.h"

#ifdef RY_BUILTIN_FILE

/* .hidden: the library exports only renyi_* */
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".globl ry_builtin_begin\n"
        ".hidden ry_builtin_begin\n"
        ".globl ry_builtin_end\n"
        ".hidden ry_builtin_end\n"
        "ry_builtin_begin:\n"
        ".incbin \"" RY_BUILTIN_FILE "\"\n"
        "ry_builtin_end:\n"
        ".byte 0\n"
        ".popsection\n");

extern const unsigned char ry_builtin_begin[], ry_builtin_end[];

const void *ry_builtin_file(size_t *size)
{
    *size = (size_t)(ry_builtin_end - ry_builtin_begin);
    return ry_builtin_begin;
}

#else

const void *ry_builtin_file(size_t *size)
{
    *size = 0;
    return NULL;
}

#endif
