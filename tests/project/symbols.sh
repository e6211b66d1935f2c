#!/usr/bin/env bash
# The static library defines only renyi_ and ry_ names, the shared one exports only renyi_; nothing
# writable has file scope. Usage: symbols.sh [FOLDER with librenyi.a and librenyi.so]
# SPDX-License-Identifier: Apache-2.0
build=${1:-$RENYI_BUILD}
bad=0
names=$(nm -g --defined-only "$build/librenyi.a" | awk 'NF==3 {print $3}')
[ "$(wc -l <<<"$names")" -gt 50 ] || { echo "no symbols seen in $build/librenyi.a"; bad=1; }
while IFS= read -r s; do echo "librenyi.a defines $s"; bad=1; done \
  < <(grep -vE '^(renyi_|ry_|__asan|__ubsan|__odr_asan|_)' <<<"$names")
if [ -f "$build/librenyi-report.so" ]; then # drawing exports its own functions and nothing of librenyi's
  while IFS= read -r s; do echo "librenyi-report.so exports $s"; bad=1; done \
    < <(nm -D --defined-only "$build/librenyi-report.so" | awk 'NF==3 {print $3}' |
        sed 's/@@RENYI_[0-9]*$//' | grep -vE '^renyi_(report|figure|viz_html|colour)|^__|^_|^RENYI_[0-9]+$')
  needed=$(readelf -d "$build/librenyi.so" | grep -oE 'NEEDED.*(cairo|pango|gobject|glib)[^]]*') &&
    { echo "librenyi.so needs libraries for drawing: $needed"; bad=1; }
fi
while IFS= read -r s; do echo "librenyi.so exports $s"; bad=1; done \
  < <(nm -D --defined-only "$build/librenyi.so" | awk 'NF==3 {print $3}' |
       grep -vE '^renyi_[a-z0-9_]+@@RENYI_[0-9]+$|^__|^_|^RENYI_[0-9]+$')
if ! nm "$build/librenyi.a" | grep -q asan; then # the sanitizer adds variables of its own
  # .data.rel.ro (tables of pointers) is read-only once loaded; .data and .bss are not.
  while IFS= read -r s; do echo "writable at file scope: $s"; bad=1; done \
    < <(objdump -t "$build/librenyi.a" | grep -E '[[:space:]](\.data|\.bss)[[:space:]].*[[:space:]][a-zA-Z_]' |
        awk '$NF !~ /^\.(data|bss)$/ {print $NF}')
fi
exit $bad
