/* files.h - whole files in and out, folders, and the folder for files that can be made again.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_FILES_H
#define RENYI_FILES_H

#include "cli/kit/cli.h"

typedef struct file_bytes {
    unsigned char *data; /* owned, with a NUL after the last byte; NULL on failure */
    size_t size;
} file_bytes;

/* "-" is stdin. On failure returns -1 and *why (owned) says what is wrong, without the name. */
int read_file(const char *path, size_t max_bytes, file_bytes *out, char **why);

/* The lines of a file, empty ones too, without their line ends. Failure as above. */
int read_lines(const char *path, size_t max_bytes, cli_strings *lines, char **why);

/* 0, or -1 after reporting; an older file of that name then stays as it was. `put` writes the bytes
 * to a stream in memory. */
int write_whole_file(const char *path, const char *bytes, size_t size);
int write_stream_file(const char *path, void (*put)(FILE *f, const void *user), const void *user);

/* Could write_whole_file create it? Asked before long work; changes nothing. 0, or -1 after
 * reporting. */
int check_writable(const char *path);

/* Models are not replaced without --force. 0, or -1 after reporting that the file exists. */
int check_absent(const char *path, int force);

/* Makes a folder and those above it. 0, or -1 with errno set. */
int make_directories(const char *path);

/* $XDG_CACHE_HOME/renyi/<name>, else ~/.cache/renyi/<name>; made if needed. Owned; NULL if there is
 * none, which --verbose explains. */
char *user_cache_folder(const char *name);

#endif
