/* test_golden_tokenizer.c - CLIP's own merges: the ids of the reference for all its texts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "fixtures/shared_files.h"
#include "formats/safetensors.h"
#include "renyi/clip.h"

#include <string.h>

#include "test.h"

static void test_ids(void **state)
{
    const char *path = shared_path("golden/clip_tiny.safetensors");
    const char *merges = shared_path("data/tokenizers/bpe_simple_vocab_16e6.txt.gz");
    renyi_tokenizer *t;
    renyi_tokenizer_info info;
    ry_tensors *golden;
    json_t *texts;
    renyi_error err = {0};
    (void)state;
    if (!path || !merges) skip();
    if (renyi_tokenizer_open(&t, merges, NULL, &err)) fail_msg("%s", err.message);
    renyi_tokenizer_get_info(t, &info);
    assert_int_equal(info.n_ids, 49408);
    assert_int_equal(info.n_merges, 48894);
    assert_int_equal(info.sot, 49406);
    assert_int_equal(info.eot, 49407);
    if (ry_safetensors_open(&golden, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    const char *list = ry_tensors_meta(golden, "texts");
    const ry_tensor *want = ry_tensors_find(golden, "text.ids");
    assert_non_null(want);
    if (ry_json_parse(&texts, list, strlen(list), "texts", NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(want->shape[0], json_array_size(texts));
    assert_int_equal(want->shape[1], RENYI_CLIP_CONTEXT);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        int32_t ids[RENYI_CLIP_CONTEXT];
        const json_t *text = json_array_get(texts, i);
        if (renyi_tokenizer_encode(t, json_string_value(text), json_string_length(text),
                                   RENYI_CLIP_CONTEXT, 1, ids, NULL, &err))
            fail_msg("%s", err.message);
        assert_memory_equal(ids, (const char *)want->data + i * sizeof ids, sizeof ids);
    }
    json_decref(texts);
    ry_tensors_free(golden);
    renyi_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ids)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
