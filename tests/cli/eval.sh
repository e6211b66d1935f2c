#!/usr/bin/env bash
# renyi eval: datasets, several policies, tables, JSON and CSV, resuming, bad images.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }

make_toy
mkdir -p photos
for i in {0..11}; do
  mkdir -p "photos/00$((i % 4))"
  make_ppm "photos/00$((i % 4))/$i.ppm" $((i * 20)) $((250 - i * 9)) $((i * 37 % 251))
done
eval_toy() { "$RENYI" eval -m toy.safetensors "$@"; }
prune=(--prune none --prune 'evit keep=0.5 layers=0 metric=col n=4' --prune 'naive p=20 layers=0,1 metric=cls')

# --- one policy: a table on stdout, the rest on stderr ---
run 0 eval_toy --data-dir photos
[ "$(grep -c '  none$' out)" -eq 1 ] || fail "one row"
out_has "12 photos, 10 classes"
err_has "data: 12 images in photos; a class is an index"
err_has "preprocessing: 224 x 224"
! grep -q "photo by photo" out || fail "no pairs with one policy"
run 0 eval_toy -q photos
[ ! -s err ] || fail "-q"
cp -r photos walk && touch walk/000/x.tif walk/001/y.avif && mkfifo walk/002/pipe.png && ln -s .. walk/003/up
run 3 timeout 60 "$RENYI" eval -m toy.safetensors walk --json # a pipe does not hang it
json 'd["photos"] == 13 and len(d["failed"]) == 1 and "not a regular file" in d["failed"][0]["error"]'
err_has "walk: 1 TIFF, 1 AVIF left out"
run 0 eval_toy photos --log-freq 4
[ "$(grep -c '^Test: \[.*Acc@1:.*Acc@5:' err)" -eq 2 ] || fail "lines of progress"

# --- several: totals and pairs agree ---
run 0 eval_toy --data-dir photos --json "${prune[@]}" --csv results.csv
json 'len(d["results"]) == 3 and len(d["pairs"]) == 3 and d["failed"] == [] and d["photos"] == 12'
json 'all(set("policy images failed top1 top5 loss gmacs ms_model ms_total images_per_second".split()) <= set(r) for r in d["results"])'
json 'all(r["images"] == 12 and r["failed"] == 0 and r["ms_total"] >= r["ms_model"] > 0 and r["top1"] <= r["top5"] for r in d["results"])'
json 'all(r["top1_range"][0] <= r["top1"] <= r["top1_range"][1] for r in d["results"])'
json 'd["results"][0]["gmacs"] > d["results"][1]["gmacs"] and d["results"][1]["policy"].startswith("evit keep=0.5")'
json 'all(p["both"] + p["only_a"] + p["only_b"] + p["neither"] == 12 and 0 < p["p_value"] <= 1 for p in d["pairs"])'
json 'all(abs((p["both"] + p["only_a"]) / 12 * 100 - d["results"][p["a"]]["top1"]) < 1e-6 for p in d["pairs"])'
[ "$(wc -l <results.csv)" -eq 4 ] || fail "rows of the CSV"
head -1 results.csv | grep -q '^model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation,policy' || fail "timm's columns"
json 'd["threads"] >= 1 and d["batch_size"] == 8 and d["classes_seen"] == 4 and d["seed"] is None'
python3 - <<'P' || fail "the CSV has the threads and the batch that were used"
import csv, json
d = json.load(open("out"))
rows = list(csv.DictReader(open("results.csv")))
assert all(int(r["threads"]) == d["threads"] and int(r["batch_size"]) == 8 for r in rows), rows
P
run 0 eval_toy photos -t 1 -b 3 --json
json 'd["threads"] == 1 and d["batch_size"] == 3'
for flags in "-t 1 -b 2" "-t 2 -b 1 --streams 2" "-t 3 -b 2 --streams 3"; do
  rm -f lines.jsonl
  run 0 eval_toy photos $flags --log-samples lines.jsonl
  sed 's/"ms[a-z_]*": *[0-9.e+-]*//g' lines.jsonl >lines.$(echo $flags | tr -d ' -')
