/* cli_ranks.c - detects a launcher such as mpirun, loads the MPI module, joins the other ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include "cli/kit/cli_ranks.h"

#include "cli/kit/cli.h"
#include "cli/kit/ranks_module.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    ranks_module module;
    int is_open, is_settled;
} state;

/* ---- launchers ----------------------------------------------------------------------------- */

static unsigned long environment_number(const char *name)
{
    const char *text = getenv(name);

    return text ? strtoul(text, NULL, 10) : 0;
}

/* How many ranks the launcher started; 0 = unknown. */
static unsigned long launched_count(void)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_SIZE", /* Open MPI's mpirun */
        "PMI_SIZE",             /* MPICH, Intel MPI; Slurm's pmi2 */
        "SLURM_STEP_NUM_TASKS"  /* srun */
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (environment_number(names[i])) return environment_number(names[i]);
    return 0;
}

int ranks_is_launched(void)
{
    const char *setting = getenv("RENYI_MPI");

    if (setting && (strcmp(setting, "off") == 0 || strcmp(setting, "0") == 0)) return 0;
    const unsigned long count = launched_count();
    return count > 1 || (count == 0 && getenv("PMIX_RANK") != NULL);
}

/* ---- the module ---------------------------------------------------------------------------- */

/* The path of this program; 0 if the system does not say. */
static int program_path(char *path, size_t size)
{
#ifdef __APPLE__
    uint32_t capacity = (uint32_t)size;
    return _NSGetExecutablePath(path, &capacity) == 0;
#else
    const ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n > 0) path[n] = 0;
    return n > 0;
#endif
}

/* Beside the program, where the build writes it, or where `make install` puts it. For safety
 * neither a search path nor the working directory is used. NULL = not found. */
static char *module_path(void)
{
    static const char *const places[] = {"", RENYI_MODULE_PLACE "/"};
    char program[PATH_MAX];

    if (!program_path(program, sizeof program)) return NULL;
    char *slash = strrchr(program, '/');
    if (!slash) return NULL;
    *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *path = cli_format("%s/%s%s", program, places[i], RANKS_MODULE_FILE);
        if (access(path, R_OK) == 0) return path;
        free(path);
    }
    return NULL;
}

static ranks_module_open *load_module(void)
{
    char *path = module_path();
    ranks_module_open *open_module = NULL;

    if (!path) {
        cli_error("a launcher started %lu ranks, but this build has no MPI (%s); install "
                  "openmpi-bin and libopenmpi-dev and build again, or use --shard I/N and renyi "
                  "merge. RENYI_MPI=off runs each copy alone",
                  launched_count(), RANKS_MODULE_FILE);
        return NULL;
    }
    void *library =
        dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* global: MPI's plug-ins need its symbols */
    if (library) {
        void *symbol = dlsym(library, RANKS_MODULE_SYMBOL);
        memcpy(&open_module, &symbol, sizeof open_module);
    }
    if (!open_module) cli_error("cannot load the MPI module: %s", dlerror());
    free(path);
    return open_module;
}

static int join_ranks(void)
{
    char message[512] = "";
    ranks_module_open *open_module = load_module();

    if (!open_module) return CLI_FAILED;
    state.module.version = RANKS_MODULE_VERSION;
    if (open_module(&state.module, message, sizeof message)) {
        cli_error("MPI: %s", message);
        return CLI_FAILED;
    }
    state.is_open = 1;
    return CLI_OK;
}

/* ---- opening and closing ------------------------------------------------------------------- */

/* Only the first rank prints results. */
static void silence_rank(uint32_t rank)
{
    char name[32];
    const int nowhere = open("/dev/null", O_WRONLY);

    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    if (nowhere > STDERR_FILENO) close(nowhere);
    snprintf(name, sizeof name, "rank %u: ", rank);
    cli_set_sender(name);
}

/* mpirun binds each of up to two ranks to one core, even if the machine has more. */
static void note_binding(const renyi_ranks *r)
{
#ifdef __linux__
    cpu_set_t set;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1 && cores > r->n_ranks)
        cli_note("the launcher binds each rank to one of %ld cores; mpirun --bind-to none, or "
                 "--map-by slot:PE=N, gives it more",
                 cores);
#else /* nothing is bound there */
    (void)r;
#endif
}

int ranks_open(void)
{
    const unsigned long count = launched_count();

    if (!ranks_is_launched()) return CLI_OK;
    if (join_ranks()) return CLI_FAILED;
    const renyi_ranks *r = &state.module.ranks;
    if (count > 1 && r->n_ranks != count) {
        cli_error("the launcher started %lu ranks, MPI sees %u: is it the mpirun of another MPI, "
                  "or srun without --mpi=pmix?",
                  count, r->n_ranks);
        return CLI_FAILED;
    }
    if (r->rank)
        silence_rank(r->rank);
    else
        note_binding(r);
    return CLI_OK;
}

const renyi_ranks *ranks_get(void)
{
    return state.is_open && state.module.ranks.n_ranks > 1 ? &state.module.ranks : NULL;
}

uint32_t ranks_number(void) { return state.is_open ? state.module.ranks.rank : 0; }

uint32_t ranks_threads(uint64_t wanted)
{
    const renyi_ranks *r = ranks_get();
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (wanted || !r || r->n_sharing < 2 || cores < 1) return (uint32_t)wanted;
    return (uint32_t)cores > r->n_sharing ? (uint32_t)cores / r->n_sharing : 1;
}

void ranks_settle(void) { state.is_settled = 1; }

void ranks_let_first_report(void)
{
    const struct timespec half_second = {0, 500 * 1000 * 1000};

    if (ranks_number() && !state.is_settled) nanosleep(&half_second, NULL);
}

/* Only the first rank returns its exit code; one is enough for the launcher. */
int ranks_close(int code)
{
    if (!state.is_open) return code;
    const int is_ok = code == CLI_OK || code == CLI_PARTIAL;
    fflush(stdout);
    if (is_ok || state.is_settled) {
        state.module.close(state.module.ranks.user);
        return ranks_number() ? CLI_OK : code;
    }
    ranks_let_first_report();
    state.module.abort(state.module.ranks.user, code);
    return code;
}
