#!/usr/bin/env bash
# The commands and Python scripts of docs/SERVER.md that talk to a server, as they are written.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v curl >/dev/null || { echo "SKIP: no curl (1)"; exit 77; }
find_clients
make_toy vit.safetensors
make_clip
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava seed=5
cp "$RENYI_SRC/assets/golf_ball.png" photo.jpg # the format is found from the bytes
serve -m clip=clip.safetensors -m vit=vit.safetensors -m llava

# Blocks in the order of the page: block-1.sh, block-2.python, ...
awk -v to="$WORK/block" '/^```(sh|python)$/ {n++; kind = substr($0, 4); next} /^```/ {kind = ""} kind {print > (to "-" n "." kind)}' "$RENYI_SRC/docs/SERVER.md"
n=0 left=0
for block in $(ls block-* | sort -t- -k2 -n); do
  grep -q '127.0.0.1:8080/v1' "$block" || continue
  grep -q -- --api-key-file "$block" && continue # starts a server of its own; see keys.sh
  sed -i "s|http://127.0.0.1:8080|$url|g" "$block"
  case $block in
  *.sh) bash -euo pipefail "$block" >out 2>err || fail "$block of docs/SERVER.md" ;;
  *)
    if grep -q openai "$block" && ! "$python" -c 'import openai' 2>/dev/null; then
      left=$((left + 1))
      continue
    fi
    "$python" "$block" >out 2>err || fail "$block of docs/SERVER.md"
    ;;
  esac
  [ -s out ] && ! grep -q '"error"' out || fail "$block of docs/SERVER.md: no answer"
  n=$((n + 1))
done
[ $n -ge 6 ] || fail "only $n blocks were found"
[ $left -eq 0 ] || echo "SKIP: $python cannot import openai; blocks of docs/SERVER.md left out ($left)"
stop_server
