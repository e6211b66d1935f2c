#!/usr/bin/env bash
# renyi paper: tables without weights, of a random model on made-up images, from the cache; JSON and CSV.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }
paper() { "$RENYI" paper "$@"; }
cells='[c for t in d["tables"] for b in t["blocks"] for r in b["rows"] for c in r["cells"]]'

# --- a fresh clone: no weights, no images ---
run 0 paper
[ "$(grep -c '^Table ' out)" -eq 16 ] || fail "sixteen tables"
[ "$(grep -c 'no weights (renyi pull timm/' out)" -eq 19 ] || fail "nineteen parts without weights"
[ "$(grep -c 'no weights (renyi pull openai/clip' out)" -eq 2 ] || fail "two tables without weights"
out_has "  4.6 c 17.58  82.0 no weights"
out_has "copied from Table 14"
out_has "its published code has c=0.2"
out_has "|   mosaic d"
[ "$(awk 'length > 100' out | wc -l)" -eq 0 ] || fail "wider than 100 columns"
err_has "accuracies: renyi paper -m MODEL --data-dir DIR"
for n in 6 12; do # each table names its own models
  run 0 paper --table $n
  err_has "renyi pull llava-hf/llava-1.5-7b-hf"
  ! grep -q timm err || fail "a hint at timm for a table of LLaVA"
done
run 0 paper --table 4
err_has "renyi pull openai/clip-vit-base-patch16"
! grep -q timm err || fail "a hint at timm for a table of CLIP"
run 0 paper -q --table 11 --no-mosaic
! grep -q mosaic out || fail "--no-mosaic"
[ ! -s err ] || fail "-q"
run 0 paper --table 2,1 --table 2
[ "$(grep -c '^Table ' out)" -eq 2 ] || fail "two tables"
run 0 paper --table 3 --markdown
out_has "## Table 3"
out_has "| p | GFLOPs | here | CLS | here | Ours a | here | mosaic d |"
out_has "| 12 | 2.9 c | 2.85 | 78.10 | no weights |"

# --- JSON and CSV ---
run 0 paper --json --csv cells.csv
json '[t["table"] for t in d["tables"]] == [1, 2, 3, 7, 8, 9, 10, 11, 14, 15]'
json 'all(set("method name policy gmacs gmacs_paper paper_top1 state fault".split()) <= set(c) for c in '"$cells"')'
json 'all(c["state"] == "no weights" and "top1" not in c and c["gmacs"] > 1 for c in '"$cells"')'
json 'sum(c["paper_top1"] is not None for c in '"$cells"') == 252'
json 'sum(r["paper_gflops_are_off"] for t in d["tables"] for b in t["blocks"] for r in b["rows"]) == 7 + 4'
json 'all(abs(c["gmacs_paper"] - r["paper_gflops"]) <= 0.05 for t in d["tables"] for b in t["blocks"] for r in b["rows"] for c in r["cells"] if c["method"] != "mosaic" and r["paper_gflops"] and not r["paper_gflops_are_off"])'
json 'd["tables"][8]["blocks"][0]["weights"] == "timm/deit_small_patch16_224.fb_in1k"'
python3 - <<'P' || fail "CSV"
import csv
rows = list(csv.DictReader(open("cells.csv")))
assert len(rows) == 252 + 109 + 17 * 5 + 2 * 12 * 5 + 2 * 4 and {r["state"] for r in rows} == {"no weights"}, len(rows)
assert all(None not in r and None not in r.values() for r in rows)
first = rows[0]
assert (first["table"], first["method"], first["paper_top1"]) == ("1", "cls", "66.1") and "layers=0,3,6" in first["policy"]
P

