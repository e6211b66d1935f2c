/* cmd_quantize.c - renyi quantize: a model in int8 or a language model in int8 or int4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/files.h"
#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"

#include "renyi/lm.h"
#include "renyi/quantize.h"
#include <stdlib.h>
#include <string.h>

typedef struct quantize_arguments {
    const char *model, *out, *calib, *range, *lm;
    uint64_t images, seed, batch, threads;
    option_reals percentile, spread;
    int exif, json, force;
} quantize_arguments;

/* ---- calibration --------------------------------------------------------------------------- */

static renyi_range_rule rule_of(const quantize_arguments *a)
{
    return strcmp(a->range, "max") == 0 ? RENYI_RANGE_MAX : RENYI_RANGE_PERCENTILE;
}

/* Runs the model on the first `images` images of a shuffled order. */
static renyi_status run_images(const quantize_arguments *a, renyi_calibration *c,
                               const renyi_model *m, work_progress *p, renyi_error *err)
{
    const renyi_dataset_options d = {.struct_size = sizeof d,
                                     .unlabelled = 1,
                                     .shuffle = 1,
                                     .seed = a->seed,
                                     .limit = a->images,
                                     .on_note = image_note};
    const renyi_calibration_photos_options o = {.struct_size = sizeof o,
                                                .apply_exif = (uint32_t)a->exif,
                                                .user = p,
                                                .on_failure = work_on_failure,
                                                .progress = work_on_progress};
    renyi_dataset *data = NULL;
    renyi_status st = renyi_dataset_open(&data, a->calib, m, &d, err);

    if (st == RENYI_OK) st = renyi_calibration_photos(c, data, &o, err);
    work_progress_end(p);
    renyi_dataset_free(data);
    return st;
}

/* ---- the work ------------------------------------------------------------------------------ */

static void put_result(const quantize_arguments *a, const renyi_quantize_result *r,
                       const renyi_model_info *info)
{
    if (a->json) {
        json_print(json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "model",
                             json_text(a->model), "output", json_text(a->out), "architecture",
                             json_text(info->architecture), "quantization",
                             json_text(info->quantization), "weights", (json_int_t)r->n_quantized,
                             "ranges", (json_int_t)r->n_ranges, "bytes_before",
                             (json_int_t)r->bytes_in, "bytes_after", (json_int_t)r->bytes_out));
        return;
    }
    cli_print("%s: %s\n  %s\n  %u weights in 8 bits, %.1f -> %.1f MB (%.2f x smaller)\n", a->out,
              info->architecture, info->quantization, r->n_quantized, (double)r->bytes_in * 1e-6,
              (double)r->bytes_out * 1e-6, (double)r->bytes_in / (double)r->bytes_out);
}

/* Opens the finished file: it is known to load, and the report shows what it contains. */
static int check_file(const quantize_arguments *a, const renyi_quantize_result *r)
{
    const renyi_options opt = {.struct_size = sizeof opt};
    renyi_model *m = NULL;
    renyi_model_info info;
    renyi_error err = {0};

    if (renyi_model_open(&m, a->out, &opt, &err) != RENYI_OK) return cli_fail(&err);
    renyi_model_get_info(m, &info);
    put_result(a, r, &info);
    renyi_model_free(m);
    return CLI_OK;
}

static int write_quantized(const quantize_arguments *a, const char *path,
                           const renyi_calibration *c, renyi_quantize_result *result)
{
    work_progress p = {.title = "write"};
    renyi_error err = {0};
    const renyi_quantize_options o = {.struct_size = sizeof o,
                                      .calibration = c,
                                      .rule = rule_of(a),
                                      .percentile = a->percentile.values[0],
                                      .max_spread = a->spread.values[0],
                                      .progress = work_on_progress,
                                      .progress_user = &p};
    const renyi_status st = renyi_model_quantize(path, a->out, &o, result, &err);

    work_progress_free(&p);
    return st == RENYI_OK ? CLI_OK : cli_fail(&err);
}

/* Checked before calibration runs; without calibration the library reports it. */
static int is_quantized(const renyi_model *m, const char *name)
{
    renyi_model_info info;

    renyi_model_get_info(m, &info);
    if (info.quantization)
        cli_error("%s is quantized already (%s); use the original", name, info.quantization);
    return info.quantization != NULL;
}

