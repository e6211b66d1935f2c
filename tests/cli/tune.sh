#!/usr/bin/env bash
# renyi tune: the goals, candidates, the table and JSON, resuming, wrong usage.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }

make_toy
mkdir photos
python3 - <<'P'
import random
random.seed(1)
colour = lambda: bytes(random.randrange(256) for _ in range(3))
for i in range(40):
    rows = b"".join(colour() * 20 + colour() * 20 for _ in range(30))
    open(f"photos/{i:02}.ppm", "wb").write(b"P6\n40 30\n255\n" + rows)
P
# The labels are the dense model's own answers, so its accuracy is 100 %.
"$RENYI" classify -q -m toy.safetensors --json photos/*.ppm |
  python3 -c 'import json, sys
for r in json.load(sys.stdin)["results"]: print(r["file"], r["top"][0]["index"], sep=",")' >list.csv
tune_toy() { "$RENYI" tune -m toy.safetensors -t 1 "$@"; }
space=(--prune 'evit keep=0.3|0.6|0.9 layers=0|1 metric=col n=4' --image-size 160,224)

# --- a bound of the cost: the same choice every time, confirmed, printed last ---
run 0 tune_toy --data-dir list.csv --target-gmacs 0.014 "${space[@]}"
out_has "confirmation, 20 others"
out_has "that the search never saw"
err_has "candidates: 12, and the dense model"
err_has "rung 1 of 1"
use=$(tail -1 out)
case $use in --prune\ \'evit*) ;; *) fail "last line: $use" ;; esac
eval "run 0 $RENYI eval -q -m toy.safetensors list.csv $use" # what it prints can be used
run 0 tune_toy list.csv --target-gmacs 0.014 "${space[@]}" --json
json "d['chosen']['arguments'] == '''$use'''"
json 'd["found"] and d["looks"] == 1 and d["chosen"]["fate"] == "chosen" and d["chosen"]["gmacs"] <= 0.014'
json 'd["photos"] == 40 and d["photos_search"] == d["photos_confirm"] == 20 and d["chosen"]["confirmed"]["images"] == 20'
json 'd["candidates"][0]["policy"] == "none" and all(c["search"]["only_it"] == 0 for c in d["candidates"] if c["search"])'
json 'd["chosen"]["search"]["drop"] == min(c["search"]["drop"] for c in d["candidates"] if c["fate"] in ("finalist", "chosen"))'

# --- a bound of the loss: dense always meets it ---
if ! is_sanitized; then
  run 0 tune_toy list.csv --max-drop 0 "${space[@]}" --json
  json 'd["found"] and (d["chosen"]["policy"] == "none" or d["chosen"]["confirmed"]["drop"] <= 0)'
fi
run 0 tune_toy list.csv --max-drop 100 "${space[@]}" --search 0.25 --json
json 'd["chosen"]["speedup"] > 1 and d["photos_search"] == 10 and d["chosen"]["chance"] > 0.9'

# --- labels that a policy answers better than the dense model: points above, not minus points below ---
"$RENYI" classify -q -m toy.safetensors --json --prune 'evit keep=0.1 layers=0 metric=col n=4' photos/*.ppm |
  python3 -c 'import json, sys
for r in json.load(sys.stdin)["results"]: print(r["file"], r["top"][0]["index"], sep=",")' >better.csv
run 0 tune_toy better.csv --target-gmacs 0.03 --prune 'evit keep=0.1 layers=0 metric=col n=4'
grep -qE '^ +[0-9.]+ points above dense on 20 photos' out || fail "points above dense"

# --- times ---
few=(--prune 'evit keep=0.3|0.6 layers=0 metric=col n=4')
run 0 tune_toy list.csv --target-ms 100000 "${few[@]}" -b 4 --json
json 'd["found"] and d["batch_size"] == 4 and d["candidates"][0]["ms"] > 0'
run 1 tune_toy list.csv --target-ms 0.00001 "${few[@]}"
err_has "nothing takes at most 1e-05 ms"
out_has "Nearest: "
run 1 tune_toy list.csv --target-gmacs 0.0001 "${space[@]}" --json
json 'not d["found"] and d["chosen"] is None and d["nearest"]["fate"] == "costly"'

# --- tokens that depend on the image: the least is known first, then the mean; likeness=1 merges
# nothing, costs more than dense and is eliminated ---
run 0 tune_toy list.csv --target-gmacs 0.035 --image-size 224 \
  --prune 'mosaic keep=0.3 layers=0 likeness=0.001|1' --json
json '[c["fate"] for c in d["candidates"] if "likeness=1" in c["policy"]] == ["costly"] and d["found"]'
json 'all(c["search"]["other"] == 0 and c["gmacs"] >= d["candidates"][0]["gmacs"] for c in d["candidates"] if "likeness=1" in c["policy"])'
json 'all(c["gmacs"] < d["candidates"][0]["gmacs"] for c in d["candidates"] if "likeness=0.001" in c["policy"])'

# --- images without classes; candidates from a file, usual ones, some that do not fit ---
run 0 tune_toy photos --unlabeled --target-gmacs 0.014 "${space[@]}" --json
json 'd["unlabelled"] and all(abs(c["search"]["drop"] + c["search"]["agreement"] - 100) < 1e-6 for c in d["candidates"] if c["search"])'
printf 'sizes 112 model\npolicy tome r=8|16\npolicy evit keep=0.5 layers=7 metric=cls\n' >space.txt
run 0 tune_toy list.csv --target-gmacs 0.014 --space space.txt --json
json 'sorted({c["img_size"] for c in d["candidates"]}) == [112, 224] and [c["fate"] for c in d["candidates"]].count("misfit") == 2'
json 'all("outside the model" in c["why"] for c in d["candidates"] if c["fate"] == "misfit")'
run 0 tune_toy list.csv --target-gmacs 1 --limit 20 --json
json '{c["img_size"] for c in d["candidates"]} == {128, 160, 192, 224} and d["photos"] == 20'

# --- resuming; images that cannot be read are reported once and counted ---
run 0 tune_toy list.csv --target-gmacs 0.014 "${space[@]}" --log-samples log.jsonl
run 2 tune_toy list.csv --target-gmacs 0.014 "${space[@]}" --log-samples log.jsonl
lines=$(wc -l <log.jsonl)
run 0 tune_toy list.csv --target-gmacs 0.014 "${space[@]}" --log-samples log.jsonl --resume
[ "$(tail -1 out)" = "$use" ] && [ "$(wc -l <log.jsonl)" -eq "$lines" ] || fail "--resume"
mv photos/03.ppm kept.ppm
: >photos/03.ppm
run 3 tune_toy list.csv --target-gmacs 0.014 "${space[@]}"
[ "$(grep -c '03.ppm: ' err)" -eq 1 ] || fail "a bad image is named once"
mv kept.ppm photos/03.ppm

# --- wrong usage ---
run 2 tune_toy list.csv
err_has "a goal is missing"
run 2 tune_toy list.csv --max-drop 1 --target-ms 3
err_has "give one"
run 2 tune_toy list.csv --max-drop=-1
err_has "0 to 100"
run 2 tune_toy list.csv --max-drop x
run 2 tune_toy list.csv --target-ms 0
run 2 tune_toy list.csv --max-drop 1 --search 1
run 2 tune_toy list.csv --max-drop 1 --limit 10
err_has "10 images are too few"
run 2 tune_toy --max-drop 1
run 2 tune_toy list.csv --max-drop 1 --prune 'evit keep=7'
run 2 tune_toy list.csv --max-drop 1 --resume
run 2 tune_toy list.csv --max-drop 1 --unlabeled --class-map list.csv
run 1 tune_toy absent --max-drop 1
run 1 tune_toy list.csv --max-drop 1 --space absent
echo "tune: ok"