# --- over datasets: CLIP and TCA ---
run 0 paper --table 4,5 --csv sets.csv
[ "$(grep -c '^Table ' out)" -eq 2 ] || fail "two tables"
out_has "  ImageNet-R       77.55 no weights  66.04 no weights    72.10 no weights"
out_has "58.39 d"
out_has "  UCF101          62.33 no weights   67.01 no weights"
out_has "the column's mean is 65.13"
[ "$(awk 'length > 100' out | wc -l)" -eq 0 ] || fail "wider than 100 columns"
grep -q '^5,CLIP ViT-B/16,Ours,"paper:tca-ours layers=0,3,6",9.2,43.03,.*,DTD$' sets.csv || fail "a cell of a survey in the CSV"
run 0 paper --table 9 --json
json 'len(d["tables"]) == 1 and d["surveys"] == []'
result() { # COLLECTION TOP1 TOP1: dense, and with TCA
  printf '{"collection": "%s", "model": "clip", "architecture": "clip_vit_base_patch16_224", "results": [
    {"policy": "none", "images": 100, "failed": 0, "top1": %s, "top1_range": [%s, 99.5]},
    {"policy": "tca drop=0.1 layers=3,6,9 metric=cls start=1", "adapt": "tca", "images": 100, "failed": 0, "top1": %s, "top1_range": [10.5, 99.5]},
    {"policy": "tca drop=0.1 layers=0,3,6 metric=cls", "images": 100, "failed": 0, "top1": 1, "top1_range": [0, 9]}]}' "$1" "$2" "$2" "$3"
}
for set in imagenet imagenet-a imagenet-v2 imagenet-r imagenet-sketch; do result $set 80 70.25 >$set.json; done
files=(--results imagenet.json --results imagenet-a.json --results imagenet-v2.json --results imagenet-r.json --results imagenet-sketch.json)
run 0 paper --table 4 "${files[@]}"
out_has "clip as the paper's CLIP ViT-B/16"
err_has "imagenet.json: 'tca drop=0.1 layers=0,3,6 metric=cls' is in no column; the columns are none and, with --adapt tca, paper:tca"
out_has "80.00 ±9.8!"
out_has "Average          61.24       80.00  56.39       70.25"
out_has "not run"
run 0 paper --table 4 "${files[@]}" --json
json '[c.get("top1") for c in d["surveys"][0]["rows"][1]["cells"]] == [80, 70.25, None, None, None]'
json '[c["top1"] for c in d["surveys"][0]["rows"][5]["cells"]] == [80, 70.25, None, None, None]'
json 'd["surveys"][0]["rows"][1]["cells"][0]["state"] == "measured" and d["surveys"][0]["rows"][1]["cells"][3]["state"] == "not run"'
run 0 paper --table 5 --results imagenet.json
err_has "imagenet.json: no result for these tables"
run 1 paper --table 4 --results imagenet.json --results imagenet.json
err_has "a second result of imagenet"
sed s/'"clip"'/'"another"'/ imagenet-a.json >other.json
run 1 paper --table 4 --results imagenet.json --results other.json
err_has "a table is of one model"
echo '{"results": []}' >none.json
run 1 paper --table 4 --results none.json
err_has "not the JSON of renyi zeroshot"
echo '{' >none.json
run 1 paper --table 4 --results none.json
run 1 paper --table 4 --results absent.json
run 2 paper --table 4 -m absent
err_has "renyi zeroshot"

# --- fine-tuning: runs of renyi train, and the recipe ---
. "$RENYI_SRC/tests/fixtures/run_logs.sh"
make_run cls 1 4 2 80 "evit keep=0.7 layers=0,3,6 metric=cls fuse" 30 5
make_run ours 2 4 2 79 paper:evit-ours-036 2 5
sed -i '1s/"arch":"vit_small_patch16_224"/"architecture":"vit_small_patch16_224","val_photos":500,"model":"vit_small"/' cls/log.jsonl ours/log.jsonl
run 0 paper --table 13,16 --results cls --results ours/log.jsonl --csv tuned.csv
out_has "vit_small as the paper's ViT-S/16 (augreg)"
out_has "0.7   0,3,6      2.3 2.29  77.2"
grep -qE '^  0,3,6   CLS +30 +500 +[0-9.]+ +[0-9.]+  cls$' out || fail "the run of a column"
grep -qE '^  0,3,6   Ours +2 +500 ' out || fail "the epochs of a run"
grep -qE '^  Rescue Ratio \(c\) +0.8 +- +0.8 ' out || fail "a row of Table 16"
"$RENYI" train --help >settings
for option in $(grep -oE -- '--[a-z-]+$' out); do
  grep -qE -- " $option( |$)" settings || fail "Table 16 names $option, which renyi train --help does not have"
