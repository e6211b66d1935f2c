/* verbs.h - the table of verbs: one row for each.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A new verb is a file cmd_<verb>.c in its own folder, which includes this header, and a row here:
 *
 *     ROW(name, function, under mpirun, summary)
 *
 * The function gets the verb's name as argv[0], answers --help itself (options_parse) and returns
 * an exit code. The table is a macro so that it declares the functions, too.
 */
#ifndef RENYI_VERBS_H
#define RENYI_VERBS_H

typedef int cli_verb(int argc, char **argv);

/* What mpirun -n 4 renyi VERB does. */
typedef enum verb_ranks {
    VERB_SHARES,  /* the ranks share the work; the first one prints */
    VERB_REFUSES, /* wrong usage: the copies would write the same files */
    VERB_REPEATS  /* each copy does all the work and prints it */
} verb_ranks;

/* clang-format off */
#define CLI_VERBS(ROW) \
    ROW("classify", cmd_classify, VERB_REPEATS, "name what images show") \
    ROW("eval", cmd_eval, VERB_SHARES, "accuracy, MACs and milliseconds of pruning policies on your images") \
    ROW("zeroshot", cmd_zeroshot, VERB_SHARES, "accuracy of a CLIP model on classes given as text") \
    ROW("embed", cmd_embed, VERB_REFUSES, "write embeddings of images and texts to a file") \
    ROW("search", cmd_search, VERB_REFUSES, "find the images of a folder that are nearest to a text or an image") \
    ROW("ask", cmd_ask, VERB_REFUSES, "answer questions about images (LLaVA), or continue a text (Llama)") \
    ROW("serve", cmd_serve, VERB_REFUSES, "answer over HTTP: classes, embeddings, zero-shot, chats, and a page") \
    ROW("encode-image", cmd_encode_image, VERB_REFUSES, "write the visual tokens of images to a file for other engines") \
    ROW("vqa", cmd_vqa, VERB_SHARES, "benchmarks of questions about images: answers, scores, submissions") \
    ROW("table", cmd_table, VERB_SHARES, "the table of a LLaVA: methods x budgets on benchmarks, with paired tests") \
    ROW("verify", cmd_verify, VERB_REFUSES, "run a random part of a result again: does it reproduce?") \
    ROW("board", cmd_board, VERB_REFUSES, "a page with all results of a folder side by side, and their paired tests") \
    ROW("merge", cmd_merge, VERB_REFUSES, "one result from the logs of an evaluation that ran in parts") \
    ROW("sweep", cmd_sweep, VERB_SHARES, "models x sizes x policies on the same images: table, charts, page") \
    ROW("tune", cmd_tune, VERB_REFUSES, "find the fastest policy within a loss, or the most accurate within a time") \
    ROW("plot", cmd_plot, VERB_REPEATS, "loss and accuracy curves of training runs") \
    ROW("viz", cmd_viz, VERB_REPEATS, "see what a model looks at in an image and what pruning drops of it") \
    ROW("paper", cmd_paper, VERB_SHARES, "the paper's tables beside what this machine computes") \
    ROW("bench", cmd_bench, VERB_REPEATS, "measure speed and memory of a model on this machine") \
    ROW("flops", cmd_flops, VERB_REPEATS, "count tokens and multiply-accumulates of pruning policies") \
    ROW("policies", cmd_policies, VERB_REPEATS, "list the pruning policies that --prune takes") \
    ROW("inspect", cmd_inspect, VERB_REPEATS, "describe a model: family, sizes, preprocessing, tensors") \
    ROW("tokenize", cmd_tokenize, VERB_REPEATS, "print the token ids and pieces of texts (CLIP, SigLIP, Llama)") \
    ROW("train", cmd_train, VERB_SHARES, "train a model, from scratch or from weights, with or without pruned tokens") \
    ROW("quantize", cmd_quantize, VERB_REFUSES, "write a model with 8-bit weights") \
    ROW("init", cmd_init, VERB_REPEATS, "write a model with random weights") \
    ROW("pull", cmd_pull, VERB_REPEATS, "download a model from Hugging Face")
/* clang-format on */

#define DECLARE_VERB(name, function, ranks, summary) cli_verb function;
CLI_VERBS(DECLARE_VERB)
#undef DECLARE_VERB

#endif
