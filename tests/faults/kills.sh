#!/usr/bin/env bash
# Kills at random moments: INT, TERM, HUP and KILL, up to three in a row, then the same command again. The
# result must be that of a run that nobody disturbed.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3"; exit 77; }

make_toy
for i in {0..39}; do
  mkdir -p "photos/00$((i % 4))"
  make_ppm "photos/00$((i % 4))/$i.ppm" $((i * 6)) $((250 - i * 5)) $((i * 37 % 251))
done
mkdir many # enough work for an index that is saved as it goes
n_many=$(is_sanitized && echo 200 || echo 1500)
for ((i = 0; i < n_many; i++)); do ln "photos/00$((i % 4))/$((i % 40)).ppm" "many/$i.ppm"; done

# --- the verbs: `start_VERB` sets the command of a run in its folder, or of one that goes on there;
# `result_VERB` prints what must be the same ---
policies=(--prune none --prune 'evit keep=0.5 layers=0 metric=col n=2')
start_eval() { command=("$RENYI" eval -q -t 1 -b 2 -m ../toy.safetensors --data-dir ../photos "${policies[@]}" --json --log-samples log.jsonl --resume); }
totals='import json
print([[r[k] for k in ("policy", "images", "failed", "top1", "top5", "loss")] for r in json.load(open("FILE"))["results"]])'
result_eval() {
  python3 -c "${totals/FILE/../out}"
  # An image of which only some policies were written is done again, with the same answers.
  python3 -c 'import json; print(sorted({(d["file"], d["policy"], d["prediction"], d["loss"]) for d in map(json.loads, open("log.jsonl"))}))'
}
start_sweep() {
  command=("$RENYI" sweep -q -t 1 -b 2 -m ../toy.safetensors --image-size 64,96 --data-dir ../photos "${policies[@]}" -o out)
  [ ! -e out ] || command+=(--resume)
}
result_sweep() { python3 -c "${totals/FILE/out/results.json}"; }
start_search() { command=("$RENYI" search -q -t 1 -m ../toy.safetensors ../many --index index.safetensors); }
result_search() { cat index.safetensors; }
start_train() {
  command=("$RENYI" train -q -t 1 --arch vit_tiny_patch8_32 --dim 32 --heads 2 --depth 2 --mlp-dim 64 --batch-size 8
    --data-dir ../photos --val-dir ../photos --epochs 4 --ema 0.9 --drop-path 0.1 --checkpoint-every 3 -o run)
  [ ! -e run ] || command+=(--resume)
}
result_train() { cat run/model.safetensors run/model-ema.safetensors run/best.safetensors; }
start_quantize() { command=("$RENYI" quantize --force -q -t 1 -m ../toy.safetensors --calib ../photos -o int8.safetensors); }
result_quantize() { cat int8.safetensors; }
verbs=(eval sweep search train quantize)

# --- what they give when nobody disturbs them ---
declare -A length
for verb in "${verbs[@]}"; do
  mkdir "want.$verb" && cd "want.$verb"
  start_$verb
  start=${EPOCHREALTIME/./}
  "${command[@]}" >../out 2>../err </dev/null || { cd ..; fail "$verb fails undisturbed"; }
  length[$verb]=$(((${EPOCHREALTIME/./} - start) / 1000 + 1))
  result_$verb >../want
  cd ..
  mv want "want.$verb/want"
done

parts() { find . -name '*.tmp' -o -name '*.part' | sort; }

# One try: in a new folder, kills and then the end.
disturb() {
  local verb=$1 signal n history= was_short= left
  rm -rf try && mkdir try && cd try
  below 3
  n=$((chosen + 1))
  while [ $((n--)) -gt 0 ]; do
    pick INT TERM HUP KILL
    signal=$chosen
    below $((length[$verb] + 20))
    start_$verb
    left=$(parts)
    kill_after "$signal" "$chosen" "${command[@]}"
    mv out err ..
    history+=" $signal after $chosen ms: $code;"
    cd ..
    if ! ends_well 0 1 $((128 + $(kill -l $signal))); then
      broke "$verb, killed by $signal" "$history"
      return
    fi
    held "$verb, killed by $signal"
    cd try
    # what an earlier KILL left stays until the next run opens its output
    if [ "$code" -eq 1 ] && [ -n "$(comm -13 <(echo "$left") <(parts))" ]; then was_short=$signal; fi
  done
  start_$verb
  code=0
  "${command[@]}" >../out 2>../err </dev/null || code=$?
  if [ "$code" -ne 0 ]; then
    broke "$verb, the same result after the kills" "$history the last run: exit code $code"
  elif [ -n "$was_short" ]; then
    broke "$verb, the same result after the kills" "$history parts of files are left after $was_short"
  else
    result_$verb >../got
    if [ -n "$(find . -name '*.tmp')" ]; then echo "a part of a file is left" >../got; fi
    expect "$verb, the same result after the kills" "$history another result" cmp ../got "../want.$verb/want"
  fi
  cd ..
}

# The index is there before the run has ended, and its rows are used again.
kill_index() {
  rm -rf try && mkdir try && cd try
  start_search
  "${command[@]}" >../out 2>../err </dev/null &
  for _ in {1..1200}; do [ ! -e index.safetensors ] && kill -0 $! 2>/dev/null || break; sleep 0.05; done
  kill -KILL $! 2>/dev/null || true
  wait $! 2>/dev/null || true
  "${command[@]}" --json >../out 2>../err </dev/null || true
  cd ..
  expect "search, rows survive KILL" "no row was kept" python3 -c 'import json, sys
d = json.load(open("out"))
sys.exit(not (d["kept"] > 0 and d["kept"] + d["added"] == int(sys.argv[1])))' "$n_many"
}

while more_rounds; do
  for verb in "${verbs[@]}"; do disturb "$verb"; done
  kill_index
done
faults_end
