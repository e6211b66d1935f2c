#!/usr/bin/env bash
# The figures of the source layout are within their limits: folder sizes, file lengths, names, headers.
# SPDX-License-Identifier: Apache-2.0
exec bash "$RENYI_SRC/tools/layout" "$RENYI_SRC"
