/* quantize_lm_file.c - see quantize_lm_file.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/quantize_lm_file.h"

#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/shared/model_path.h"

#include "renyi/lm.h"
#include "renyi/quantize.h"
#include <stdlib.h>
#include <string.h>

static int failure(const renyi_error *err)
{
    cli_error("%s", err->message[0] ? err->message : renyi_status_name(err->code));
    return CLI_FAILED;
}

static void report(const char *model, const char *out, const renyi_lm_info *info,
                   const renyi_quantize_result *r, int json)
{
    if (json) {
        json_print(json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:I, s:I}", "model", json_text(model),
                             "output", json_text(out), "dtype", renyi_dtype_name(info->dtype),
                             "weights", (json_int_t)r->n_quantised, "parameters",
                             (json_int_t)info->n_params, "bytes_in_memory", (json_int_t)info->bytes,
                             "bytes_before", (json_int_t)r->bytes_in, "bytes_after",
                             (json_int_t)r->bytes_out));
        return;
    }
    cli_put_clean(stdout, out);
    printf(": language model of %.2f G parameters\n  %u matrices in %s, %.1f -> %.1f MB (%.2f x "
           "smaller)\n",
           (double)info->n_params * 1e-9, r->n_quantised, renyi_dtype_name(info->dtype),
           (double)r->bytes_in * 1e-6, (double)r->bytes_out * 1e-6,
           (double)r->bytes_in / (double)r->bytes_out);
}

/* The finished file is opened once: it is known to load. */
static int check_and_report(const char *model, const char *out, const renyi_quantize_result *r,
                            int json)
{
    renyi_lm *lm = NULL;
    renyi_lm_info info;
    renyi_error err = {0};

    if (renyi_lm_open(&lm, out, NULL, &err) != RENYI_OK) return failure(&err);
    renyi_lm_get_info(lm, &info);
    report(model, out, &info, r, json);
    renyi_lm_free(lm);
    return CLI_OK;
}

int quantize_lm(const char *model, const char *out, const char *bits, int json)
{
    work_progress p = {.title = "write"};
    const int is_int4 = strcmp(bits, "int4") == 0;
    const renyi_lm_quantize_options o = {.struct_size = sizeof o,
                                         .dtype = is_int4 ? RENYI_DTYPE_INT4 : RENYI_DTYPE_INT8,
                                         .progress = work_on_progress,
                                         .progress_user = &p};
    renyi_quantize_result result = {0};
    renyi_error err = {0};
    char *path = model_path_resolve(model);

    if (!path) return CLI_FAILED;
    catch_interrupt();
    const renyi_status st = renyi_lm_quantize(path, out, &o, &result, &err);
    work_progress_free(&p);
    free(path);
    return st == RENYI_OK ? check_and_report(model, out, &result, json) : failure(&err);
}