static int quantize_calibrated(const quantize_arguments *a, const char *path,
                               renyi_quantize_result *result)
{
    const renyi_options open = {.struct_size = sizeof open, .dtype = RENYI_DTYPE_F32};
    const renyi_calibration_options o = {.struct_size = sizeof o,
                                         .max_batch = (uint32_t)a->batch,
                                         .n_threads = (uint32_t)a->threads};
    work_progress p = {.title = "calibrate"};
    renyi_calibration *c = NULL;
    renyi_model *m = NULL;
    renyi_error err = {0};
    renyi_status st = renyi_model_open(&m, path, &open, &err);

    if (st == RENYI_OK && is_quantized(m, a->model)) {
        renyi_model_free(m);
        return CLI_FAILED;
    }
    if (st == RENYI_OK) model_note_assumed(m, a->model);
    if (st == RENYI_OK) st = renyi_calibration_new(&c, m, &o, &err);
    if (st == RENYI_OK) st = run_images(a, c, m, &p, &err);
    int code = st == RENYI_OK ? write_quantized(a, path, c, result) : cli_fail(&err);
    if (code == CLI_OK && p.failed.count) code = CLI_PARTIAL;
    work_progress_free(&p);
    renyi_calibration_free(c);
    renyi_model_free(m);
    return code;
}

static int quantize_model(const quantize_arguments *a)
{
    renyi_quantize_result result = {0};
    char *path = model_path_resolve(a->model);

    if (!path) return CLI_FAILED;
    catch_interrupt();
    int code =
        a->calib ? quantize_calibrated(a, path, &result) : write_quantized(a, path, NULL, &result);
    free(path);
    if (code == CLI_OK || code == CLI_PARTIAL) {
        const int last = check_file(a, &result);
        if (last != CLI_OK) code = last;
    }
    return code;
}

/* ---- language models ----------------------------------------------------------------------- */

static void put_lm_result(const char *model, const char *out, const renyi_lm_info *info,
                          const renyi_quantize_result *r, int json)
{
    if (json) {
        json_print(json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:I, s:I}", "model", json_text(model),
                             "output", json_text(out), "dtype", renyi_dtype_name(info->dtype),
                             "weights", (json_int_t)r->n_quantized, "parameters",
                             (json_int_t)info->n_params, "bytes_in_memory", (json_int_t)info->bytes,
                             "bytes_before", (json_int_t)r->bytes_in, "bytes_after",
                             (json_int_t)r->bytes_out));
        return;
    }
    cli_put_clean(stdout, out);
    const int is_large = info->n_params >= 1000000000;
    printf(": language model of %.2f %c parameters\n  %u matrices in %s, %.1f -> %.1f MB (%.2f x "
           "smaller)\n",
           (double)info->n_params * (is_large ? 1e-9 : 1e-6), is_large ? 'G' : 'M', r->n_quantized,
           renyi_dtype_name(info->dtype), (double)r->bytes_in * 1e-6, (double)r->bytes_out * 1e-6,
           (double)r->bytes_in / (double)r->bytes_out);
}

/* Opens the finished file, so that it is known to load. */
static int check_lm_file(const char *model, const char *out, const renyi_quantize_result *r,
                         int json)
{
    renyi_lm *lm = NULL;
    renyi_lm_info info;
    renyi_error err = {0};

    if (renyi_lm_open(&lm, out, NULL, &err) != RENYI_OK) return cli_fail(&err);
    renyi_lm_get_info(lm, &info);
    put_lm_result(model, out, &info, r, json);
    renyi_lm_free(lm);
    return CLI_OK;
}

static int quantize_lm(const char *model, const char *out, const char *bits, int json)
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
    return st == RENYI_OK ? check_lm_file(model, out, &result, json) : cli_fail(&err);
}

/* ---- the command line ---------------------------------------------------------------------- */

