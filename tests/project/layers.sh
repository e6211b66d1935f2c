#!/usr/bin/env bash
# Checks which folder may include which, and what only the program may do. Usage: layers.sh [TREE]
#   base < text, formats, image, kernels < model, prune < engine < train, eval, report < cli
# The program includes only the public headers and its own. Below it, nothing prints, exits or reads
# the environment, and only base/alloc.c calls the system's allocator. Only base/output_file.c creates
# files, and only base/folder.c lists folders.
# SPDX-License-Identifier: Apache-2.0
cd "${1:-$RENYI_SRC}" || exit 1
low="base formats image kernels"
declare -A may=(
  [base]="base" [formats]="base formats" [image]="base image" [kernels]="base kernels"
  [text]="base formats text"
  [model]="$low text model" [prune]="$low prune model/common/hook.h model/common/llama_cuts.h"
  [engine]="$low text model prune engine"
  [eval]="$low text model prune engine eval" [train]="$low text model prune engine train"
  [report]="base report" [cli]="cli" [mpi]="cli/kit/ranks_module.h")
bad=0 seen=0
for folder in src/*/; do
  folder=$(basename "$folder")
  [ -n "${may[$folder]:-}" ] || { echo "src/$folder: tests/project/layers.sh has no rule for it"; bad=1; }
  while IFS=: read -r file line inc; do
    seen=$((seen + 1)) ok=0
    for allowed in ${may[$folder]:-}; do
      [ "${inc%%/*}" = "$allowed" ] || [ "$inc" = "$allowed" ] && ok=1
    done
    [ $ok = 1 ] || { echo "$file:$line: $folder may not include $inc"; bad=1; }
  done < <(grep -rnoE --include='*.[ch]' '^#include "[a-z_]+/[^"]+"' "src/$folder" |
           sed -E 's/#include "([^"]+)"/\1/' | grep -v ':renyi/')
done
library=()
for folder in "${!may[@]}"; do
  case $folder in cli | mpi) ;; *) [ ! -d "src/$folder" ] || library+=("src/$folder") ;; esac
done
while IFS= read -r hit; do echo "only the program may do this: $hit"; bad=1; done < <(
  grep -rnE --include='*.[ch]' '\b(printf|puts|getenv|exit|abort)\(|\b(fprintf|fputs)\((stdout|stderr)' "${library[@]}")
while IFS= read -r hit; do echo "only base/alloc.c may do this: $hit"; bad=1; done < <(
  grep -rnE --include='*.[ch]' '\b(malloc|calloc|realloc|aligned_alloc|posix_memalign)\(' "${library[@]}" |
    grep -v '^src/base/alloc.c')
# Logs that grow line by line and downloads that are resumed cannot be written at once.
growing='^src/(eval/run/shared_run|train/files/run_folder|cli/pull/hub_download)\.c:'
while IFS= read -r hit; do echo "only base/output_file.c creates files: $hit"; bad=1; done < <(
  grep -rnE --include='*.[ch]' '\b(fopen|freopen|fdopen)\(|\bO_(CREAT|TRUNC)\b|\b(creat|mkstemp|mkostemp)\(' src |
    grep -vE '\bfopen\(.*, "r[be]?"\)' | grep -vE "^src/base/output_file\\.c:|$growing")
while IFS= read -r hit; do echo "only base/folder.c lists folders: $hit"; bad=1; done < <(
  grep -rnE --include='*.[ch]' '\b(opendir|fdopendir|scandir|glob|nftw|ftw|fts_open)\(' src | grep -v '^src/base/folder.c:')
[ $seen -gt 50 ] || { echo "only $seen includes seen: is this the source tree?"; bad=1; }
exit $bad
