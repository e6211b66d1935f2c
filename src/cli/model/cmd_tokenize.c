/* cmd_tokenize.c - renyi tokenize: the ids and pieces of texts, with the tokenizer of CLIP, SigLIP
 * or Llama.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/files.h"
#include "cli/kit/output.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"

#include "renyi/lm.h"
#include <stdlib.h>
#include <string.h>

typedef struct tokenize_options {
    const char *model, *tokenizer, *text_file;
    int no_special, truncate, json;
} tokenize_options;

/* One of the two is set. */
typedef struct any_tokenizer {
    renyi_tokenizer *clip;
    renyi_lm_tokenizer *lm;
    const char *source, *kind; /* the file; of a text tower, or the kind of Llama's file */
    uint32_t n_ids;
} any_tokenizer;

/* The ids of one text. */
typedef struct token_list {
    int32_t *ids; /* [n] from ids[0]; owned */
    size_t n;
} token_list;

/* ---- the tokenizer ------------------------------------------------------------------------- */

static void close_tokenizer(any_tokenizer *t)
{
    renyi_tokenizer_free(t->clip);
    renyi_lm_tokenizer_free(t->lm);
}

/* A file tells which of the two it is: each reader refuses the other's. 0, or -1 after reporting.
 */
static int open_tokenizer(any_tokenizer *t, const char *path, int is_model)
{
    renyi_error no_lm = {0}, no_clip = {0};

    *t = (any_tokenizer){0};
    if (renyi_tokenizer_open(&t->clip, path, NULL, &no_clip) == RENYI_OK) {
        renyi_tokenizer_info info;
        renyi_tokenizer_get_info(t->clip, &info);
        *t = (any_tokenizer){
            .clip = t->clip, .source = info.source, .kind = info.kind, .n_ids = info.n_ids};
        return 0;
    }
    if (renyi_lm_tokenizer_open(&t->lm, path, NULL, &no_lm) == RENYI_OK) {
        renyi_lm_tokenizer_info info;
        renyi_lm_tokenizer_get_info(t->lm, &info);
        *t = (any_tokenizer){
            .lm = t->lm, .source = info.source, .kind = info.kind, .n_ids = info.n_ids};
        return 0;
    }
    if (no_lm.code == RENYI_ERR_IO && no_clip.code == RENYI_ERR_IO)
        cli_error(
            "%s: no tokenizer here, neither CLIP's or SigLIP's (tokenizer.json, spiece.model, "
            "vocab.json, bpe_simple_vocab_16e6.txt.gz) nor Llama's (tokenizer.json, tokenizer.model, "
            "pieces.json)%s",
            path, is_model ? "; give --tokenizer PATH" : "");
    else if (no_lm.code == RENYI_ERR_IO)
        cli_fail(&no_clip);
    else if (no_clip.code == RENYI_ERR_IO)
        cli_fail(&no_lm);
    else
        cli_error("%s; and not CLIP's either: %s", no_lm.message, no_clip.message);
    return -1;
}

/* ---- one text ------------------------------------------------------------------------------ */

/* CLIP: start, the text, end. SigLIP: the text, end. */
static renyi_status encode_clip(const any_tokenizer *t, const tokenize_options *o, const char *text,
                                token_list *out, renyi_error *err)
{
    uint32_t n = 0;
    renyi_status st = renyi_tokenizer_count(t->clip, text, strlen(text), &n, err);

    renyi_tokenizer_info info;
    renyi_tokenizer_get_info(t->clip, &info);
    const uint32_t context =
        strcmp(info.kind, "clip") == 0 ? RENYI_CLIP_CONTEXT : RENYI_SIGLIP_CONTEXT;

    if (st != RENYI_OK) return st;
    if (o->truncate && n > context) n = context;
    const uint32_t capacity = n > 2 ? n : 2; /* the least that is accepted */
    out->ids = cli_alloc(capacity, sizeof *out->ids);
    st = renyi_tokenizer_encode(t->clip, text, strlen(text), capacity, o->truncate, out->ids, &n,
                                err);
    out->n = st == RENYI_OK ? n : 0;
    if (o->no_special) {
        const size_t before = info.sot >= 0 && out->n, after = info.eot >= 0 && out->n > before;
        out->n -= before + after;
        memmove(out->ids, out->ids + before, out->n * sizeof *out->ids);
    }
    return st;
}

/* Llama: bos, the text. */
static renyi_status encode_lm(const any_tokenizer *t, const tokenize_options *o, const char *text,
                              token_list *out, renyi_error *err)
{
    renyi_lm_tokenizer_info info;

    renyi_lm_tokenizer_get_info(t->lm, &info);
    const uint32_t flags = o->no_special || info.bos < 0 ? 0 : RENYI_LM_BOS;
    const renyi_status st =
        renyi_lm_tokenizer_encode(t->lm, text, strlen(text), flags, NULL, 0, &out->n, err);
    if (st != RENYI_OK) return st;
    out->ids = cli_alloc(out->n, sizeof *out->ids);
    return renyi_lm_tokenizer_encode(t->lm, text, strlen(text), flags, out->ids, out->n, &out->n,
                                     err);
}

/* Owned. */
static char *piece_of(const any_tokenizer *t, int32_t id)
{
    size_t size = 0;
    const char *piece = t->lm ? renyi_lm_tokenizer_piece(t->lm, id, &size)
                              : renyi_tokenizer_piece(t->clip, id, &size);

    return cli_format("%.*s", (int)size, piece ? piece : "");
}

