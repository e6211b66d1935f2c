/* board.h - renyi board: manifests in groups of the same questions, their pairs, page and JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_BOARD_H
#define RENYI_BOARD_H

#include "cli/kit/cli.h"

#include "renyi/vqa.h"

typedef struct board_run {
    char *file; /* owned */
    renyi_manifest *manifest;
    renyi_manifest_info info; /* borrowed from the manifest */
    int is_baseline;          /* every run of a large group is compared with it */
} board_run;

typedef struct board_pair {
    size_t a, b; /* runs */
    renyi_vqa_pair pair;
} board_pair;

/* Runs with the same benchmark and data hash: `count` of them from `first` on. */
typedef struct board_group {
    size_t first, count;
    board_pair *pairs;
    size_t n_pairs;
    int is_partial; /* too many pairs: only those with a baseline */
} board_group;

typedef struct board {
    const char *folder;
    board_run *runs;
    size_t count, n_failed;
    board_group *groups;
    size_t n_groups;
} board;

void board_add(board *b, const char *file, renyi_manifest *m); /* takes over m */
/* Sorts the runs into groups and compares every two of a group. Returns an exit code. */
int board_compare(board *b);
void board_free(board *b);

/* board_report.c */
void board_json(const board *b);
int board_write(const board *b, const char *path); /* the page; returns an exit code */

#endif
