/* pickle_machine.h - the running pickle machine; only pickle*.c see it. Handlers that build or
 * refuse something are in pickle_call.c, those that only move data in pickle.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PICKLE_MACHINE_H
#define RY_PICKLE_MACHINE_H

#include "base/status.h"
#include "formats/torch/pickle_heap.h"

typedef struct ry_machine {
    ry_pickle *p;
    const ry_pickle_source *source;
    const unsigned char *at, *end, *op_at; /* op_at: the opcode being run */
    renyi_error *err;
    int done;
} ry_machine;

/* Fail with the file, the byte of the opcode, and `why`; bad() is RENYI_ERR_FORMAT. */
renyi_status ry_machine_stop(const ry_machine *m, renyi_status code, const char *why);
renyi_status ry_machine_bad(const ry_machine *m, const char *why);

/* The answer of a ry_heap_* call as a status; NULL is success. */
renyi_status ry_machine_heap(const ry_machine *m, const char *why);
#define HEAP(call) RY_TRY(ry_machine_heap(m, (call)))

ry_pickle_node ry_machine_node(ry_pickle_kind kind); /* empty */
renyi_status ry_machine_push(ry_machine *m, ry_pickle_node n);

/* Opcodes of pickle_call.c. */
renyi_status ry_machine_global(ry_machine *m, unsigned char op);
renyi_status ry_machine_stack_global(ry_machine *m, unsigned char op);
renyi_status ry_machine_persistent(ry_machine *m, unsigned char op);
renyi_status ry_machine_call(ry_machine *m, unsigned char op);
renyi_status ry_machine_build(ry_machine *m, unsigned char op);

#endif
