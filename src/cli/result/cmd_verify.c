/* cmd_verify.c - renyi verify: runs a random part of a result again and says whether it is the
 * same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_job.h"
#include "cli/kit/output.h"
#include "cli/llava/vqa_asking.h"
#include "cli/result/result_manifest.h"
#include "cli/verbs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h> /* getentropy, with macOS */
#include <unistd.h>     /* getentropy, with musl */

enum { MAX_NEW_TOKENS = 1 << 20 }; /* as --max-new-tokens */

typedef struct verify_arguments {
    const char *manifest, *model, *mmproj, *tower, *text_tower, *tokenizer, *cpu;
    const char *questions, *annotations, *images;
    option_reals share;
    uint64_t threads;
    int json, allow_outside;
} verify_arguments;

/* What was found. */
typedef struct verification {
    uint64_t checked, same, other_input, other_answer, other_worth, failed;
    cli_strings differing; /* ids of questions */
    int is_same_model;
    int is_same_score; /* the file's figures follow from all its samples */
    double score;      /* that follows */
} verification;

typedef struct verify_job {
    const verify_arguments *a;
    renyi_manifest *manifest;
    renyi_manifest_info info;
    renyi_vqa *questions;
    size_t *place; /* [n_samples] question of each sample */
    uint8_t *wanted;
    size_t n_questions;
    llava_arguments llava;
    sampling_arguments sampling;
    verification found;
} verify_job;

/* ---- what is to be run ----------------------------------------------------------------------- */

static int open_questions(verify_job *j)
{
    const verify_arguments *a = j->a;
    const char *path = a->questions ? a->questions : j->info.questions;
    const int is_official = j->info.scorer && strcmp(j->info.scorer, "official") == 0;
    const renyi_vqa_options o = {
        .struct_size = sizeof o,
        .limit = j->info.limit,
        .annotations = a->annotations ? a->annotations : j->info.annotations,
        .scorer = is_official ? RENYI_VQA_SCORER_OFFICIAL : RENYI_VQA_SCORER_TEXTVQA};
    renyi_vqa_task task;
    renyi_vqa_info found;
    renyi_error err = {0};

    if (!path) return options_usage_error("verify", "--questions FILE is missing");
    if (renyi_vqa_find_task(j->info.task, &task, &err) != RENYI_OK ||
        renyi_vqa_open(&j->questions, task, path, &o, &err) != RENYI_OK)
        return eval_error("verify", &err);
    renyi_vqa_get_info(j->questions, &found);
    j->n_questions = (size_t)found.n_questions;
    return CLI_OK;
}

typedef struct question_id {
    const char *id;
    size_t place;
} question_id;

static int compare_ids(const void *a, const void *b)
{
    return strcmp(((const question_id *)a)->id, ((const question_id *)b)->id);
}

/* Marks the questions whose id another one has, as in MME and TextVQA; how many. */
static size_t mark_repeated(const verify_job *j, uint8_t *marks)
{
    question_id *ids = cli_alloc(j->n_questions + 1, sizeof *ids);
    size_t n_marked = 0;

    for (size_t i = 0; i < j->n_questions; i++) {
        renyi_vqa_question q;
        renyi_vqa_get_question(j->questions, i, &q);
        ids[i] = (question_id){q.id, i};
    }
    qsort(ids, j->n_questions, sizeof *ids, compare_ids);
    for (size_t i = 0; i < j->n_questions; i++) {
        const int is_repeated = (i && compare_ids(&ids[i], &ids[i - 1]) == 0) ||
                                (i + 1 < j->n_questions && compare_ids(&ids[i], &ids[i + 1]) == 0);
        marks[ids[i].place] = (uint8_t)is_repeated;
        n_marked += (size_t)is_repeated;
    }
    free(ids);
    return n_marked;
}

static renyi_status answer_nothing(void *user, const renyi_vqa_request *request,
                                   renyi_vqa_reply *reply, renyi_error *err)
{
    (void)user;
    (void)request;
    (void)err;
    *reply = (renyi_vqa_reply){.text = ""};
    return RENYI_OK;
}

