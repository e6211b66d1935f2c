#!/usr/bin/env bash
# The examples give the same answers as the program, and are short.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

[ "$(wc -l <"$RENYI_SRC/examples/classify.c")" -lt 80 ] || fail "the example has 80 lines or more"
examples=${RENYI_BUILD:-$(dirname "$RENYI")}/examples
example=$examples/example_classify
make_toy
make_ppm red.ppm 250 10 10
run 0 "$RENYI" classify -m toy.safetensors -k 1 red.ppm
best=$(sed -n 's/.*%  class //p' out)
run 0 "$example" toy.safetensors red.ppm
out_has "red.ppm: class $best"
run 1 "$example" absent.safetensors red.ppm
err_has "absent.safetensors"
run 1 "$example" toy.safetensors toy.safetensors
run 2 "$example"

# --- prune.c: dense and pruned, and what each cut did ---
[ "$(wc -l <"$RENYI_SRC/examples/prune.c")" -lt 120 ] || fail "the example has 120 lines or more"
example=$examples/example_prune
"$RENYI" init -q --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 12 --classes 10 --seed 1 \
  deep.safetensors
# expect POLICY: the policy, the class and the arithmetic, as the program has them
expect() {
  printf '%s\n' "$1"
  run 0 "$RENYI" classify -m deep.safetensors -k 1 --prune "$1" red.ppm
  sed -n 's/.*%  class /  class /p' out
  run 0 "$RENYI" flops -m deep.safetensors --json --prune "$1"
  LC_ALL=C printf '  %.3f GMACs\n' "$(sed -n 's/.*"gmacs_executed": \(.*\),/\1/p;T;q' out)"
}
{
  expect none
  expect 'mosaic keep=0.7 layers=0,3,6'
  echo "  block 0: 138 of 196 patches stay, 58 dropped, 0 joined others"
  echo "  block 3: 97 of 138 patches stay, 0 dropped, 41 joined others"
  echo "  block 6: 68 of 97 patches stay, 0 dropped, 29 joined others"
} >want
run 0 "$example" deep.safetensors red.ppm
sed 's/ *$//' out | diff want - || fail "not the output expected"
run 0 "$example" deep.safetensors red.ppm 'evit keep=0.7 layers=0,3 fuse'
out_has "block 0: 138 of 196 patches stay, 0 dropped, 58 joined others"
run 1 "$example" deep.safetensors red.ppm 'mosaic keep=2'
err_has "keep"
run 1 "$example" toy.safetensors red.ppm # two blocks
err_has "layer 3 is outside the model"
run 2 "$example" deep.safetensors

# --- draw.c: the figure of `renyi viz` ---
[ "$(wc -l <"$RENYI_SRC/examples/draw.c")" -lt 80 ] || fail "the example has 80 lines or more"
example=$examples/example_draw
run 0 "$example" deep.safetensors red.ppm example.svg
run 0 "$RENYI" viz -q -m deep.safetensors red.ppm --rule '' --layers 3,6,9 --figure overlay -o program.svg \
  --prune 'evit keep=0.7 layers=3,6,9' --prune 'mosaic keep=0.7 layers=3,6,9'
grep -c '<image' example.svg >have
grep -c '<image' program.svg | cmp -s - have || fail "not as many images as in the figure of renyi viz"
run 1 "$example" toy.safetensors red.ppm example.svg # two blocks
err_has "at most 2 are allowed"
run 2 "$example" deep.safetensors red.ppm

# --- own_rule.c: a rule of its own ---
[ "$(wc -l <"$RENYI_SRC/examples/own_rule.c")" -lt 100 ] || fail "the example has 100 lines or more"
example=$examples/example_own_rule
run 0 "$example" deep.safetensors red.ppm 'unlike keep=0.7 layers=0,3 fuse'
out_has "unlike keep=0.7 layers=0,3 reduce=fuse weights=cls at=mid order=score"
out_has "block 0: 140 of 197 tokens"
out_has "block 3: 100 of 140 tokens" # the fused token is one of 139 candidates
[ "$(tr -cd '#' <out | wc -c)" -ge $((138 + 97)) ] || fail "the maps show fewer patches than stay"
run 0 "$example" deep.safetensors red.ppm
out_has "block 6: 50 of 99 tokens"
run 1 "$example" deep.safetensors red.ppm 'unlike metric=col'
err_has "unlike takes no metric"
run 1 "$example" deep.safetensors red.ppm 'unlik'
err_has "did you mean unlike"
run 2 "$example" deep.safetensors
echo "example: ok"
