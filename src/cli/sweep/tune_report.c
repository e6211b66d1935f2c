/* tune_report.c - the results of a search: a table of the best, what to use, and JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/sweep/tune_report.h"

#include "cli/eval/eval_report.h"
#include "cli/kit/output.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_ROWS = 12 };

static const char unseen[] = " that the search never saw";

/* What to add to a command line for this candidate; owned. */
static char *arguments_of(const tune_report *r, const renyi_tune_candidate *c)
{
    const char *dtype = r->a->e.dtype ? renyi_dtype_name(c->dtype) : "";
    const char *flag = *dtype ? " --dtype " : "";

    return c->image_size == r->model->image_size
               ? cli_format("--prune '%s'%s%s", c->policy, flag, dtype)
               : cli_format("--prune '%s' --image-size %u%s%s", c->policy, c->image_size, flag,
                            dtype);
}

/* ---- the table and the choice -------------------------------------------------------------- */

static void put_confirmed(const renyi_tune_loss *l)
{
    char p_value[24];

    eval_put_real(8, 2, l->drop);
    if (l->images) {
        snprintf(p_value, sizeof p_value, l->p_value < 1e-4 ? "%.1e" : "%.4f", l->p_value);
        printf("  %6.2f to %5.2f  %7s", l->range.low, l->range.high, p_value);
    } else {
        printf("  %15s  %7s", "", "");
    }
}

static void put_row(const tune_report *r, const renyi_tune_candidate *c, int is_dense)
{
    static const char marks[] = {
        [RENYI_TUNE_COSTLY] = '-', [RENYI_TUNE_REFUTED] = 'x', [RENYI_TUNE_CHOSEN] = '*'};
    const char mark = is_dense && c->fate != RENYI_TUNE_CHOSEN ? ' ' : marks[c->fate];

    printf("%c", mark ? mark : ' ');
    eval_put_real(8, 2, c->ms);
    eval_put_real(9, 2, c->speedup);
    eval_put_real(8, 2, c->gmacs);
    printf("%6u", c->image_size);
    eval_put_real(9, 2, is_dense ? 0.0 : c->search.drop);
    eval_put_real(8, 1, is_dense ? 100.0 : c->search.agreement);
    eval_put_real(8, 2, is_dense ? 0.0 : c->estimate);
    if (r->a->goal == RENYI_TUNE_MAX_DROP) eval_put_real(8, 2, is_dense ? 1.0 : c->chance);
    put_confirmed(is_dense ? &(renyi_tune_loss){.drop = (double)NAN} : &c->confirmed);
    if (r->a->e.dtypes.n > 1) printf("  %-5s", renyi_dtype_name(c->dtype));
    printf("  %s\n", c->policy);
}

static void put_table(const tune_report *r, const renyi_tune_result *result)
{
    const int has_chance = r->a->goal == RENYI_TUNE_MAX_DROP;
    char search[48], confirm[48];

    snprintf(search, sizeof search, "search, %llu photos", (unsigned long long)result->n_search);
    snprintf(confirm, sizeof confirm, "confirmation, %llu others",
             (unsigned long long)result->n_confirm);
    printf("%s%33s%-*s%s\n", cli_bold(stdout), "", has_chance ? 36 : 28, search, confirm);
    printf("       ms  speed-up  GMACs  size     loss  same %%   estim.%s    loss       95 %% range"
           "        p  %spolicy%s\n",
           has_chance ? "  chance" : "", r->a->e.dtypes.n > 1 ? "dtype  " : "", cli_plain(stdout));
    for (size_t i = 0, rows = 0; i < renyi_tune_count(r->tune) && rows < MAX_ROWS; i++) {
        renyi_tune_candidate c;
        renyi_tune_get(r->tune, i, &c);
        const int is_missed = c.fate == RENYI_TUNE_COSTLY && c.rungs; /* in the second timing */
        if (i && c.fate < RENYI_TUNE_FINALIST && !is_missed) continue;
        put_row(r, &c, i == 0);
        rows++;
    }
}

