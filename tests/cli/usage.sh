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
  for verb in classify zeroshot embed search ask serve encode-image vqa bench flops policies inspect tokenize quantize init pull plot viz; do out_has "  $verb "; done
done
verbs=$(awk '/^Verbs:/ {is_list = 1} /^$/ {if (n) is_list = 0} is_list && /^  [a-z]/ && $1 != "help" {print $1; n++}' out)
[ "$(wc -w <<<"$verbs")" -ge 23 ] || fail "verbs of the help page"
for verb in $verbs; do
  run 0 "$RENYI" $verb --help
  out_has "Usage: renyi $verb "
  out_has "Examples:"
  [ ! -s err ] || fail "help on stderr"
  cp out direct
  run 0 "$RENYI" help $verb
  cmp -s out direct || fail "help $verb differs from $verb --help"
  [ "$(awk 'length > 110' out | wc -l)" -eq 0 ] || fail "$verb --help has long lines"
  ! grep -nE '::' out >&2 || fail "$verb --help: two colons"
  sed -nE 's/^(Usage:|      ) (renyi )/\2/p' out >>synopsis
done
# The man page shows the same command lines.
sed -n '/^.SH SYNOPSIS/,/^.SH DESCRIPTION/p' "$RENYI_SRC/docs/man/renyi.1" | grep '^.fBrenyi' |
  sed 's/\\f[BIR]//g; s/\\-/-/g' >man
diff synopsis man || fail "SYNOPSIS of docs/man/renyi.1 differs from --help"

# A letter stands for the same option in every verb, and no page shows an old name.
for verb in renyi.1 $verbs; do
  if [ "$verb" = renyi.1 ]; then
    sed 's/\\f[BIR]//g; s/\\-/-/g' "$RENYI_SRC/docs/man/renyi.1" >page
  else
    "$RENYI" "$verb" --help >page
  fi
  sed -nE 's/^  -([a-z]), --([a-z0-9-]+).*/\1 \2/p' page >>letters
  if grep -nE -- '--(keep-rate|keep-tokens|drop-loc|norm|rescue|fuse-token|img-size|colours|unlabelled|calib-photos|depth) ' page >&2; then
    fail "$verb: the page shows an old name"
  fi
  if grep -nEi '\<(data sets?|quantis|colour|grey)' page >&2; then fail "$verb: the page has another spelling"; fi
done
if grep -nEi '\<(data sets?|quantis|grey)' "$RENYI_SRC"/{README,CHANGELOG,SECURITY}.md "$RENYI_SRC"/docs/*.md >&2; then
  fail "a document has another spelling than the help pages"
fi
[ "$(sort -u letters | wc -l)" -gt 10 ] || fail "no letters found in the help pages"
twice=$(sort -u letters | cut -c1 | uniq -d)
[ -z "$twice" ] || fail "letters with two meanings: $twice"

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
usage "md|csv|json" bench -m x --format xml
usage "unknown option '-r'" bench -m x -r 3 # --r N is merging
usage "unknown option '-o'" bench -m x -o json
usage "unknown option '-r'" pull -r main owner/name
usage "from 1 to" bench -m x -b 1,0
usage "from 1 to" bench -m x -b ,
usage "more than" bench -m x -b 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
usage "train: option '--recipe': 'foo' is not known; there are paper-evit" train --recipe foo
usage "train: option '--epochs': 'foo' is not a whole number" train --epochs foo
usage "one MODEL" inspect a b
usage "one MODEL" inspect -m a b
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
run 0 "$RENYI" inspect -m toy.safetensors
run 1 failing inspect toy.safetensors --json
err_has "cannot write the results"
# A reader that has ended is not an error: no message, and the end that SIGPIPE gives.
run 141 bash -c 'set -o pipefail; { sleep 0.3; exec "$1" inspect toy.safetensors --tensors; } | true' - "$RENYI"
[ ! -s err ] || fail "a closed pipe is reported"
run 141 bash -c 'set -o pipefail; { sleep 0.3; trap "" PIPE; exec "$1" --version; } | true' - "$RENYI"
[ ! -s err ] || fail "a closed pipe is reported"

# A file that cannot be written is named as the user named it.
run 1 "$RENYI" viz -q -m toy.safetensors -o nowhere/x.html "$RENYI_SRC/assets/golf_ball.png"
err_has "renyi: nowhere/x.html: "
err_lines 1
! grep -qE 'x\.html[^:]' err || fail "the name of a temporary file"

# Limits are named with the option that sets them, if there is one.
run 1 "$RENYI" init --arch vit_tiny_patch16_224 --dim 65 x.safetensors
err_has "--heads"
printf 'P6\n40000 2\n255\n' >wide.ppm
run 1 "$RENYI" classify -m toy.safetensors wide.ppm
err_has "a side may have 32768: make it smaller"

# More threads than processors: a warning, once, not with -q.
cpus=$(nproc)
run 0 "$RENYI" classify -t 1000 "$RENYI_SRC/assets/golf_ball.png" -m toy.safetensors
err_has "warning: --threads 1000, but this process may use only $cpus"
err_lines 1
run 0 "$RENYI" classify -q -t 1000 "$RENYI_SRC/assets/golf_ball.png" -m toy.safetensors
[ ! -s err ] || fail "-q"
run 0 "$RENYI" classify -t 1 "$RENYI_SRC/assets/golf_ball.png" -m toy.safetensors
! grep -q warning err || fail "one thread"
run 0 "$RENYI" bench --no-peak -m toy.safetensors -b 1 -t 1,64 --repetitions 1
err_has "warning: --threads 64"
echo "usage: ok"