done
out_has "the peak is 8e-5"
[ "$(awk 'length > 100' out | wc -l)" -eq 0 ] || fail "wider than 100 columns"
[ "$(grep -c '^13,.*,measured,' tuned.csv)" -eq 2 ] || fail "cells of Table 13 in the CSV"
run 0 paper --table 13,16 --results cls --results ours --json --no-mosaic
json '[[c["state"] for c in r["cells"]] for r in d["tuned"]["rows"]] == [["measured", "measured", "not run"], ["not run"] * 3]'
json '[(c["epochs"], c["images"], c["run"]) for c in d["tuned"]["rows"][0]["cells"][:2]] == [(30, 500, "cls"), (2, 500, "ours")]'
json 'all(c["top1_range"][0] < c["top1"] < c["top1_range"][1] and c["top1"] <= c["best_top1"] for c in d["tuned"]["rows"][0]["cells"][:2])'
json 'all(v is None or v["is_papers"] for r in d["recipe"]["rows"] for v in r["recipes"].values()) and len(d["recipe"]["rows"]) == 13'
json '[r["recipes"]["paper-evit-ours"]["value"] for r in d["recipe"]["rows"] if r["key"]] == ["0.7", "0.8"]'
run 0 paper --table 9 --results cls --json
err_has "cls: no result for these tables"
json 'd["tuned"] is None and d["recipe"] is None'
run 1 paper --table 13 --results cls --results cls/log.jsonl
err_has "a second run with"
make_run other 3 4 2 60 "tome r=8" 2 5
run 0 paper --table 13 --results other
err_has "other: 'tome r=8' is in no column; the columns are paper:evit"
sed 's/"model":"vit_small"/"model":"vit_tiny"/' ours/log.jsonl >tiny.jsonl
run 1 paper --table 13 --results cls --results tiny.jsonl
err_has "a table is of one model"
grep -v '"kind":"epoch"' ours/log.jsonl >blind.jsonl
run 1 paper --table 13 --results blind.jsonl
err_has "no accuracy after its first update"
mkdir hollow
run 1 paper --table 13 --results hollow
err_has "hollow/log.jsonl"

# --- a model that is not the paper's ---
"$RENYI" init -q --arch vit_tiny_patch16_112 --dim 64 --heads 2 --classes 4 --seed 1 small.safetensors
for i in {0..7}; do
  mkdir -p "photos/$((i % 4))"
  make_ppm "photos/$((i % 4))/$i.ppm" $((i * 30)) $((250 - i * 9)) $((i * 37 % 251))
done
run 0 paper --table 2 -m small.safetensors
out_has "small.safetensors beside the paper's ViT-S/16, 0 photos"
out_has "no photos"
here=(--table 1 --table 11 -m small.safetensors --data-dir photos)
run 0 paper "${here[@]}" --log-samples log.jsonl
out_has "small.safetensors beside the paper's ViT-S/16 (augreg), 8 photos"
out_has "photo by photo, points"
out_has "Random-CLS"
out_has "mosaic-Ours"
out_has "ViT-S/16: no weights"
err_has "small.safetensors: 27 policies"
cp out want
run 2 paper "${here[@]}" --log-samples log.jsonl
head -c 5000 log.jsonl >torn.jsonl
run 0 paper "${here[@]}" --log-samples torn.jsonl --resume
cmp -s out want || fail "another table after resuming"
run 0 paper "${here[@]}" --json --csv cells.csv
json 'all(c["state"] == "measured" and c["images"] == 8 and c["top1_range"][0] <= c["top1"] <= c["top1_range"][1] for t in d["tables"] for b in t["blocks"] if b["model"] for r in b["rows"] for c in r["cells"])'
json 'all(p["both"] + p["only_a"] + p["only_b"] + p["neither"] == 8 for t in d["tables"] for b in t["blocks"] for r in b["rows"] for p in r["pairs"])'
json 'sum(len(r["pairs"]) for t in d["tables"] for b in t["blocks"] for r in b["rows"]) == 3 * 2 + 5 * 3'
json 'not any(b["is_papers_model"] for t in d["tables"] for b in t["blocks"] if b["model"])'
grep -q '^1,ViT-S/16,mosaic,"mosaic keep=0.7 layers=0,3,6",,,small.safetensors,.*,measured,' cells.csv || fail "a measured cell in the CSV"
json 'all(b["threads"] >= 1 and b["batch_size"] == 8 and b["classes_seen"] == 4 for t in d["tables"] for b in t["blocks"] if b["model"])'
run 0 paper --table 1 -m small.safetensors --data-dir photos --no-mosaic --limit 2 --no-shuffle --json
json '[b["classes_seen"] for t in d["tables"] for b in t["blocks"] if b["model"]] == [1]'
run 0 paper "${here[@]}" --markdown --limit 4
err_has "drawn with seed 0"
out_has "**small.safetensors beside the paper's ViT-S/16, 4 photos**"

