/* protobuf.h - reads Protocol Buffers field by field, without a message definition. Groups, an
 * obsolete feature, are refused.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PROTOBUF_H
#define RY_PROTOBUF_H

#include "renyi/renyi.h"

typedef enum ry_proto_wire {
    RY_PROTO_VARINT = 0,
    RY_PROTO_64 = 1,
    RY_PROTO_BYTES = 2, /* texts, messages inside */
    RY_PROTO_32 = 5
} ry_proto_wire;

/* What is left of a message; borrows its bytes. */
typedef struct ry_proto {
    const uint8_t *start, *at, *end; /* start: of the file, for offsets in messages */
} ry_proto;

typedef struct ry_proto_field {
    uint32_t number; /* at least 1 */
    ry_proto_wire wire;
    uint64_t value;       /* the number, or the bits of a float; not of RY_PROTO_BYTES */
    const uint8_t *bytes; /* [n]; of RY_PROTO_BYTES, not NULL */
    size_t n;
    int64_t offset; /* of the field in the file */
} ry_proto_field;

static inline ry_proto ry_proto_of(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    return (ry_proto){at, at, at + size};
}

/* The message inside a field of `in`. */
static inline ry_proto ry_proto_inside(const ry_proto *in, const ry_proto_field *f)
{
    return (ry_proto){in->start, f->bytes, f->bytes + f->n};
}

/* The next field; *is_over = 1 when there is none. Messages do not name the file. */
renyi_status ry_proto_next(ry_proto *p, ry_proto_field *out, int *is_over,
                           renyi_error *err) RENYI_CHECK;

/* An error when the field is not of this kind. */
renyi_status ry_proto_want(const ry_proto_field *f, ry_proto_wire wire,
                           renyi_error *err) RENYI_CHECK;

#endif
