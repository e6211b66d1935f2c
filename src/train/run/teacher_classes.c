/* teacher_classes.c - which class of a teacher is which of a student.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "renyi/eval.h"
#include "train/run/teacher.h"

#include <string.h>

/* No two classes of the student may be the same of the teacher. */
static renyi_status check_different(const uint32_t *map, uint32_t n, renyi_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (map[i] == map[j])
                return ry_fail(err, RENYI_ERR_ARG, -1,
                               "classes %u and %u of the student are both class %u of the teacher",
                               j, i, map[i]);
    return RENYI_OK;
}

/* A number names a class of its own data set, not one of the teacher's. */
static int is_number(const char *name) { return name[strspn(name, "0123456789")] == 0; }

/* Where names do not tell, as many classes as the teacher has are the teacher's, unless a name that
 * does tell speaks against it. */
static renyi_status by_names(uint32_t *map, const renyi_model *teacher, const char **names,
                             uint32_t n, renyi_error *err)
{
    renyi_model_info info;
    uint32_t unknown = n;
    int same = 1;
    renyi_model_get_info(teacher, &info);
    RY_TRY(renyi_classes_find(teacher, names, n, map, err));
    for (uint32_t i = n; i-- > 0;) {
        same &= map[i] == RENYI_NO_CLASS || map[i] == i;
        if (map[i] == RENYI_NO_CLASS) unknown = i;
    }
    if (unknown == n) return check_different(map, n, err);
    if (!same || n != info.n_classes)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "the teacher has %u classes, but which is the student's class %u (\"%.60s\")? "
            "Neither a WordNet id nor a label tells: list the teacher's class of each",
            info.n_classes, unknown, names[unknown] ? names[unknown] : "no name");
    for (uint32_t i = 0; i < n; i++) map[i] = i;
    return RENYI_OK;
}

renyi_status ry_teacher_classes(uint32_t *map, const renyi_model *teacher, const char *const *names,
                                uint32_t n, const renyi_allocator *al, renyi_error *err)
{
    const char **telling = ry_calloc(al, n, sizeof *telling);
    if (!telling) return ry_fail_nomem(err, n * sizeof *telling);
    for (uint32_t i = 0; names && i < n; i++)
        telling[i] = names[i] && !is_number(names[i]) ? names[i] : NULL;
    const renyi_status st = by_names(map, teacher, telling, n, err);
    ry_free(al, telling);
    return st;
}

/* Cuts a text at its commas, in place. Returns how many words there are; at most n are given. */
static size_t split(char *text, const char **words, uint32_t n)
{
    size_t count = 0;
    for (char *at = text;;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = 0;
        if (count < n) words[count] = at;
        count++;
        if (!comma) return count;
        at = comma + 1;
    }
}

static renyi_status find_words(uint32_t *map, const renyi_model *teacher, const char **words,
                               uint32_t n, renyi_error *err)
{
    renyi_model_info info;
    renyi_model_get_info(teacher, &info);
    RY_TRY(renyi_classes_find(teacher, words, n, map, err));
    for (uint32_t i = 0; i < n; i++)
        if (map[i] == RENYI_NO_CLASS)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "\"%.60s\" in the list of the teacher's classes: wanted an index below "
                           "%u, a WordNet id of ImageNet's 1000 or a label of the teacher",
                           words[i], info.n_classes);
    return check_different(map, n, err);
}

renyi_status ry_teacher_class_list(uint32_t *map, const renyi_model *teacher, const char *list,
                                   uint32_t n, const renyi_allocator *al, renyi_error *err)
{
    const char **words = ry_calloc(al, n, sizeof *words);
    char *text = ry_strdup(al, list);
    renyi_status st = words && text ? RENYI_OK : ry_fail_nomem(err, n * sizeof *words);
    const size_t count = st ? 0 : split(text, words, n);
    if (!st && count != n)
        st = ry_fail(err, RENYI_ERR_ARG, -1,
                     "the list names %zu classes of the teacher; the student has %u", count, n);
    if (!st) st = find_words(map, teacher, words, n, err);
    ry_free(al, text);
    ry_free(al, words);
    return st;
}