done
cmp lines.t1b2 lines.t2b1streams2 && cmp lines.t1b2 lines.t3b2streams3 || fail "other answers with --streams"
# a full disk (here: no file may grow) leaves the older file as it was, and no other
cp results.csv older.csv
on_full_disk() { (ulimit -f 0 && eval_toy photos --csv results.csv) 2>&1 | cat; }
(set +e; on_full_disk >full; [ $? -eq 1 ]) || fail "a full disk is no failure"
grep -q 'results.csv: cannot write after 0 bytes: File too large; nothing was left behind' full || fail "the full disk is not named: $(cat full)"
cmp results.csv older.csv || fail "a full disk changed the older results"
[ "$(ls results.csv*)" = results.csv ] || fail "leftovers: $(ls results.csv*)"
mkfifo results.pipe # a pipe that the user names is written straight
cat results.pipe >piped & run 0 eval_toy photos "${prune[@]}" --csv results.pipe && wait
[ "$(wc -l <piped)" -eq 4 ] || fail "results through a pipe"
run 0 eval_toy photos "${prune[@]}" --results-file results.json --results-format json
out_has "photo by photo"
out_has "within the noise"
python3 -c 'import json; json.load(open("results.json"))["results"]' || fail "results.json"

# --- the same results for any batch size, threads, workers ---
answers() { sed -E 's/"ms(_rest)?":[^,]*,//g' "$1"; }
for flags in "-b 1 -t 1" "-b 5 -t 2 -j 2" "-b 64"; do
  rm -f samples.jsonl
  run 0 eval_toy photos "${prune[@]}" $flags --log-samples samples.jsonl
  [ ! -f first.jsonl ] && answers samples.jsonl >first.jsonl
  answers samples.jsonl | cmp -s - first.jsonl || fail "other answers with $flags"
done
[ "$(wc -l <samples.jsonl)" -eq 36 ] || fail "a line for every image and policy"
python3 - <<'P' || fail "samples"
import json
want = {"file", "policy", "label", "prediction", "top5", "margin", "ms"}
for line in open("samples.jsonl"):
    s = json.loads(line)
    assert want <= set(s) and s["top5"][0] == s["prediction"] and len(s["top5"]) == 5
    assert s["label"] == int(s["file"][:3]) and s["margin"] >= 0
P

# --- resuming: only with --resume, from a log cut anywhere, with the same totals ---
totals() { python3 -c 'import json; print([[r[k] for k in ("policy", "images", "failed", "top1", "top5", "loss")] for r in json.load(open("out"))["results"]], [list(p.values()) for p in json.load(open("out"))["pairs"]])'; }
run 0 eval_toy photos "${prune[@]}" --json
totals >want
run 2 eval_toy photos "${prune[@]}" --log-samples samples.jsonl
err_has "resume to continue them"
size=$(stat -c %s samples.jsonl)
for cut in 0 1 $((size / 3)) $((size / 2)) $((size - 1)) $size; do
  head -c "$cut" samples.jsonl >torn.jsonl
  run 0 eval_toy photos "${prune[@]}" --json --log-samples torn.jsonl --resume
  totals | cmp -s - want || fail "other totals after a cut at $cut"
done
run 0 eval_toy photos "${prune[@]}" --json --log-samples torn.jsonl --resume
json 'd["resumed"] == 12'
run 2 eval_toy photos --resume
err_has "--resume needs --log-samples"

