/* cmd_flops.c - renyi flops: tokens and multiply-accumulates of policies, without running them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"
#include "cli/shared/prune_options.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct flops_result {
    char policy[RENYI_POLICY_MAX]; /* in full */
    renyi_cost cost;
    renyi_layer_cost *layers; /* [cost.n_blocks], owned */
} flops_result;

typedef struct flops_report {
    const char *architecture;
    flops_result dense;
    flops_result *results; /* [count] */
    size_t count;
} flops_report;

/* ---- text ---------------------------------------------------------------------------------- */

static double giga(double macs) { return macs * 1e-9; }

static void put_macs(const renyi_layer_cost *c)
{
    printf(" %10" PRIu64 " %9.3f %9.3f %9.3f\n", c->n_params, giga(c->macs_paper), giga(c->macs),
           giga(c->macs_executed));
}

static void put_layer(const char *name, const renyi_layer_cost *c)
{
    printf("%-8s %9u %7u %7u", name, c->tokens_in, c->tokens_mlp, c->tokens_out);
    put_macs(c);
}

/* The cost as a percentage of the dense cost. */
static void put_shares(const renyi_layer_cost *c, const renyi_layer_cost *dense)
{
    printf("%-44s %7.1f %% %7.1f %% %7.1f %%\n", "of dense",
           100.0 * c->macs_paper / dense->macs_paper, 100.0 * c->macs / dense->macs,
           100.0 * c->macs_executed / dense->macs_executed);
}

/* Only TCA has anchors, and only if it adapts: they are not part of the total. */
static int has_anchors(const flops_result *r) { return strncmp(r->policy, "tca ", 4) == 0; }

static int is_cascade(const flops_result *r) { return r->cost.second.macs > 0; }

/* What an image costs that needs one pass. */
static renyi_layer_cost least_cost(const flops_result *r)
{
    renyi_layer_cost c = r->cost.total;

    c.macs_paper -= r->cost.second.macs_paper;
    c.macs -= r->cost.second.macs;
    c.macs_executed -= r->cost.second.macs_executed;
    return c;
}

/* A cascade costs more for images that need both passes. */
static void put_passes(const flops_report *report, const flops_result *r)
{
    const renyi_layer_cost least = least_cost(r);

    printf("%-34s", "least: the first pass alone");
    put_macs(&least);
    put_shares(&least, &report->dense.cost.total);
    printf("%-34s", "second pass: on top");
    put_macs(&r->cost.second);
    printf("%-34s", "most: both passes");
    put_macs(&r->cost.total);
    put_shares(&r->cost.total, &report->dense.cost.total);
}

static void put_one(const flops_report *report)
{
    const flops_result *r = &report->results[0];
    char name[16];

    printf("%-8s %9s %7s %7s %10s %9s %9s %9s\n", "", "tokens", "tokens", "tokens", "", "GMACs",
           "GMACs", "GMACs");
    printf("%-8s %9s %7s %7s %10s %9s %9s %9s\n", "layer", "in", "in MLP", "out", "parameters",
           "paper", "plain", "executed");
    printf("%-34s", "embed");
    put_macs(&r->cost.embed);
    for (uint32_t i = 0; i < r->cost.n_blocks; i++) {
        snprintf(name, sizeof name, "%" PRIu32, i);
        put_layer(name, &r->layers[i]);
    }
    printf("%-34s", "head");
    put_macs(&r->cost.head);
    if (is_cascade(r)) {
        put_passes(report, r);
        return;
    }
    printf("%-34s", "total");
    put_macs(&r->cost.total);
    put_shares(&r->cost.total, &report->dense.cost.total);
    if (!has_anchors(r)) return;
    printf("%-34s %10s %9.3f %9.3f %9.3f\n", "anchors, when it adapts: on top", "",
           giga(r->cost.anchors.macs_paper), giga(r->cost.anchors.macs),
           giga(r->cost.anchors.macs_executed));
}

static uint32_t tokens_left(const flops_result *r)
{
    return r->cost.n_blocks ? r->layers[r->cost.n_blocks - 1].tokens_out : 0;
}

static void put_row(const flops_result *r, const renyi_layer_cost *c, const renyi_layer_cost *dense)
{
    printf("%9.3f %6.1f %% %9.3f %6.1f %% %9.3f %6.1f %% %7" PRIu32 "  ", giga(c->macs_paper),
           100.0 * c->macs_paper / dense->macs_paper, giga(c->macs), 100.0 * c->macs / dense->macs,
           giga(c->macs_executed), 100.0 * c->macs_executed / dense->macs_executed, tokens_left(r));
    puts(r->policy);
}

