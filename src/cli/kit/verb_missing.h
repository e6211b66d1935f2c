/* verb_missing.h - a verb that this program was built without: its help and its refusal.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_VERB_MISSING_H
#define RENYI_VERB_MISSING_H

typedef struct missing_verb {
    const char *name, *usage; /* as in verb_syntax */
    const char *does;         /* "Answers over HTTP" */
    const char *library;      /* "libmicrohttpd" */
    const char *package;      /* "libmicrohttpd-dev": Debian's */
} missing_verb;

int verb_missing(const missing_verb *verb, int argc, char **argv);

#endif
