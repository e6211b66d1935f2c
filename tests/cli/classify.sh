#!/usr/bin/env bash
# renyi classify: inputs, output formats, labels, preprocessing, bad files.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

make_toy
make_ppm red.ppm 250 10 10
make_ppm blue.ppm 10 10 250
mkdir -p photos/below empty
cp red.ppm photos/a.PPM
cp blue.ppm photos/below/b.ppm
echo "no image" >photos/notes.txt
classify() { "$RENYI" classify -m toy.safetensors "$@"; }

# --- text: file, five lines with percentages, preprocessing on stderr ---
run 0 classify red.ppm blue.ppm
[ "$(grep -c ' ms$' out)" -eq 2 ] && [ "$(grep -c ' %  class ' out)" -eq 10 ] || fail "shape of the text"
err_has "preprocessing: 224 x 224, crop 0.9 (center), bicubic"
run 0 classify -q -k 2 red.ppm
[ ! -s err ] && [ "$(grep -c %  out)" -eq 2 ] || fail "-q -k 2"
! grep -q $'\033' out || fail "escape sequences in a file"
run 0 classify -k 100 red.ppm
[ "$(grep -c % out)" -eq 10 ] || fail "more than all classes"

# --- JSON ---
run 0 classify --json -k 3 red.ppm blue.ppm
json 'd["model"] == "toy.safetensors" and d["failed"] == [] and len(d["results"]) == 2'
json 'all(len(r["top"]) == 3 and r["ms"] > 0 and r["file"] for r in d["results"])'
json '[t["probability"] for t in d["results"][0]["top"]] == sorted((t["probability"] for t in d["results"][0]["top"]), reverse=True)'
json 'all(set(t) == {"index", "label", "probability", "logit"} for t in d["results"][0]["top"])'
json 'd["preprocessing"]["size"] == 224 and d["preprocessing"]["mean"] == [0.5, 0.5, 0.5]'
run 0 classify --json -k 10 red.ppm
json 'abs(sum(t["probability"] for t in d["results"][0]["top"]) - 1) < 1e-6'
answer() { grep -v '"ms' out; }
answer >reference
run 0 classify --json -k 10 --mean 0.5 0.5 0.5 --std=0.5,0.5,0.5 red.ppm # the model's own: same answer
grep -A2 '"index"' out >own && grep -A2 '"index"' reference | cmp -s - own || fail "own normalization differs"

# --- JSON lines and CSV: the same answers, image by image ---
run 3 classify --json -k 3 red.ppm absent.jpg blue.ppm
mv out document
run 3 classify -q --jsonl -k 3 red.ppm absent.jpg blue.ppm
mv out lines
run 3 classify -q --csv table.csv --jsonl -k 3 red.ppm absent.jpg blue.ppm
run 3 classify -q --csv - -k 3 red.ppm absent.jpg blue.ppm
head -1 out | grep -qx 'file,rank,index,label,probability,logit,none_of_these,ms,ms_decode,error' || fail "columns"
! grep -q ' %  ' out || fail "--csv - beside text"
python3 - <<'P' || fail "JSON lines and CSV differ from the document"
import csv, json
d = json.load(open("document"))
lines = [json.loads(line) for line in open("lines")]
shown = lambda r: (r["file"], [(t["index"], t["label"], t["probability"]) for t in r["top"]])
assert [shown(r) for r in lines if "top" in r] == [shown(r) for r in d["results"]]
assert [r for r in lines if "error" in r] == d["failed"] and d["interrupted"] is False
for name in ("out", "table.csv"):
    rows = list(csv.DictReader(open(name)))
    assert len(rows) == 7, rows
    want = [(r["file"], str(i + 1), str(t["index"]), t["label"]) for r in d["results"] for i, t in enumerate(r["top"])]
    assert [(r["file"], r["rank"], r["index"], r["label"]) for r in rows if not r["error"]] == want
    assert [(r["file"], r["error"]) for r in rows if r["error"]] == [(f["file"], f["error"]) for f in d["failed"]]
P
for both in "--json --jsonl" "--json --csv -" "--jsonl --csv -"; do
  run 2 classify $both red.ppm
  err_has "exclude each other"
done
for i in {1..3000}; do echo red.ppm; done >many
for signal in INT TERM HUP KILL; do
  rm -f out
  "$RENYI" classify -q -m toy.safetensors -b 1 -t 1 --csv cut.csv --jsonl --list many >out 2>err &
  for _ in {1..200}; do [ -s out ] && break; sleep 0.02; done
  kill -$signal $! && code=0 && wait $! 2>/dev/null || code=$?
  [ $code -eq 0 ] && continue # quick machines may have finished
  n=$(wc -l <out)
  [ "$n" -gt 0 ] && [ "$n" -lt 3000 ] || fail "$n lines after $signal"
  python3 -c 'import json; [json.loads(line)["top"] for line in open("out")]' || fail "half a line after $signal"
  [ $signal = KILL ] && break
  [ $code -eq 1 ] || fail "exit code $code after $signal"
  err_has "interrupted; $n of 3000 images were classified"
  [ "$(wc -l <cut.csv)" -eq $((5 * n + 1)) ] || fail "CSV after $signal"
  rm cut.csv
