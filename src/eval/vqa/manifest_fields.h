/* manifest_fields.h - the members of a manifest as one table, for its reader and its writer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MANIFEST_FIELDS_H
#define RY_MANIFEST_FIELDS_H

#include "base/buffer.h"
#include "base/json.h"
#include "renyi/vqa.h"

#define RY_MANIFEST_FORMAT "renyi.result"
enum { RY_MANIFEST_VERSION = 1, RY_MANIFEST_MAX_FILES = 1000, RY_MANIFEST_MAX_SAMPLES = 1 << 20 };

typedef enum ry_manifest_kind {
    RY_MANIFEST_TEXT,
    RY_MANIFEST_COUNT, /* uint64_t below 2^63 */
    RY_MANIFEST_REAL   /* NaN is null */
} ry_manifest_kind;

/* Member `key` of the object `group`, at `offset` of renyi_manifest_info. */
typedef struct ry_manifest_field {
    const char *group, *key;
    ry_manifest_kind kind;
    int is_needed;
    size_t offset;
} ry_manifest_field;

const ry_manifest_field *ry_manifest_fields(size_t *count);

struct renyi_manifest {
    renyi_allocator al;
    ry_pool pool; /* all texts, files and samples */
    renyi_manifest_info info;
    uint64_t data_hash, answers_hash;
};

/* Hashes of the samples: of ids and inputs, of ids and answers. */
void ry_manifest_hashes(const renyi_manifest_info *info, uint64_t *data, uint64_t *answers);

/* renyi_manifest_read of bytes; `name` is for messages. */
renyi_status ry_manifest_parse(renyi_manifest **out, const char *name, const char *bytes,
                               size_t size, const renyi_allocator *al,
                               renyi_error *err) RENYI_CHECK;

#endif
