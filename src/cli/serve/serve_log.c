/* serve_log.c - one line per request on stderr, as text or JSON. Paths are cleaned, and keys,
 * queries, texts and images are never written (serve.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/serve/serve.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *log_form = "text";

void log_open(const char *form) { log_form = form; }

/* 2026-01-31T23:59:59.123Z */
static void put_time(char out[40])
{
    struct timespec now;
    struct tm utc;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    const size_t n = strftime(out, 40, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + n, 40 - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

/* One call per line, so that lines of several threads do not mix. */
static void put_json(json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;

    json_decref(line);
    if (text) fprintf(stderr, "%s\n", text);
    free(text);
}

void log_put(const log_request *r)
{
    char when[40];

    if (strcmp(log_form, "none") == 0 || cli_is_quiet()) return;
    put_time(when);
    if (strcmp(log_form, "json") == 0) {
        put_json(json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:i, s:f, s:i, s:o, s:o}", "time", when,
                           "event", "request", "id", (json_int_t)r->id, "address",
                           json_text(r->address), "method", json_text(r->method), "path",
                           json_text(r->path), "status", r->status, "ms", r->ms, "inputs",
                           (int)r->n_inputs, "model", json_text(r->model), "reason",
                           json_text(r->reason)));
        return;
    }
    char *path = cli_clean(r->path), *method = cli_clean(r->method);
    fprintf(stderr, "%s %s %s %s %d %.1f ms%s%s%s%s\n", when, r->address, method, path, r->status,
            r->ms, r->model ? " model=" : "", r->model ? r->model : "", r->reason ? " reason=" : "",
            r->reason ? r->reason : "");
    free(path);
    free(method);
}

void log_event(const char *fmt, ...)
{
    char text[400], when[40];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (strcmp(log_form, "json") != 0) {
        cli_note("%s", text);
        return;
    }
    put_time(when);
    put_json(
        json_pack("{s:s, s:s, s:o}", "time", when, "event", "server", "message", json_text(text)));
}