# --- two models, one log; an image that cannot be read ---
"$RENYI" init -q --arch deit_tiny_patch16_112 --dim 64 --heads 2 --classes 4 --seed 2 other.safetensors
: >photos/3/empty.jpg
run 3 paper "${here[@]}" -m other.safetensors --json --log-samples both.jsonl
json 'len(d["tables"][0]["blocks"]) == 3 and len(d["failed"]) == 2'
[ "$(grep -c '"prediction"' both.jsonl)" -eq $((2 * 27 * 8)) ] || fail "lines of the log"
rm photos/3/empty.jpg

# --- layers that a model does not have are marked, not run ---
make_toy toy.safetensors 4
run 0 paper --table 1 --table 3 -m toy.safetensors --data-dir photos --json
json '{c["state"] for b in d["tables"][0]["blocks"] if b["model"] for r in b["rows"] for c in r["cells"]} == {"not fit"}'
json 'all(c["state"] == "measured" for b in d["tables"][1]["blocks"] if b["model"] for r in b["rows"] for c in r["cells"])'

# --- the paper's own model, from the Hugging Face cache ---
repo=$HOME/.cache/huggingface/hub/models--timm--vit_small_patch16_224.augreg_in21k_ft_in1k commit=0123456789abcdef0123456789abcdef01234567
mkdir -p "$repo/refs" "$repo/snapshots/$commit"
printf %s $commit >"$repo/refs/main"
"$RENYI" init -q --arch vit_small_patch16_224 --seed 3 "$repo/snapshots/$commit/model.safetensors"
printf '{"architecture": "vit_small_patch16_224"}' >"$repo/snapshots/$commit/config.json"
run 0 paper --table 1 --json
json 'd["tables"][0]["blocks"][0]["state"] == "no photos" and d["tables"][0]["blocks"][0]["is_papers_model"]'
run 0 paper --table 1 --no-mosaic --data-dir photos --limit 1 -b 1
out_has "vit_small_patch16_224.augreg_in21k_ft_in1k as the paper's ViT-S/16, 1 photo"
out_has "!"
run 0 paper --table 1 -m small.safetensors
out_has "ViT-S/16: not run (renyi paper -m timm/vit_small_patch16_224.augreg_in21k_ft_in1k)"

# --- wrong usage ---
run 2 paper --table 12 --data-dir photos
err_has "renyi vqa"
run 2 paper --table 13 --data-dir photos
err_has "13 by renyi train"
run 2 paper --table 99
err_has "no Table 99"
run 2 paper --table x
run 2 paper --table 1,
run 2 paper photos
run 2 paper --json --markdown
run 2 paper --resume
run 2 paper --log-samples log.jsonl
run 2 paper -m small.safetensors -m small.safetensors
run 1 paper -m absent.safetensors
run 1 paper --csv nowhere/cells.csv
run 1 paper --table 1 -m small.safetensors --data-dir absent
full() { paper --table 1 >/dev/full; }
run 1 full
echo "paper: ok"
