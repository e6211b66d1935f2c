/* eval_masks_report.c - the tables of renyi eval --masks for people.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/eval_masks.h"

#include <math.h>
#include <string.h>

enum { LEAST_WIDTH = 9 };

static int width_of(const masks_report *r, uint32_t metric)
{
    const int n = (int)strlen(renyi_masks_metric(r->study, metric)) + 2;
    return n > LEAST_WIDTH ? n : LEAST_WIDTH;
}

/* The line of metrics from number `first` on. */
static void put_head(const masks_report *r, uint32_t first)
{
    printf("%sblock", cli_bold(stdout));
    for (uint32_t m = first; m < r->info.n_metrics; m++)
        printf("%*s", width_of(r, m), renyi_masks_metric(r->study, m));
    printf("%s\n", cli_plain(stdout));
}

static void put_areas(const masks_report *r)
{
    double widest = 0.0;

    puts("Area under the ranking curve: how often a patch of the object outranks one of the\n"
         "background. 1 = always, 0.5 = chance.");
    put_head(r, 0);
    for (uint32_t b = 0; b < r->info.n_blocks; b++) {
        printf("%5u", b);
        for (uint32_t m = 0; m < r->info.n_metrics; m++) {
            renyi_masks_ranking rank;
            renyi_masks_get_ranking(r->study, m, b, &rank);
            printf("%*.3f", width_of(r, m), rank.auc.mean);
            widest = fmax(widest, rank.auc.range.high - rank.auc.mean);
        }
        putchar('\n');
    }
    printf("95 %% intervals: at most +-%.3f\n", widest);
}

static void put_differences(const masks_report *r)
{
    printf("\nThe same minus that of %s, photo by photo; * = the 95 %% interval of the difference "
           "does not hold 0.\n",
           renyi_masks_metric(r->study, 0));
    put_head(r, 1);
    for (uint32_t b = 0; b < r->info.n_blocks; b++) {
        printf("%5u", b);
        for (uint32_t m = 1; m < r->info.n_metrics; m++) {
            renyi_estimate d;
            renyi_masks_get_difference(r->study, 0, m, b, &d);
            printf("%+*.3f%c", width_of(r, m) - 1, d.mean,
                   d.range.low > 0.0 || d.range.high < 0.0 ? '*' : ' ');
        }
        putchar('\n');
    }
}

static void put_kept(const masks_report *r)
{
    printf("\nPatches that stay at keep=%g (%u of %u): %% of the object's / %% of the "
           "background's.\n",
           r->info.keep, r->info.n_kept, r->info.n_patches);
    put_head(r, 0);
    for (uint32_t b = 0; b < r->info.n_blocks; b++) {
        printf("%5u", b);
        for (uint32_t m = 0; m < r->info.n_metrics; m++) {
            renyi_masks_ranking rank;
            char cell[32];
            renyi_masks_get_ranking(r->study, m, b, &rank);
            snprintf(cell, sizeof cell, "%.0f/%.0f", 100.0 * rank.kept_object.mean,
                     100.0 * rank.kept_background.mean);
            printf("%*s", width_of(r, m), cell);
        }
        putchar('\n');
    }
}

static void put_fates(const renyi_masks_fates *f)
{
    printf("  %7.1f %7.1f %7.1f %7.1f", 100.0 * f->alone.mean, 100.0 * f->merged.mean,
           100.0 * f->fused.mean, 100.0 * f->dropped.mean);
}

static void put_policy(const masks_report *r, uint32_t policy)
{
    int n_cuts = 0;

    printf("\n%s\n%s            object's patches, %%             background's, %%\n"
           "after block   alone  merged   fused dropped    alone  merged   fused dropped%s\n",
           renyi_masks_policy(r->study, policy), cli_bold(stdout), cli_plain(stdout));
    for (uint32_t b = 0; b < r->info.n_blocks; b++) {
        renyi_masks_survival s;
        renyi_masks_get_survival(r->study, policy, b, &s);
        n_cuts += s.is_cut;
        if (!s.is_cut && (n_cuts || b + 1 < r->info.n_blocks)) continue; /* nothing new */
        printf("%9u", b);
        put_fates(&s.object);
        put_fates(&s.background);
        putchar('\n');
    }
}

void masks_report_table(const masks_report *r)
{
    const renyi_masks_info *i = &r->info;

    if (i->images) {
        put_areas(r);
        if (i->n_metrics > 1) put_differences(r);
        put_kept(r);
        for (uint32_t p = 0; p < i->n_policies; p++) put_policy(r, p);
        putchar('\n');
    }
    printf("%llu photos", (unsigned long long)i->images);
    if (i->one_sided)
        printf(", %llu more without a patch of both object and background",
               (unsigned long long)i->one_sided);
    if (i->failed) printf(", %llu failed", (unsigned long long)i->failed);
    if (i->images)
        printf("; of %u patches %.1f object, %.1f background, %.1f left out", i->n_patches,
               i->object, i->background, i->left_out);
    printf("; masks: %llu trimap, %llu binary; %.1f s\n", (unsigned long long)i->n_trimap,
           (unsigned long long)i->n_binary, i->seconds);
}
