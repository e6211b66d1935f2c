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

run 0 "$RENYI" inspect --json
json 'd["parameters"] <= 3000000 and d["n_blocks"] == 12 and d["patch_size"] == 16 and d["image_size"] == 160'
json 'sum(t["bytes"] for t in d["tensors"]) < 6000000'
run 0 "$RENYI" flops --prune "mosaic keep=0.7 layers=0,3,6"
run 0 "$RENYI" bench --no-peak -b 1 -t 1 -r 1 -o json
run 0 "$RENYI" viz "${images[0]}" --figure overlay -o ball.png
out_has "golf ball"
mkdir -p photos/n03445777 photos/n03888257 # WordNet ids, as Imagenette's folders
cp "${images[0]}" photos/n03445777/ && cp "${images[1]}" photos/n03888257/
run 0 "$RENYI" eval --data-dir photos --json
json 'd["results"][0]["top1"] == 100'
run 0 "$RENYI" quantize -q -m builtin -o small.safetensors
right -m small.safetensors --dtype f32
echo "builtin: ok"
