#!/usr/bin/env bash
# The version is that of renyi.h everywhere.
set -euo pipefail
version=$("$RENYI_SRC/tools/version")
grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' <<<"$version" || { echo "tools/version prints '$version'"; exit 1; }
same() { [ "$2" = "$version" ] || { echo "$1 has version '$2', renyi.h has $version"; exit 1; }; }
same "renyi --version" "$("$RENYI" --version | sed -n '1s/^renyi //p')"
same "renyi.pc" "$(sed -n 's/^Version: //p' "$RENYI_BUILD/renyi.pc")"
same "the manual page" "$(sed -nE 's/^\.TH .*"renyi ([0-9.]+)".*/\1/p' "$RENYI_BUILD/man/renyi.1")"
same "librenyi.so" "$(realpath "$RENYI_BUILD/librenyi.so" | sed 's/.*\.so\.//')"
same "debian/changelog" "$(sed -nE '1s/.*\(([0-9.]+)-.*/\1/p' "$RENYI_SRC/debian/changelog")"
