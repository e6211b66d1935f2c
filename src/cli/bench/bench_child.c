/* bench_child.c - see bench_child.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench/bench_child.h"

#include "cli/kit/cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* All of `size` bytes, or -1. */
static int read_exactly(int fd, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = read(fd, (char *)to + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        done += (size_t)n;
    }
    return 0;
}

static int write_exactly(int fd, const void *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(fd, (const char *)from + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        done += (size_t)n;
    }
    return 0;
}

static _Noreturn void be_the_child(bench_work *work, const void *argument, void *result,
                                   size_t size, int fd)
{
    signal(SIGINT, SIG_DFL); /* cleaning up is the parent's */
    signal(SIGTERM, SIG_DFL);
    int code = work(argument, result);
    if (code == CLI_OK && write_exactly(fd, result, size)) code = CLI_FAILED;
    fflush(stderr);
    _exit(code);
}

int bench_in_child(bench_work *work, const void *argument, void *result, size_t size)
{
    int ends[2], status = 0;

    fflush(NULL);
    if (pipe(ends)) {
        cli_error("cannot make a pipe: %s", strerror(errno));
        return CLI_FAILED;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        be_the_child(work, argument, result, size, ends[1]);
    }
    if (child < 0) cli_error("cannot start a process: %s", strerror(errno));
    close(ends[1]);
    const int rc = child > 0 ? read_exactly(ends[0], result, size) : -1;
    close(ends[0]);
    if (child > 0) waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        cli_error("the measuring process was ended by signal %d", WTERMSIG(status));
    if (rc == 0) return CLI_OK;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : CLI_FAILED;
}
