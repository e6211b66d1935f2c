/* csv_out.h - cells of comma-separated results (RFC 4180).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CSV_OUT_H
#define RENYI_CSV_OUT_H

#include <stdio.h>

void csv_cell(FILE *f, const char *text);         /* quoted where it must be */
void csv_real(FILE *f, int digits, double value); /* a comma first; empty if there is no number */

#endif
