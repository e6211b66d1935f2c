/* temporary_model.h - a random model on disk that disappears with the program.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_TEMPORARY_MODEL_H
#define RENYI_TEMPORARY_MODEL_H

/* Path of a model of this architecture in $TMPDIR (or /tmp); one at a time. NULL after reporting.
 */
const char *temporary_model_make(const char *architecture);
void temporary_model_remove(void);

#endif