/* The hashes of text and image of the marked questions, without a model. NULL = there are none. */
static renyi_vqa_answers *hash_inputs(const verify_job *j, uint8_t *marks)
{
    const char *images = j->a->images ? j->a->images : j->info.images;
    const renyi_vqa_run_options o = {.struct_size = sizeof o,
                                     .images = images,
                                     .allow_outside = j->a->allow_outside != 0,
                                     .wanted = marks,
                                     .ask = answer_nothing};
    renyi_vqa_answers *out = NULL;
    renyi_error err = {0};

    if (j->info.n_samples < j->n_questions && mark_repeated(j, marks) &&
        renyi_vqa_run(&out, j->questions, &o, &err) != RENYI_OK) {
        renyi_vqa_answers_free(out);
        out = NULL;
    }
    return out;
}

/* How many samples are, in this order, among the questions. hashes: of those in marks; NULL = ids
 * alone. */
static size_t place_samples(verify_job *j, const renyi_vqa_answers *hashes, const uint8_t *marks)
{
    size_t n = 0;

    for (size_t i = 0; i < j->n_questions && n < j->info.n_samples; i++) {
        const renyi_manifest_sample *s = &j->info.samples[n];
        const int is_input =
            !hashes || !marks[i] || !s->input || renyi_vqa_get_input_hash(hashes, i) == s->input;
        renyi_vqa_question q;
        renyi_vqa_get_question(j->questions, i, &q);
        if (is_input && strcmp(q.id, s->id) == 0) j->place[n++] = i;
    }
    return n;
}

/* The samples are the answered questions in their order. Where questions share an id, the hash of
 * the input tells which one was answered; if an input has changed, the id alone must do. */
