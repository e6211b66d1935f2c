/* main.c - the program: finds the verb, keeps stdout honest.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/cli.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/options.h"
#include "cli/shared/model_path.h"

#include "renyi/renyi.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    cli_verb *run;
    const char *summary;
} verbs[] = {
    {"classify", cmd_classify, "name what photos show"},
    {"eval", cmd_eval, "accuracy, MACs and milliseconds of pruning policies on your photos"},
    {"zeroshot", cmd_zeroshot, "accuracy of a CLIP with classes made of words"},
    {"embed", cmd_embed, "photos and texts as rows of numbers, to a file"},
    {"search", cmd_search, "the photos of a folder that are nearest to words or to a photo"},
    {"ask", cmd_ask, "answer questions about photos with a LLaVA, visual tokens pruned if wanted"},
    {"encode-image", cmd_encode_image, "the visual tokens of photos, to a file for other engines"},
    {"vqa", cmd_vqa, "benchmarks of questions about photos: answers, scores, submissions"},
    {"merge", cmd_merge, "one result from the logs of an evaluation that ran in parts"},
    {"sweep", cmd_sweep, "models x sizes x policies on the same photos: table, charts, page"},
    {"tune", cmd_tune, "find the fastest policy within a loss, or the most accurate within a time"},
    {"plot", cmd_plot, "loss and accuracy curves of training runs"},
    {"viz", cmd_viz, "see what a model looks at in a photo and what pruning drops of it"},
    {"paper", cmd_paper, "the paper's tables beside what this machine computes"},
    {"bench", cmd_bench, "measure speed and memory of a model on this machine"},
    {"flops", cmd_flops, "count tokens and multiply-accumulates of pruning policies"},
    {"policies", cmd_policies, "list the pruning policies that --prune takes"},
    {"inspect", cmd_inspect, "describe a model: family, sizes, preprocessing, tensors"},
    {"train", cmd_train,
     "train a model, from scratch or from weights, with pruned tokens if wanted"},
    {"quantize", cmd_quantize, "write a model with 8-bit weights"},
    {"init", cmd_init, "write a model with random weights"},
    {"pull", cmd_pull, "fetch a model from Hugging Face"},
};
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
          "\n'renyi --version' prints the version, the CPU level in use and its number formats.\n"
          "Results go to stdout, all else to stderr.\n"
          "Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 some inputs failed.\n"
          "\nExamples:\n"
          "  renyi pull timm/vit_small_patch16_224.augreg_in21k_ft_in1k\n"
          "  renyi classify -m timm/vit_small_patch16_224.augreg_in21k_ft_in1k photo.jpg\n"
          "  renyi classify -m model.safetensors --prune 'mosaic keep=0.7 layers=3,6,9' photo.jpg\n"
          "  renyi bench --arch vit_small_patch16_224 -b 1,8 -t 1,2\n",
          stream);
}

static int unknown_verb(const char *name)
{
    const char *names[N_VERBS];

    for (int i = 0; i < N_VERBS; i++) names[i] = verbs[i].name;
    const char *nearest = nearest_word(name, names, N_VERBS);
    if (nearest)
        cli_error("unknown verb '%s', did you mean '%s'? See 'renyi help'", name, nearest);
    else
        cli_error("unknown verb '%s'; see 'renyi help'", name);
    return CLI_USAGE;
}

static cli_verb *find_verb(const char *name)
{
    for (int i = 0; i < N_VERBS; i++)
        if (strcmp(name, verbs[i].name) == 0) return verbs[i].run;
    return NULL;
}

static int put_version(void)
{
    char formats[32];

    dtypes_here(formats);
    printf("renyi %s\ncpu level: %s\ndtypes: %s\n", renyi_version(),
           renyi_cpu_name(renyi_cpu_detect()), formats);
    return CLI_OK;
}

static int help(int argc, char **argv)
{
    if (argc < 3) {
        put_help(stdout);
        return CLI_OK;
    }
    cli_verb *run = find_verb(argv[2]);
    if (!run) return unknown_verb(argv[2]);
    char flag[] = "--help";
    char *verb_argv[] = {argv[2], flag, NULL};
    return run(2, verb_argv);
}

static int is_one_of(cli_verb *run, cli_verb *const *verb_list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (run == verb_list[i]) return 1;
    return 0;
}

/* mpirun -n 4 renyi eval: some verbs share their work, some would only get in each other's way.
 * The others run in every copy. */
static int run_verb(cli_verb *run, int argc, char **argv)
{
    static cli_verb *const sharing[] = {cmd_eval,  cmd_zeroshot, cmd_sweep,
                                        cmd_paper, cmd_train,    cmd_vqa};
    static cli_verb *const lonely[] = {cmd_tune,   cmd_merge, cmd_quantize,    cmd_embed,
                                       cmd_search, cmd_ask,   cmd_encode_image};

    if (is_one_of(run, sharing, sizeof sharing / sizeof *sharing) && ranks_open() != CLI_OK)
        return CLI_FAILED;
    if (is_one_of(run, lonely, sizeof lonely / sizeof *lonely) && ranks_is_launched())
        return options_usage_error(argv[0], "not under mpirun or srun: its work is not shared");
    return run(argc, argv);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        put_help(stderr);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) return put_version();
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return help(argc, argv);
    cli_verb *run = find_verb(word);
    return run ? run_verb(run, argc - 1, argv + 1) : unknown_verb(word);
}

/* Were stdin, stdout or stderr closed by the caller, the next file opened would take their place
 * and results would be written into it. Filled read-only, so that writing still fails. */
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
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error with a message */
    signal(SIGXFSZ, SIG_IGN); /* so is a file size limit */
    return ranks_close(cli_finish_output(dispatch(argc, argv)));
}
