/* text_expected.h - CRC-32 of what Python makes of every character, as UTF-32; written by
 * tools/make-text-tables.py.
 * SPDX-License-Identifier: Apache-2.0 */
#define EXPECTED_CLASSES 0x9ec29e05u
#define EXPECTED_LOWER 0xfc048217u
#define EXPECTED_SIGMA 0xcd268bf5u
#define EXPECTED_COMPOSED 0x7dc8f997u
#define EXPECTED_MARKED 0xa769313au
#define EXPECTED_NUMBERS 0x858cfcc6u
#define EXPECTED_NAMES 0xdbc3e6adu
