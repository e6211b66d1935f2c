/* status.c - error messages and the names of status codes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include "base/visible.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

renyi_status ry_fail(renyi_error *err, renyi_status code, int64_t offset, const char *fmt, ...)
{
    if (err) {
        char text[sizeof err->message];
        va_list ap;
        err->code = code;
        err->offset = offset;
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        /* Names of files and tensors may hide anything; a message is one line. */
        ry_visible_copy(err->message, sizeof err->message, text);
    }
    return code;
}

renyi_status ry_fail_in(renyi_error *err, renyi_status code, const char *what)
{
    if (err) {
        char inner[sizeof err->message];
        memcpy(inner, err->message, sizeof inner);
        return ry_fail(err, code, err->offset, "%s: %s", what, inner);
    }
    return code;
}

renyi_status ry_fail_nomem(renyi_error *err, size_t bytes)
{
    return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory: %zu bytes wanted", bytes);
}

const char *renyi_status_name(renyi_status s)
{
    switch (s) {
    case RENYI_OK: return "ok";
    case RENYI_ERR_ARG: return "bad argument";
    case RENYI_ERR_NOMEM: return "out of memory";
    case RENYI_ERR_IO: return "input/output error";
    case RENYI_ERR_FORMAT: return "bad format";
    case RENYI_ERR_UNSUPPORTED: return "unsupported";
    case RENYI_ERR_LIMIT: return "over a limit";
    case RENYI_ERR_ABORTED: return "aborted";
    }
    return "unknown status";
}

#define STR2(x) #x
#define STR(x) STR2(x)

const char *renyi_version(void)
{
    return STR(RENYI_VERSION_MAJOR) "." STR(RENYI_VERSION_MINOR) "." STR(RENYI_VERSION_PATCH);
}