static void put_text(const any_tokenizer *t, const token_list *l)
{
    for (size_t i = 0; i < l->n; i++) printf("%s%d", i ? " " : "", (int)l->ids[i]);
    putchar('\n');
    for (size_t i = 0; i < l->n; i++) {
        char *piece = piece_of(t, l->ids[i]);
        if (i) putchar(' ');
        cli_put_clean(stdout, piece);
        free(piece);
    }
    putchar('\n');
}

static json_t *text_json(const any_tokenizer *t, const char *text, const token_list *l)
{
    json_t *ids = json_array(), *pieces = json_array();

    for (size_t i = 0; i < l->n; i++) {
        char *piece = piece_of(t, l->ids[i]);
        json_array_append_new(ids, json_integer(l->ids[i]));
        json_array_append_new(pieces, json_text(piece));
        free(piece);
    }
    return json_pack("{s:o, s:o, s:o}", "text", json_text(text), "ids", ids, "pieces", pieces);
}

/* ---- run ----------------------------------------------------------------------------------- */

static int run_texts(const tokenize_options *o, const any_tokenizer *t, const cli_strings *texts)
{
    json_t *list = o->json ? json_array() : NULL;
    size_t n_failed = 0;

    for (size_t i = 0; i < texts->count; i++) {
        const char *text = texts->items[i];
        token_list l = {0};
        renyi_error err = {0};
        const renyi_status st =
            t->lm ? encode_lm(t, o, text, &l, &err) : encode_clip(t, o, text, &l, &err);
        if (st != RENYI_OK) {
            cli_error("text %zu: %s", i + 1, cli_reason(&err));
            n_failed++;
        } else if (list) {
            json_array_append_new(list, text_json(t, text, &l));
        } else {
            put_text(t, &l);
        }
        free(l.ids);
    }
    if (list)
        json_print(json_pack("{s:o, s:s, s:I, s:o}", "tokenizer", json_text(t->source), "kind",
                             t->kind, "ids", (json_int_t)t->n_ids, "texts", list));
    return !n_failed ? CLI_OK : n_failed < texts->count ? CLI_PARTIAL : CLI_FAILED;
}

/* One text per line. 0, or -1 after reporting. */
static int read_texts(cli_strings *texts, const char *file)
{
    enum { MAX_TEXT_BYTES = 256 << 20 };
    char *why = NULL;

    if (!read_lines(file, MAX_TEXT_BYTES, texts, &why)) return 0;
    cli_error("%s: %s", strcmp(file, "-") == 0 ? "stdin" : file, why);
    free(why);
    return -1;
}

static int run_tokenize(const tokenize_options *o, cli_strings *texts)
{
    any_tokenizer t = {0};
    int code = CLI_FAILED;

    if ((o->text_file || !texts->count) && read_texts(texts, o->text_file ? o->text_file : "-"))
        return CLI_FAILED;
    char *path = o->tokenizer ? cli_copy(o->tokenizer) : model_path_resolve(o->model);
    if (path && open_tokenizer(&t, path, !o->tokenizer) == 0) {
        cli_detail("tokenizer: %s (%s), %u ids", t.source, t.kind, t.n_ids);
        code = run_texts(o, &t, texts);
    }
    close_tokenizer(&t);
    free(path);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

int cmd_tokenize(int argc, char **argv)
{
    tokenize_options o = {0};
    cli_strings texts = {0};
    const option table[] = {
        {"model", 'm', OPTION_STRING, &o.model, "MODEL",
         "CLIP, SigLIP, Llama or LLaVA: directory, file, or Hugging Face name in the cache", 0, 0},
        {"tokenizer", 0, OPTION_STRING, &o.tokenizer, "PATH",
         "its file, or the folder of it, instead of a model", 0, 0},
        {"text-file", 0, OPTION_STRING, &o.text_file, "FILE", "texts, one per line; - is stdin", 0,
         0},
        {"no-special", 0, OPTION_FLAG, &o.no_special, "",
         "without the ids that begin and end a text", 0, 0},
        {"truncate", 0, OPTION_FLAG, &o.truncate, "",
         "CLIP: at most 77 ids, SigLIP: 64, as for 'embed'", 0, 0},
        {"json", 0, OPTION_FLAG, &o.json, "", "one JSON document on stdout", 0, 0},
    };
    const verb_syntax syntax = {
        "tokenize", "{-m MODEL | --tokenizer PATH} [TEXTS...] [options]",
        "Prints the ids of each text, and below them their pieces as the tokenizer's file writes them: </w> ends\n"
        "a word of CLIP's, U+2581 is a blank of SigLIP's and Llama's. CLIP's texts begin and end with a special\n"
        "id, SigLIP's end and Llama's begin with one, as the models read them. Without TEXTS the lines of\n"
        "stdin are read.",
        "  renyi tokenize -m openai/clip-vit-base-patch16 'a photo of a cat'\n"
        "  renyi tokenize -m google/siglip2-base-patch16-224 'A photo of a cat.'\n"
        "  renyi tokenize --tokenizer tokenizer.model 'Once upon a time' --json\n"
        "  printf 'one\\ntwo\\n' | renyi tokenize -m llava --no-special\n",
        OPTIONS_OF(table)};
    const option_outcome outcome = options_parse(&syntax, argc, argv, &texts);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && !o.model && !o.tokenizer)
        code = options_usage_error("tokenize", "-m MODEL or --tokenizer PATH is missing");
    else if (outcome == OPTIONS_GO)
        code = run_tokenize(&o, &texts);
    cli_strings_free(&texts);
    return code;
}