static void put_fates(const tune_report *r, const renyi_tune_result *result)
{
    size_t n[RENYI_TUNE_CHOSEN + 1] = {0};
    const size_t count = renyi_tune_count(r->tune);

    for (size_t i = 1; i < count; i++) {
        renyi_tune_candidate c;
        renyi_tune_get(r->tune, i, &c);
        n[c.fate]++;
    }
    printf("\n%zu candidates and dense:", count - 1);
    if (n[RENYI_TUNE_MISFIT]) printf(" %zu do not fit the model,", n[RENYI_TUNE_MISFIT]);
    printf(" %zu cost too much, %zu were beaten with few photos, %zu saw all photos of the search; "
           "%.0f s\n",
           n[RENYI_TUNE_COSTLY], n[RENYI_TUNE_BEATEN],
           n[RENYI_TUNE_FINALIST] + n[RENYI_TUNE_REFUTED] + n[RENYI_TUNE_CHOSEN], result->seconds);
}

/* "1.63 times as fast as dense (6.10 instead of 9.92 ms per photo, batch 1)" */
static void put_speed(const tune_report *r, const renyi_tune_candidate *c)
{
    renyi_tune_candidate dense;

    renyi_tune_get(r->tune, 0, &dense);
    printf("%.2f times as fast as dense (%.2f instead of %.2f ms per photo, batch %llu)",
           c->speedup, c->ms, dense.ms, (unsigned long long)(r->a->e.batch ? r->a->e.batch : 1));
}

/* `which` images: " that the search never saw". */
static void put_loss(const tune_report *r, const renyi_tune_loss *l, const char *which)
{
    if (r->a->unlabelled)
        printf("%.2f %% of %llu photos%s answered otherwise (95 %% range %.2f to %.2f)", l->drop,
               (unsigned long long)l->images, which, l->range.low, l->range.high);
    else
        printf("%.2f points %s dense on %llu photos%s (95 %% range %.2f to %.2f, p = %.2g)",
               fabs(l->drop), l->drop < 0 ? "above" : "below", (unsigned long long)l->images, which,
               l->drop < 0 ? -l->range.high : l->range.low,
               l->drop < 0 ? -l->range.low : l->range.high, l->p_value);
}

static void put_chosen(const tune_report *r, const renyi_tune_result *result,
                       const renyi_tune_candidate *c)
{
    printf("Found: ");
    put_speed(r, c);
    printf(";\n       ");
    put_loss(r, &c->confirmed, unseen);
    printf(".\n");
    if (result->looks > 1)
        printf(
            "Note: it is number %u that was tried on these photos; those before lost more than %g "
            "there.\n      Who is picked from several looks better than it is: range and p do "
            "not account for that.\n",
            result->looks, r->a->bound);
    if (r->a->goal == RENYI_TUNE_MAX_DROP && c->confirmed.range.high > r->a->bound)
        printf("Note: these photos do not rule out a loss of more than %g; more of them would tell."
               "\n",
               r->a->bound);
}

/* The candidate nearest to the target, when none meets it. */
static void put_nearest(const tune_report *r, const renyi_tune_result *result)
{
    renyi_tune_candidate c;

    if (!result->nearest) return;
    renyi_tune_get(r->tune, result->nearest, &c);
    printf("Nearest: %s at %u%s%s: ", c.policy, c.image_size, r->a->e.dtypes.n > 1 ? ", " : "",
           r->a->e.dtypes.n > 1 ? renyi_dtype_name(c.dtype) : "");
    if (isfinite(c.ms))
        put_speed(r, &c);
    else
        printf("%.2f GMACs", c.gmacs);
    if (c.confirmed.images || c.search.images) {
        printf(";\n         ");
        if (c.confirmed.images)
            put_loss(r, &c.confirmed, unseen);
        else
            put_loss(r, &c.search, " of the search");
    }
    printf(".\n");
}

static void put_nothing(const tune_report *r)
{
    if (r->a->goal == RENYI_TUNE_TARGET_MS)
        cli_error("nothing takes at most %g ms per image here", r->a->bound);
    else
        cli_error("nothing has at most %g GMACs", r->a->bound);
}

