#!/usr/bin/env bash
# renyi sweep: grids from files and options, the same numbers as renyi eval, resuming, the output folder.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }

make_toy a.safetensors
"$RENYI" init -q --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 2 --classes 10 --seed 2 b.safetensors
mkdir -p photos
for i in {0..11}; do
  mkdir -p "photos/00$((i % 4))"
  make_ppm "photos/00$((i % 4))/$i.ppm" $((i * 20)) $((250 - i * 9)) $((i * 37 % 251))
done
cat >grid.txt <<'SPEC'
# two models, two sizes, three policies
models a.safetensors b.safetensors
sizes 64 96
policy none
policy evit keep=0.5|0.7 layers=0 metric=col n=2
SPEC
sweep() { "$RENYI" sweep "$@" --data-dir photos; }

# --- a table on stdout, files in the folder, the rest on stderr ---
run 0 sweep grid.txt -o out1
[ "$(grep -c 'evit keep=0\.[57] layers=0 metric=col' out)" -eq 8 ] || fail "eight rows of evit"
[ "$(grep -cE '^[M ][T ] +[0-9]+  [ab].safetensors +(64|96) .*  none$' out)" -eq 4 ] || fail "four rows of none"
grep -qE '^MT|^M |^ T' out || fail "no front"
out_has "12 points on 12 photos"
err_has "grid: 12 points; 2 models, 2 sizes, 3 policies"
err_has "Sweep: [4/4] b.safetensors at 96, 3 policies: 12 of 12 images; 100 % of all"
for f in results.csv results.json samples.jsonl report.html accuracy-gmacs.svg accuracy-ms.svg tokens.svg; do
  [ -s "out1/$f" ] || fail "$f"
done
[ "$(ls out1 | wc -l)" -eq 7 ] || fail "something else in the folder: $(ls out1)"
[ "$(wc -l <out1/results.csv)" -eq 13 ] && [ "$(wc -l <out1/samples.jsonl)" -eq 144 ] || fail "lines"
head -1 out1/results.csv | grep -q '^model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation,policy' || fail "timm's columns"
python3 - <<'P' || fail "threads and batch size"
import csv, json
d = json.load(open("out1/results.json"))
assert d["threads"] >= 1 and d["batch_size"] == 8 and d["classes_seen"] == 4 and d["seed"] is None
assert all(int(r["threads"]) == d["threads"] and int(r["batch_size"]) == 8 for r in csv.DictReader(open("out1/results.csv")))
P
run 0 sweep -m a.safetensors --prune none --limit 3 --seed 1 --json
json 'd["photos"] == 3 and d["classes_seen"] > 1 and d["seed"] == 1'
run 0 sweep -m a.safetensors --prune none --limit 3 --no-shuffle --json
json 'd["photos"] == 3 and d["classes_seen"] == 1'
run 0 sweep -q grid.txt
[ ! -s err ] || fail "-q"

# --- every number is that of renyi eval ---
run 0 sweep grid.txt --json
cp out sweep.json
json 'len(d["results"]) == 12 and len(d["pairs"]) == 66 and d["failed"] == [] and d["skipped"] == []'
json 'any(r["front_gmacs"] for r in d["results"]) and any(r["front_ms"] for r in d["results"])'
json 'all(len(r["tokens"]) == 2 and r["native_size"] == 224 for r in d["results"])'
for m in a b; do for s in 64 96; do
  run 0 "$RENYI" eval -m $m.safetensors --data-dir photos --image-size $s --json --prune none \
    --prune 'evit keep=0.5 layers=0 metric=col n=2' --prune 'evit keep=0.7 layers=0 metric=col n=2'
  python3 - $m $s <<'P' || fail "$m at $s: other numbers than eval"
import json, sys
e, s = json.load(open("out")), json.load(open("sweep.json"))
at = [i for i, r in enumerate(s["results"]) if r["model"] == sys.argv[1] + ".safetensors" and r["img_size"] == int(sys.argv[2])]
keys = "policy images failed top1 top1_range top5 loss gmacs gmacs_executed".split()
assert [[s["results"][i][k] for k in keys] for i in at] == [[r[k] for k in keys] for r in e["results"]]
pairs = {(p["a"], p["b"]): p for p in s["pairs"]}
for p in e["pairs"]:
    q = pairs[at[p["a"]], at[p["b"]]]
    assert all(q[k] == p[k] for k in p if k not in "ab"), (p, q)
P
done; done

