/* nearest_name.c - "did you mean ...?": edit distance over a short list.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/options.h"

#include <string.h>

enum { MAX_WORD = 40 };

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

/* Levenshtein distance with one row; words longer than MAX_WORD count as far away. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[MAX_WORD + 1];
    const size_t n_a = strlen(a), n_b = strlen(b);

    if (n_a > MAX_WORD || n_b > MAX_WORD) return MAX_WORD;
    for (size_t j = 0; j <= n_b; j++) row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            const size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = min_size(change, min_size(row[j], row[j - 1]) + 1);
        }
    }
    return row[n_b];
}

const char *nearest_word(const char *word, const char *const *candidates, size_t count)
{
    const size_t length = strlen(word);
    const char *best = NULL;
    size_t best_distance = length / 3 + 2; /* farther than this is no typing error */

    for (size_t i = 0; i < count; i++) {
        const size_t distance = edit_distance(word, candidates[i]);
        const int is_beginning = length >= 3 && strncmp(candidates[i], word, length) == 0;
        if (distance < best_distance || (is_beginning && !best)) {
            best = candidates[i];
            if (distance < best_distance) best_distance = distance;
        }
    }
    return best;
}
