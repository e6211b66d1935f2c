/* neighbour.c - a process that copies memory without end, on one core and at low priority:
 * `bench/run --neighbour` lets it run beside every engine, as others do on a shared host. Built and
 * started by turns.py.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { NICE = 10 }; /* a tenth of a core that an engine uses too; all of one that is idle */
static const size_t size = (size_t)256 << 20; /* of each array: with both, more than the caches */

static char *array(void)
{
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) return NULL;
    memset(p, 1, size); /* all pages exist */
    return p;
}

int main(void)
{
    char *from = array(), *to = array();

    if (!from || !to || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        perror("neighbour");
        return 1;
    }
    (void)nice(NICE);
    puts("ready");
    (void)fflush(stdout);
    for (;;) {
        memcpy(to, from, size);
        __asm__ volatile("" ::: "memory"); /* every copy is made */
    }
}
