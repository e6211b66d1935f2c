/* evaluation_share.c - ranks of an evaluation check that they run the same, and exchange answers
 * and failures as records. Records of other ranks are validated, although ranks run the same
 * program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/status.h"
#include "eval/run/evaluation.h"

#include <string.h>

/* ---- do all ranks run the same? ------------------------------------------------------------ */

typedef struct rank_setup {
    uint64_t run, images, policies; /* hashes */
    uint64_t answers;               /* hash of the answers in the logs */
    uint64_t n_images;
    uint32_t cpu, answer_size;
} rank_setup;

static uint64_t hash_images(const renyi_eval *e)
{
    uint64_t hash = RY_HASH_START;
    for (size_t i = 0; i < e->n_images; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(e->data, i, &image);
        hash = ry_hash_add_text(hash, image.file);
        hash = ry_hash_add(hash, &image.index, sizeof image.index);
        hash = ry_hash_add(hash, &image.label, sizeof image.label);
        hash = ry_hash_add(hash, image.right, image.n_right * sizeof *image.right);
    }
    return hash;
}

static uint64_t hash_answers(const renyi_eval *e)
{
    uint64_t hash = RY_HASH_START;
    for (size_t i = 0; i < e->n_images * e->o.n_policies; i++) {
        const ry_answer *a = &e->answers[i];
        hash = ry_hash_add(hash, &a->state, sizeof a->state);
        if (a->state == RY_ANSWER_GIVEN) hash = ry_hash_add(hash, a->top, sizeof a->top);
    }
    return hash;
}

static rank_setup describe_setup(const renyi_eval *e)
{
    renyi_model_info model;
    renyi_model_get_info(e->model, &model);
    rank_setup s = {.run = e->run,
                    .images = hash_images(e),
                    .policies = RY_HASH_START,
                    .answers = hash_answers(e),
                    .n_images = e->n_images,
                    .cpu = (uint32_t)model.cpu,
                    .answer_size = sizeof(ry_answer)};
    for (uint32_t p = 0; p < e->o.n_policies; p++)
        s.policies = ry_hash_add_text(s.policies, e->policies[p].text);
    return s;
}

/* a: rank 0, b: rank i. Every rank compares all others, so all return the same. */
static renyi_status compare_setups(const rank_setup *a, const rank_setup *b, uint32_t i,
                                   renyi_error *err)
{
    if (a->answer_size != b->answer_size)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rank %u runs another build than rank 0", i);
    if (a->run != b->run)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "rank %u has another model, dtype, preprocessing or list of valid classes "
                       "than rank 0",
                       i);
    if (a->images != b->images)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "rank %u has other images or classes (%llu images) than rank 0 (%llu)", i,
                       (unsigned long long)b->n_images, (unsigned long long)a->n_images);
    if (a->policies != b->policies)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rank %u has other policies than rank 0", i);
    if (a->cpu != b->cpu)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "rank %u runs at CPU level %s, rank 0 at %s: answers could differ; open the "
                       "model with the same level everywhere",
                       i, renyi_cpu_name((renyi_cpu)b->cpu), renyi_cpu_name((renyi_cpu)a->cpu));
    return RENYI_OK;
}

/* ---- sending ------------------------------------------------------------------------------- */

typedef enum record_kind {
    RECORD_ANSWER = 1,
    RECORD_FAILURE,
    RECORD_WORK,
    RECORD_TIMES
} record_kind;

/* In front of `length` bytes; with them padded to a multiple of 8. */
typedef struct record {
    uint32_t kind, policy, length, unused;
    uint64_t image;
} record;

/* What an exchange has sent so far. */
typedef struct sender {
    renyi_eval *e;
    int is_final;                  /* 0: answers from logs; 1: what was run, with costs and times */
    uint32_t at_work;              /* 0 = the times come next, p + 1 = the work of policy p */
    size_t at_failure, n_failures; /* of this rank */
    uint64_t at_answer;
} sender;

static size_t record_size(size_t length) { return sizeof(record) + ((length + 7) & ~(size_t)7); }

static size_t put_record(unsigned char *to, size_t space, record head, const void *bytes)
{
    const size_t size = record_size(head.length);
    if (size > space) return 0;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, bytes, head.length);
    return size;
}

static size_t put_work(sender *s, unsigned char *to, size_t space)
{
    const renyi_eval *e = s->e;
    const record times = {RECORD_TIMES, 0, sizeof e->times, 0, 0};
    const uint32_t p = s->at_work ? s->at_work - 1 : 0;
    const record work = {RECORD_WORK, p, sizeof(ry_work), 0, 0};
    const size_t n = s->at_work ? put_record(to, space, work, &e->policies[p].own)
                                : put_record(to, space, times, &e->times);
    s->at_work += n > 0;
    return n;
}

static size_t put_failure(sender *s, unsigned char *to, size_t space)
{
    const ry_failure *f = &s->e->failures[s->at_failure];
    const record head = {RECORD_FAILURE, f->policy, (uint32_t)strlen(f->shown.message) + 1, 0,
                         f->image};
    const size_t n = put_record(to, space, head, f->shown.message);
    s->at_failure += n > 0;
    return n;
}