static int match_samples(verify_job *j)
{
    uint8_t *marks = cli_alloc(j->n_questions + 1, 1);
    renyi_vqa_answers *hashes = hash_inputs(j, marks);

    j->place = cli_alloc(j->info.n_samples + 1, sizeof *j->place);
    size_t n = place_samples(j, hashes, marks);
    if (hashes && n < j->info.n_samples) n = place_samples(j, NULL, marks);
    renyi_vqa_answers_free(hashes);
    free(marks);
    if (n == j->info.n_samples) return CLI_OK;
    cli_error("%s: its sample %zu, question '%s', is not among these questions in this order; give "
              "the questions of the result with --questions",
              j->a->manifest, n + 1, j->info.samples[n].id);
    return CLI_FAILED;
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Draws the share of the samples: at least one, without repetition. */
static int draw_samples(verify_job *j, uint64_t seed)
{
    const size_t n = j->info.n_samples;
    size_t left = (size_t)ceil(j->a->share.values[0] * (double)n);

    if (!n) {
        cli_error("%s: has no answers to check", j->a->manifest);
        return CLI_FAILED;
    }
    j->wanted = cli_alloc(j->n_questions, 1);
    for (size_t i = 0; i < n; i++) {
        if (next_random(&seed) % (n - i) >= left) continue;
        j->wanted[j->place[i]] = 1;
        left--;
        j->found.checked++;
    }
    return CLI_OK;
}

/* ---- the model ------------------------------------------------------------------------------- */

static void take_settings(verify_job *j)
{
    const verify_arguments *a = j->a;
    const renyi_manifest_info *i = &j->info;

    j->llava = (llava_arguments){.model = a->model ? a->model : i->path,
                                 .mmproj = a->mmproj ? a->mmproj : i->mmproj,
                                 .tower = a->tower ? a->tower : i->tower,
                                 .text_tower = a->text_tower ? a->text_tower : i->text_tower,
                                 .tokenizer = a->tokenizer ? a->tokenizer : i->tokenizer,
                                 .cpu = a->cpu,
                                 .dtype = i->dtype,
                                 .tower_dtype = i->tower_dtype,
                                 .threads = a->threads};
    j->sampling = (sampling_arguments){.max_new_tokens = i->max_new_tokens,
                                       .seed = i->seed ? strtoull(i->seed, NULL, 10) : 0};
    j->sampling.temperature.values[0] = isfinite(i->temperature) ? i->temperature : 0;
    j->sampling.top_p.values[0] = isfinite(i->top_p) ? i->top_p : 1;
}

/* Model and towers may have files of one name; sha256 NULL = any of them. */
static const renyi_manifest_file *find_file(const renyi_manifest_info *i, const char *name,
                                            const char *sha256)
{
    for (size_t k = 0; k < i->n_files; k++)
        if (strcmp(i->files[k].name, name) == 0 &&
            (!sha256 || strcmp(i->files[k].sha256, sha256) == 0))
            return &i->files[k];
    return NULL;
}

/* Every file of the result must be there with the same bytes. */
static int compare_files(verify_job *j)
{
    result_files here;
    int code = result_files_hash(&here, &j->llava);

    j->found.is_same_model = code == CLI_OK && here.count == j->info.n_files;
    for (size_t k = 0; code == CLI_OK && k < here.count; k++) {
        const renyi_manifest_file *f = &here.items[k];
        if (find_file(&j->info, f->name, f->sha256)) continue;
        j->found.is_same_model = 0;
        cli_error("%s: %s", f->name,
                  find_file(&j->info, f->name, NULL) ? "another SHA-256 than in the result"
                                                     : "is not a file of the result's model");
    }
    if (code == CLI_OK && here.count < j->info.n_files)
        cli_error("%s: %zu files of the model; the result has %zu", j->llava.model, here.count,
                  j->info.n_files);
    result_files_free(&here);
    return code;
}

/* ---- the run --------------------------------------------------------------------------------- */

static int is_close(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

/* The figures are those of the samples; the samples are checked by running some of them again. */
static int compare_score(verify_job *j)
{
    const renyi_manifest_info *i = &j->info;
    renyi_vqa_score s;
    renyi_error err = {0};

    if (renyi_manifest_score(j->manifest, j->questions, j->place, &s, &err) != RENYI_OK)
        return eval_error("verify", &err);
    j->found.score = s.score;
    j->found.is_same_score = is_close(i->score, s.score) && is_close(i->low, s.range.low) &&
                             is_close(i->high, s.range.high) &&
                             is_close(i->cognition, s.cognition) && is_close(i->total, s.total) &&
                             is_close(i->accuracy, s.accuracy);
    return CLI_OK;
}

static void compare_answers(verify_job *j, const renyi_vqa_answers *answers)
{
    verification *v = &j->found;

    for (size_t k = 0; k < j->info.n_samples; k++) {
        const renyi_manifest_sample *old = &j->info.samples[k];
        renyi_manifest_sample now;
        if (!j->wanted[j->place[k]]) continue;
        const int is_there = renyi_manifest_sample_of(answers, j->place[k], &now);
        const int is_same = is_there && now.input == old->input && now.answer == old->answer;
        if (is_same && is_close(now.worth, old->worth)) {
            v->same++;
            continue;
        }
        v->failed += !is_there;
        v->other_input += is_there && now.input != old->input;
        v->other_answer += is_there && now.input == old->input && !is_same;
        v->other_worth += is_same;
        cli_strings_add(&v->differing, cli_copy(old->id));
    }
}

static int run_again(verify_job *j)
{
    vqa_asking x = {.verb = "verify",
                    .images = j->a->images ? j->a->images : j->info.images,
                    .allow_outside = j->a->allow_outside,
                    .wanted = j->wanted,
                    .progress = {.title = "verify"}};
    renyi_vqa_answers *answers = NULL;
    vqa_model m = {0};
    int code = vqa_has_images(x.images) ? CLI_OK : CLI_FAILED;

    if (code == CLI_OK) code = vqa_model_open(&m, "verify", &j->llava, &j->sampling);
    m.max_new_tokens = j->info.max_new_tokens;
    catch_interrupt();
    if (code == CLI_OK) code = vqa_model_choose_policy(&m, "verify", j->info.policy);
    if (code == CLI_OK) code = vqa_ask_questions(&x, &m, j->questions, NULL, &answers);
    if (code == CLI_OK) compare_answers(j, answers);
    renyi_vqa_answers_free(answers);
    vqa_model_close(&m);
    work_progress_free(&x.progress);
    return code;
}

/* ---- the report ------------------------------------------------------------------------------ */

static int reproduces(const verification *v)
{
    return v->is_same_model && v->is_same_score && v->same == v->checked;
}

static void put_json(const verify_job *j, uint64_t seed)
{
    const verification *v = &j->found;
    json_t *ids = json_array();
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    for (size_t i = 0; i < v->differing.count; i++)
        json_array_append_new(ids, json_text(v->differing.items[i]));
    json_print(
        json_pack("{s:o, s:b, s:b, s:b, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o}",
                  "manifest", json_text(j->a->manifest), "reproduces", reproduces(v), "same_model",
                  v->is_same_model, "same_score", v->is_same_score, "task", json_text(j->info.task),
                  "policy", json_text(j->info.policy), "samples", (json_int_t)j->info.n_samples,
                  "checked", (json_int_t)v->checked, "same", (json_int_t)v->same, "other_input",
                  (json_int_t)v->other_input, "other_answer", (json_int_t)v->other_answer,
                  "other_worth", (json_int_t)v->other_worth, "failed", (json_int_t)v->failed,
                  "seed", text, "differing", ids));
}

static void put_text(const verify_job *j, uint64_t seed)
{
    const verification *v = &j->found;

    cli_print("%s: %s: %llu of %llu answers are the same (of %zu; --seed %llu)\n", j->a->manifest,
              reproduces(v) ? "reproduces" : "does not reproduce", (unsigned long long)v->same,
              (unsigned long long)v->checked, j->info.n_samples, (unsigned long long)seed);
    if (v->other_input)
        cli_print("  %llu with another question or image\n", (unsigned long long)v->other_input);
    if (v->other_answer)
        cli_print("  %llu with another answer\n", (unsigned long long)v->other_answer);
    if (v->other_worth)
        cli_print("  %llu with another worth of the same answer\n",
                  (unsigned long long)v->other_worth);
    if (v->failed) cli_print("  %llu without an answer\n", (unsigned long long)v->failed);
    for (size_t i = 0; i < v->differing.count && i < 10; i++)
        cli_print("  question %s\n", v->differing.items[i]);
    if (!v->is_same_score)
        cli_print(
            "  its figures do not follow from its answers: score %.4f, from the answers %.4f\n",
            j->info.score, v->score);
    if (!v->is_same_model) cli_print("  the model has other files\n");
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* What the manifest asks for; whether it fits the model is known when that is open. */
static int check_manifest(const verify_job *j)
{
    char full[RENYI_POLICY_MAX];
    renyi_error err = {0};

    if (j->info.max_new_tokens > MAX_NEW_TOKENS) {
        cli_error("%s: settings.max_new_tokens is %llu; at most %d accepted", j->a->manifest,
                  (unsigned long long)j->info.max_new_tokens, MAX_NEW_TOKENS);
        return CLI_FAILED;
    }
    if (j->sampling.temperature.values[0] > 0 && !j->info.seed) {
        cli_error("%s: settings.seed is missing, and settings.temperature is %g: answers that are "
                  "drawn cannot be repeated without it; run 'renyi vqa' again",
                  j->a->manifest, j->info.temperature);
        return CLI_FAILED;
    }
    if (renyi_policy_check(j->info.policy, NULL, full, sizeof full, &err) == RENYI_OK)
        return CLI_OK;
    cli_error("%s: policy.full: %s", j->a->manifest, cli_reason(&err));
    return CLI_FAILED;
}

static int verify(verify_job *j, uint64_t seed)
{
    renyi_error err = {0};

    if (renyi_manifest_read(&j->manifest, j->a->manifest, NULL, &err) != RENYI_OK)
        return cli_fail(&err);
    renyi_manifest_get_info(j->manifest, &j->info);
    take_settings(j);
    if (!j->llava.model) return options_usage_error("verify", "-m LLAVA is missing");
    int code = check_manifest(j);
    if (code == CLI_OK) code = open_questions(j);
    if (code == CLI_OK) code = match_samples(j);
    if (code == CLI_OK) code = compare_score(j);
    if (code == CLI_OK) code = draw_samples(j, seed);
    if (code == CLI_OK) code = compare_files(j);
    if (code == CLI_OK) code = run_again(j);
    if (code != CLI_OK) return code;
    if (j->a->json)
        put_json(j, seed);
    else
        put_text(j, seed);
    return reproduces(&j->found) ? CLI_OK : CLI_FAILED;
}

static int check_arguments(verify_arguments *a, const cli_strings *arguments)
{
    const double share = a->share.values[0];

    if (arguments->count != 1)
        return options_usage_error(
            "verify", "%s", arguments->count ? "one manifest at a time" : "a manifest is missing");
    a->manifest = arguments->items[0];
    if (!(share > 0 && share <= 1))
        return options_usage_error("verify", "option '--share': %g is not above 0 and at most 1",
                                   share);
    return CLI_OK;
}

static option_outcome parse_options(verify_arguments *a, const char **seed, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"share", 0, OPTION_REAL, &a->share, "R", "share of the answers to check (0.01)", 0, 0},
        {"seed", 's', OPTION_STRING, seed, "N", "chooses them (a new one each time; it is printed)",
         0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document on stdout", 0, 0},
        {"model", 'm', OPTION_STRING, &a->model, "LLAVA", "the model (as in MANIFEST)", 0, 0},
        {"mmproj", 0, OPTION_STRING, &a->mmproj, "FILE",
         "its GGUF with tower and projector (as in MANIFEST)", 0, 0},
        {"tower", 0, OPTION_STRING, &a->tower, "DIR", "its image tower (as in MANIFEST)", 0, 0},
        {"text-tower", 0, OPTION_STRING, &a->text_tower, "DIR",
         "the CLIP of cdpruner (as in MANIFEST)", 0, 0},
        {"tokenizer", 0, OPTION_STRING, &a->tokenizer, "PATH", "its tokenizer (as in MANIFEST)", 0,
         0},
        {"questions", 0, OPTION_STRING, &a->questions, "FILE", "the questions (as in MANIFEST)", 0,
         0},
        {"annotations", 0, OPTION_STRING, &a->annotations, "PATH",
         "the right answers (as in MANIFEST)", 0, 0},
        {"images", 0, OPTION_STRING, &a->images, "DIR", "folder of the images (as in MANIFEST)", 0,
         0},
        {"allow-outside", 0, OPTION_FLAG, &a->allow_outside, "",
         "questions may name images outside this folder (refused)", 0, 0},
        {"cpu", 0, OPTION_CHOICE, &a->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0},
        {"threads", 't', OPTION_COUNT, &a->threads, "N", "threads (physical cores)", 1, 1024},
    };
    const verb_syntax syntax = {
        "verify", "MANIFEST [-m LLAVA] [--questions FILE] [--images DIR] [options]",
        "Runs a random part of a result again and says whether it reproduces: the same files of the model, the\n"
        "same questions and images, the same answers and score. Exit code 0: it does; 1: it does not, or it\n"
        "cannot be run.",
        "  renyi verify out/pope/none.json\n"
        "  renyi verify none.json -m llava-1.5-7b-hf --questions coco --images val2014 --share 0.05 --json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

static int take_seed(const char *text, uint64_t *seed)
{
    char *end;

    if (!text) {
        if (getentropy(seed, sizeof *seed)) *seed = 1;
        *seed >>= 32; /* short enough to type */
        return CLI_OK;
    }
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno) return CLI_OK;
    return options_usage_error(
        "verify", "option '--seed': '%s' is not a whole number of at most 64 bits", text);
}

static void free_job(verify_job *j)
{
    renyi_manifest_free(j->manifest);
    renyi_vqa_free(j->questions);
    cli_strings_free(&j->found.differing);
    free(j->place);
    free(j->wanted);
}

int cmd_verify(int argc, char **argv)
{
    verify_arguments a = {.share = {.values = {0.01}}};
    verify_job j = {.a = &a};
    cli_strings arguments = {0};
    const char *seed_text = NULL;
    uint64_t seed = 0;
    const option_outcome outcome = parse_options(&a, &seed_text, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&a, &arguments)) == CLI_OK &&
        (code = take_seed(seed_text, &seed)) == CLI_OK)
        code = verify(&j, seed);
    free_job(&j);
    cli_strings_free(&arguments);
    return code;
}
