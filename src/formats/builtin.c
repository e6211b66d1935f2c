/* builtin.c - includes the built-in model, the file RY_BUILTIN_FILE, in the read-only data. The
 * assembler copies the file; as a C array, megabytes of numbers would take a minute to compile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/builtin.h"

#ifdef RY_BUILTIN_FILE

/* Hidden: the library exports only renyi_*. The object files of macOS name things otherwise. */
#ifdef __APPLE__
#define SECTION ".section __TEXT,__const\n"
#define SYMBOL(name) "_" name
#define HIDDEN ".private_extern "
#define BACK ".text\n"
#else
#define SECTION ".pushsection .rodata\n"
#define SYMBOL(name) name
#define HIDDEN ".hidden "
#define BACK ".popsection\n"
#endif
#define DECLARE(name) ".globl " SYMBOL(name) "\n" HIDDEN SYMBOL(name) "\n"
#define LABEL(name) SYMBOL(name) ":\n"
#define COPY ".incbin \"" RY_BUILTIN_FILE "\"\n"
#define BEGIN DECLARE("ry_builtin_begin") LABEL("ry_builtin_begin")
#define END DECLARE("ry_builtin_end") LABEL("ry_builtin_end")
__asm__(SECTION ".balign 64\n" BEGIN COPY END ".byte 0\n" BACK);

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
