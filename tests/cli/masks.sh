#!/usr/bin/env bash
# renyi eval --masks: tables, JSON, CSV, bad masks, wrong usage.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to write PNG"; exit 77; }

make_toy
mkdir photos masks
for i in {0..5}; do make_ppm "photos/$i.ppm" $((i * 40)) $((250 - i * 9)) $((i * 37 % 251)); done
# mask FILE OBJECT BACKGROUND [BORDER [WIDTH [COLOUR-TYPE]]]: 40 x 30, the left third is the object
mask() {
  python3 - "$@" <<'P'
import struct, sys, zlib
name, a, b, *more = sys.argv[1:]
border, width, kind = (list(map(int, more)) + [None, 40, 0][len(more):])
row = [int(a) if x < 13 else border if border and x < 16 else int(b) for x in range(width)]
row = bytes(row if kind == 0 else [v for v in row for _ in range(3)])
def chunk(t, d): return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, 30, 8, kind, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress((b"\0" + row) * 30)) + chunk(b"IEND", b""))
P
}
for i in {0..5}; do mask masks/$i.png 1 2 3; done
study() { "$RENYI" eval -m toy.safetensors --data-dir photos --masks masks "$@"; }

# --- tables ---
run 0 study
out_has "Area under the ranking curve"
out_has "minus that of cls"
out_has "6 photos"
out_has "masks: 6 trimap, 0 binary"
[ "$(grep -c '^ *[01] ' out)" -eq 6 ] || fail "two blocks, three tables"
! grep -q 'after block' out || fail "no policy was given"
err_has "data: 6 images in photos, masks in masks"
run 0 study -q --prune 'evit keep=0.5 layers=0 metric=cls fuse' --prune tome --limit 4 --shuffle --seed 2
[ ! -s err ] || fail "-q"
[ "$(grep -c 'after block' out)" -eq 2 ] || fail "two policies"
out_has "4 photos"

# --- JSON and CSV ---
run 0 study --json --metrics 'cls, col n=4,random' --mask-keep 1 --prune 'evit keep=0.5 layers=1 metric=cls' --csv results.csv
json 'd["images"] == 6 and d["one_sided"] == 0 and d["kinds"] == {"trimap": 6, "binary": 0} and d["keep"] == 1'
json '[r["metric"] for r in d["rankings"][::2]] == ["cls", "col n=4", "random"] and len(d["rankings"]) == 6'
json 'all(r["kept_object"] == 1 and 0 <= r["auc"] <= 1 and r["auc_range"][0] <= r["auc"] for r in d["rankings"])'
json '[b["cut"] for b in d["policies"][0]["blocks"]] == [False, True]'
json 'abs(sum(d["policies"][0]["blocks"][1]["object"][k] for k in ("alone", "merged", "fused", "dropped")) - 1) < 1e-6'
json 'd["policies"][0]["blocks"][0]["object"]["alone"] == 1'
[ "$(wc -l <results.csv)" -eq 9 ] || fail "rows of the CSV"
python3 -c 'import csv
rows = list(csv.DictReader(open("results.csv")))
assert [r["kind"] for r in rows] == ["metric"] * 6 + ["policy"] * 2 and all(None not in r and None not in r.values() for r in rows)' || fail "columns"
run 0 study --results-file results.json --results-format json
python3 -c 'import json; json.load(open("results.json"))["rankings"]' || fail "results.json"

# --- borders and kinds of masks ---
run 0 study --json --metrics random
json 'd["patches"]["object"] + d["patches"]["background"] + d["patches"]["left_out"] == 196'
cp out ignored
run 0 study --json --metrics random --mask-border object
json 'd["patches"]["object"] > json.load(open("ignored"))["patches"]["object"]'
mask masks/0.png 255 0
run 0 study --metrics random
err_has "5 masks look like trimaps and 1 like 0 and 1"
run 3 study --json --mask-kind trimap
json 'd["failed"][0]["file"] == "0.ppm" and "a trimap has 1" in d["failed"][0]["error"]'

# --- masks that cannot be used are reported, counted, skipped ---
rm masks/0.png
mask masks/1.png 1 2 3 41
mask masks/2.png 255 0 0 40 2
head -c 60 masks/3.png >cut && mv cut masks/3.png
mask masks/4.png 2 2
run 3 study --json --metrics random
json 'd["images"] == 1 and d["one_sided"] == 1 and d["n_failed"] == 4'
err_lines 4
err_has "0.ppm: mask: no .png file of this name in masks"
err_has "1.ppm: mask: 41 x 30 pixels for an image of 40 x 30"
err_has "2.ppm: mask: PNG: RGB instead of one number per pixel; save it as gray or with a palette"
err_has "3.ppm: mask: PNG: truncated"
rm masks/5.png
run 1 study --json --metrics random
json 'd["images"] == 0 and d["rankings"][0]["auc"] is None'
err_has "no image with both object and background"

# --- wrong usage ---
for words in "--log-samples log" "--shard 1/2" "-j 2" "--ground-truth x" "--valid-labels x" "--class-map x" "--real-labels x" "--mask-keep 0" \
    "--mask-keep 2" "--mask-kind grey" "--metrics nonsense" "--metrics correct" "--decode scaled" "--metrics cls,cls"; do
  run 2 study $words
done
err_has "given twice"
run 2 study --log-samples log --resume
err_has "--log-samples cannot be combined with --masks"
for words in "--metrics cls" "--mask-kind binary" "--mask-border object" "--mask-keep 0.5"; do
  run 2 "$RENYI" eval -m toy.safetensors --data-dir photos $words
  err_has "is for --masks DIR"
done
run 1 study --csv nowhere/results.csv
run 1 "$RENYI" eval -m toy.safetensors --data-dir absent --masks masks
"$RENYI" eval --help >help
grep -q -- '--masks DIR' help || fail "--help"
echo "masks: ok"
