/* main.c - the program: finds the verb, runs it and ends with its exit code.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/cli.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/help.h"
#include "cli/kit/options.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"

#include "renyi/renyi.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef struct verb_row {
    const char *name;
    cli_verb *function;
    verb_ranks ranks;
    const char *summary;
} verb_row;

#define VERB_ROW(name, function, ranks, summary) {name, function, ranks, summary},
static const verb_row verbs[] = {CLI_VERBS(VERB_ROW)};
#undef VERB_ROW
enum { N_VERBS = sizeof verbs / sizeof *verbs };

static void put_help(FILE *stream)
{
    fputs(
        "Usage: renyi VERB [options]\n\n"
        "Runs Vision Transformers on the CPU, exactly and fast, and drops the tokens they do not need."
        "\n\nVerbs:\n",
        stream);
    for (int i = 0; i < N_VERBS; i++)
        fprintf(stream, "  %-12s %s\n", verbs[i].name, verbs[i].summary);
    fputs("  help         this page; 'renyi help VERB' or 'renyi VERB --help' for one verb\n"
          "\n'renyi --version' prints the version, the CPU level in use and its dtypes.\n"
          "Results go to stdout, everything else to stderr.\n"
          "Exit codes: 0 success, 1 failed, 2 wrong usage, 3 some inputs failed.\n"
          "\nExamples:\n"
          "  renyi pull timm/vit_small_patch16_224.augreg_in21k_ft_in1k\n"
          "  renyi classify -m timm/vit_small_patch16_224.augreg_in21k_ft_in1k image.jpg\n"
          "  renyi classify -m model.safetensors --prune 'mosaic keep=0.7 layers=3,6,9' image.jpg\n"
          "  renyi bench --arch vit_small_patch16_224 -b 1,8 -t 1,2\n",
          stream);
}

static int unknown_verb(const char *name)
{
    const char *names[N_VERBS];

    for (int i = 0; i < N_VERBS; i++) names[i] = verbs[i].name;
    const char *nearest = nearest_name(name, names, N_VERBS);
    if (nearest)
        cli_error("unknown verb '%s', did you mean '%s'? See 'renyi help'", name, nearest);
    else
        cli_error("unknown verb '%s'; see 'renyi help'", name);
    return CLI_USAGE;
}

static const verb_row *find_verb(const char *name)
{
    for (int i = 0; i < N_VERBS; i++)
        if (strcmp(name, verbs[i].name) == 0) return &verbs[i];
    return NULL;
}

static int put_version(void)
{
    char formats[32];

    dtypes_here(formats);
    printf("renyi %s\ncpu level: %s\ndtypes: %s\nlibrary: %s\n", renyi_version(),
           renyi_cpu_name(renyi_cpu_detect()), formats, renyi_build_options());
    if (*RENYI_WITH) printf("program: %s\n", RENYI_WITH);
    if (*RENYI_WITHOUT) printf("built without: %s\n", RENYI_WITHOUT);
    return CLI_OK;
}

/* help [VERB] [--man|--options]; the completion of shells reads --options. */
static int put_verb_help(int argc, char **argv)
{
    const char *form = argc > 2 ? argv[argc - 1] : "";
    const int is_man = strcmp(form, "--man") == 0, is_lines = strcmp(form, "--options") == 0;

    if (is_man || is_lines) argc--;
    if (argc < 3) {
        for (int i = 0; is_lines && i < N_VERBS; i++)
            printf("%s\t%s\n", verbs[i].name, verbs[i].summary);
        if (!is_lines) put_help(stdout);
        return CLI_OK;
    }
    const verb_row *verb = find_verb(argv[2]);
    if (!verb) return unknown_verb(argv[2]);
    help_choose(is_man ? HELP_MAN : is_lines ? HELP_OPTIONS : HELP_PAGE, verb->summary);
    char flag[] = "--help";
    char *verb_argv[] = {argv[2], flag, NULL};
    return verb->function(2, verb_argv);
}

static int run_verb(const verb_row *verb, int argc, char **argv)
{
    if (verb->ranks == VERB_SHARES && ranks_open() != CLI_OK) return CLI_FAILED;
    if (verb->ranks == VERB_REFUSES && ranks_is_launched())
        return options_usage_error(argv[0], "not under mpirun or srun: its work is not shared");
    return verb->function(argc, argv);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        put_help(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) return put_version();
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return put_verb_help(argc, argv);
    const verb_row *verb = find_verb(name);
    return verb ? run_verb(verb, argc - 1, argv + 1) : unknown_verb(name);
}

/* If the caller closed stdin, stdout or stderr, the next file opened would get its number and
 * results would be written into that file. So open them read-only: writing still fails. */
static void occupy_standard_streams(void)
{
    int fd;
    do fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) close(fd);
}

int main(int argc, char **argv)
{
    occupy_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* so that other outputs (--csv, logs) are still written */
    signal(SIGXFSZ, SIG_IGN); /* so that a file size limit is an error with a message */
    const int code = ranks_close(cli_finish_output(dispatch(argc, argv)));
    if (code == CLI_NO_READER && !ranks_is_launched()) { /* end as other programs in a pipe do */
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    return code;
}
