/* merge_list.c - a row of symbols whose neighbors are joined in the order of their ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/merge_list.h"

#include "base/alloc.h"
#include "base/status.h"

/* A possible join. It is stale if one of the two symbols has changed since it was put on the heap.
 */
struct ry_candidate {
    ry_join join;
    uint32_t place;       /* of the left symbol */
    uint32_t left, right; /* ids */
};

/* ---- heap ---------------------------------------------------------------------------------- */

static int comes_first(const ry_candidate *a, const ry_candidate *b)
{
    return a->join.rank != b->join.rank ? a->join.rank < b->join.rank : a->place < b->place;
}

static void push(ry_merge_list *l, ry_candidate c)
{
    size_t at = l->n_heap++;
    for (; at && comes_first(&c, &l->heap[(at - 1) / 2]); at = (at - 1) / 2)
        l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = c;
}

static ry_candidate pop(ry_merge_list *l)
{
    const ry_candidate top = l->heap[0], last = l->heap[--l->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < l->n_heap; at = child) {
        if (child + 1 < l->n_heap && comes_first(&l->heap[child + 1], &l->heap[child])) child++;
        if (!comes_first(&l->heap[child], &last)) break;
        l->heap[at] = l->heap[child];
    }
    l->heap[at] = last;
    return top;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Every symbol is considered once and every join adds two candidates: at most 3 n. */
static void layout(ry_arena *a, size_t n, ry_merge_list *l)
{
    l->id = RY_TAKE(a, n, uint32_t);
    l->before = RY_TAKE(a, n, uint32_t);
    l->behind = RY_TAKE(a, n, uint32_t);
    l->heap = RY_TAKE(a, 3 * n, ry_candidate);
}

renyi_status ry_merge_list_reset(ry_merge_list *l, size_t n, const renyi_allocator *al,
                                 renyi_error *err)
{
    if (n > l->capacity) {
        const size_t capacity =
            n < 256 ? 256 : n + n / 8; /* the next text is often a little longer */
        ry_arena measure = {0};
        layout(&measure, capacity, l);
        ry_merge_list_free(l, al);
        l->block = ry_alloc(al, measure.used, 1);
        if (!l->block) return ry_fail_nomem(err, measure.used);
        ry_arena bind = {l->block, 0, measure.used, 0};
        layout(&bind, capacity, l);
        l->capacity = capacity;
    }
    l->n_heap = 0;
    l->last = RY_NOWHERE;
    return RENYI_OK;
}

void ry_merge_list_free(ry_merge_list *l, const renyi_allocator *al)
{
    ry_free(al, l->block);
    *l = (ry_merge_list){0};
}

/* ---- joins --------------------------------------------------------------------------------- */

void ry_merge_list_put(ry_merge_list *l, uint32_t place, uint32_t id)
{
    l->id[place] = id;
    l->before[place] = l->last;
    l->behind[place] = RY_NOWHERE;
    if (l->last != RY_NOWHERE) l->behind[l->last] = place;
    l->last = place;
}

/* If the symbol at `place` can be joined with the next one, puts that on the heap. */
static void consider(ry_merge_list *l, const ry_merge_rule *rule, uint32_t place)
{
    if (place == RY_NOWHERE || l->behind[place] == RY_NOWHERE) return;
    const uint32_t right = l->behind[place];
    ry_join join;
    if (rule->join(rule->self, l, place, right, &join))
        push(l, (ry_candidate){join, place, l->id[place], l->id[right]});
}

static void join_candidate(ry_merge_list *l, const ry_merge_rule *rule, const ry_candidate *c)
{
    const uint32_t gone = l->behind[c->place];
    if (l->id[c->place] != c->left || gone == RY_NOWHERE || l->id[gone] != c->right) return;
    l->id[c->place] = c->join.whole;
    l->id[gone] = RY_NOWHERE;
    l->behind[c->place] = l->behind[gone];
    if (l->behind[gone] != RY_NOWHERE) l->before[l->behind[gone]] = c->place;
    consider(l, rule, l->before[c->place]);
    consider(l, rule, c->place);
}

void ry_merge_list_run(ry_merge_list *l, const ry_merge_rule *rule)
{
    if (l->last == RY_NOWHERE) return;
    for (uint32_t at = 0; at != RY_NOWHERE; at = l->behind[at]) consider(l, rule, at);
    while (l->n_heap) {
        const ry_candidate c = pop(l);
        join_candidate(l, rule, &c);
    }
}
