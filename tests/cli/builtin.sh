#!/usr/bin/env bash
# The built-in model: used without -m, from any directory, and right about what it was trained on.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

# A build without it: the error tells what to do.
if ! has_builtin; then
  run 1 "$RENYI" classify "$RENYI_SRC/assets/golf_ball.png"
  err_has "this build has no built-in model"
  err_has "-m MODEL"
  exit 0
fi
images=("$RENYI_SRC/assets/golf_ball.png" "$RENYI_SRC/assets/parachute.png")

# right COMMAND...: both images get the right class, for all ways to compute them
right() {
  run 0 "$RENYI" classify -k 1 --json "${images[@]}" "$@"
  json '[r["top"][0]["label"].split(",")[0] for r in d["results"]] == ["golf ball", "parachute"]'
}
right
err_has "model: the small built-in one"
json 'd["model"] == "builtin"'
right -m builtin
! grep -q "the small built-in one" err || fail "-m was given"
right --prune "mosaic keep=0.7 layers=0,3,6"
right --prune "evit keep=0.7 layers=0,3,6 metric=correct"
right --cpu scalar

# "None of these": the model's own threshold; the accuracy of eval does not use it (below).
make_ppm grey.ppm 128 128 128
for policy in none fast; do
  run 0 "$RENYI" classify -q --json --prune $policy grey.ppm "${images[@]}"
  json '[r["none_of_these"] for r in d["results"]] == [True, False, False] and d["results"][0]["top"][0]["logit"] < 4.53'
done
run 0 "$RENYI" classify -q -k 1 grey.ppm "${images[0]}"
[ "$(grep -c 'none of the 10 classes: the largest logit is .*, below 4.53' out)" -eq 1 ] || fail "none for one of two"
run 0 "$RENYI" inspect -q
out_has "none of these   if the largest logit is below 4.53"
make_toy # does not know
run 0 "$RENYI" classify -q --json -m toy.safetensors grey.ppm
json 'd["results"][0]["none_of_these"] is None'
# On images: every 39th of the ten classes, every 5th of others (models/README.md has all of them).
shared=${RENYI_SHARED:-$RENYI_SRC/../shared}/data
if [ -d "$shared/imagenette-176/val" ]; then
  find -L "$shared/imagenette-176/val" -type f | LC_ALL=C sort | awk 'NR % 39 == 0' >inside.txt
  find -L "$shared/imagenet-val-500" -type f | LC_ALL=C sort | awk 'NR % 5 == 0' >outside.txt
  run 0 "$RENYI" classify -q --json --list inside.txt
  json 'len(d["results"]) == 100 and sum(r["none_of_these"] for r in d["results"]) <= 15'
  run 0 "$RENYI" classify -q --json --list outside.txt
  json 'len(d["results"]) == 100 and sum(r["none_of_these"] for r in d["results"]) >= 40'
fi

run 0 "$RENYI" inspect --json
json 'd["none_below"] == 4.53'
json 'd["parameters"] <= 3000000 and d["n_blocks"] == 12 and d["patch_size"] == 16 and d["image_size"] == 160'
json 'sum(t["bytes"] for t in d["tensors"]) < 6000000'
run 0 "$RENYI" flops --prune "mosaic keep=0.7 layers=0,3,6"
run 0 "$RENYI" bench --no-peak -b 1 -t 1 --repetitions 1 --format json
run 0 "$RENYI" viz "${images[0]}" --figure overlay -o ball.png
out_has "golf ball"
mkdir -p photos/n03445777 photos/n03888257 # WordNet ids, as Imagenette's folders
cp "${images[0]}" photos/n03445777/ && cp "${images[1]}" photos/n03888257/
run 0 "$RENYI" eval --data-dir photos --json
json 'd["results"][0]["top1"] == 100'
run 0 "$RENYI" quantize -q -m builtin -o small.safetensors
right -m small.safetensors --dtype f32
json '[r["none_of_these"] for r in d["results"]] == [False, False]' # copied with the metadata
mkdir wrong && cp -r photos/* wrong/ && cp "${images[0]}" wrong/n03888257/ball.png && cp grey.ppm wrong/n03445777/ # wrong ones
run 0 "$RENYI" eval --data-dir wrong --json
json 'd["results"][0]["top1"] in (50, 75)'
# The tool that stores it: the 5 % of the correct answers with the lowest logit, tensors unchanged.
cp "$RENYI_SRC/models/renyi-nette.safetensors" own.safetensors
run 0 "$RENYI_SRC/models/none_below.py" --renyi "$RENYI" own.safetensors wrong --count all=wrong
out_has "from 2 of 4 images"
out_has "all, none: none for 1 of 4; for 0 of 2 correct answers"
# Every verb that takes a model takes this one; without -m where nothing else is needed.
run 0 "$RENYI" embed "${images[0]}" --json
json 'd["model"] == "builtin" and len(d["images"]) == 1'
run 2 "$RENYI" embed --text 'a ball'
err_has "texts need a CLIP or SigLIP"
run 0 "$RENYI" search photos --image "${images[1]}" --index none --json
json 'd["queries"][0]["hits"][0]["file"].endswith("parachute.png")'
run 2 "$RENYI" search photos 'a ball'
err_has "texts need a CLIP or SigLIP"
run 0 "$RENYI" sweep --data-dir photos --prune 'none|fast' --json
json '[r["model"] for r in d["results"]] == ["builtin"] * 2 and d["results"][0]["top1"] == 100'
for i in {1..9}; do cp "${images[0]}" "photos/n03445777/$i.png" && cp "${images[1]}" "photos/n03888257/$i.png"; done
run 0 "$RENYI" tune --data-dir photos --target-gmacs 1 --image-size 160 --prune 'none|fast' --json
json 'd["model"] == "builtin" and d["found"]'
for verb in bench classify embed eval flops inspect paper quantize search sweep train tune viz; do
  "$RENYI" "$verb" --help >help && grep -q builtin help || fail "$verb --help does not name builtin"
done
echo "builtin: ok"
