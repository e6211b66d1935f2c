/* flops_report.c - see flops_report.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/model/flops_report.h"

#include "cli/kit/cli.h"
#include "cli/kit/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* What is left of the dense cost, in percent. */
static void put_shares(const renyi_layer_cost *c, const renyi_layer_cost *dense)
{
    printf("%-44s %7.1f %% %7.1f %% %7.1f %%\n", "of dense",
           100.0 * c->macs_paper / dense->macs_paper, 100.0 * c->macs / dense->macs,
           100.0 * c->macs_executed / dense->macs_executed);
}

/* Only TCA has anchors, and only where it adapts: they stand apart from the total. */
static int has_anchors(const flops_result *r) { return strncmp(r->policy, "tca ", 4) == 0; }

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

static void put_row(const flops_result *r, const renyi_layer_cost *dense)
{
    const renyi_layer_cost *c = &r->cost.total;

    printf("%9.3f %6.1f %% %9.3f %6.1f %% %9.3f %6.1f %% %7" PRIu32 "  ", giga(c->macs_paper),
           100.0 * c->macs_paper / dense->macs_paper, giga(c->macs), 100.0 * c->macs / dense->macs,
           giga(c->macs_executed), 100.0 * c->macs_executed / dense->macs_executed, tokens_left(r));
    puts(r->policy);
}

static void put_comparison(const flops_report *report)
{
    printf("%9s %8s %9s %8s %9s %8s %7s\n", "GMACs", "of", "GMACs", "of", "GMACs", "of", "tokens");
    printf("%9s %8s %9s %8s %9s %8s %7s  %s\n", "paper", "dense", "plain", "dense", "executed",
           "dense", "left", "policy");
    put_row(&report->dense, &report->dense.cost.total);
    for (size_t i = 0; i < report->count; i++)
        put_row(&report->results[i], &report->dense.cost.total);
}

void flops_put_text(const flops_report *report)
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

/* The figures of `c` into an object. */
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
    return out;
}

void flops_put_json(const flops_report *report)
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
