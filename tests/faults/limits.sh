#!/usr/bin/env bash
# Short of memory (ulimit -v) and of file descriptors (ulimit -n): success, or one message and exit code 1 or 3.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

make_toy
mkdir -p photos/{000,001}
for i in {1..3}; do
  make_ppm "photos/000/$i.ppm" $((i * 20)) 60 60
  make_ppm "photos/001/$i.ppm" 60 $((i * 20)) 200
done
verbs=(inspect classify eval embed quantize viz)
arguments_of() {
  case $1 in
  inspect) arguments=(inspect -q toy.safetensors) ;;
  classify) arguments=(classify -q -t 2 -m toy.safetensors -r photos) ;;
  eval) arguments=(eval -q -t 2 -m toy.safetensors --data-dir photos --csv eval.csv) ;;
  embed) arguments=(embed -q -t 2 -m toy.safetensors -r photos -o rows.npy) ;;
  quantize) arguments=(quantize -q -t 2 -m toy.safetensors --calib photos -o int8.safetensors) ;;
  viz) arguments=(viz -q -m toy.safetensors photos/000/1.ppm -o figure.png) ;;
  esac
}

# limited OPTION VALUE ARGUMENTS...: the program under `ulimit OPTION VALUE`; exit code in $code.
limited() {
  code=0
  # The outer shell reports a signal; its message is not the program's.
  { (ulimit -c unlimited && ulimit "$1" "$2" && exec "$RENYI" "${@:3}" >out 2>err </dev/null) || code=$?; } 2>/dev/null
}

# Sets $least: the smallest limit from $2 to $3 with which the program starts at all; below it the system's
# loader gives up.
find_least() {
  local low=$2 high=$3 middle
  while [ "$low" -lt "$high" ]; do
    middle=$(((low + high) / 2))
    limited "$1" "$middle" --version
    if [ "$code" -eq 0 ]; then high=$middle; else low=$((middle + 1)); fi
  done
  least=$high
}

# Did the program end inside a library that SECURITY.md names (oneDNN, OpenMP, pango with its GLib and
# fontconfig)? They say so, or the first frame of the core file that is not of the C library tells.
ended_in_library() {
  grep -qE '^libgomp: |GLib-ERROR|^terminate called|Pango-' err && return
  gdb -batch -nx -ex bt "$RENYI" core* >trace 2>&1 || true
  grep -E '^#[0-9]' trace | grep -vE '/lib(c|m|stdc\+\+|gcc_s)\.so|/ld-linux' | head -1 |
    grep -qE '/lib(dnnl|gomp|pango|glib|gobject|fontconfig|freetype|harfbuzz)[^/]*$'
}
can_see_cores=$(command -v gdb >/dev/null && ! grep -q '[|/]' /proc/sys/kernel/core_pattern && echo yes || true)
[ -n "$can_see_cores" ] || echo "SKIP: no gdb or no core files; crashes are taken to be those that SECURITY.md names"

# try_limit NAME OPTION VALUE VERB
try_limit() {
  local what="$4, short of $1" where="$4 -> $2 $3"
  arguments_of "$4"
  limited "$2" "$3" "${arguments[@]}"
  if ends_well 0 1 3; then
    held "$what"
  elif [ "$code" -ne 1 ] && [ "$code" -lt 128 ]; then
    broke "$what" "$where: exit code $code"
  elif ended_in_library || { [ "$code" -ge 128 ] && [ -z "$can_see_cores" ]; }; then
    held "ended by OpenMP, oneDNN or pango, as SECURITY.md says"
  else
    broke "$what" "$where: exit code $code: $(grep -E '^#[0-9]' trace | head -5 | tr '\n' ' ')"
  fi
  rm -f core* trace eval.csv rows.npy int8.safetensors figure.png
}

find_least -n 3 64
fewest=$least
if is_sanitized; then
  echo "SKIP: sanitizers reserve terabytes; no runs with ulimit -v"
else
  find_least -v 1000 4000000
  memory=$least
fi
for ((n = fewest; n < fewest + 12; n += 4)); do
  for verb in "${verbs[@]}"; do try_limit descriptors -n "$n" "$verb"; done
done
while more_rounds; do
  for verb in "${verbs[@]}"; do
    below 40
    try_limit descriptors -n $((fewest + chosen)) "$verb"
    is_sanitized && continue
    pick 20000 60000 400000 # most of what can fail does so close to the least
    below "$chosen"
    try_limit memory -v $((memory + chosen)) "$verb"
  done
done
faults_end
