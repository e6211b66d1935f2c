/* cmd_board.c - renyi board: a page that shows the manifests of a folder side by side.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/options.h"
#include "cli/kit/output.h"
#include "cli/llava/vqa_report.h"
#include "cli/result/board.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_MANIFESTS = 10000 };

/* ---- the manifests of a folder --------------------------------------------------------------- */

static int is_json(const char *name)
{
    const size_t n = strlen(name);

    return n > 5 && strcmp(name + n - 5, ".json") == 0;
}

/* Files of one folder. */
typedef struct folder_files {
    const char *folder;
    cli_strings *out;
} folder_files;

static int add_file(void *user, const char *name)
{
    const folder_files *f = user;

    if (is_json(name)) cli_strings_add(f->out, cli_format("%s/%s", f->folder, name));
    return f->out->count > MAX_MANIFESTS;
}

static int add_folder(cli_strings *out, const char *folder)
{
    folder_files files = {folder, out};
    renyi_error err = {0};

    const renyi_status status = renyi_visit_files(folder, add_file, &files, &err);
    if (out->count > MAX_MANIFESTS) {
        cli_error("%s: more than %d .json files; give a folder of its own to each part of them",
                  folder, MAX_MANIFESTS);
        return CLI_FAILED;
    }
    return status == RENYI_OK ? CLI_OK : cli_fail(&err);
}

/* The .json files of a folder and of its folders that have the name of a benchmark, as `renyi
 * table` makes them. CLI_OK, or CLI_FAILED after reporting. */
static int find_files(cli_strings *out, const char *folder)
{
    int code = add_folder(out, folder);

    for (int i = 0; code == CLI_OK && i < RENYI_VQA_TASKS; i++) {
        renyi_vqa_task_info task;
        struct stat st;
        renyi_vqa_get_task((renyi_vqa_task)i, &task);
        char *path = cli_format("%s/%s", folder, task.name);
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) code = add_folder(out, path);
        free(path);
    }
    return code;
}

/* Reads what can be read; another JSON file is noted, a damaged manifest is a failure. */
static int read_all(board *b, const cli_strings *files)
{
    for (size_t i = 0; i < files->count; i++) {
        renyi_manifest *m;
        renyi_error err = {0};
        if (renyi_manifest_read(&m, files->items[i], NULL, &err) == RENYI_OK) {
            board_add(b, files->items[i], m);
        } else if (err.code == RENYI_ERR_FORMAT && strstr(err.message, "not a result manifest")) {
            cli_note("%s", err.message);
        } else {
            cli_error("%s", cli_reason(&err));
            b->n_failed++;
        }
    }
    if (b->count) return CLI_OK;
    cli_error("%s: no result manifest in this folder; 'renyi table -o' and 'renyi vqa --manifest' "
              "write them",
              b->folder);
    return CLI_FAILED;
}

/* ---- the verb -------------------------------------------------------------------------------- */

typedef struct board_arguments {
    const char *output;
    int json;
} board_arguments;

static int make_board(const board_arguments *a, const char *folder)
{
    board b = {.folder = folder};
    cli_strings files = {0};
    int code = find_files(&files, folder);

    if (code == CLI_OK) code = read_all(&b, &files);
    if (code == CLI_OK) code = board_compare(&b);
    if (code == CLI_OK && a->json) board_json(&b);
    if (code == CLI_OK && (a->output || !a->json)) {
        char *path = a->output ? cli_copy(a->output) : cli_format("%s/board.html", folder);
        code = board_write(&b, path);
        free(path);
    }
    if (code == CLI_OK && b.n_failed) code = CLI_PARTIAL;
    cli_strings_free(&files);
    board_free(&b);
    return code;
}

int cmd_board(int argc, char **argv)
{
    board_arguments a = {0};
    cli_strings arguments = {0};
    const option table[] = {
        {"output", 'o', OPTION_STRING, &a.output, "FILE", "the page (DIR/board.html)", 0, 0},
        {"json", 0, OPTION_FLAG, &a.json, "", "one JSON document on stdout; a page only with -o", 0,
         0},
    };
    const verb_syntax syntax = {
        "board", "DIR [-o FILE.html] [--json]",
        "A page with all result manifests of a folder, and of its folders pope, gqa, ..., side by side: runs on\n"
        "the same questions and images in one table, with their costs, and every two of them compared question\n"
        "by question. The page is one file and needs no network.",
        "  renyi board out\n"
        "  renyi board results -o results.html --json\n",
        OPTIONS_OF(table)};
    const option_outcome outcome = options_parse(&syntax, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && arguments.count != 1)
        options_usage_error("board", arguments.count ? "one folder at a time"
                                                     : "the folder of the manifests is missing");
    else if (outcome == OPTIONS_GO)
        code = make_board(&a, arguments.items[0]);
    cli_strings_free(&arguments);
    return code;
}
