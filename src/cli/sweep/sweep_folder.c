/* sweep_folder.c - the folder of renyi sweep -o: results, page and charts, each whole or not there.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/files.h"
#include "cli/sweep/sweep_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *path)
{
    cli_error("%s: %s", path, strerror(errno));
    return -1;
}

static int write_file(const sweep_view *v, const char *name, const char *bytes, size_t size)
{
    char *path = cli_format("%s/%s", v->a->output, name);
    const int code = write_whole_file(path, bytes, size);

    free(path);
    return code;
}

static int write_json(const sweep_view *v)
{
    json_t *document = sweep_json(v);
    char *text = document ? json_dumps(document, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;

    json_decref(document);
    if (!text) {
        cli_error("results.json: no memory");
        return -1;
    }
    const int code = write_file(v, "results.json", text, strlen(text));
    free(text);
    return code;
}

static int write_csv(const sweep_view *v)
{
    char *text = sweep_csv(v);
    const int code = write_file(v, "results.csv", text, strlen(text));

    free(text);
    return code;
}

static int write_text(const sweep_view *v, const char *name, renyi_status status,
                      renyi_report_text *text, const renyi_error *err)
{
    if (status != RENYI_OK) {
        cli_error("%s: %s", name, err->message);
        return -1;
    }
    const int code = write_file(v, name, text->bytes, text->size);
    renyi_report_text_free(text);
    return code;
}

static int write_chart(const sweep_view *v, const char *name, renyi_chart chart)
{
    renyi_report_text text = {0};
    renyi_error err = {0};
    const renyi_status status = renyi_report_svg(&text, &v->report, chart, &err);

    return write_text(v, name, status, &text, &err);
}

static int write_page(const sweep_view *v)
{
    renyi_report_text text = {0};
    renyi_error err = {0};
    const renyi_status status = renyi_report_html(&text, &v->report, &err);

    return write_text(v, "report.html", status, &text, &err);
}

int sweep_folder_make(const sweep_arguments *a)
{
    if (!a->output) return 0;
    if (mkdir(a->output, 0777) && errno != EEXIST) return fail(a->output);
    char *path = cli_format("%s/results.csv.part", a->output);
    FILE *f = fopen(path, "wb");
    const int code = f ? 0 : fail(path);

    if (f) fclose(f), unlink(path);
    free(path);
    return code;
}

int sweep_folder_write(const sweep_view *v)
{
    if (!v->a->output) return 0;
    if (write_csv(v) || write_json(v) || write_page(v) ||
        write_chart(v, "accuracy-gmacs.svg", RENYI_CHART_GMACS) ||
        write_chart(v, "accuracy-ms.svg", RENYI_CHART_MS) ||
        write_chart(v, "tokens.svg", RENYI_CHART_TOKENS))
        return -1;
    cli_note("%s: results.csv, results.json, samples.jsonl, report.html, accuracy-gmacs.svg, "
             "accuracy-ms.svg, tokens.svg",
             v->a->output);
    return 0;
}