void tune_report_text(const tune_report *r)
{
    renyi_tune_result result;
    renyi_tune_candidate c;

    renyi_tune_get_result(r->tune, &result);
    renyi_tune_get(r->tune, result.chosen, &c);
    put_table(r, &result);
    put_fates(r, &result);
    if (!result.is_found) {
        put_nearest(r, &result);
        put_nothing(r);
        return;
    }
    if (result.chosen)
        put_chosen(r, &result, &c);
    else if (r->a->goal == RENYI_TUNE_MAX_DROP)
        printf("Nothing that is faster was found to lose at most %g %s: use the dense model.\n",
               r->a->bound, r->a->unlabelled ? "% of the answers" : "points");
    else
        printf("The dense model itself meets the target, and nothing lost less.\n");
    if (!result.chosen) put_nearest(r, &result);
    char *use = arguments_of(r, &c);
    cli_put_data(stdout, use);
    putchar('\n');
    free(use);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *loss_json(const renyi_tune_loss *l)
{
    if (!l->images) return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:[o, o], s:o, s:o}", "images",
                     (json_int_t)l->images, "only_dense", (json_int_t)l->only_dense, "only_it",
                     (json_int_t)l->only_it, "other", (json_int_t)l->other, "top1",
                     json_number(l->top1), "drop", json_number(l->drop), "range",
                     json_number(l->range.low), json_number(l->range.high), "p_value",
                     json_number(l->p_value), "agreement", json_number(l->agreement));
}

static json_t *candidate_json(const tune_report *r, size_t i)
{
    static const char *const fates[] = {"open",     "misfit",  "costly", "beaten",
                                        "finalist", "refuted", "chosen"};
    renyi_tune_candidate c;

    renyi_tune_get(r->tune, i, &c);
    char *use = arguments_of(r, &c);
    json_t *object = json_pack(
        "{s:s, s:s, s:i, s:s, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "policy",
        c.policy, "dtype", renyi_dtype_name(c.dtype), "img_size", (int)c.image_size, "fate",
        fates[c.fate], "why", json_text(c.why), "rungs", (int)c.rungs, "gmacs",
        json_number(c.gmacs), "ms", json_number(c.ms), "speedup", json_number(c.speedup),
        "estimate", json_number(c.estimate), "chance", json_number(c.chance), "search",
        loss_json(&c.search), "confirmed", loss_json(&c.confirmed), "arguments", use);
    free(use);
    return object;
}

static json_t *candidates_json(const tune_report *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < renyi_tune_count(r->tune); i++)
        json_array_append_new(list, candidate_json(r, i));
    return list;
}

json_t *tune_report_json(const tune_report *r)
{
    static const char *const goals[] = {"max-drop", "target-ms", "target-gmacs"};
    renyi_tune_result t;

    renyi_tune_get_result(r->tune, &t);
    const renyi_eval_times times = {.n_threads = t.n_threads, .batch = t.batch};
    json_t *document = json_pack(
        "{s:o, s:o, s:s, s:s, s:o, s:o, s:s, s:f, s:b, s:I, s:I, s:I, s:I, s:f, s:b, s:b, s:i, s:o, "
        "s:o, s:o}",
        "model", json_text(r->a->e.model), "architecture", json_text(r->model->architecture),
        "cpu_level", renyi_cpu_name(r->model->cpu), "dtype", renyi_dtype_name(r->model->dtype),
        "preprocessing", json_preprocess(&r->spec->preprocess, r->spec->source), "data",
        json_text(r->a->e.data), "goal", goals[r->a->goal], "bound", r->a->bound, "unlabelled",
        r->a->unlabelled, "photos", (json_int_t)r->data->n_images, "photos_search",
        (json_int_t)t.n_search, "photos_confirm", (json_int_t)t.n_confirm, "failed",
        (json_int_t)t.n_failed, "seconds", t.seconds, "interrupted", r->is_interrupted, "found",
        t.is_found, "looks", (int)t.looks, "chosen",
        t.is_found ? candidate_json(r, t.chosen) : json_null(), "nearest",
        t.nearest ? candidate_json(r, t.nearest) : json_null(), "candidates", candidates_json(r));
    if (document) eval_run_json(document, &r->a->e, r->data, &times);
    return document;
}
