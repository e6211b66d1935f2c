#!/usr/bin/env bash
# --dtype of all verbs that open a model: the dtype that ran is reported, an unsupported one refused.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }

make_toy
for i in {0..15}; do
  mkdir -p "photos/00$((i % 2))"
  make_ppm "photos/00$((i % 2))/$i.ppm" $((i * 15)) $((250 - i * 9)) $((i * 37 % 251))
done
classify() { "$RENYI" classify -m toy.safetensors --json photos/000/0.ppm "$@"; }
eval_toy() { "$RENYI" eval -m toy.safetensors --json photos "$@"; }
inspect() { "$RENYI" inspect toy.safetensors --json "$@"; }
bench() { "$RENYI" bench -m toy.safetensors -b 1 -t 1 --repetitions 3 --no-peak --format json "$@"; }
sweep() { "$RENYI" sweep -m toy.safetensors --data-dir photos --prune none --json "$@"; }
tune() { "$RENYI" tune -m toy.safetensors photos --target-gmacs 1 --prune 'evit keep=0.5 layers=0' --image-size 224 --json "$@"; }
paper() { "$RENYI" paper -m toy.safetensors --table 9 --json "$@"; }
verbs="classify eval_toy inspect bench sweep tune paper"

# The document has the dtype that ran: at the top level, or in each result.
said() {
  python3 - "$1" <<'P' || fail "dtype $1 is not reported"
import json, sys
d = json.load(open("out"))
rows = [d] if "dtype" in d else d.get("results") or [b for t in d["tables"] for b in t["blocks"] if b["model"]]
assert rows and all(r["dtype"] == sys.argv[1] for r in rows), rows
P
}

formats=$("$RENYI" --version | sed -n 's/^dtypes: //p')
has() { case ", $formats," in *", $1,"*) ;; *) return 1 ;; esac; }
has f32 || fail "--version lists no f32"
for dtype in f32 bf16 int8; do
  for verb in $verbs; do
    if has $dtype; then
      run 0 $verb --dtype $dtype
      said $dtype
    else # one line that says why, and what is fastest
      run 1 $verb --dtype $dtype
      out_empty
      err_lines 1
      err_has "$dtype needs"
      err_has "The fastest here is"
    fi
  done
done
for verb in $verbs; do
  run 2 $verb --dtype f16
  out_empty
  err_has "f32|bf16|int8|auto"
done
run 0 inspect
said f32 # what this file was made for
fastest=$(bench --dtype auto 2>/dev/null | sed -n 's/.*"dtype": "\([a-z0-9]*\)".*/\1/p')
has "$fastest" || fail "auto chose '$fastest' of $formats"

# --- plain C supports int8 ---
run 0 classify --cpu scalar --dtype int8
said int8
err_has "dtype: the blocks multiply in int8"
run 1 classify --cpu scalar --dtype bf16
err_has "bf16 needs"

# --- bench: dtypes and policies in turn; the speedup is over the first dtype ---
run 0 bench --cpu scalar --dtype f32,int8 --prune "naive p=16 layers=0"
json '[(r["dtype"], r["policy"].split()[0]) for r in d["results"]] == [(t, p) for t in ("f32", "int8") for p in ("none", "naive")]'
json '[r["speedup"] is None for r in d["results"]] == [True, True, False, False] and d["results"][3]["speedup"] > 0'
json '[r["mac_ratio"] is None for r in d["results"]] == [True, False, True, False] and d["results"][1]["mac_ratio"] == d["results"][3]["mac_ratio"]'
run 0 bench --cpu scalar --dtype int8,f32 --format md
out_has "| x int8 |"
run 0 bench --cpu scalar --dtype f32,int8 --format csv
out_has "mac_ratio,speedup"
for words in f32, ,f32 f32,,int8 default f32,f32,f32,f32,f32,f32,f32,f32,f32; do
  run 2 bench --dtype $words
  err_lines 1
done

# --- a log of an int8 run cannot be continued in f32, nor the reverse ---
logged() { eval_toy --cpu scalar --log-samples run.jsonl --resume "$@"; }
run 0 logged
run 0 logged --dtype int8
json 'd["resumed"] == 0 and d["dtype"] == "int8"'
run 0 logged --dtype int8
json 'd["resumed"] == 16'
run 0 logged --dtype f32
json 'd["resumed"] == 16'
[ "$(wc -l <run.jsonl)" -eq 32 ] || fail "a line per image and dtype"

# --- the last line of tune is complete; CSV files have the column ---
run 0 tune --cpu scalar --dtype int8
json 'd["chosen"]["arguments"].endswith(" --dtype int8")'
run 0 eval_toy --csv results.csv
[ "$(head -1 results.csv | sed 's/.*,//')" = dtype ] && [ "$(tail -1 results.csv | sed 's/.*,//')" = f32 ] || fail "column dtype"
run 0 sweep -o swept
[ "$(head -1 swept/results.csv | sed 's/.*,//')" = dtype ] && [ "$(tail -1 swept/results.csv | sed 's/.*,//')" = f32 ] || fail "column dtype"

# --- several dtypes are compared in one run ---
if has int8; then
  prune=(--prune none --prune 'evit keep=0.5 layers=0')
  run 0 eval_toy --dtype f32 "${prune[@]}"
  cp out f32.json
  run 0 eval_toy --dtype int8 "${prune[@]}"
  cp out int8.json
  run 0 eval_toy --dtype f32,int8 "${prune[@]}" --log-samples both.jsonl --csv both.csv
  cp out both.json
  python3 - <<'P' || fail "rows of two dtypes"
