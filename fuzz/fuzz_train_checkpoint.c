/* fuzz_train_checkpoint.c - the metadata of a training checkpoint: any bytes give a state with
 * settings that print and read back the same, or an error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "train/files/run_state.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What was read is written, read again and written again: the same text. */
static void check_round_trip(const ry_run_state *s, const ry_settings_owned *settings)
{
    ry_settings_owned again;
    ry_run_state t;
    renyi_error err;
    char *first = NULL, *second = NULL;
    if (ry_json_text(&first, ry_run_state_json(s, &settings->opt), NULL, &err) || !first) abort();
    if (ry_settings_copy(&again, &settings->opt, NULL, &err)) abort();
    if (ry_run_state_parse(&t, &again, first, strlen(first), "again", NULL, &err)) abort();
    if (ry_json_text(&second, ry_run_state_json(&t, &again.opt), NULL, &err) || !second) abort();
    if (strcmp(first, second) != 0) abort();
    ry_settings_free(&again, NULL);
    ry_free(NULL, first);
    ry_free(NULL, second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    renyi_train_options defaults;
    ry_settings_owned settings;
    ry_run_state s;
    renyi_error err;
    renyi_train_defaults(&defaults);
    if (ry_settings_copy(&settings, &defaults, NULL, &err)) abort();
    if (!ry_run_state_parse(&s, &settings, (const char *)bytes, size, "fuzz", NULL, &err)) {
        check_round_trip(&s, &settings);
        (void)!ry_settings_check(&settings.opt, &err);
    }
    ry_settings_free(&settings, NULL);
    return 0;
}
