/* report_fixture.h - made-up results to draw: two models, five rules, three picture sizes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_FIXTURE_H
#define REPORT_FIXTURE_H

#include "renyi/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    FIXTURE_MAX = 300,
    FIXTURE_PAIRS = FIXTURE_MAX * (FIXTURE_MAX - 1) / 2,
    FIXTURE_BLOCKS = 12
};

typedef struct report_fixture {
    renyi_report report;
    renyi_report_point points[FIXTURE_MAX];
    renyi_report_pair pairs[FIXTURE_PAIRS];
    char policies[FIXTURE_MAX][64];
    uint32_t tokens[FIXTURE_MAX][FIXTURE_BLOCKS];
} report_fixture;

/* Numbers of point i that look like those of a sweep; 500 photos. */
static inline void fixture_point(report_fixture *f, uint32_t i)
{
    static const char *const rules[] = {"none", "mosaic keep=0.%u layers=0,3,6",
                                        "evit keep=0.%u layers=3,6,9 metric=col n=4 fuse",
                                        "naive p=%u layers=0-5 metric=cls", "tome r=%u"};
    static const uint32_t sizes[] = {224, 192, 160};
    renyi_report_point *p = &f->points[i];
    const uint32_t rule = i % 5, level = 9 - i / 5 % 5, size = sizes[i / 25 % 3];
    const double kept = rule ? level / 10.0 : 1, share = kept * size * size / (224.0 * 224.0);
    if (rule) /* every format has one number */
        snprintf(f->policies[i], sizeof f->policies[i], rules[rule], level);
    else
        snprintf(f->policies[i], sizeof f->policies[i], "none");
    for (uint32_t b = 0; b < FIXTURE_BLOCKS; b++)
        f->tokens[i][b] = 1 + (uint32_t)((size / 16) * (size / 16) * (b < 3 ? 1 : kept));
    *p = (renyi_report_point){
        .model = i / 75 % 2 ? "models/deit_tiny.safetensors" : "models/vit_tiny.safetensors",
        .policy = f->policies[i],
        .image_size = size,
        .native_size = 224,
        .images = 500,
        .n_top1 = (uint64_t)(375 - 200 * (1 - share) * (1 - share) - 7 * rule - i % 3 - i / 150),
        .loss = 1 + (1 - share),
        .gmacs = 1.25 * share,
        .ms_model = 20 * share + 0.3 * rule,
        .ms_total = 24 * share + 0.3 * rule,
        .images_per_second = 1000 / (24 * share + 0.3 * rule),
        .tokens = f->tokens[i],
        .n_blocks = FIXTURE_BLOCKS};
    p->top1 = (double)p->n_top1 / 5;
    p->top1_low = p->top1 - 4, p->top1_high = p->top1 + 3.7;
    p->top5 = p->top1 / 2 + 50;
}

static inline void fixture_pair(report_fixture *f, uint32_t a, uint32_t b)
{
    const uint64_t right_a = f->points[a].n_top1, right_b = f->points[b].n_top1;
    const uint64_t both = (right_a < right_b ? right_a : right_b) - 20;
    renyi_report_pair *p = &f->pairs[f->report.n_pairs++];
    *p = (renyi_report_pair){.a = a,
                             .b = b,
                             .both = both,
                             .only_a = right_a - both,
                             .only_b = right_b - both,
                             .neither = 500 + both - right_a - right_b,
                             .same = 380,
                             .difference = ((double)right_b - (double)right_a) / 5};
    p->p_value = exp(-fabs(p->difference));
    p->is_noise = p->p_value >= 0.05;
}

static inline void fixture_fill(report_fixture *f, uint32_t n)
{
    memset(f, 0, sizeof *f);
    f->report = (renyi_report){.struct_size = sizeof f->report,
                               .n_points = n,
                               .points = f->points,
                               .pairs = f->pairs,
                               .title = "A sweep on 500 photos",
                               .command = "renyi sweep -m vit_tiny -m deit_tiny --data-dir photos",
                               .machine = "a test",
                               .data = "photos"};
    for (uint32_t i = 0; i < n; i++) fixture_point(f, i);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++) fixture_pair(f, a, b);
}

/* Names that want to be markup, end scripts, or are no text at all. */
#define NASTY \
    "</script><script>alert(1)</script><b a='\"'>&amp; \x01\x7f\xff\xc3\x28\xed\xa0\x80\xe2\x80\xae --> ]]>"

static inline void fixture_spoil(report_fixture *f)
{
    static const double wrong[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 0, -5};
    f->report.title = f->report.command = f->report.machine = f->report.data = NASTY;
    f->report.date = f->report.note = NASTY;
    for (uint32_t i = 0; i < f->report.n_points; i++) {
        renyi_report_point *p = &f->points[i];
        if (i % 3 == 0) p->model = NASTY;
        if (i % 3 == 1) p->policy = NASTY;
        if (i % 5 == 1) p->family = NASTY;
        if (i % 4 == 2) p->gmacs = wrong[i / 4 % 7];
        if (i % 4 == 3) p->top1 = wrong[i / 4 % 7];
        if (i % 7 == 3) p->ms_model = p->top1_low = p->top1_high = p->loss = NAN;
        if (i % 7 == 4) p->tokens = NULL, p->model = NULL, p->policy = NULL, p->image_size = 0;
    }
    for (size_t i = 0; i < f->report.n_pairs; i += 3)
        f->pairs[i].p_value = f->pairs[i].difference = NAN;
}

/* A page or chart as a file for the tests of the program; 0 = done. Frees the text. */
static inline int write_text(const char *name, renyi_report_text t)
{
    FILE *f = fopen(name, "wb");
    if (!f) return 1;
    const size_t n = fwrite(t.bytes, 1, t.size, f);
    const int bad = fclose(f) || n != t.size;
    renyi_report_text_free(&t);
    return bad;
}

#endif
