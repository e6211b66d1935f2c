#!/usr/bin/env bash
# An include points only downwards: base < formats, image, kernels < model, prune < engine < eval, report, train < cli; the
# program sees only the public headers and its own.
cd "$RENYI_SRC" || exit 1
declare -A may=(
  [base]="base" [formats]="base formats" [image]="base image" [kernels]="base kernels"
  [model]="base formats image kernels model" [prune]="base formats image kernels prune model/common/hook.h"
  [engine]="base formats image kernels model prune engine"
  [eval]="base formats image kernels model prune engine eval"
  [report]="base report"
  [train]="base formats image kernels model prune engine train")
bad=0 seen=0
for room in "${!may[@]}"; do
  while IFS=: read -r file line inc; do
    seen=$((seen + 1))
    ok=0
    for allowed in ${may[$room]}; do
      [ "${inc%%/*}" = "$allowed" ] || [ "$inc" = "$allowed" ] && ok=1
    done
    [ $ok = 1 ] || { echo "$file:$line: $room may not include $inc"; bad=1; }
  done < <(grep -noE '^#include "[a-z]+/[^"]+"' src/"$room"/*.[ch] 2>/dev/null |
           sed -E 's/#include "([^"]+)"/\1/' | grep -v ':renyi/')
done
while IFS= read -r hit; do echo "the program reaches inside: $hit"; bad=1; done \
  < <(grep -nE '^#include "(base|formats|image|kernels|model|prune|engine|eval|report|train)/' src/cli/*.[ch])
# Below the program nothing prints, exits or asks the environment; the heap has one door.
while IFS= read -r hit; do echo "not below the program: $hit"; bad=1; done < <(
  grep -nE '\b(printf|puts|getenv|exit|abort)\(|\b(fprintf|fputs)\((stdout|stderr)' src/{base,formats,image,kernels,model,prune,engine,eval,report,train}/*.[ch])
while IFS= read -r hit; do echo "the heap's door is base/alloc.c: $hit"; bad=1; done < <(
  grep -nE '\b(malloc|calloc|realloc|aligned_alloc|posix_memalign)\(' src/{base,formats,image,kernels,model,prune,engine,eval,report,train}/*.[ch] | grep -v '^src/base/alloc.c')
[ $seen -gt 50 ] || { echo "only $seen includes seen: is this the source tree?"; bad=1; }
exit $bad
