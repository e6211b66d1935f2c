#!/usr/bin/env bash
# A full disk: a limit on the size of files (ulimit -f) and a small tmpfs. A run ends with success or a message;
# an older file stays as it was, no part of a file is left, and with space again the run can be finished.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3"; exit 77; }

make_toy
for i in {0..11}; do
  mkdir -p "photos/00$((i % 4))"
  make_ppm "photos/00$((i % 4))/$i.ppm" $((i * 20)) $((250 - i * 9)) $((i * 37 % 251))
done
photos=$WORK/photos model=$WORK/toy.safetensors
mkdir disk
can_mount=$([ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=64k none disk 2>/dev/null && umount disk && echo yes || true)
[ -n "$can_mount" ] || echo "SKIP: cannot mount a tmpfs; only ulimit -f is tried"
trap 'umount "$WORK/disk" 2>/dev/null || true; rm -rf "$WORK"' EXIT

# `command_of NAME`: the command, what it writes whole or not at all, and the largest limit that is tried, in KiB.
# Names that end with a slash are folders that it fills.
names=(eval-csv embed quantize init viz-png viz-html search classify-csv eval-log sweep train)
command_of() {
  local data=(-q -t 1 -m "$model") prune=(--prune none --prune 'evit keep=0.5 layers=0')
  whole= most=600 goes_on=
  case $1 in
  eval-csv) whole=a.csv most=4 command=(eval "${data[@]}" --data-dir "$photos" --csv a.csv) ;;
  embed) whole=a.npy most=8 command=(embed "${data[@]}" -r "$photos" -o a.npy) ;;
  quantize) whole=a.safetensors command=(quantize --force "${data[@]}" -o a.safetensors) ;;
  init) whole=a.safetensors command=(init --force -q --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 2 --classes 10 a.safetensors) ;;
  viz-png) whole=a.png command=(viz "${data[@]}" "$photos/000/0.ppm" -o a.png) ;;
  viz-html) whole=a.html command=(viz "${data[@]}" "$photos/000/0.ppm" -o a.html) ;;
  search) whole=a.safetensors most=12 command=(search "${data[@]}" "$photos" --index a.safetensors) ;;
  classify-csv) whole=a.csv most=8 command=(classify "${data[@]}" -r "$photos" --csv a.csv) ;;
  eval-log) goes_on=a.jsonl most=16 command=(eval "${data[@]}" -b 2 --data-dir "$photos" "${prune[@]}" --log-samples a.jsonl --json) ;;
  sweep) goes_on=out most=200 command=(sweep "${data[@]}" -b 2 --data-dir "$photos" "${prune[@]}" -o out) ;;
  train)
    goes_on=run most=400
    command=(train -q -t 1 --arch vit_tiny_patch8_32 --dim 32 --heads 2 --depth 2 --mlp-dim 64 --batch-size 8
      --data-dir "$photos" --val-dir "$photos" --epochs 1 --checkpoint-every 2 -o run)
    ;;
  esac
}

# --- what they write with enough space ---
for name in "${names[@]}"; do
  command_of "$name"
  mkdir "want.$name"
  (cd "want.$name" && "$RENYI" "${command[@]}" >../out 2>../err </dev/null) || fail "$name fails with enough space"
done
# An image of which only some policies were written is done again.
answers() { python3 -c 'import json, sys; print(len({(d["file"], d["policy"]) for d in map(json.loads, open(sys.argv[1]))}))' "$1"; }
is_made() { # does this folder have what the command makes?
  case $1 in
  eval-log) [ "$(answers "$2/a.jsonl")" -eq 24 ] ;;
  sweep) [ -s "$2/out/results.json" ] && [ "$(answers "$2/out/samples.jsonl")" -eq 24 ] ;;
  train) cmp -s "$2/run/model.safetensors" "want.train/run/model.safetensors" ;;
  eval-csv | classify-csv | viz-*) [ -s "$2/$whole" ] && ! cmp -s "$2/$whole" old ;; # has times in it
  *) cmp -s "$2/$whole" "want.$1/$whole" ;;
  esac
}

echo "an older file" >old
# try NAME KIND KIB: one run with so much space.
try() {
  local what="$1, $2" where="$1 with $3 KiB" limit=unlimited older=
  command_of "$1"
  rm -rf disk && mkdir disk
  if [ "$2" = "full disk" ]; then mount -t tmpfs -o "size=$3k" none disk; else limit=$3; fi
  if [ -n "$whole" ] && [ "$1" != search ]; then # search reads an older index
    cp old "disk/$whole"
    older="disk/$whole"
  fi
  code=0
  (cd disk && ulimit -f "$limit" && exec "$RENYI" "${command[@]}" >../out 2>../err </dev/null) || code=$?
  if ! ends_well 0 1; then
    broke "$what" "$where: exit code $code"
  elif [ "$code" -eq 0 ]; then
    expect "$what" "$where: success, but not what was asked for" is_made "$1" disk
  elif [ -n "$older" ] && ! cmp -s old "$older"; then
    broke "$what" "$where: the older file has changed"
  elif [ -n "$(find disk -name '*.tmp' -o -name '*.part')" ]; then
    broke "$what" "$where: a part of a file is left: $(ls -R disk)"
  elif [ -n "$goes_on" ]; then
    [ "$2" != "full disk" ] || mount -o remount,size=64m disk
    [ ! -e "disk/$goes_on" ] || command+=(--resume)
    code=0
    (cd disk && "$RENYI" "${command[@]}" >../out 2>../err </dev/null) || code=$?
    if [ "$code" -eq 0 ] && is_made "$1" disk; then held "$what"; else broke "$what" "$where: cannot go on: exit code $code"; fi
  else
    held "$what"
  fi
  [ "$2" != "full disk" ] || umount disk
}

while more_rounds; do
  for name in "${names[@]}"; do
    command_of "$name"
    below "$most"
    try "$name" "limited file" $((chosen + 1))
    [ -n "$can_mount" ] || continue
    below "$most"
    try "$name" "full disk" $(((chosen + 8) / 4 * 4)) # whole pages
  done
done
faults_end
