/* protobuf.c - the wire format of Protocol Buffers: a varint of number and kind, then the value.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/protobuf.h"

#include "base/status.h"

/* Seven bits a byte, the lowest first; at most 64 of them. */
static int read_varint(ry_proto *p, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && p->at < p->end; shift += 7) {
        const uint8_t byte = *p->at++;
        if (shift == 63 && byte > 1) return 0;
        *out |= (uint64_t)(byte & 0x7fu) << shift;
        if (byte < 0x80) return 1;
    }
    return 0;
}

/* `bytes` of them, the lowest first. */
static int read_fixed(ry_proto *p, size_t bytes, uint64_t *out)
{
    *out = 0;
    if ((size_t)(p->end - p->at) < bytes) return 0;
    for (size_t i = 0; i < bytes; i++) *out |= (uint64_t)*p->at++ << (8 * i);
    return 1;
}

static int read_block(ry_proto *p, ry_proto_field *f)
{
    uint64_t n;
    if (!read_varint(p, &n) || n > (uint64_t)(p->end - p->at)) return 0;
    f->bytes = p->at;
    f->n = (size_t)n;
    p->at += n;
    return 1;
}

static int read_value(ry_proto *p, ry_proto_field *f)
{
    switch (f->wire) {
    case RY_PROTO_VARINT: return read_varint(p, &f->value);
    case RY_PROTO_64: return read_fixed(p, 8, &f->value);
    case RY_PROTO_BYTES: return read_block(p, f);
    case RY_PROTO_32: return read_fixed(p, 4, &f->value);
    }
    return 0;
}

renyi_status ry_proto_next(ry_proto *p, ry_proto_field *out, int *is_over, renyi_error *err)
{
    uint64_t tag;
    *is_over = p->at == p->end;
    if (*is_over) return RENYI_OK;
    *out = (ry_proto_field){.offset = p->at - p->start};
    if (!read_varint(p, &tag) || tag >> 3 == 0 || tag >> 3 >= 1u << 29)
        return ry_fail(err, RENYI_ERR_FORMAT, out->offset,
                       "byte %lld: no field of a Protocol Buffer begins here",
                       (long long)out->offset);
    out->number = (uint32_t)(tag >> 3);
    out->wire = (ry_proto_wire)(tag & 7);
    if (!read_value(p, out))
        return ry_fail(err, RENYI_ERR_FORMAT, out->offset,
                       "byte %lld: field %u of a Protocol Buffer, kind %u, is broken or cut off",
                       (long long)out->offset, out->number, (unsigned)out->wire);
    return RENYI_OK;
}

renyi_status ry_proto_want(const ry_proto_field *f, ry_proto_wire wire, renyi_error *err)
{
    if (f->wire == wire) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, f->offset,
                   "byte %lld: field %u of a Protocol Buffer has the kind %u; %u expected",
                   (long long)f->offset, f->number, (unsigned)f->wire, (unsigned)wire);
}
