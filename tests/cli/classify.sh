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
json 'all(set(t) == {"index", "label", "probability"} for t in d["results"][0]["top"])'
json 'd["preprocessing"]["size"] == 224 and d["preprocessing"]["mean"] == [0.5, 0.5, 0.5]'
run 0 classify --json -k 10 red.ppm
json 'abs(sum(t["probability"] for t in d["results"][0]["top"]) - 1) < 1e-6'
answer() { grep -v '"ms' out; }
answer >reference
run 0 classify --json -k 10 --mean 0.5 0.5 0.5 --std=0.5,0.5,0.5 red.ppm # the model's own: same answer
grep -A2 '"index"' out >own && grep -A2 '"index"' reference | cmp -s - own || fail "own normalization differs"

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
for flags in "-b 1" "-b 2 -t 1" "-b 8 -t 2"; do
  run 0 classify --json $flags red.ppm blue.ppm
  grep -A2 '"index"' out >answer
  [ ! -f first ] && cp answer first
  cmp -s answer first || fail "another answer with $flags"
done
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
