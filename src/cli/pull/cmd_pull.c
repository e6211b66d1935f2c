/* cmd_pull.c - renyi pull: downloads a Hugging Face repository into the cache.
 * SPDX-License-Identifier: Apache-2.0
 *
 * All files are downloaded and checked before the first link of the snapshot is made, so a snapshot
 * is either complete or missing.
 */
#include "cli/kit/options.h"
#include "cli/pull/hub_file.h"
#include "cli/pull/shard_index.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 500, MAX_FILES = MAX_SHARDS + 12 };

typedef struct pull_arguments {
    const char *revision;
    uint64_t stall_seconds, total_seconds, retries;
    int force, allow_unverified;
} pull_arguments;

/* The files of the future snapshot. */
typedef struct pull_state {
    hub_source source;
    hub_file files[MAX_FILES];
    size_t count;
} pull_state;

/* Asks for a file and adds it to the list. The first answer fixes the commit for all others, so
 * that a push to the branch in the meantime cannot mix two versions. */
static hub_answer ask_file(pull_state *p, const char *name)
{
    if (p->count == MAX_FILES) {
        cli_error("%s: more than %d files", p->source.repo, MAX_FILES);
        return HUB_FAILED;
    }
    hub_file *file = &p->files[p->count];
    const hub_answer answer = hub_file_ask(&p->source, name, file);
    if (answer != HUB_FOUND) return answer;
    if (p->count && strcmp(file->commit, p->files[0].commit) != 0) {
        cli_error("%s: the server answers with two different commits", p->source.repo);
        return HUB_FAILED;
    }
    p->source.revision = p->files[0].commit;
    p->count++;
    return HUB_FOUND;
}

/* The same, and downloads it. */
static hub_answer take_file(pull_state *p, const char *name)
{
    const hub_answer answer = ask_file(p, name);
    if (answer != HUB_FOUND) return answer;
    return hub_file_fetch(&p->source, &p->files[p->count - 1]) ? HUB_FAILED : HUB_FOUND;
}

/* ---- shards -------------------------------------------------------------------------------- */

/* All are asked for before the first is downloaded: is there space for all of them? */
static int take_listed(pull_state *p, json_t *shards)
{
    const size_t first = p->count;
    const char *name;
    json_t *unused;
    uint64_t space;

    json_object_foreach(shards, name, unused)
    {
        const hub_answer answer = ask_file(p, name);
        if (answer == HUB_ABSENT)
            cli_error("%s: the index names %s, which the repository does not have", p->source.repo,
                      name);
        if (answer != HUB_FOUND) return -1;
    }
    int failed = hub_files_fit(&p->source, p->files + first, p->count - first, &space);
    for (size_t i = first; !failed && i < p->count; i++)
        failed = hub_file_fetch(&p->source, &p->files[i]);
    return failed;
}

static hub_answer take_shards(pull_state *p)
{
    const hub_answer answer = take_file(p, "model.safetensors.index.json");

    if (answer != HUB_FOUND) return answer;
    char *index = cli_format("%s/blobs/%s", p->source.repo_dir, p->files[p->count - 1].digest);
    json_t *shards = shard_index_read(index, MAX_SHARDS);
    const int failed = !shards || take_listed(p, shards);
    json_decref(shards);
    free(index);
    return failed ? HUB_FAILED : HUB_FOUND;
}

/* Only models with a text tower have a tokenizer: SigLIP's spiece.model, tokenizer.json, or both of
 * CLIP's older files. tokenizer_config.json says which ids are added to a text. */
static int take_tokenizer(pull_state *p)
{
    const hub_answer pieces = take_file(p, "spiece.model");
    const hub_answer whole = pieces == HUB_ABSENT ? take_file(p, "tokenizer.json") : pieces;
    if (whole == HUB_FOUND) return take_file(p, "tokenizer_config.json") == HUB_FAILED ? -1 : 0;
    if (whole != HUB_ABSENT) return -1;

    hub_answer part = take_file(p, "vocab.json");
    if (part == HUB_FOUND) part = take_file(p, "merges.txt");
    return part == HUB_FAILED ? -1 : 0;
}

