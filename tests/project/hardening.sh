#!/usr/bin/env bash
# Every file that users run has no RPATH and all the hardening that the compiler offers, and the MPI
# module loads nothing from the working directory. Usage: hardening.sh [FILE...]; without files, what
# is in $RENYI_BUILD.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
bad=0
fault() { echo "$1: $2"; bad=1; }

# has TEXT REGEX: does a line of the text match?
has() { grep -qE -- "$2" <<<"$1"; }

# Nothing in a file may name a place from which libraries are loaded: an empty or relative element is
# the working directory, a folder of the build may belong to somebody else later.
check_paths() { # file, dynamic section
  local path
  while IFS= read -r path; do
    [ -n "$path" ] && fault "$1" "has the library path '$path'; it should have none"
  done < <(sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]/\1 \2/p' <<<"$2")
}

check_file() {
  local file=$1 dynamic header program symbols
  dynamic=$(readelf -dW "$file") && header=$(readelf -hW "$file") && program=$(readelf -lW "$file") &&
    symbols=$(readelf -W --dyn-syms "$file") || { fault "$file" "readelf cannot read it"; return; }
  check_paths "$file" "$dynamic"
  has "$program" GNU_RELRO || fault "$file" "has no RELRO segment"
  has "$dynamic" '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW' || fault "$file" "has no BIND_NOW, so RELRO is partial"
  has "$program" 'GNU_STACK.* RW ' || fault "$file" "has an executable stack"
  has "$header" 'Type: *DYN' || fault "$file" "is not position independent"
  has "$symbols" ' __stack_chk_fail' || fault "$file" "has no stack protector"
  if has "$symbols" ' __asan_init'; then
    sanitized=1
  else # the sanitizers replace these functions
    has "$symbols" ' __[a-z]+_chk(@|$)' || fault "$file" "has no call checked by _FORTIFY_SOURCE"
  fi
  checked=$((checked + 1))
}

# A library with the name of MPI's and all symbols that the module wants, in the working directory,
# under a launcher's environment: it must not be loaded.
check_attack() {
  local place=$1 module=$RENYI_BUILD/renyi-mpi.so name
  {
    printf '%s\n' '#include <fcntl.h>' '#include <unistd.h>' '__attribute__((constructor))' \
      'static void loaded(void) { close(open("loaded", O_CREAT | O_WRONLY, 0600)); _exit(0); }'
    readelf -W --dyn-syms "$module" | awk '$7 == "UND" && $8 ~ /^P?MPI_|^ompi_/ {print "char " $8 "[64];"}'
  } >"$place/attack.c"
  ${CC:-cc} -shared -fPIC "$place/attack.c" -o "$place/attack.so" || { fault attack.c "does not compile"; return; }
  while IFS= read -r name; do
    case $name in *mpi*) cp "$place/attack.so" "$place/$name" ;; esac
  done < <(readelf -dW "$module" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p')
  (cd "$place" && env -u LD_LIBRARY_PATH OMPI_COMM_WORLD_SIZE=2 timeout 60 "$RENYI_BUILD/renyi" \
    eval -q nowhere >out 2>&1 </dev/null)
  [ ! -e "$place/loaded" ] || fault "$module" "a library from the working directory was loaded"
  # The attack itself works when the loader is told to look there; otherwise it would prove nothing.
  (cd "$place" && LD_LIBRARY_PATH=$place OMPI_COMM_WORLD_SIZE=2 timeout 60 "$RENYI_BUILD/renyi" \
    eval -q nowhere >out 2>&1 </dev/null)
  [ -e "$place/loaded" ] || fault "$module" "the planted library does not load at all: $(head -c 300 "$place/out")"
}

command -v readelf >/dev/null || { echo "SKIP: no readelf (binutils)"; exit 77; }
checked=0 sanitized=0
if [ $# -gt 0 ]; then
  for file in "$@"; do check_file "$file"; done
else
  for file in "$RENYI_BUILD/renyi" "$RENYI_BUILD"/librenyi*.so "$RENYI_BUILD"/examples/example_*; do
    check_file "$file"
  done
  if [ -e "$RENYI_BUILD/renyi-mpi.so" ]; then
    check_file "$RENYI_BUILD/renyi-mpi.so"
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
    check_attack "$place"
  else
    echo "NOT CHECKED: renyi-mpi.so, because this build has no MPI"
  fi
  # The code of the archives ends in programs of others: the protector must be in their objects.
  for file in "$RENYI_BUILD"/librenyi*.a; do
    has "$(nm "$file" 2>/dev/null)" ' U __stack_chk_fail' || fault "$file" "has no stack protector"
  done
fi
[ "$sanitized" -eq 0 ] || echo "NOT CHECKED: _FORTIFY_SOURCE, because the build has sanitizers"
echo "$checked files checked"
exit $bad