static void put_comparison(const flops_report *report)
{
    const renyi_layer_cost *dense = &report->dense.cost.total;

    printf("%9s %8s %9s %8s %9s %8s %7s\n", "GMACs", "of", "GMACs", "of", "GMACs", "of", "tokens");
    printf("%9s %8s %9s %8s %9s %8s %7s  %s\n", "paper", "dense", "plain", "dense", "executed",
           "dense", "left", "policy");
    put_row(&report->dense, dense, dense);
    for (size_t i = 0; i < report->count; i++) {
        const flops_result *r = &report->results[i];
        const renyi_layer_cost least = least_cost(r);
        if (is_cascade(r)) printf("at least, for images that need one pass:\n");
        put_row(r, &least, dense);
        if (!is_cascade(r)) continue;
        printf("at most, for images that need both:\n");
        put_row(r, &r->cost.total, dense);
    }
}

/* One policy block by block; several compared. */
static void put_text(const flops_report *report)
{
    cli_put_clean(stdout, report->architecture);
    printf(": %" PRIu64 " parameters\n", report->dense.cost.total.n_params);
    if (report->count > 1) {
        put_comparison(report);
        return;
    }
    puts(report->results[0].policy);
    put_one(report);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Adds the costs of `c` to an object. */
static json_t *add_macs(json_t *out, const renyi_layer_cost *c)
{
    json_object_set_new(out, "params", json_integer((json_int_t)c->n_params));
    json_object_set_new(out, "gmacs_paper", json_number(giga(c->macs_paper)));
    json_object_set_new(out, "gmacs", json_number(giga(c->macs)));
    json_object_set_new(out, "gmacs_executed", json_number(giga(c->macs_executed)));
    return out;
}

static json_t *layers_json(const flops_result *r)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < r->cost.n_blocks; i++) {
        const renyi_layer_cost *c = &r->layers[i];
        json_t *layer =
            json_pack("{s:i, s:i, s:i, s:i}", "layer", (int)i, "tokens_in", (int)c->tokens_in,
                      "tokens_mlp", (int)c->tokens_mlp, "tokens_out", (int)c->tokens_out);
        json_array_append_new(list, add_macs(layer, c));
    }
    return list;
}

static json_t *result_json(const flops_report *report, const flops_result *r)
{
    json_t *out = json_pack("{s:o, s:s}", "architecture", json_text(report->architecture), "policy",
                            r->policy);

    add_macs(out, &r->cost.total);
    json_object_set_new(out, "tokens_left", json_integer(tokens_left(r)));
    json_object_set_new(out, "dense", add_macs(json_object(), &report->dense.cost.total));
    json_object_set_new(out, "embed", add_macs(json_object(), &r->cost.embed));
    json_object_set_new(out, "layers", layers_json(r));
    json_object_set_new(out, "head", add_macs(json_object(), &r->cost.head));
    if (has_anchors(r))
        json_object_set_new(out, "anchors", add_macs(json_object(), &r->cost.anchors));
    if (is_cascade(r)) {
        const renyi_layer_cost least = least_cost(r);
        json_object_set_new(out, "least", add_macs(json_object(), &least));
        json_object_set_new(out, "second", add_macs(json_object(), &r->cost.second));
    }
    return out;
}

static void put_json(const flops_report *report)
{
    if (report->count == 1) {
        json_print(result_json(report, &report->results[0]));
        return;
    }
    json_t *results = json_array();
    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(results, result_json(report, &report->results[i]));
    json_print(json_pack("{s:o, s:o}", "architecture", json_text(report->architecture), "results",
                         results));
}

/* ---- the costs ----------------------------------------------------------------------------- */

typedef struct flops_arguments {
    const char *model, *arch;
    uint64_t image_size;
    int json;
    prune_options prune;
} flops_arguments;

/* An open model, or an architecture by its name. */
typedef struct flops_subject {
    renyi_model *model;
    char *name;
} flops_subject;

/* "vit_base_patch16_224" at 384 pixels is "vit_base_patch16_384". Owned. */
static char *arch_at(const char *arch, uint64_t image_size)
{
    const char *last = strrchr(arch, '_');

    if (!image_size || !last) return cli_copy(arch);
    return cli_format("%.*s_%llu", (int)(last - arch), arch, (unsigned long long)image_size);
}

