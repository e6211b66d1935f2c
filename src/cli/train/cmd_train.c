/* cmd_train.c - renyi train: the command line, made from the library's table of settings.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/models.h"
#include "cli/train/train_arguments.h"
#include "cli/verbs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The rows of the option table, and the texts that were made for them. */
typedef struct rows {
    option items[2 * TRAIN_MAX_SETTINGS + 40];
    size_t count;
    cli_strings texts;
} rows;

static const struct {
    const char *name;
    char letter;
} letters[] = {
    {"model", 'm'}, {"batch-size", 'b'}, {"threads", 't'}, {"workers", 'j'}, {"seed", 's'}};

static char letter_of(const char *name)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (strcmp(letters[i].name, name) == 0) return letters[i].letter;
    return 0;
}

static const char *keep_text(rows *r, char *owned)
{
    cli_strings_add(&r->texts, owned);
    return owned;
}

static void add_row(rows *r, option o) { r->items[r->count++] = o; }

static void add_heading(rows *r, const char *group)
{
    char *title = cli_format("%s", group);

    title[0] = (char)toupper((unsigned char)title[0]);
    add_row(r, (option){"", 0, OPTION_HEADING, NULL, "", keep_text(r, title), 0, 0});
}

/* The help shows the default, "peak (5e-4)", unless it is "auto", which the help text explains. */
static void add_setting(rows *r, train_arguments *a, size_t i, const renyi_train_setting *s)
{
    const int is_flag = s->kind == RENYI_SETTING_FLAG;
    char *help = *s->fallback && strcmp(s->fallback, "auto") != 0
                     ? cli_format("%s (%s)", s->help, s->fallback)
                     : cli_copy(s->help);
    const option_kind kind = is_flag                           ? OPTION_FLAG
                             : s->kind == RENYI_SETTING_CHOICE ? OPTION_CHOICE
                                                               : OPTION_STRING;

    add_row(r, (option){s->name, letter_of(s->name), kind,
                        is_flag ? (void *)&a->is_on[i] : (void *)&a->texts[i], s->argument,
                        keep_text(r, help), 0, 0});
    if (is_flag)
        add_row(r, (option){keep_text(r, cli_format("no-%s", s->name)), 0, OPTION_FLAG,
                            &a->is_off[i], "", "turn it off", 0, 0});
}

static void add_settings(rows *r, train_arguments *a)
{
    const char *group = "";

    for (size_t i = 0; i < renyi_train_setting_count() && i < TRAIN_MAX_SETTINGS; i++) {
        renyi_train_setting s;
        renyi_train_get_setting(i, &s);
        if (strcmp(group, s.group) != 0) add_heading(r, group = s.group);
        add_setting(r, a, i, &s);
    }
}

static void make_rows(rows *r, train_arguments *a)
{
    const option own[] = {
        {"output", 'o', OPTION_STRING, &a->out, "RUN_DIR",
         "folder of the run: log, checkpoint, models; must be new or empty", 0, 0},
        {"resume", 0, OPTION_FLAG, &a->resume, "",
         "continue the run in RUN_DIR, bit for bit; its settings are in its checkpoint", 0, 0},
        {"cpu", 0, OPTION_CHOICE, &a->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0},
        {"log-freq", 0, OPTION_COUNT, &a->log_freq, "N",
         "without a terminal, a line every N updates (50)", 1, 0},
        {"dry-run", 0, OPTION_FLAG, &a->dry_run, "", "print recipe and settings, train nothing", 0,
         0},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document on stdout", 0, 0},
    };

    add_heading(r, "options");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) add_row(r, own[i]);
    add_settings(r, a);
}

static char *recipes_text(void)
{
    char *text = cli_copy("Recipes:");

    for (size_t i = 0; i < renyi_recipe_count(); i++) {
        renyi_recipe r;
        renyi_recipe_get(i, &r);
        char *longer = cli_format("%s\n  %-15s %s", text, r.name, r.about);
        free(text);
        text = longer;
    }
    return text;
}