import csv, json
d = json.load(open("both.json"))
key = lambda r: {k: r[k] for k in ("policy", "dtype", "images", "top1", "top5", "loss", "gmacs")}
alone = [r for f in ("f32.json", "int8.json") for r in json.load(open(f))["results"]]
assert [key(r) for r in d["results"]] == [key(r) for r in alone], d["results"]
assert [r["dtype"] for r in d["results"]] == ["f32", "f32", "int8", "int8"]
assert len(d["pairs"]) == 6 and all(p["both"] + p["only_a"] + p["only_b"] + p["neither"] == 16 for p in d["pairs"])
assert [r["dtype"] for r in csv.DictReader(open("both.csv"))] == ["f32", "f32", "int8", "int8"]
P
  # The log keeps them apart: a run of one dtype resumes its own lines, and merges by themselves.
  run 0 eval_toy --dtype int8 "${prune[@]}" --log-samples both.jsonl --resume
  json 'd["resumed"] == 16 and d["results"] == [dict(r, **{k: n[k] for k in ("ms_model", "ms_total", "images_per_second", "gmacs_executed")}) for r, n in zip(json.load(open("int8.json"))["results"], d["results"])]'
  head -n 20 both.jsonl >torn.jsonl
  run 0 eval_toy --dtype int8,f32 "${prune[@]}" --log-samples torn.jsonl --resume
  json '[(r["dtype"], r["top1"], r["loss"]) for r in d["results"]] == [(r["dtype"], r["top1"], r["loss"]) for r in (lambda x: x[2:] + x[:2])(json.load(open("both.json"))["results"])]'
  json 'd["resumed"] == 5'
  id=$(sed -n 's/.*"run":"\([0-9a-f]*\)","dtype":"int8".*/\1/p' both.jsonl | head -1)
  run 0 "$RENYI" merge --run "$id" one.jsonl both.jsonl --json
  json '[r["top1"] for r in d["results"]] == [r["top1"] for r in json.load(open("int8.json"))["results"]]'
  run 0 "$RENYI" eval -m toy.safetensors photos --dtype f32,int8
  out_has "dtype  policy"
  # A sweep has a point for every dtype, size and policy, with the results of the dtype alone.
  sweep=("$RENYI" sweep -m toy.safetensors --data-dir photos "${prune[@]}" --image-size 160,model)
  run 0 "${sweep[@]}" --dtype f32,int8 -o points
  out_has "toy.safetensors int8"
  err_has "grid: 8 points; 1 model, 2 sizes, 2 dtypes, 2 policies"
  python3 - <<'P' || fail "points of two dtypes"
import json
d = json.load(open("points/results.json"))
assert [(r["img_size"], r["dtype"]) for r in d["results"]] == [(s, t) for s in (160, 224) for t in ("f32", "int8") for _ in range(2)], d["results"]
both = json.load(open("both.json"))["results"]
assert [(r["dtype"], r["policy"], r["top1"], r["loss"]) for r in d["results"][4:]] == [(r["dtype"], r["policy"], r["top1"], r["loss"]) for r in both]
assert len(d["pairs"]) == 28 and all(p["both"] + p["only_a"] + p["only_b"] + p["neither"] == 16 for p in d["pairs"])
P
  run 0 "${sweep[@]}" --dtype int8,f32 -o points --resume --json
  json 'd["resumed"] == 64 and [r["dtype"] for r in d["results"]] == ["int8", "int8", "f32", "f32"] * 2'
  printf 'models toy.safetensors\ndtypes f32 int8\npolicy none\n' >grid.txt
  run 0 "$RENYI" sweep grid.txt --data-dir photos --dry-run --json
  json '[r["dtype"] for r in d["results"]] == ["f32", "int8"]'
  run 0 "$RENYI" sweep grid.txt --data-dir photos --dry-run --json --dtype int8
  json '[r["dtype"] for r in d["results"]] == ["int8"]'
  printf 'models toy.safetensors\ndtypes f32 int7\n' >bad.txt
  run 2 "$RENYI" sweep bad.txt --data-dir photos
  err_has "bad.txt:2: 'int7' is not a dtype"
  # A tuning compares candidates of all dtypes with the dense model in the first.
  tune=("$RENYI" tune -m toy.safetensors photos --prune 'none|evit keep=0.5 layers=0' --image-size 224)
  run 0 "${tune[@]}" --dtype f32,int8 --target-gmacs 1 --json
  json 'sorted((c["dtype"], c["policy"].split()[0]) for c in d["candidates"]) == [(t, p) for t in ("f32", "int8") for p in ("evit", "none")]'
  json 'd["candidates"][0]["dtype"] == "f32" and all(("--dtype " + c["dtype"]) in c["arguments"] and c["search"]["images"] == 8 for c in d["candidates"])'
  run 0 "${tune[@]}" --dtype int8,f32 --target-gmacs 1
  out_has "dtype  policy"
  # With a bound on the loss, dense in another dtype has as many GMACs, but may be faster: it is timed.
  run 0 "${tune[@]}" --dtype f32,int8 --max-drop 100 --json
  json '[c["ms"] > 0 for c in d["candidates"] if c["dtype"] == "int8" and c["policy"] == "none"] == [True]'
  run 0 eval_toy --dtype f32,f32,auto
  json '"f32" in [r["dtype"] for r in d["results"]] and len(set(r["dtype"] for r in d["results"])) == len(d["results"])'
fi
run 2 eval_toy --dtype f32,int7
err_has "option '--dtype': 'int7' is not one of f32|bf16|int8|auto"
run 2 paper --dtype f32,int8
err_has "option '--dtype': 'f32,int8' is not one of f32|bf16|int8|auto"
run 2 eval_toy --masks photos --dtype f32,int8
err_has "--masks takes one --dtype at a time"
echo "dtype: ok"
