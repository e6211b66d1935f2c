/* hub_index.h - the shards that model.safetensors.index.json names.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_HUB_INDEX_H
#define RENYI_HUB_INDEX_H

#include "cli/kit/cli.h"

/* Each name once, in order of first use. 0, or -1 after reporting: names that are no plain file
 * names are refused, for they become paths. */
int hub_index_shards(const char *path, cli_strings *shards);

#endif