static int take_all(pull_state *p)
{
    const hub_answer config = take_file(p, "config.json");
    if (config == HUB_FAILED) return -1;
    hub_answer weights = take_file(p, "model.safetensors");
    if (weights == HUB_ABSENT) weights = take_shards(p);
    if (weights == HUB_ABSENT) weights = take_file(p, "pytorch_model.bin");
    if (weights == HUB_ABSENT) weights = take_file(p, "open_clip_model.safetensors");
    if (weights == HUB_ABSENT) weights = take_file(p, "open_clip_pytorch_model.bin");
    if (weights == HUB_FAILED) return -1;
    if (weights == HUB_ABSENT && config == HUB_ABSENT)
        cli_error("%s: no such repository at %s, or no model in it%s", p->source.repo,
                  p->source.endpoint,
                  p->source.has_token ? "" : " (if it is private, set HF_TOKEN)");
    else if (weights == HUB_ABSENT)
        cli_error(
            "%s: no model.safetensors (nor shards, nor another usual name) in this repository",
            p->source.repo);
    if (weights == HUB_ABSENT) return -1;
    const hub_answer open_clip = take_file(p, "open_clip_config.json");
    if (open_clip == HUB_FAILED) return -1;
    if (config == HUB_ABSENT && open_clip == HUB_ABSENT)
        cli_warn("%s has no config.json: heads and preprocessing will be guessed from the shapes",
                 p->source.repo);
    hub_answer processor = take_file(p, "preprocessor_config.json");
    if (processor == HUB_ABSENT) processor = take_file(p, "processor_config.json");
    if (processor == HUB_FAILED) return -1;
    return take_tokenizer(p);
}

/* Links first, then the ref: -m NAME finds the snapshot only when it is complete. */
static int link_snapshot(const pull_state *p, const char *revision)
{
    const char *commit = p->files[0].commit;
    int rc = 0;

    for (size_t i = 0; !rc && i < p->count; i++)
        rc = hub_link_file(p->source.repo_dir, commit, p->files[i].name, p->files[i].digest);
    if (rc) {
        cli_error("%s: %s", p->source.repo_dir, strerror(errno));
        return rc;
    }
    if (!hub_is_commit(revision)) rc = hub_write_ref(p->source.repo_dir, revision, commit);
    if (!rc) printf("%s/snapshots/%s\n", p->source.repo_dir, commit);
    return rc;
}

static char *endpoint_from_environment(void)
{
    const char *set = getenv("HF_ENDPOINT");
    char *endpoint = cli_copy(set && *set ? set : "https://huggingface.co");
    size_t length = strlen(endpoint);

    while (length && endpoint[length - 1] == '/') endpoint[--length] = 0;
    return endpoint;
}

/* NULL without one; sets *failed if it cannot be sent in a header. */
static const char *token_from_environment(int *failed)
{
    const char *token = getenv("HF_TOKEN");

    if (!token || !*token) return NULL;
    for (const char *at = token; *at; at++)
        if (*at <= 0x20 || *at > 0x7e) *failed = 1;
    if (*failed) cli_error("HF_TOKEN has characters that no token has");
    return token;
}

