/* cli_ranks.h - the ranks of one run that share the work of a verb: mpirun -n 4 renyi eval ...
 * SPDX-License-Identifier: Apache-2.0
 *
 * main opens and closes; a verb passes ranks_get() to the library. Only the first rank writes
 * files: the stdout of the others goes to /dev/null, and their notes are not shown.
 */
#ifndef RENYI_CLI_RANKS_H
#define RENYI_CLI_RANKS_H

#include "renyi/eval.h"

/* 1 if mpirun, srun or another launcher started several ranks; always 0 with RENYI_MPI=off. */
int ranks_is_launched(void);

/* Joins the other ranks; does nothing without a launcher. Returns an exit code. */
int ranks_open(void);

const renyi_ranks *ranks_get(void); /* NULL = there are no other ranks */
uint32_t ranks_number(void);        /* 0 = the first or only rank */

/* Threads of this rank. `wanted` = 0 (not given): ranks that share cores get an equal part of them;
 * 0 (the default) without other ranks. */
uint32_t ranks_threads(uint64_t wanted);

/* From here on all ranks know the result of the verb and end by themselves. Before this call a rank
 * that fails ends the others, too, because they may be waiting for it. */
void ranks_settle(void);

/* After the last output of the verb. Returns the exit code of this process. */
int ranks_close(int code);

/* Waits if this is not the first rank: that one reports an error they all have, and ends them. */
void ranks_let_first_report(void);

#endif
