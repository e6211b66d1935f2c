/* png_repair.h - the checksum of every chunk made right, because otherwise hardly a changed byte
 * gets past it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_FUZZ_PNG_REPAIR_H
#define RENYI_FUZZ_PNG_REPAIR_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint32_t png_crc(const uint8_t *bytes, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Chunks from byte 8 on: length, name, data, CRC of name and data. */
static inline void png_repair(uint8_t *png, size_t size)
{
    for (size_t at = 8; size >= 12 && at <= size - 12;) {
        const size_t length = (size_t)png[at] << 24 | (size_t)png[at + 1] << 16 |
                              (size_t)png[at + 2] << 8 | png[at + 3];
        if (length > size - at - 12) break;
        const uint32_t crc = png_crc(png + at + 4, length + 4);
        for (size_t i = 0; i < 4; i++) png[at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + length;
    }
}

/* A copy with right checksums; free() it. NULL = no memory. */
static inline uint8_t *png_repaired(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return NULL;
    if (size) memcpy(copy, data, size);
    png_repair(copy, size);
    return copy;
}

#endif
