/* write_file.h - a file that is whole or not there.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_WRITE_FILE_H
#define RENYI_WRITE_FILE_H

#include <stddef.h>

/* 0, or -1 after reporting what went wrong; an older file of that name is then as it was. */
int write_whole_file(const char *path, const char *bytes, size_t size);

#endif
