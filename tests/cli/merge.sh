#!/usr/bin/env bash
# renyi eval --shard I/N and renyi merge: parts give the results of one process.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }

make_toy
mkdir -p photos
for i in {0..16}; do
  mkdir -p "photos/00$((i % 4))"
  make_ppm "photos/00$((i % 4))/$i.ppm" $((i * 9)) $((250 - i * 9)) $((i * 37 % 251))
done
evaluate() { "$RENYI" eval -m toy.safetensors photos --prune none --prune 'evit keep=0.5 layers=0 metric=col n=4' --shuffle --seed 4 "$@"; }
merge() { "$RENYI" merge "$@"; }
# The part that both documents share, without times.
common() {
  python3 -c 'import json
d = json.load(open("out"))
for r in d["results"]:
    for k in ("ms_model", "ms_total", "images_per_second"): del r[k]
print(json.dumps([d["results"], d["pairs"], d["failed"], d["photos"]], indent=1))'
}

for bad in 0 1; do
  [ "$bad" -eq 0 ] || head -c 30 photos/000/0.ppm >photos/002/cut.ppm
  want=$((bad * 3))
  rm -f ./*.jsonl
  run "$want" evaluate --json --log-samples whole.jsonl
  common >expected
  for i in 1 2 3; do evaluate --shard "$i/3" --log-samples "part$i.jsonl" >/dev/null 2>&1 || true; done
  run "$want" merge all.jsonl part3.jsonl part1.jsonl part2.jsonl --json --csv results.csv
  common | cmp -s - expected || fail "other results than one process"
  json 'd["missing"] == 0 and d["repeated"] == 0 and all(r["ms_total"] > r["ms_model"] > 0 for r in d["results"])'
  [ "$(wc -l <results.csv)" -eq 3 ] || fail "rows of the CSV"
  answers() { sed -E 's/"ms(_rest)?":[^,]*,//g' "$1" | sort; }
  cmp -s <(answers all.jsonl) <(answers whole.jsonl) || fail "another log than one process"
  run "$want" evaluate --json --log-samples all.jsonl --resume # the merged log is one as any other
  json 'd["resumed"] == 17'
done

# --- the table ---
run 3 merge table.jsonl part?.jsonl
out_has "photo by photo"
out_has "17 photos, 1 failed, 10 classes; toy.safetensors at 224 pixels, run "

# --- overlaps, gaps ---
run 3 merge twice.jsonl part?.jsonl part1.jsonl --json
common | cmp -s - expected || fail "an overlap changes the results"
err_has "in the logs more than once"
run 3 merge gap.jsonl part1.jsonl part3.jsonl --json
err_has "shard 2/3 is missing: 6 images"
json 'd["missing"] == 6'
awk '!/error/ && n++ < 3' part2.jsonl >short.jsonl
run 3 merge gap2.jsonl part1.jsonl short.jsonl part3.jsonl
err_has "shard 2/3: 5 of 6 images are missing: number "
out_has ", 5 missing"

# --- logs that do not belong together ---
run 2 merge all.jsonl part1.jsonl
err_has "all.jsonl: this file already has results"
evaluate --limit 9 --log-samples other.jsonl >/dev/null 2>&1 || true
run 1 merge new.jsonl part1.jsonl other.jsonl
err_has "other.jsonl:1: from a run over other images or classes"
evaluate --crop-pct 1 --log-samples crop.jsonl >/dev/null 2>&1 || true
run 1 merge new.jsonl part1.jsonl crop.jsonl
err_has "crop.jsonl:1: run "
sed -E '2s/"margin":[0-9.]+/"margin":9/' part1.jsonl >lie.jsonl
run 1 merge new.jsonl part1.jsonl lie.jsonl
err_has "part1.jsonl:2 and lie.jsonl:2 contradict each other about the answer"
run 1 merge new.jsonl absent.jsonl
run 1 merge new.jsonl toy.safetensors
run 1 merge new.jsonl part1.jsonl --run 0123
err_has "no sample of run 0123"
run 2 merge only.jsonl
run 1 merge nowhere/new.jsonl part1.jsonl
[ ! -e new.jsonl ] || fail "a log was made of nothing"
echo "merge: ok"
