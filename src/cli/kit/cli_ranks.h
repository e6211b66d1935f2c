/* cli_ranks.h - several copies of the program that share a verb's work: mpirun -n 4 renyi eval ...
 * SPDX-License-Identifier: Apache-2.0
 *
 * main opens and closes; a verb gives ranks_get() to the library and leaves writing files to the
 * first rank. The others' stdout goes nowhere, and their notes are not shown.
 */
#ifndef RENYI_CLI_RANKS_H
#define RENYI_CLI_RANKS_H

#include "renyi/eval.h"

/* Did mpirun, srun or the like start several of us? RENYI_MPI=off says no. */
int ranks_is_launched(void);

/* Joins the other ranks; without a launcher nothing happens. Returns an exit code. */
int ranks_open(void);

const renyi_ranks *ranks_get(void); /* NULL = alone */
uint32_t ranks_number(void);        /* 0 alone and for the first rank */

/* Threads of this rank where the user wanted so many; 0 = he did not say: ranks that share cores
 * share them evenly, and alone it stays 0. */
uint32_t ranks_threads(uint64_t wanted);

/* From here on all ranks know how the verb went and will end by themselves. Without this a rank
 * that fails ends the others too: they may be waiting for it. */
void ranks_settle(void);

/* The end of the verb, after the last output. Returns the exit code of this process. */
int ranks_close(int code);

/* Of a fault that all ranks share the first one should speak; it ends them all meanwhile. */
void ranks_let_first_speak(void);

#endif
