#!/usr/bin/env bash
# tools/demo on a machine without network, images or another model: it shows the built-in model.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

mkdir -p bin build project
printf '#!/bin/sh\nexit 1\n' >bin/apt-get && chmod +x bin/apt-get
ln -s "$RENYI" build/renyi
cp -r "$RENYI_SRC/tools" "$RENYI_SRC/assets" project/ # no ../shared beside this one
demo() { PATH=$WORK/bin:$PATH "$WORK/project/tools/demo" build; }
run 0 demo
err_has "renyi pull"
if has_builtin; then
  out_has "golf ball"
  out_has "parachute"
  # the rules differ: by class attention another answer than by Col-Ln
  grep -q '^  class attention .* garbage truck' out && grep -q '^  Col-L2 .* golf ball$' out || fail "the rules agree"
  [ -s build/demo/demo.html ] || fail "no page"
  if command -v curl >/dev/null && ! "$RENYI" serve --help | grep -q 'without libmicrohttpd'; then out_has '"label":"golf ball"'; fi
  # What it prints can be typed: the policy is one word.
  command=$(grep -m 1 -e --prune err) && command=${command#demo: }
  run 0 bash -c "$command"
  out_has "golf ball"
fi
make_toy
RENYI_MODEL=toy.safetensors run 0 demo
err_has "classify -m toy.safetensors"
out_has "traffic_light.png"
err_has "that rule needs seven blocks"
"$RENYI" init -q --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 7 --classes 10 --seed 1 deep.safetensors
RENYI_MODEL=deep.safetensors run 0 demo
out_has "Col-L2"
[ -s build/demo/rules.html ] || fail "no page of the rules"
RENYI_MODEL=absent.safetensors run 1 demo
err_has "absent.safetensors"
echo "demo: ok"
