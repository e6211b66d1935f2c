/* bpe_letters.c - bytes as letters that can be seen: files of merges are text, and bytes are not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/bpe.h"

/* Bytes that write themselves: visible characters of Latin-1, in three stretches. */
static int is_visible(uint32_t b)
{
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
}

/* How many of the others come before b: 33 of 00 to 20, 34 of 7f to a0, and ad. */
static uint32_t place_of_hidden(uint32_t b)
{
    if (b <= 0x20) return b;
    return b <= 0xa0 ? 33 + (b - 0x7f) : 67;
}

uint32_t ry_bpe_letter(uint32_t byte)
{
    return is_visible(byte) ? byte : 256 + place_of_hidden(byte);
}

int ry_bpe_byte(uint32_t letter)
{
    if (letter < 256) return is_visible(letter) ? (int)letter : -1;
    const uint32_t place = letter - 256;
    if (place < 33) return (int)place;
    if (place < 67) return (int)(place - 33) + 0x7f;
    return place == 67 ? 0xad : -1;
}