static int open_subject(const flops_arguments *a, flops_subject *subject)
{
    const renyi_options opt = model_options(NULL, NULL, a->image_size);
    renyi_model_info info;

    if (a->arch) {
        subject->name = arch_at(a->arch, a->image_size);
        return 0;
    }
    subject->model = model_open_reported(a->model, &opt, &info);
    if (!subject->model) return -1;
    subject->name = cli_copy(info.architecture);
    return 0;
}

/* The cost of one policy, in total and of each block. */
static renyi_status find_cost(const flops_subject *s, const char *text, flops_result *out,
                              renyi_error *err)
{
    const char *arch = s->model ? NULL : s->name;
    renyi_status rc = renyi_policy_check(text, s->model, out->policy, sizeof out->policy, err);

    if (rc == RENYI_OK) rc = renyi_policy_cost(s->model, arch, text, &out->cost, NULL, 0, err);
    if (rc != RENYI_OK) return rc;
    out->layers = cli_alloc(out->cost.n_blocks, sizeof *out->layers);
    return renyi_policy_cost(s->model, arch, text, &out->cost, out->layers, out->cost.n_blocks,
                             err);
}

static int find_costs(const flops_subject *s, const cli_strings *texts, flops_report *report)
{
    renyi_error err = {0};
    const renyi_status rc = find_cost(s, "none", &report->dense, &err);

    if (rc == RENYI_ERR_ARG) return options_usage_error("flops", "%s", err.message);
    if (rc != RENYI_OK) return prune_error("flops", "none", &err);
    for (size_t i = 0; i < texts->count; i++) {
        report->count++;
        if (find_cost(s, texts->items[i], &report->results[i], &err) != RENYI_OK)
            return prune_error("flops", texts->items[i], &err);
    }
    return CLI_OK;
}

static int count_flops(const flops_arguments *a, const cli_strings *texts)
{
    flops_subject subject = {0};
    flops_report report = {0};
    int code = CLI_FAILED;

    if (open_subject(a, &subject) == 0) {
        report.architecture = subject.name;
        report.results = cli_alloc(texts->count, sizeof *report.results);
        code = find_costs(&subject, texts, &report);
    }
    if (code == CLI_OK) (a->json ? put_json : put_text)(&report);
    for (size_t i = 0; i < report.count; i++) free(report.results[i].layers);
    free(report.results);
    free(report.dense.layers);
    free(subject.name);
    renyi_model_free(subject.model);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

static option_outcome parse_options(flops_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL", MODEL_HELP_BUILTIN, 0, 0},
        {"arch", 'a', OPTION_STRING, &a->arch, "NAME",
         "an architecture by name, e.g. vit_small_patch16_224", 0, 0},
        SIZE_OPTION_ROWS(a),
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document", 0, 0},
        PRUNE_OPTION_ROWS(&a->prune),
    };
    const verb_syntax syntax = {
        "flops", "[-m MODEL | --arch NAME] [--prune POLICY]... [options]",
        "Counts the tokens, parameters and multiply-accumulates (MACs) of a policy, block by block and in\n"
        "total, and compares several policies. Three columns: 'paper' counts as the papers' GFLOPs do\n"
        "(products, and 5 per input value of a LayerNorm), 'plain' counts the products, and 'executed' the\n"
        "products that a run computes.",
        "  renyi flops --arch vit_small_patch16_224 --prune 'evit keep=0.7 layers=0,3,6 fuse'\n"
        "  renyi flops --arch vit_base_patch16_224 --prune mosaic --prune evit --keep 0.7 --layers 3,6,9\n"
        "  renyi flops -m model.safetensors -p 16 --layers 0-5 --json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_flops(int argc, char **argv)
{
    flops_arguments a = {0};
    cli_strings arguments = {0}, texts = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        if (arguments.count)
            options_usage_error("flops", "unexpected '%s' (a model is given with -m)",
                                arguments.items[0]);
        else if (a.model && a.arch)
            options_usage_error("flops", "-m MODEL or --arch NAME, not both");
        else if ((code = prune_policies("flops", &a.prune, &texts)) == CLI_OK) {
            if (!a.arch) a.model = model_or_builtin(a.model);
            code = count_flops(&a, &texts);
        }
    }
    prune_options_free(&a.prune);
    cli_strings_free(&texts);
    cli_strings_free(&arguments);
    return code;
}
