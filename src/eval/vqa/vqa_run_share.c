/* vqa_run_share.c - ranks compare what they are about to ask, and swap answers: as the lines that
 * they would write.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "eval/vqa/vqa_run.h"

#include <stdio.h>
#include <string.h>

renyi_status ry_vqa_meet(ry_vqa_run *r, renyi_error *err)
{
    ry_ranks *k = &r->ranks;
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

/* ---- swapping ------------------------------------------------------------------------------ */

typedef struct swap {
    char *mine;      /* lines of this rank */
    uint64_t *sizes; /* [n_ranks] bytes of each */
    char **theirs;   /* [n_ranks]; own NULL */
    uint64_t largest;
} swap;

static renyi_status collect(ry_vqa_run *r, swap *s, renyi_error *err)
{
    const renyi_allocator *al = &r->v->al;
    const uint32_t n_ranks = r->ranks.r.n_ranks;
    size_t size = 0;
    for (size_t i = 0; i < r->n_own; i++) size += strlen(r->a->items[r->own[i]].line) + 1;
    s->mine = ry_alloc(al, size, 1);
    s->sizes = ry_calloc(al, n_ranks, sizeof *s->sizes);
    s->theirs = ry_calloc(al, n_ranks, sizeof *s->theirs);
    if (!s->mine || !s->sizes || !s->theirs) return ry_fail_nomem(err, size);
    char *to = s->mine;
    for (size_t i = 0; i < r->n_own; i++) {
        const char *line = r->a->items[r->own[i]].line;
        const size_t n = strlen(line);
        memcpy(to, line, n);
        to[n] = '\n';
        to += n + 1;
    }
    s->sizes[r->ranks.r.rank] = size;
    return RENYI_OK;
}

static renyi_status make_room(ry_vqa_run *r, swap *s, renyi_error *err)
{
    for (uint32_t i = 0; i < r->ranks.r.n_ranks; i++) {
        if (s->sizes[i] > s->largest) s->largest = s->sizes[i];
        if (i == r->ranks.r.rank) continue;
        s->theirs[i] = ry_alloc(&r->v->al, (size_t)s->sizes[i], 1);
        if (!s->theirs[i]) return ry_fail_nomem(err, (size_t)s->sizes[i]);
    }
    return RENYI_OK;
}

static renyi_status tell_sizes(ry_vqa_run *r, swap *s, renyi_error *err)
{
    ry_ranks *k = &r->ranks;
    memcpy(k->mine, &s->sizes[k->r.rank], sizeof *s->sizes);
    RY_TRY(ry_ranks_gather(k, sizeof *s->sizes, err));
    memcpy(s->sizes, k->all, k->r.n_ranks * sizeof *s->sizes);
    return RENYI_OK;
}

static renyi_status tell_lines(ry_vqa_run *r, swap *s, renyi_error *err)
{
    ry_ranks *k = &r->ranks;
    const uint64_t own = s->sizes[k->r.rank];
    for (uint64_t at = 0; at < s->largest; at += k->chunk) {
        if (at < own)
            memcpy(k->mine, s->mine + at, (size_t)(own - at < k->chunk ? own - at : k->chunk));
        RY_TRY(ry_ranks_gather(k, k->chunk, err));
        for (uint32_t i = 0; i < k->r.n_ranks; i++) {
            if (i == k->r.rank || at >= s->sizes[i]) continue;
            const uint64_t left = s->sizes[i] - at;
            memcpy(s->theirs[i] + at, k->all + i * k->chunk,
                   (size_t)(left < k->chunk ? left : k->chunk));
        }
    }
    return RENYI_OK;
}

static renyi_status take_all(ry_vqa_run *r, const swap *s, renyi_error *err)
{
    for (uint32_t i = 0; i < r->ranks.r.n_ranks; i++) {
        char name[32];
        size_t whole;
        if (!s->theirs[i]) continue;
        snprintf(name, sizeof name, "answers of rank %u", i);
        RY_TRY(ry_vqa_answers_take(r->a, name, s->theirs[i], (size_t)s->sizes[i], &whole, err));
    }
    return RENYI_OK;
}

renyi_status ry_vqa_share(ry_vqa_run *r, renyi_error *err)
{
    swap s = {0};
    ry_ranks *k = &r->ranks;
    if (k->r.n_ranks == 1) return RENYI_OK;
    renyi_status st = ry_ranks_agree(k, collect(r, &s, err), err);
    if (!st) st = tell_sizes(r, &s, err);
    if (!st) st = ry_ranks_agree(k, make_room(r, &s, err), err);
    if (!st) st = tell_lines(r, &s, err);
    if (!st) st = ry_ranks_agree(k, take_all(r, &s, err), err);
    for (uint32_t i = 0; s.theirs && i < k->r.n_ranks; i++) ry_free(&r->v->al, s.theirs[i]);
    ry_free(&r->v->al, s.theirs);
    ry_free(&r->v->al, s.sizes);
    ry_free(&r->v->al, s.mine);
    return st;
}