# --- an interrupted run keeps its results ---
for i in {12..400}; do cp photos/000/0.ppm "photos/001/$i.ppm"; done
for signal in INT TERM HUP; do
  rm -f stopped.jsonl
  "$RENYI" eval -m toy.safetensors photos -b 1 --json --log-samples stopped.jsonl >out 2>err &
  for _ in {1..200}; do [ -s stopped.jsonl ] && break; sleep 0.05; done
  if [ $signal = HUP ]; then # a second process on the same log is refused
    kill -STOP $!
    "$RENYI" eval -m toy.safetensors photos --log-samples stopped.jsonl --resume >out2 2>err2 && fail "two processes on one log"
    grep -q "^renyi: stopped.jsonl: another process is writing this file" err2 || fail "two processes: $(cat err2)"
    kill -CONT $!
  fi
  kill -$signal $! && code=0 && wait $! || code=$?
  [ "$code" -eq 0 ] && continue # quick machines may have finished
  [ "$code" -eq 1 ] || fail "exit code $code after $signal"
  err_has "with --resume continues"
  json 'd["interrupted"] and 0 < d["results"][0]["images"] < 401'
done
nohup "$RENYI" eval -m toy.safetensors photos -b 1 --json --log-samples nohup.jsonl >out 2>err &
for _ in {1..200}; do [ -s nohup.jsonl ] && break; sleep 0.05; done
kill -HUP $!
wait $! || fail "nohup is not respected"
json 'd["results"][0]["images"] == 401'
run 0 eval_toy photos --json --log-samples stopped.jsonl --resume
json 'd["results"][0]["images"] == 401 and d["resumed"] > 0'
rm photos/001/{12..400}.ppm

# --- images that cannot be read are reported, counted, skipped ---
head -c 30 photos/000/0.ppm >photos/002/cut.ppm
: >photos/003/empty.jpg
run 3 eval_toy photos --json --log-samples bad.jsonl
json 'd["results"][0]["images"] == 12 and d["results"][0]["failed"] == 2'
json '[f["file"] for f in d["failed"]] == ["002/cut.ppm", "003/empty.jpg"]'
err_has "002/cut.ppm: "
err_has "003/empty.jpg: "
err_lines 2
run 3 eval_toy photos --json --log-samples bad.jsonl --resume
json 'd["resumed"] == 12 and d["results"][0]["failed"] == 2'
rm photos/002/cut.ppm photos/003/empty.jpg
mkdir -p bad/000
: >bad/000/a.jpg
run 1 eval_toy bad

# --- other forms of data ---
mkdir flat
cp photos/000/0.ppm flat/b.ppm
cp photos/001/1.ppm flat/a.ppm
printf '3\n4\n' >truth
run 0 eval_toy flat --ground-truth truth --log-samples flat.jsonl
grep -q '"file":"a.ppm".*"label":3' flat.jsonl && grep -q '"file":"b.ppm".*"label":4' flat.jsonl || fail "ground truth"
printf 'file,label\nflat/a.ppm,1\nphotos/002/2.ppm,zebra\n' >list.csv
run 1 eval_toy list.csv
err_has 'list.csv:3: "zebra" is not a class'
printf 'horse\nzebra\n' >map
run 0 eval_toy list.csv --class-map map --json
json 'd["results"][0]["images"] == 2'
printf '1\n3\n' >valid
run 0 eval_toy photos --valid-labels valid --log-samples valid.jsonl --json
json 'd["photos"] == 6 and d["left_out"] == 6'
! grep -qE '"prediction":(0|2|[4-9])' valid.jsonl || fail "a class that is not valid"
printf '[[1, 2], []]' >real.json
run 0 eval_toy flat --real-labels real.json --json
json 'd["photos"] == 1 and d["results"][0]["loss"] is None'
run 1 eval_toy flat
err_has "none with a class"
# Class names as classify prints them: those of ImageNet for a model with 1000 classes and no names.
make_toy thousand.safetensors 1000
mkdir -p named/tench named/golf_ball
cp photos/000/0.ppm named/tench/ && cp photos/001/1.ppm named/golf_ball/
run 0 "$RENYI" eval -m thousand.safetensors named --log-samples named.jsonl --json
json 'd["classes_seen"] == 2'
grep -q '"file":"tench/0.ppm".*"label":0,' named.jsonl && grep -q '"file":"golf_ball/1.ppm".*"label":574,' named.jsonl || fail "ImageNet's names"
err_has "a class is a class name of the model"
run 1 eval_toy absent
err_has "absent: No such file"

