/* status.h - how functions inside the library report errors. The function that detects an error
 * writes the message with the numbers it saw; its callers only return the status.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_STATUS_H
#define RY_STATUS_H

#include "renyi/renyi.h"

/* Fill *err (if given) and return `code`. `offset` is a byte offset in the input, or -1. */
renyi_status ry_fail(renyi_error *err, renyi_status code, int64_t offset, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Put "what: " in front of the message in *err; keeps its offset. */
renyi_status ry_fail_in(renyi_error *err, renyi_status code, const char *what);

/* Out of memory, with the size that was wanted. */
renyi_status ry_fail_nomem(renyi_error *err, size_t bytes);

/* Return on failure; only where nothing has to be freed. */
#define RY_TRY(expr)                           \
    do {                                       \
        const renyi_status ry_st_ = (expr);    \
        if (ry_st_ != RENYI_OK) return ry_st_; \
    } while (0)

#endif