# --- resuming: only with --resume, after kill -9, with the same totals ---
totals() { python3 -c 'import json,sys; d = json.load(open(sys.argv[1])); print([[r[k] for k in ("model", "img_size", "policy", "images", "failed", "top1", "top5", "loss", "front_gmacs")] for r in d["results"]], d["pairs"])' "$1"; }
totals out1/results.json >want
run 2 sweep grid.txt -o out1
err_has "resume to continue them"
size=$(stat -c %s out1/samples.jsonl)
for cut in 0 $((size / 3)) $((size * 2 / 3)) $size; do
  rm -rf out2; mkdir out2
  head -c "$cut" out1/samples.jsonl >out2/samples.jsonl
  run 0 sweep grid.txt -o out2 --resume
  totals out2/results.json | cmp -s - want || fail "other totals after a cut at $cut"
done
rm -rf out3
"$RENYI" sweep grid.txt --data-dir photos -o out3 -b 1 >out 2>err &
for _ in {1..200}; do [ -s out3/samples.jsonl ] && break; sleep 0.02; done
kill -9 $! 2>/dev/null || true
wait $! 2>/dev/null || true
run 0 sweep grid.txt -o out3 --resume
totals out3/results.json | cmp -s - want || fail "other totals after kill -9"
run 0 sweep grid.txt -o out3 --resume --memory 1 --json
json 'd["resumed"] >= 48 and d["seconds_model"] == 0'

# --- options replace lines of the file; combinations; presets; commas ---
run 0 sweep grid.txt -m a.safetensors --image-size 64 --prune 'none|fast layers=0,1' --json
json '[r["policy"] for r in d["results"]] == ["none", "mosaic keep=0.74 layers=0,1 alpha=1 omega=1 beta=0.8 memory=0.5 length=max col=0.2 temperature=1.05"] and d["results"][0]["img_size"] == 64'
run 0 sweep -m a.safetensors,b.safetensors --image-size 64,model --framework evit,naive --metric 'cls|col' -n 2,4 --keep '0.5|0.7' -p 8 --layers 0 --json
json 'len(d["results"]) == 2 * 2 * (2 * 3 + 3) and {r["img_size"] for r in d["results"]} == {64, 224}'
run 0 sweep -m a.safetensors --image-size 64 --prune 'paper:evit-ours keep=0.7|0.9 layers=0' --json
json 'len(d["results"]) == 2'

# --- what a model cannot run is reported and left out ---
run 0 sweep -m a.safetensors --image-size 64 --prune none --prune 'evit layers=0|7' --json
json 'len(d["results"]) == 2 and len(d["skipped"]) == 1 and "7" in d["skipped"][0]["reason"]'
err_has "not run: a.safetensors at 64, evit keep=0.7 layers=7"
run 2 sweep -m a.safetensors --prune 'evit layers=7'
err_has "nothing to run"
run 0 sweep -m a.safetensors --image-size 64,model --prune none --dry-run -o never
out_has "2 points on 12 photos"
[ ! -e never ] || fail "--dry-run wrote"

# --- unreadable images: reported once, counted everywhere, exit code 3 ---
head -c 30 photos/000/0.ppm >photos/002/cut.ppm
run 3 sweep grid.txt --json
[ "$(grep -c '002/cut.ppm' err)" -eq 1 ] || fail "named once"
json 'all(r["failed"] == 1 and r["images"] == 12 for r in d["results"]) and len(d["failed"]) == 1'
rm photos/002/cut.ppm

# --- wrong usage ---
run 2 "$RENYI" sweep grid.txt
err_has "--data-dir DIR is missing"
run 2 sweep grid.txt --resume
err_has "--resume needs -o DIR"
run 2 sweep grid.txt more.txt
run 2 sweep -m a.safetensors --prune 'evit keep=0.5|1.5'
err_has "keep=1.5"
run 2 sweep -m a.safetensors --keep 0.5
err_has "no frameworks"
run 2 sweep -m a.safetensors --image-size 64,x
printf 'models a.safetensors\nsizs 64\n' >bad.txt
run 2 sweep bad.txt
err_has "bad.txt:2: unknown word 'sizs' (did you mean sizes?)"
: >empty.txt
run 2 sweep empty.txt
err_has "empty.txt: the grid has no model"
run 1 sweep absent.txt
run 1 sweep -m absent.safetensors --prune none
run 1 sweep grid.txt -o nowhere/out
err_has "nowhere/out"
: >file
run 1 sweep grid.txt -o file
run 2 sweep -m a.safetensors --image-size 70 --prune none
run 2 sweep grid.txt --crop-pct 2
err_lines 1
full() { sweep grid.txt >/dev/full; }
run 1 full
# --- a preset that is a cascade, as one of several policies; the chart calls it a cascade ---
run 0 sweep -m a.safetensors --image-size 96 --prune 'none|half|sure' -o cascades
out_has "3 points on 12 photos"
grep -q '>cascade<' cascades/accuracy-gmacs.svg && ! grep -q 'cascade(mosaic<' cascades/accuracy-gmacs.svg || fail "the legend"

echo "sweep: ok"
