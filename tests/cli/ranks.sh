#!/usr/bin/env bash
# mpirun -n K renyi eval: the results of one process, also after a rank died; an error without MPI.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }

make_toy
mkdir -p photos
for i in {0..25}; do
  mkdir -p "photos/00$((i % 4))"
  make_ppm "photos/00$((i % 4))/$i.ppm" $((i * 9)) $((250 - i * 9)) $((i * 37 % 251))
done
head -c 30 photos/000/0.ppm >photos/002/cut.ppm
prune=(--prune none --prune 'evit keep=0.5 layers=0 metric=col n=4')
evaluate=("$RENYI" eval -m toy.safetensors photos "${prune[@]}" --json)

# The document without times and memory.
timeless() {
  python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
for k in ("seconds", "seconds_model", "seconds_decode", "peak_rss_mb", "ranks", "resumed", "threads", "batch_size"):
    del d[k]
for r in d["results"]:
    for k in ("ms_model", "ms_total", "images_per_second"): del r[k]
print(json.dumps(d, indent=1))' "$1"
}
run 3 "${evaluate[@]}"
timeless out >want

# --- a launcher, but no MPI module: an error, not K copies of the run ---
mkdir -p bare/bin
cp "$RENYI" bare/bin/renyi
run 1 env OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0 bare/bin/renyi eval -m toy.safetensors photos
err_has "a launcher started 3 ranks, but this build has no MPI"
err_has "renyi merge"
out_empty
run 3 env OMPI_COMM_WORLD_SIZE=3 RENYI_MPI=off bare/bin/renyi eval -m toy.safetensors photos
run 3 env OMPI_COMM_WORLD_SIZE=1 bare/bin/renyi eval -m toy.safetensors photos
run 0 env OMPI_COMM_WORLD_SIZE=3 bare/bin/renyi policies
printf 'this is no library' >bare/bin/renyi-mpi.so
run 1 env OMPI_COMM_WORLD_SIZE=3 bare/bin/renyi eval -m toy.safetensors photos
err_has "cannot load the MPI module"

# --- with MPI ---
need_mpi

# --- any number of ranks: the same bytes ---
counts=(1 2 3)
is_sanitized && counts=(3)
for n in "${counts[@]}"; do
  rm -f log.jsonl*
  run 3 ranks "$n" "${evaluate[@]}" -b 2 -t 1 --log-samples log.jsonl --csv results.csv
  json "d['ranks'] == $n and d['results'][0]['images'] == 26 and d['results'][0]['failed'] == 1"
  timeless out | cmp -s - want || fail "other results with $n ranks"
  [ "$(grep -c 'cut.ppm: ' err)" -eq 1 ] || fail "a bad image is reported once"
  [ "$(wc -l <log.jsonl)" -eq 53 ] && [ "$(ls log.jsonl* | wc -l)" -eq 1 ] || fail "one whole log"
  [ "$(wc -l <results.csv)" -eq 3 ] || fail "one CSV"
done
# Every rank draws the same images.
run 3 "$RENYI" eval -q -m toy.safetensors photos --limit 9 --seed 2 --json
timeless out >nine
run 3 ranks 2 "$RENYI" eval -m toy.safetensors photos --limit 9 --seed 2 -t 1 --json
timeless out | cmp -s - nine || fail "--limit with ranks"
# Several dtypes, too.
if "$RENYI" --version | grep 'dtypes:.*int8' >/dev/null; then
  run 3 "${evaluate[@]}" --dtype f32,int8
  timeless out >four
  run 3 ranks 2 "${evaluate[@]}" --dtype f32,int8 -t 1 -b 2
  timeless out | cmp -s - four || fail "two dtypes with ranks"
fi
# The log of several ranks has the lines of one process.
rm -f alone.jsonl
run 3 "${evaluate[@]}" --log-samples alone.jsonl
answers() { sed -E 's/"ms(_rest)?":[^,]*,//g' "$1" | sort; }
cmp -s <(answers alone.jsonl) <(answers log.jsonl) || fail "other lines in the log"
run 2 ranks 2 "${evaluate[@]}" --log-samples log.jsonl
err_has "resume to continue them"
run 3 ranks 2 "${evaluate[@]}" --log-samples log.jsonl --resume
json 'd["resumed"] == 26'
timeless out | cmp -s - want || fail "other results when all is in the log"