done
[ ! -e cut.csv ] || fail "a part of a file after KILL"

# --- directories, lists, stdin ---
run 0 classify --json photos
json '[r["file"] for r in d["results"]] == ["photos/a.PPM"]'
run 0 classify --json -r photos/
json '[r["file"] for r in d["results"]] == ["photos/a.PPM", "photos/below/b.ppm"]'
printf 'red.ppm\r\n\nblue.ppm\n' >list
run 0 classify --json --list list
json '[r["file"] for r in d["results"]] == ["red.ppm", "blue.ppm"]'
piped() { "$RENYI" classify -m toy.safetensors --json - <red.ppm; }
run 0 piped
json 'd["results"][0]["file"] == "-"'
run 1 classify empty
err_has "empty: no images in this directory"

# --- folders: regular files, each folder once; what is left out is said ---
make_walk
ln -s sub walk/zsub
touch walk/x.gif walk/y.GIF walk/sub/z.heic
run 3 timeout 60 "$RENYI" classify -m toy.safetensors --json -r walk
json '[r["file"] for r in d["results"]] == ["walk/a.ppm", "walk/closed/c.ppm", "walk/sub/b.ppm"]'
json '[f["file"] for f in d["failed"]] == ["walk/pipe.png"] and "not a regular file" in d["failed"][0]["error"]'
err_has "walk: 2 GIF, 1 HEIC left out; convert them"
mkfifo named.ppm # a pipe that the user names is read
cat walk/a.ppm >named.ppm &
run 0 timeout 60 "$RENYI" classify -q -m toy.safetensors named.ppm
if can_close_folders; then
  chmod 0 walk/closed
  run 3 timeout 60 "${as_user[@]}" "$RENYI" classify -m toy.safetensors --json -r walk
  json '[r["file"] for r in d["results"]] == ["walk/a.ppm", "walk/sub/b.ppm"] and len(d["failed"]) == 2'
  err_has "walk/closed: Permission denied"
  chmod 755 walk/closed
fi
run 1 classify --list nowhere red.jpg
: >list
run 1 classify --list list
err_has "names no images"

# --- files that cannot be read are reported and skipped ---
head -c 30 red.ppm >cut.ppm
: >nothing.jpg
run 3 classify --json absent.jpg cut.ppm red.ppm nothing.jpg photos/notes.txt empty
json '[r["file"] for r in d["results"]] == ["red.ppm"] and len(d["failed"]) == 5'
for file in absent.jpg cut.ppm nothing.jpg photos/notes.txt empty; do err_has "$file: "; done
err_lines 5
run 1 classify absent.jpg cut.ppm
printf -v odd 'od\033d\xff.ppm'
cp red.ppm "$odd"
run 0 classify --json "$odd"
json 'd["results"][0]["file"] == "od\x1bd\ufffd.ppm"'
run 0 classify "$odd"
! grep -q $'\033' out || fail "escape sequence from a file name"

# --- labels ---
seq -f 'label %g' 10 >labels
run 0 classify --labels labels red.ppm
out_has "label "
seq 9 >labels
run 1 classify --labels labels red.ppm
err_has "9 labels for a model with 10 classes"
run 1 classify --labels absent red.ppm
make_toy imagenet.safetensors 1000
run 0 "$RENYI" classify -m imagenet.safetensors -k 1000 red.ppm
out_has "tench, Tinca tinca"
out_has "toilet tissue"

# --- settings: same bits for any batch and thread count; other sizes and crops change the answer ---
for flags in "-b 1" "-b 2 -t 1" "-b 8 -t 2" "-b 1 -t 2 --streams 2" "-b 2 -t 5 --streams 3"; do
  run 0 classify --json $flags red.ppm blue.ppm red.ppm blue.ppm red.ppm
  grep -A2 '"index"' out >answer
  [ ! -f first ] && cp answer first
  cmp -s answer first || fail "another answer with $flags"
done
run 2 classify -t 2 --streams 3 red.ppm
err_has "3 streams on 2 threads; each stream needs a thread"
run 0 classify --image-size 112 --crop-pct 1 --crop-mode squash --interpolation bilinear --exif red.ppm
err_has "112 x 112, crop 1 (squash), bilinear"
err_has "changed by the command line"
run 0 classify --cpu scalar red.ppm
run 2 classify --crop-pct 1.5 red.ppm
run 2 classify --std 1 0 1 red.ppm

# --- files that are not models ---
run 1 "$RENYI" classify -m red.ppm red.ppm
err_lines 1
run 1 "$RENYI" classify -m absent.safetensors red.ppm
err_has "absent.safetensors: No such file"
run 1 "$RENYI" classify -m org/name red.ppm
err_has "renyi pull org/name"
full() { classify red.ppm >/dev/full; }
run 1 full
err_has "cannot write the results"
echo "classify: ok"
