/* ranks_module.h - what the program and its MPI module (src/mpi) know of each other. The module is
 * a library of its own, loaded only under a launcher: the program needs no MPI.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_RANKS_MODULE_H
#define RENYI_RANKS_MODULE_H

#include "renyi/renyi.h"

#define RANKS_MODULE_FILE "renyi-mpi.so"
#define RANKS_MODULE_SYMBOL "renyi_mpi_open"
enum { RANKS_MODULE_VERSION = 2 }; /* of this interface: both sides must agree */

typedef struct ranks_module {
    uint32_t version;
    renyi_ranks ranks;
    void (*close)(void *user);           /* leave together: waits for the others */
    void (*abort)(void *user, int code); /* end all ranks, now */
} ranks_module;

/* Joins the others. 0, or -1 and a message. */
typedef int ranks_module_open(ranks_module *out, char *message, size_t room);

#endif
