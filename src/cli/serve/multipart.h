/* multipart.h - reads the parts of a multipart/form-data body (RFC 7578) that is whole in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_MULTIPART_H
#define RENYI_MULTIPART_H

#include <stddef.h>

enum { MULTIPART_BOUNDARY = 70, MULTIPART_PARTS = 4096, MULTIPART_HEADER = 8192 };

/* The boundary that a Content-Type names. 0, or -1 if it is not multipart/form-data with a valid
 * boundary. */
int multipart_boundary(const char *content_type, char boundary[MULTIPART_BOUNDARY + 1]);

/* A part. All pointers are into the body; texts have no NUL behind them. */
typedef struct multipart_part {
    const char *name;
    size_t n_name;
    const char *filename; /* NULL = a field, not a file */
    size_t n_filename;
    const unsigned char *bytes;
    size_t size;
} multipart_part;

typedef struct multipart {
    const unsigned char *at, *end;          /* what is left of the body */
    char delimiter[MULTIPART_BOUNDARY + 5]; /* "\r\n--boundary" */
    size_t n_delimiter, n_parts;
    const char *why; /* after a failure: a static string */
} multipart;

/* Borrows the body. 0, or -1 with m->why. */
int multipart_begin(multipart *m, const char *boundary, const void *body, size_t size);
/* 1 and the next part; 0 at the end; -1 with m->why. */
int multipart_next(multipart *m, multipart_part *out);

#endif
