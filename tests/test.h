/* test.h - cmocka with the headers that it needs before it. Every test program includes this one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_TEST_H
#define RENYI_TESTS_TEST_H

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