static int pull_from(const pull_arguments *a, const char *repo, const char *root,
                     const char *endpoint)
{
    int failed = 0;
    const char *token = token_from_environment(&failed);
    if (failed) return CLI_FAILED;
    const http_settings settings = {endpoint, token, (long)a->stall_seconds,
                                    (long)a->total_seconds};
    pull_state *p = cli_alloc(1, sizeof *p);

    p->source = (hub_source){.client = http_client_new(&settings),
                             .endpoint = endpoint,
                             .repo = repo,
                             .revision = a->revision,
                             .repo_dir = hub_repo_dir(root, repo),
                             .retries = (unsigned)a->retries,
                             .has_token = token != NULL,
                             .force = a->force,
                             .allow_unverified = a->allow_unverified};
    if (!p->source.client) {
        cli_error("cannot start libcurl");
        failed = 1;
    }
    if (!failed) failed = take_all(p);
    if (!failed) failed = link_snapshot(p, a->revision);
    if (!failed) cli_note("ready: renyi classify -m %s IMAGE", repo);
    http_client_free(p->source.client);
    free(p->source.repo_dir);
    free(p);
    return failed ? CLI_FAILED : CLI_OK;
}

static int pull_repository(const pull_arguments *a, const char *repo)
{
    const char *offline = getenv("HF_HUB_OFFLINE");

    repo = hub_without_scheme(repo);
    if (!hub_is_repo_name(repo))
        return options_usage_error(
            "pull", "'%s' is not a repository name such as timm/vit_tiny_patch16_224", repo);
    if (!hub_is_revision(a->revision))
        return options_usage_error("pull", "'%s' is not a branch, tag or commit", a->revision);
    if (offline && *offline && strcmp(offline, "0") != 0) {
        cli_error("HF_HUB_OFFLINE is set: nothing is downloaded");
        return CLI_FAILED;
    }
    char *root = hub_cache_root();
    if (!root) {
        cli_error("no cache folder: set HF_HOME or HOME");
        return CLI_FAILED;
    }
    char *endpoint = endpoint_from_environment();
    const int code = pull_from(a, repo, root, endpoint);
    free(endpoint);
    free(root);
    return code;
}

int cmd_pull(int argc, char **argv)
{
    pull_arguments a = {
        .revision = "main", .stall_seconds = 60, .total_seconds = 86400, .retries = 3};
    cli_strings arguments = {0};
    const option table[] = {
        {"revision", 0, OPTION_STRING, &a.revision, "REV", "branch, tag or commit (main)", 0, 0},
        {"force", 'f', OPTION_FLAG, &a.force, "", "download again what is already in the cache", 0,
         0},
        {"retries", 0, OPTION_COUNT, &a.retries, "N", "attempts after a cut connection (3)", 0,
         1000},
        {"timeout", 0, OPTION_COUNT, &a.stall_seconds, "S",
         "seconds below 1 kB/s after which a connection counts as cut (60)", 1, 86400},
        {"deadline", 0, OPTION_COUNT, &a.total_seconds, "S",
         "seconds after which the whole download is given up (86400, one day)", 1, 31536000},
        {"allow-unverified", 0, OPTION_FLAG, &a.allow_unverified, "",
         "take files for which the server gives no digest, with a warning", 0, 0},
    };
    const verb_syntax syntax = {
        "pull", "REPOSITORY [options]",
        "Downloads config.json, preprocessor_config.json, the weights (model.safetensors or its shards, or\n"
        "open_clip's with open_clip_config.json) and the tokenizer, if there is one, of a Hugging Face\n"
        "repository into the cache of the Hugging Face tools ($HF_HUB_CACHE, else $HF_HOME/hub, else\n"
        "~/.cache/huggingface/hub). Interrupted downloads are resumed; size and digest are checked, and a file\n"
        "without a digest is refused. HF_ENDPOINT sets another server, HF_TOKEN gives access to private\n"
        "repositories.\n"
        "Prints the directory; -m takes it or the name of the repository.",
        "  renyi pull timm/vit_small_patch16_224.augreg_in21k_ft_in1k\n"
        "  renyi pull facebook/deit-base-distilled-patch16-224 --revision main\n",
        OPTIONS_OF(table)};
    const option_outcome outcome = options_parse(&syntax, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        if (arguments.count == 1)
            code = pull_repository(&a, arguments.items[0]);
        else
            options_usage_error("pull", "one REPOSITORY is needed, %zu given", arguments.count);
    }
    cli_strings_free(&arguments);
    return code;
}
