#!/usr/bin/env bash
# The manual pages and what shells complete come from the tables of options.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
mkdir bin && ln -s "$RENYI" bin/renyi && export PATH=$WORK/bin:$PATH

run 0 "$RENYI" help --options
[ "$(wc -l <out)" -ge 23 ] && cp out verbs || fail "verbs"
while IFS=$'\t' read -r verb summary; do
  run 0 "$RENYI" help "$verb" --options
  cut -f 1 out | sort >listed
  run 0 "$RENYI" help "$verb"
  sed -nE '/^Examples:/q; s/^  (-.,|   ) --([a-z0-9-]+).*/--\2/p' out | sort >shown
  diff listed shown || fail "$verb: --options differs from --help"
  run 0 "$RENYI" help "$verb" --man
  [ "$(grep -c '^\.TP$' out)" -eq "$(wc -l <listed)" ] || fail "$verb: options in the manual page"
  if command -v man >/dev/null; then
    MANWIDTH=80 man -l --warnings=w out >text 2>warnings && [ ! -s warnings ] || fail "$verb: manual page: $(head -n 3 warnings)"
    grep -q "^RENYI-${verb^^}(1)" text && grep -q "^ *renyi-$verb" text || fail "$verb: title or NAME of the manual page"
  else
    echo "SKIP: no man to read manual pages with"
  fi
done <verbs

# complete WORDS...: what bash offers for the last word
complete_in_bash() {
  bash -c '. "$1" && shift && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _renyi && printf "%s\n" "${COMPREPLY[@]}"' \
    bash "$RENYI_SRC/completions/renyi.bash" "$@"
}
complete_in_fish() {
  fish --no-config -c "source '$RENYI_SRC/completions/renyi.fish'; complete -C '$*'" | cut -f 1
}
# The functions of zsh's completion are replaced by some that print.
complete_in_zsh() {
  zsh -f -c 'words=("${@:2}") CURRENT=$#words typed=${@: -1}
    _describe() { local -a list=("${(@P)2}"); print -rl -- "${(@)list%%:*}" | grep -- "^$typed" }
    compadd() { shift; print -rl -- "$@" | grep -- "^$typed" }
    _files() { print -l files }
    . "$1"' zsh "$RENYI_SRC/completions/_renyi" "$@"
}
for shell in bash zsh fish; do
  command -v $shell >/dev/null || { echo "SKIP: no $shell; its completion not tested (1)"; continue; }
  offers() {
    local want=$1
    shift
    complete_in_$shell renyi "$@" >out 2>err || true
    [ "$(sort out | paste -sd ' ')" = "$want" ] || fail "$shell: renyi $*: not '$want'"
  }
  offers "classify" clas
  offers "search serve" help se
  offers "--crop-mode --crop-pct" classify --crop
  offers "bf16" classify --dtype b
  offers "json" eval --results-format j
done
echo "completion: ok"
