/* user_cache.h - where the program keeps what it could compute again.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_USER_CACHE_H
#define RENYI_USER_CACHE_H

/* $XDG_CACHE_HOME/renyi/<name>, else ~/.cache/renyi/<name>; made if need be. Owned; NULL, said with
 * --verbose, when there is no such place. */
char *user_cache_folder(const char *name);

#endif
