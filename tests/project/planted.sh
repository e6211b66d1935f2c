#!/usr/bin/env bash
# The checks of this folder fail when something is wrong: each violation is planted in a copy of the
# tree, and the check must name it.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

copy_tree() {
  rm -rf "$work/tree" && mkdir "$work/tree"
  for folder in src tests include fuzz tools bench examples; do
    cp -r "$RENYI_SRC/$folder" "$work/tree/$folder"
  done
}

# expect MESSAGE COMMAND...: the command fails and prints the message
expect() {
  local message=$1
  shift
  if "$@" >"$work/out" 2>&1; then
    echo "FAILED: '$*' passed although this was planted: $message"
  elif ! grep -qF -- "$message" "$work/out"; then
    echo "FAILED: '$*' does not say '$message' but:"
    head -n 20 "$work/out"
  else
    return
  fi
  failures=$((failures + 1))
}

layers() { expect "$1" bash "$RENYI_SRC/tests/project/layers.sh" "$work/tree"; }
layout() { expect "$1" bash "$RENYI_SRC/tools/layout" "$work/tree"; }

copy_tree
bash "$RENYI_SRC/tests/project/layers.sh" "$work/tree" || { echo "FAILED: layers.sh fails on a plain copy"; failures=1; }

# ---- layers, three folders deep ----------------------------------------------------------------
first=$(find "$work/tree/src/kernels/attention" -name '*.c' | sort | head -n 1)
echo '#include "model/common/hook.h"' >>"$first"
layers "kernels may not include model/common/hook.h"
copy_tree
first=$(find "$work/tree/src/cli/eval" -name '*.c' | sort | head -n 1)
echo '#include "engine/core/model_handle.h"' >>"$first"
layers "cli may not include engine/core/model_handle.h"
copy_tree
first=$(find "$work/tree/src/prune/rules" -name '*.c' | sort | head -n 1)
echo 'int planted(void) { return printf("x"); }' >>"$first"
layers "only the program may do this"
copy_tree
first=$(find "$work/tree/src/train/run" -name '*.c' | sort | head -n 1)
echo 'void *planted(void) { return malloc(1); }' >>"$first"
layers "only base/alloc.c may do this"
copy_tree
echo 'void *planted(void) { return fopen("x", "w"); }' >>"$work/tree/src/cli/kit/output.c"
layers "only base/output_file.c creates files: src/cli/kit/output.c"
copy_tree
echo 'int planted(void) { return open("x", O_WRONLY | O_CREAT, 0666); }' >>"$work/tree/src/eval/run/sample_log.c"
layers "only base/output_file.c creates files: src/eval/run/sample_log.c"
copy_tree
echo 'void *planted(void) { return opendir("x"); }' >>"$work/tree/src/cli/shared/models.c"
layers "only base/folder.c lists folders: src/cli/shared/models.c"
copy_tree
mkdir "$work/tree/src/planted"
layers "src/planted: tests/project/layers.sh has no rule for it"

# ---- layout -------------------------------------------------------------------------------------
copy_tree
for i in $(seq 41); do
  printf '/* planted_%s.txt */\n' "$i" >"$work/tree/src/image/planted_$i.txt"
done
layout "src/image"
copy_tree
printf '/* alloc.c - planted.\n * SPDX-License-Identifier: Apache-2.0 */\n' >"$work/tree/src/image/alloc.c"
layout "    alloc.c"
copy_tree
printf '/* planted.c - see planted.h\n * SPDX-License-Identifier: Apache-2.0 */\n' >"$work/tree/src/image/planted.c"
layout "src/image/planted.c"
copy_tree
printf '/* planted.c - a sentence. SPDX-License-Identifier:\n * Apache-2.0 */\n' >"$work/tree/src/image/planted.c"
layout "src/image/planted.c"
copy_tree
{ printf '/* planted.c - a sentence.\n * SPDX-License-Identifier: Apache-2.0 */\n'; seq 600 | sed 's|.*|int x&;|'; } >"$work/tree/src/image/planted.c"
layout "602 src/image/planted.c"
copy_tree
for i in $(seq 14); do
  printf '/* planted_%s.h - a sentence.\n * SPDX-License-Identifier: Apache-2.0 */\n' "$i" >"$work/tree/include/renyi/planted_$i.h"
done
layout "public headers                                     27   at most 13     NO"

# ---- symbols ------------------------------------------------------------------------------------
# A library of 60 good names and one planted one.
make_library() {
  { seq 60 | sed 's|.*|int ry_planted_&(void);\nint ry_planted_&(void) { return &; }|'; echo "$1"; } >"$work/planted.c"
  rm -f "$work/librenyi.a"
  ${CC:-cc} -fPIC -fvisibility=hidden -c "$work/planted.c" -o "$work/planted.o" &&
    ar rcs "$work/librenyi.a" "$work/planted.o" && ${CC:-cc} -shared "$work/planted.o" -o "$work/librenyi.so"
}
symbols() { expect "$1" bash "$RENYI_SRC/tests/project/symbols.sh" "$work"; }
make_library ''
bash "$RENYI_SRC/tests/project/symbols.sh" "$work" || { echo "FAILED: symbols.sh fails on a clean library"; failures=$((failures + 1)); }
make_library 'int planted(void); int planted(void) { return 0; }'
symbols "librenyi.a defines planted"
make_library '__attribute__((visibility("default"))) int ry_seen(void); int ry_seen(void) { return 0; }'
symbols "librenyi.so exports ry_seen"
make_library 'static int counter; int *ry_counter(void); int *ry_counter(void) { return &counter; }'
symbols "writable at file scope: counter"

# ---- hardening ----------------------------------------------------------------------------------
# A program with all the flags, and the same with one of them taken back.
cat >"$work/program.c" <<'END'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[64];
    (void)argc;
    strcpy(text, argv[0]);
    return puts(text) < 0;
}
END
make_program() {
  ${CC:-cc} -O2 -fstack-protector-all -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fPIE -pie -Wl,-z,relro,-z,now \
    -Wl,-z,noexecstack "$@" "$work/program.c" -o "$work/program" 2>/dev/null || { echo "FAILED: cannot compile"; failures=$((failures + 1)); }
}
hardening() { expect "$1" bash "$RENYI_SRC/tests/project/hardening.sh" "$work/program"; }
make_program
bash "$RENYI_SRC/tests/project/hardening.sh" "$work/program" >/dev/null || { echo "FAILED: hardening.sh fails on a hardened program"; failures=$((failures + 1)); }
make_program -Wl,-rpath,/usr/lib/x:
hardening "has the library path 'RUNPATH /usr/lib/x:'"
make_program -Wl,-rpath,lib -Wl,--disable-new-dtags
hardening "has the library path 'RPATH lib'"
make_program -Wl,-z,norelro
hardening "has no RELRO segment"
make_program -Wl,-z,lazy
hardening "has no BIND_NOW"
make_program -Wl,-z,execstack
hardening "has an executable stack"
make_program -fno-pie -no-pie
hardening "is not position independent"
make_program -fno-stack-protector
hardening "has no stack protector"
make_program -U_FORTIFY_SOURCE
hardening "has no call checked by _FORTIFY_SOURCE"

echo "planted violations: $failures checks failed to see one"
exit $((failures > 0))
