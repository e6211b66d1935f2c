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
  [ -s build/demo/demo.html ] || fail "no page"
fi
make_toy
RENYI_MODEL=toy.safetensors run 0 demo
err_has "classify -m toy.safetensors"
out_has "traffic_light.png"
RENYI_MODEL=absent.safetensors run 1 demo
err_has "absent.safetensors"
echo "demo: ok"
