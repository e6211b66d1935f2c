/* vqa_run_file.c - the file of answers of a VQA run: resumed, added to, put in order; and the
 * answers that ranks exchange, as the lines of that file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "eval/vqa/vqa_run.h"

#include <stdio.h>
#include <string.h>

/* ---- the file ------------------------------------------------------------------------------ */

static renyi_status read_file(void *user, const char *path, const char *bytes, size_t size,
                              size_t *whole, uint64_t *n_foreign, renyi_error *err)
{
    ry_vqa_run *r = user;
    *n_foreign = 0; /* lines of other runs are an error */
    RY_TRY(ry_vqa_answers_take(r->a, path, bytes, size, whole, err));
    if (strcmp(path, r->file.base) == 0) r->n_lines = r->a->info.n_answered + r->a->info.n_repeated;
    return RENYI_OK;
}

/* The file must be of this run: it is written again at the end, and nothing in it may be lost. */
static renyi_status check_answers(const ry_vqa_run *r, renyi_error *err)
{
    const renyi_vqa_answers_info *i = &r->a->info;
    if (i->n_foreign)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s: %llu of its answers are to other questions; give the questions that it "
                       "was made for, or another file",
                       r->o.answers, (unsigned long long)i->n_foreign);
    if (!i->n_answered || strcmp(r->a->run, r->words.id) == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s: answers of '%.80s' with policy '%.120s', not of this run (or with other "
                   "settings, such as the length of answers); give another file",
                   r->o.answers, i->model, i->policy ? i->policy : "none");
}

renyi_status ry_vqa_file_open(ry_vqa_run *r, renyi_error *err)
{
    RY_TRY(ry_run_file_open(&r->file, r->o.answers, r->shared.ranks.r.rank, &r->v->al, err));
    if (!r->o.answers) return RENYI_OK;
    RY_TRY(ry_run_file_read(&r->file, r->o.resume != 0, r->v->max_file_bytes, read_file, r, err));
    return check_answers(r, err);
}

renyi_status ry_vqa_file_put(ry_vqa_run *r, const char *line, renyi_error *err)
{
    const size_t n = strlen(line);
    if (!r->file.base) return RENYI_OK;
    char *ended = ry_alloc(&r->v->al, n + 1, 1); /* in one write, so that lines are complete */
    if (!ended) return ry_fail_nomem(err, n + 1);
    memcpy(ended, line, n);
    ended[n] = '\n';
    const renyi_status st = ry_run_file_write(&r->file, ended, n + 1, err);
    ry_free(&r->v->al, ended);
    return st;
}

static renyi_status write_all(const ry_vqa_run *r, ry_output_file *out, renyi_error *err)
{
    for (size_t i = 0; i < r->v->count; i++) {
        const char *line = r->a->items[i].line;
        if (!line) continue;
        RY_TRY(ry_output_file_write(out, line, strlen(line), err));
        RY_TRY(ry_output_file_write(out, "\n", 1, err));
    }
    return RENYI_OK;
}

renyi_status ry_vqa_file_settle(ry_vqa_run *r, renyi_error *err)
{
    ry_output_file out;
    const renyi_ranks *ranks = &r->shared.ranks.r;
    if (!r->file.base || ranks->rank) return RENYI_OK;
    if (!r->n_lines && !r->file.n_parts && ranks->n_ranks == 1) return RENYI_OK; /* in order */
    RY_TRY(ry_output_file_open(&out, r->o.answers, &r->v->al, err));
    return ry_output_file_close(&out, write_all(r, &out, err), &r->v->al, err);
}

/* ---- ranks --------------------------------------------------------------------------------- */

renyi_status ry_vqa_compare_ranks(ry_vqa_run *r, renyi_error *err)
{
    ry_ranks *k = &r->shared.ranks;
    uint64_t mine = ry_hash_add_text(RY_HASH_START, r->words.id), other;
    mine = ry_hash_add(mine, &r->v->info.fingerprint, sizeof mine);
    for (size_t i = 0; i < r->v->count; i++)
        mine = ry_hash_add_text(mine, r->a->items[i].text ? r->a->items[i].text : "");
    memcpy(k->mine, &mine, sizeof mine);
    RY_TRY(ry_ranks_gather(k, sizeof mine, err));
    for (uint32_t i = 0; i < k->r.n_ranks; i++) {
        memcpy(&other, k->all + i * sizeof other, sizeof other);
        if (memcmp(&other, k->all, sizeof other) != 0)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "rank %u has other questions, settings or answers than rank 0; all must "
                           "see the same files",
                           i);
    }
    return RENYI_OK;
}

/* Lines are sent as one stream of bytes, because a line may be longer than a chunk. */
typedef struct line_exchange {
    ry_vqa_run *r;
    size_t line, at;  /* the next byte to send: place in r->own, and in that line */
    ry_buffer *tails; /* [n_ranks] received bytes of a line that is not complete yet */
} line_exchange;

static size_t send_lines(void *user, unsigned char *to, size_t space)
{
    line_exchange *x = user;
    const ry_vqa_run *r = x->r;
    if (x->line == r->n_own) return 0;
    const char *line = r->a->items[r->own[x->line]].line;
    const size_t left = strlen(line) + 1 - x->at, n = left < space ? left : space;
    memcpy(to, line + x->at, n);
    x->at += n;
    if (n == left) {
        to[n - 1] = '\n'; /* instead of the NUL */
        x->line++;
        x->at = 0;
    }
    return n;
}

static renyi_status receive_lines(void *user, uint32_t rank, const unsigned char *bytes, size_t n,
                                  renyi_error *err)
{
    line_exchange *x = user;
    ry_buffer *t = &x->tails[rank];
    char name[32];
    size_t whole;
    snprintf(name, sizeof name, "answers of rank %u", rank);
    ry_buffer_put(t, bytes, n);
    if (t->failed) return ry_fail_nomem(err, t->size + n);
    RY_TRY(ry_vqa_answers_take(x->r->a, name, t->bytes, t->size, &whole, err));
    t->size -= whole;
    memmove(t->bytes, t->bytes + whole, t->size);
    return RENYI_OK;
}

renyi_status ry_vqa_share(ry_vqa_run *r, renyi_error *err)
{
    ry_ranks *k = &r->shared.ranks;
    const renyi_allocator *al = &r->v->al;
    line_exchange x = {.r = r};
    const ry_exchange exchange = {&x, send_lines, receive_lines};
    if (k->r.n_ranks == 1) return RENYI_OK;
    x.tails = ry_calloc(al, k->r.n_ranks, sizeof *x.tails);
    renyi_status st = x.tails ? RENYI_OK : ry_fail_nomem(err, k->r.n_ranks * sizeof *x.tails);
    for (uint32_t i = 0; x.tails && i < k->r.n_ranks; i++) x.tails[i].al = al;
    st = ry_ranks_agree(k, st, err);
    if (!st) st = ry_exchange_all(k, &exchange, err);
    for (uint32_t i = 0; x.tails && i < k->r.n_ranks; i++) ry_buffer_free(&x.tails[i]);
    ry_free(al, x.tails);
    return st;
}
