/* names.c - short names: models without their folders, policies without what goes without saying.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/view.h"

#include <string.h>

void ry_put_short_model(ry_sink *s, const char *model)
{
    static const char *const endings[] = {".safetensors.index.json", ".safetensors", ".pth", ".pt",
                                          ".bin"};
    size_t n = strlen(model), start;
    while (n > 1 && model[n - 1] == '/') n--;
    for (start = n; start && (start == n || model[start - 1] != '/'); start--) {}
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t e = strlen(endings[i]);
        if (n - start > e && !memcmp(model + n - e, endings[i], e)) {
            n -= e;
            break;
        }
    }
    ry_put_bytes(s, model + start, n - start);
    ry_put_bytes(s, "", 1);
}

/* Words that tell policies apart at a glance stay even where they are defaults. */
static int is_leading(const char *word, size_t n)
{
    static const char *const keys[] = {
        "keep=", "p=", "r=", "tokens=", "layers=", "metric=", "n=", "c="};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (n >= strlen(keys[i]) && !memcmp(word, keys[i], strlen(keys[i]))) return 1;
    return 0;
}

/* A word is left out if the policy without it reads the same in full. */
void ry_put_short_policy(ry_sink *s, const char *policy)
{
    char full[RENYI_POLICY_MAX], now[RENYI_POLICY_MAX], without[RENYI_POLICY_MAX],
        again[RENYI_POLICY_MAX];
    if (renyi_policy_check(policy, NULL, full, sizeof full, NULL) != RENYI_OK) {
        ry_put_bytes(s, policy, strlen(policy) + 1); /* of some other program: as it is */
        return;
    }
    memcpy(now, full, strlen(full) + 1);
    for (size_t end = strlen(now), at; end; end = at ? at - 1 : 0) { /* from the last word on */
        for (at = end; at && now[at - 1] != ' '; at--) {}
        if (!at || is_leading(now + at, end - at)) continue;
        memcpy(without, now, at - 1);
        memcpy(without + at - 1, now + end, strlen(now + end) + 1);
        if (renyi_policy_check(without, NULL, again, sizeof again, NULL) == RENYI_OK &&
            !strcmp(again, full))
            memcpy(now, without, strlen(without) + 1);
    }
    char *reduce = strstr(now, " reduce="); /* "fuse" alone means the same */
    if (reduce) memmove(reduce + 1, reduce + 8, strlen(reduce + 8) + 1);
    ry_put_bytes(s, now, strlen(now) + 1);
}
