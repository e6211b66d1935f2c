/* faults.h - a list of what is wrong with a checkpoint that stays within one message.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_FAULTS_H
#define RY_FAULTS_H

#include <stddef.h>

enum { RY_FAULTS_ROOM = 300, RY_FAULTS_TEXT = RY_FAULTS_ROOM + 32 }; /* the path comes with it */

typedef struct ry_faults {
    char text[RY_FAULTS_ROOM];
    size_t used;
    unsigned count, left_out;
    const char *kind; /* of the last item: written once in front of its run */
    int quantised;    /* a fault of 8-bit weights is among them */
} ry_faults;

/* kind: "missing ", "wrong shape ", ...; the same pointer for all of a kind, or it is repeated. */
void ry_faults_add(ry_faults *l, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "a, b and 3 more" into out, which is returned. */
const char *ry_faults_text(const ry_faults *l, char out[RY_FAULTS_TEXT]);

#endif