static option_outcome parse_options(train_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    rows *r = cli_alloc(1, sizeof *r);

    make_rows(r, a);
    const char *recipes = keep_text(r, recipes_text());
    const char *summary = keep_text(
        r,
        cli_format(
            "Trains a Vision Transformer, from weights (-m) or from scratch (--arch), optionally with cuts\n"
            "(--prune) and a teacher. A batch is run in parts, so its size costs no memory. All settings are\n"
            "printed at the start and written to the first line of RUN_DIR/log.jsonl. A run that was stopped or\n"
            "killed continues with --resume -o RUN_DIR and gives the same result as without the stop; then only\n"
            "--epochs, --steps, --data-dir, --val-dir, --teacher, --threads, --workers and settings that do not\n"
            "affect the result may differ. Defaults are in brackets.\n\n%s",
            recipes));
    const verb_syntax syntax = {
        "train",
        "-m MODEL | --arch NAME --data-dir DIR [--val-dir DIR] [options] -o RUN_DIR",
        summary,
        "  renyi train --recipe small --arch vit_tiny_patch16_160 --data-dir imagenette -o run\n"
        "  renyi train --recipe finetune -m model.safetensors --data-dir images/train --val-dir images/val -o run\n"
        "  renyi train --recipe paper-evit-ours -m vit_small.safetensors --data-dir imagenet -o run\n"
        "  renyi train --resume -o run\n",
        r->items,
        r->count};
    const option_outcome outcome = options_parse(&syntax, argc, argv, arguments);
    cli_strings_free(&r->texts);
    free(r);
    return outcome;
}

/* ---- from options to settings -------------------------------------------------------------- */

/* The library's message begins with the name of the setting: "epochs: ..." or "recipe 'x' ...". */
static int refuse_setting(const char *name, const renyi_error *err)
{
    const size_t length = strlen(name);
    const char *what = err->message;

    if (strncmp(what, name, length) == 0) what += length + strspn(what + length, ": ");
    return options_usage_error("train", "option '--%s': %s", name, what);
}

/* A model may be given by the name of its repository: *text becomes its path in the cache. */
static int resolve_model(const char **text, char **owned)
{
    if (!*text) return CLI_OK;
    *owned = model_path_resolve(*text);
    *text = *owned;
    return *owned ? CLI_OK : CLI_FAILED;
}

/* A run that was killed before its first checkpoint starts again with --resume. */
static int has_checkpoint(const char *folder)
{
    char *path = cli_format("%s/checkpoint.safetensors", folder ? folder : ".");
    const int is_there = access(path, F_OK) == 0;

    free(path);
    return is_there;
}

static int take_settings(train_arguments *a)
{
    const int is_resumed = a->resume && has_checkpoint(a->out);
    renyi_error err = {0};

    renyi_train_defaults(&a->opt);
    for (size_t i = 0; i < renyi_train_setting_count() && i < TRAIN_MAX_SETTINGS; i++) {
        renyi_train_setting s;
        renyi_train_get_setting(i, &s);
        const char *text = a->texts[i];
        if (a->is_on[i] || a->is_off[i]) text = a->is_off[i] ? "off" : "on";
        if (a->is_on[i] && a->is_off[i])
            return options_usage_error("train", "--%s and --no-%s exclude each other", s.name,
                                       s.name);
        const int is_model = strcmp(s.name, "model") == 0,
                  is_teacher = strcmp(s.name, "teacher") == 0;
        if (is_model && is_resumed) continue; /* the weights are in the checkpoint */
        if ((is_model || is_teacher) &&
            resolve_model(&text, is_model ? &a->model : &a->teacher) != CLI_OK)
            return CLI_FAILED;
        if (text && renyi_train_set(&a->opt, s.name, text, &err) != RENYI_OK)
            return refuse_setting(s.name, &err);
    }
    a->opt.out = a->out;
    a->opt.resume = a->resume != 0;
    a->opt.cpu = cpu_from_name(a->cpu);
    return CLI_OK;
}

static int check_arguments(const train_arguments *a, const cli_strings *arguments)
{
    if (arguments->count)
        return options_usage_error("train", "unexpected '%s'", arguments->items[0]);
    if (!a->out && !a->dry_run)
        return options_usage_error("train", "the folder of the run is missing: -o RUN_DIR");
    if (a->opt.resume || a->dry_run) return CLI_OK;
    if (!a->opt.model == !a->opt.arch)
        return options_usage_error("train",
                                   "give either -m MODEL (weights to begin with) or --arch NAME "
                                   "(random weights)");
    if (!a->opt.data) return options_usage_error("train", "--data-dir DIR is missing");
    return CLI_OK;
}

int cmd_train(int argc, char **argv)
{
    train_arguments *a = cli_alloc(1, sizeof *a);
    cli_strings arguments = {0};

    a->log_freq = 50;
    const option_outcome outcome = parse_options(a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;
    if (outcome == OPTIONS_GO) {
        code = take_settings(a);
        if (code == CLI_OK) code = check_arguments(a, &arguments);
        if (code == CLI_OK) code = train_execute(a);
    }
    cli_strings_free(&arguments);
    free(a->model);
    free(a->teacher);
    free(a);
    return code;
}
