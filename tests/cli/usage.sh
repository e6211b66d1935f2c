#!/usr/bin/env bash
# Help pages, version, wrong usage, and results that cannot be written.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

run 0 "$RENYI" --version
out_has "renyi "
out_has "cpu level: "
run 2 "$RENYI"
out_empty
err_has "Usage: renyi VERB"
for help in help --help -h; do
  run 0 "$RENYI" $help
  for verb in classify zeroshot embed search ask encode-image vqa bench flops policies inspect quantize init pull plot viz; do out_has "  $verb "; done
done
for verb in classify zeroshot embed search ask encode-image vqa bench flops policies inspect quantize init pull plot viz; do
  run 0 "$RENYI" $verb --help
  out_has "Usage: renyi $verb "
  out_has "Examples:"
  [ ! -s err ] || fail "help on stderr"
  cp out direct
  run 0 "$RENYI" help $verb
  cmp -s out direct || fail "help $verb differs from $verb --help"
  [ "$(awk 'length > 110' out | wc -l)" -eq 0 ] || fail "$verb --help has long lines"
done

# usage MESSAGE ARGUMENTS...: exit code 2, nothing on stdout, one line with this message.
usage() {
  local message=$1
  shift
  run 2 "$RENYI" "$@"
  out_empty
  err_lines 1
  err_has "$message"
}
usage "did you mean 'classify'" clasify
usage "unknown verb 'frobnicate'" frobnicate
usage "unknown verb 'nope'" help nope
usage "did you mean '--model'" classify --modle x
usage "unknown option '--zzzzzz'" classify --zzzzzz
usage "unknown option '-Z'" bench -Z
usage "no images" classify -m x
usage "no images" classify
usage "needs a value" classify -m
usage "takes no value" classify -m x --json=1 a
usage "from 1 to" classify -m x -k 0 a
usage "from 1 to" classify -m x -k five a
usage "from 1 to" classify -m x -k 99999999999999999999999 a
usage "from 1 to" classify -m x -t -1 a
usage "three numbers" classify -m x --mean 1 2
usage "three numbers" classify -m x --std 1,2,x a
usage "is not a number" classify -m x --crop-pct nan a
usage "center|squash|border" classify -m x --crop-mode middle a
usage "auto|scalar" classify -m x --cpu neon a
usage "models are given with -m" bench model.safetensors
usage "md|csv|json" bench -m x -o xml
usage "from 1 to" bench -m x -b 1,0
usage "from 1 to" bench -m x -b ,
usage "more than" bench -m x -b 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
usage "one MODEL" inspect a b
usage "not both" flops -m a --arch b
usage "--arch NAME is missing" init out.safetensors
usage "one output file" init --arch vit_tiny_patch16_224
usage "one REPOSITORY" pull

# Results that cannot be written are an error of every verb.
failing() { "$RENYI" "$@" >/dev/full; }
run 1 failing --version
err_has "cannot write the results"
run 1 failing help
closed() { "$RENYI" "$@" >&-; }
run 1 closed --version
err_has "cannot write the results"
make_toy
run 1 failing inspect toy.safetensors --json
err_has "cannot write the results"
run 0 bash -c '"$1" inspect toy.safetensors --tensors | true' - "$RENYI" # no death by SIGPIPE
[ ! -s err ] || err_has "Broken pipe"
echo "usage: ok"
