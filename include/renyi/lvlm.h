/* lvlm.h - photos and questions to answers: LLaVA's tower, projector and language model.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rules of renyi.h hold here too.
 */
#ifndef RENYI_LVLM_H
#define RENYI_LVLM_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizer and prompts ----------------------------------------------------------------- */

/* ---- language model ------------------------------------------------------------------------ */

/* ---- visual tokens ------------------------------------------------------------------------- */

/* ---- questions and answers ----------------------------------------------------------------- */

#ifdef __cplusplus
}
#endif
#endif
