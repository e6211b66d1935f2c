/* steps.c - how a thread of steps.h sleeps.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/steps.h"

#include <time.h>

void ry_step_sleep(void)
{
    static const struct timespec nap = {0, 20000};
    (void)nanosleep(&nap, NULL);
}
