#!/usr/bin/env bash
# examples/classify.c gives the answer that the program gives, and stays a short example.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

[ "$(wc -l <"$RENYI_SRC/examples/classify.c")" -lt 80 ] || fail "the example has 80 lines or more"
example=${RENYI_BUILD:-$(dirname "$RENYI")}/examples/example_classify
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
echo "example: ok"