# --- a rank is killed: finished work is kept and can be resumed with any number of ranks ---
many=1000 # enough to be in the middle for a while
is_sanitized && many=200
for ((i = 26; i < many; i++)); do ln -s ../000/0.ppm "photos/001/$i.ppm"; done
run 3 "${evaluate[@]}"
timeless out >want
json "d['results'][0]['images'] == $many"
pid_of_rank() {
  local file
  for file in $(grep -lzx -- "$WORK/killed.jsonl" /proc/[0-9]*/cmdline 2>/dev/null); do
    if grep -qzx "OMPI_COMM_WORLD_RANK=$1" "${file%/*}/environ" 2>/dev/null; then
      basename "${file%/*}"
      return
    fi
  done
}
ranks 3 "${evaluate[@]}" -b 1 -t 1 --log-samples "$WORK/killed.jsonl" >out 2>err </dev/null &
for _ in {1..600}; do [ -s killed.jsonl.rank2 ] && break; sleep 0.05; done
victim=$(pid_of_rank 2)
[ -n "$victim" ] || fail "no rank 2 to kill"
kill -9 "$victim"
code=0 && wait $! || code=$?
[ "$code" -ne 0 ] || fail "a killed rank went unnoticed"
[ -s killed.jsonl.rank1 ] && [ -s killed.jsonl.rank2 ] || fail "parts of the log are gone"
mkdir left
mv killed.jsonl* left
for n in alone 2; do
  cp left/* .
  if [ "$n" = alone ]; then
    run 3 "${evaluate[@]}" --log-samples killed.jsonl --resume
  else
    run 3 ranks "$n" "${evaluate[@]}" --log-samples killed.jsonl --resume
  fi
  json "0 < d['resumed'] < $many"
  timeless out | cmp -s - want || fail "other results after a rank was killed"
  [ "$(ls killed.jsonl* | wc -l)" -eq 1 ] || fail "parts of the log are left"
  rm killed.jsonl
done

# --- one rank is interrupted: all stop, and the results so far are printed ---
ranks 2 "${evaluate[@]}" -b 1 -t 1 --log-samples "$WORK/killed.jsonl" >out 2>err </dev/null &
for _ in {1..600}; do [ -s killed.jsonl.rank1 ] && break; sleep 0.05; done
kill -INT "$(pid_of_rank 1)"
code=0 && wait $! || code=$?
[ "$code" -eq 1 ] || fail "exit code $code after an interruption"
json "d['interrupted'] and 0 < d['results'][0]['images'] < $many"
[ "$(grep -c 'with --resume continues' err)" -eq 1 ] || fail "the interruption is reported once"
find photos -type l -delete

# --- errors are reported once, and no rank hangs ---
run 2 ranks 3 "$RENYI" eval -m toy.safetensors photos --bogus
[ "$(grep -c 'unknown option' err)" -eq 1 ] || fail "wrong usage is reported once"
run 1 ranks 2 "$RENYI" eval -m absent.safetensors photos
mkdir -p folder.jsonl.rank1
run 1 ranks 2 "${evaluate[@]}" --log-samples folder.jsonl --resume
err_has "folder.jsonl.rank1: "
# Only the second rank has another list of images.
run 2 ranks 2 bash -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then set -- --limit 5; fi; exec "$0" eval -m toy.safetensors photos "$@"' "$RENYI"
err_has "rank 1 has other images or classes (5 images) than rank 0 (27)"
run 1 ranks 2 bash -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then set -- -m absent; else set -- -m toy.safetensors; fi; exec "$0" eval photos "$@"' "$RENYI"
err_has "rank 1: absent"

# --- a sweep shares its images, too ---
sweep=("$RENYI" sweep -m toy.safetensors --data-dir photos --prune 'none' --prune 'evit keep=0.5|0.7 layers=0 metric=cls')
run 3 "${sweep[@]}" -o one
run 3 ranks 2 "${sweep[@]}" -o two
python3 - <<'P' || fail "other results of a sweep with 2 ranks"
import csv
rows = [[{k: v for k, v in r.items() if not any(t in k for t in ("ms", "img_per_s", "rss", "threads"))} for r in csv.DictReader(open(f + "/results.csv"))] for f in ("one", "two")]
assert rows[0] == rows[1] and len(rows[0]) == 3, rows
P

# --- a zero-shot evaluation, too ---
make_clip
zeroshot=("$RENYI" zeroshot -m clip.safetensors --data-dir photos --class-names names --json)
printf 'cat\ndog\nhen\ncow\n' >names
for i in 0 1 2 3; do mv "photos/00$i" "photos/$(sed -n "$((i + 1))p" names)"; done
run 3 "${zeroshot[@]}"
timeless out >want
run 3 ranks 2 "${zeroshot[@]}"
timeless out | cmp -s - want || fail "other zero-shot results with 2 ranks"
echo "ranks: ok"
