/* viz_page.h - what a model looks at and what pruning drops, as a page to play with.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One HTML file with everything inside: the photos, the scores of all layers, what each policy
 * kept. It opens from disk, asks no network, and works with the keyboard, on a phone, in light and
 * dark. The same results give the same bytes. Texts may be any bytes, as in report.h.
 */
#ifndef RENYI_VIZ_PAGE_H
#define RENYI_VIZ_PAGE_H

#include "renyi/report.h"
#include "renyi/viz.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RENYI_VIZ_MAX_PHOTOS 100 /* of one page */

/* All pointers are borrowed for the call; a text that is NULL is left out. */
typedef struct renyi_viz_page {
    uint32_t struct_size;
    uint32_t n_photos;
    const renyi_viz_result *const *photos; /* [n_photos] of one renyi_viz, at least one: the same
                                              layers, metrics, keep rates and policies */
    const char *title;                     /* NULL = says which model it is about */
    const char *note;                      /* a sentence under it */
    const char *command;                   /* that ran this */
    renyi_allocator allocator;
} renyi_viz_page;

/* On success *out is owned by the caller (renyi_report_text_free); otherwise it is empty.
 * RENYI_ERR_ARG: a photo that is not like the first one, or numbers that do not fit together. */
RENYI_API RENYI_CHECK renyi_status renyi_viz_html(renyi_report_text *out,
                                                  const renyi_viz_page *page, renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