static option_outcome parse_options(quantize_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL", MODEL_HELP, 0, 0},
        {"output", 'o', OPTION_STRING, &a->out, "FILE", "the .safetensors file to write", 0, 0},
        {"lm", 0, OPTION_CHOICE, &a->lm, "int8|int4",
         "quantize the language model of a LLaVA, or a Llama; the rest stays", 0, 0},
        {"calib", 0, OPTION_STRING, &a->calib, "IMAGES",
         "images that give the ranges of activations: folder or list (per token)", 0, 0},
        {"calib-limit", 0, OPTION_COUNT, &a->images, "N", "number of them, chosen at random (128)",
         1, 1000000},
        {"calib-range", 0, OPTION_CHOICE, &a->range, "max|percentile",
         "range of all numbers, or of most tokens (percentile)", 0, 0},
        {"percentile", 0, OPTION_REAL, &a->percentile, "P",
         "percentage of the tokens that the range covers at either end (99.9)", 0, 0},
        {"calib-spread", 0, OPTION_REAL, &a->spread, "R",
         "products with a range over R times the median token's stay per token (8)", 0, 0},
        {"seed", 0, OPTION_COUNT, &a->seed, "N", "seed of the random choice (0)", 0, 0},
        {"batch-size", 'b', OPTION_COUNT, &a->batch, "N", "images run together (8)", 1, 4096},
        {"threads", 't', OPTION_COUNT, &a->threads, "N", "threads (physical cores)", 1, 1024},
        {"exif", 0, OPTION_FLAG, &a->exif, "", "turn images by their EXIF orientation", 0, 0},
        {"force", 'f', OPTION_FLAG, &a->force, "", "replace the file of -o if it exists", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document on stdout", 0, 0},
    };
    const verb_syntax syntax = {
        "quantize", "-m MODEL [--calib IMAGES] -o OUT.safetensors [options]",
        "Writes a model with 8-bit weights: a quarter of the size, and it runs in int8 where that is faster.\n"
        "The file is complete (preprocessing and labels included), and every verb takes it with -m.\n"
        "With --lm the language model gets 8 or 4 bits; its file is mapped and runs without conversion. Put\n"
        "the tokenizer beside it.",
        "  renyi quantize -m timm/vit_small_patch16_224.augreg_in21k_ft_in1k -o small-int8.safetensors\n"
        "  renyi quantize -m model.safetensors --calib images/ --calib-limit 256 -o int8.safetensors\n"
        "  renyi quantize -m model.safetensors --calib list.csv --calib-range max -o int8.safetensors\n"
        "  renyi quantize -m llava-1.5-7b-hf/ --lm int4 -o int4/model.safetensors\n"
        "  renyi inspect int8.safetensors\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

/* 0, or CLI_USAGE after reporting. */
static int check_arguments(const quantize_arguments *a, const cli_strings *arguments)
{
    const double p = a->percentile.values[0];

    if (arguments->count)
        return options_usage_error("quantize", "unexpected '%s'", arguments->items[0]);
    if (!a->model) return options_usage_error("quantize", "-m MODEL is missing");
    if (!a->out) return options_usage_error("quantize", "-o OUT.safetensors is missing");
    if (a->lm && a->calib)
        return options_usage_error("quantize", "--calib is for vision models, not for --lm");
    if (a->percentile.given && rule_of(a) == RENYI_RANGE_MAX)
        return options_usage_error("quantize", "--percentile needs --calib-range percentile");
    if (a->percentile.given && !(p > 50.0 && p <= 100.0))
        return options_usage_error("quantize",
                                   "option '--percentile': %g is not above 50 and at most 100", p);
    if (a->spread.given && !(a->spread.values[0] >= 1.0))
        return options_usage_error("quantize", "option '--calib-spread': %g is not 1 or more",
                                   a->spread.values[0]);
    if (!a->calib && (a->percentile.given || a->spread.given || rule_of(a) == RENYI_RANGE_MAX))
        return options_usage_error("quantize", "--calib IMAGES is missing: they give the ranges");
    return 0;
}

int cmd_quantize(int argc, char **argv)
{
    quantize_arguments a = {.range = "percentile", .images = 128};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        code = check_arguments(&a, &arguments);
        if (!code && check_absent(a.out, a.force)) code = CLI_FAILED;
        if (!code) code = a.lm ? quantize_lm(a.model, a.out, a.lm, a.json) : quantize_model(&a);
    }
    cli_strings_free(&arguments);
    return code;
}