/* The times come first: they are in the first chunk, before those of other ranks are added. */
static size_t send_record(void *user, unsigned char *to, size_t space)
{
    sender *s = user;
    const renyi_eval *e = s->e;
    if (s->is_final && s->at_work <= e->o.n_policies) return put_work(s, to, space);
    if (s->is_final && s->at_failure < s->n_failures) return put_failure(s, to, space);
    for (; s->at_answer < (uint64_t)e->n_images * e->o.n_policies; s->at_answer++) {
        const ry_answer *a = &e->answers[s->at_answer];
        if (!(s->is_final ? a->is_fresh : a->state == RY_ANSWER_GIVEN)) continue;
        const record head = {RECORD_ANSWER, (uint32_t)(s->at_answer / e->n_images), sizeof *a, 0,
                             s->at_answer % e->n_images};
        const size_t n = put_record(to, space, head, a);
        s->at_answer += n > 0;
        return n;
    }
    return 0;
}

/* ---- receiving ----------------------------------------------------------------------------- */

static void take_answer(renyi_eval *e, const record *r, const unsigned char *bytes)
{
    ry_answer *a = ry_eval_answer(e, r->policy, (size_t)r->image);
    if (a->state == RY_ANSWER_GIVEN && (a->is_logged || a->is_fresh)) return;
    memcpy(a, bytes, sizeof *a);
    a->is_fresh = a->is_logged = 0;
}

static renyi_status take_failure(renyi_eval *e, const record *r, const unsigned char *bytes,
                                 renyi_error *err)
{
    const ry_failure *f = ry_eval_add_failure(e, (size_t)r->image, r->policy, (const char *)bytes);
    if (!f) return ry_fail_nomem(err, r->length);
    return e->log.file.is_part ? RENYI_OK : ry_eval_put_failure(e, f, err);
}

static void take_work(renyi_eval *e, const record *r, const unsigned char *bytes)
{
    ry_work work;
    memcpy(&work, bytes, sizeof work);
    e->policies[r->policy].others.macs += work.macs;
    e->policies[r->policy].others.n_run += work.n_run;
}

static void take_times(renyi_eval *e, const unsigned char *bytes)
{
    renyi_eval_times t;
    memcpy(&t, bytes, sizeof t);
    e->times.images += t.images;
    if (t.seconds > e->times.seconds) e->times.seconds = t.seconds;
    e->times.seconds_model += t.seconds_model;
    e->times.seconds_decode += t.seconds_decode;
}

static int is_valid_record(const renyi_eval *e, const record *r, const unsigned char *bytes)
{
    if (r->image >= e->n_images) return 0;
    if (r->kind == RECORD_FAILURE)
        return (r->policy < e->o.n_policies || r->policy == RY_ALL_POLICIES) && r->length > 0 &&
               bytes[r->length - 1] == 0;
    if (r->policy >= e->o.n_policies) return 0;
    if (r->kind == RECORD_ANSWER) return r->length == sizeof(ry_answer);
    if (r->kind == RECORD_WORK) return r->length == sizeof(ry_work);
    return r->kind == RECORD_TIMES && r->length == sizeof(renyi_eval_times);
}

static renyi_status receive_records(void *user, uint32_t rank, const unsigned char *at, size_t used,
                                    renyi_error *err)
{
    renyi_eval *e = ((sender *)user)->e;
    while (used) {
        record r;
        int ok = used >= sizeof r;
        if (ok) memcpy(&r, at, sizeof r);
        const unsigned char *bytes = at + sizeof r;
        ok = ok && record_size(r.length) <= used && is_valid_record(e, &r, bytes);
        if (!ok) return ry_fail(err, RENYI_ERR_FORMAT, -1, "rank %u sent a damaged record", rank);
        if (r.kind == RECORD_FAILURE) RY_TRY(take_failure(e, &r, bytes, err));
        if (r.kind == RECORD_ANSWER) take_answer(e, &r, bytes);
        if (r.kind == RECORD_WORK) take_work(e, &r, bytes);
        if (r.kind == RECORD_TIMES) take_times(e, bytes);
        at += record_size(r.length);
        used -= record_size(r.length);
    }
    return RENYI_OK;
}

/* ---- both ---------------------------------------------------------------------------------- */

static renyi_status exchange_records(renyi_eval *e, int is_final, renyi_error *err)
{
    sender s = {.e = e, .is_final = is_final, .n_failures = e->n_failures};
    const ry_exchange x = {&s, send_record, receive_records};
    return ry_exchange_all(&e->shared.ranks, &x, err);
}

renyi_status ry_eval_compare_ranks(renyi_eval *e, renyi_error *err)
{
    ry_ranks *k = &e->shared.ranks;
    const rank_setup mine = describe_setup(e);
    rank_setup first, other;
    int is_same = 1;
    memcpy(k->mine, &mine, sizeof mine);
    RY_TRY(ry_ranks_gather(k, sizeof mine, err));
    memcpy(&first, k->all, sizeof first);
    for (uint32_t i = 1; i < k->r.n_ranks; i++) {
        memcpy(&other, k->all + i * sizeof other, sizeof other);
        RY_TRY(compare_setups(&first, &other, i, err));
        is_same &= first.answers == other.answers;
    }
    return is_same ? RENYI_OK : exchange_records(e, 0, err);
}

renyi_status ry_eval_share(renyi_eval *e, renyi_error *err)
{
    const uint32_t n_ranks = e->shared.ranks.r.n_ranks;
    const renyi_status st = n_ranks > 1 ? exchange_records(e, 1, err) : RENYI_OK;
    e->times.n_ranks = n_ranks;
    return st;
}