# --- choosing images ---
# --limit draws from all classes, as --limit --shuffle does; --no-shuffle takes the first ones.
files() { sed -E 's/.*"file":"([^"]*)".*/\1/' "$1"; }
run 0 eval_toy photos --limit 5 --shuffle --seed 3 --log-samples a.jsonl
run 0 eval_toy photos --limit 5 --seed 3 --log-samples b.jsonl --json
json 'd["photos"] == 5 and d["found"] == 12 and d["classes_seen"] > 1 and d["seed"] == 3'
err_has "drawn with seed 3"
err_has "; classes seen: "
run 0 eval_toy photos --limit 5 --seed 4 --log-samples c.jsonl
[ "$(files a.jsonl)" = "$(files b.jsonl)" ] && [ "$(files a.jsonl)" != "$(files c.jsonl)" ] || fail "--seed"
for i in 1 2; do run 0 eval_toy photos --limit 5 --seed 3 --shard "$i/2" --log-samples "five$i.jsonl"; done
[ "$(files <(cat five?.jsonl) | sort)" = "$(files a.jsonl | sort)" ] || fail "shards of --limit"
run 0 eval_toy photos --limit 3 --no-shuffle --log-samples head.jsonl --json
json 'd["classes_seen"] == 1 and d["seed"] is None'
err_has "warning: all 3 images are of one class; without --no-shuffle they are drawn"
[ "$(files head.jsonl)" = "$(cd photos && ls -1 */* | sort | head -3)" ] || fail "--no-shuffle"
# A log of the first images: a drawn run takes from it what it shares, and --no-shuffle all of it.
run 0 eval_toy photos --limit 3 --no-shuffle --log-samples head.jsonl --resume --json
json 'd["resumed"] == 3'
run 0 eval_toy photos --limit 12 --log-samples head.jsonl --resume --json
json 'd["resumed"] == 3 and d["results"][0]["images"] == 12 and d["classes_seen"] == 4'
for i in 1 2 3; do run 0 eval_toy photos --shard "$i/3" --log-samples "part$i.jsonl"; done
[ "$(cat part?.jsonl | wc -l)" -eq 12 ] && [ "$(files <(cat part?.jsonl) | sort -u | wc -l)" -eq 12 ] || fail "--shard"
run 0 eval_toy photos --image-size 112 --crop-pct 1 --mean 0.4 0.4 0.4 --json
json 'd["preprocessing"]["size"] == 112'

# --- wrong usage ---
run 2 eval_toy
err_has "--data-dir DIR is missing"
run 2 eval_toy photos --prune 'evit keep=1.5 layers=0'
run 2 eval_toy photos --prune 'evit keep=0.5 layers=9'
run 2 eval_toy photos --prune none --prune none
err_has "given twice"
run 2 eval_toy photos --shard 4/3
run 2 eval_toy photos --shard x
run 2 eval_toy photos --crop-pct 2
err_has "eval: option '--crop-pct'"
run 2 eval_toy photos --seed 3
err_has "--seed is for --limit and --shuffle"
run 2 eval_toy photos --limit 3 --no-shuffle --seed 3
run 2 eval_toy photos --shuffle --no-shuffle
run 2 eval_toy photos more
run 1 eval_toy photos --csv nowhere/results.csv
run 1 eval_toy photos --log-samples nowhere/log
full() { eval_toy photos >/dev/full; }
run 1 full
for verb in classify bench inspect flops; do "$RENYI" $verb --help >help && grep -q -- --image-size help || fail "$verb --image-size"; done
echo "eval: ok"
