#!/usr/bin/env bash
# Pruning from the command line: policies, the single options, traces, costs, bad input.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

"$RENYI" init -q --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 12 --classes 10 --seed 1 \
  toy.safetensors
make_ppm red.ppm 250 10 10
{ printf 'P6\n64 64\n255\n' && seq 10000 12047; } >noise.ppm
classify() { "$RENYI" classify -m toy.safetensors "$@"; }

# --- the policy in full is reported on stderr and in the JSON ---
run 0 classify red.ppm
! grep -q "policy" err || fail "a dense run reports a policy"
run 0 classify --json red.ppm
json 'd["policy"] == "none"'
run 0 classify --prune 'evit keep=0.7 layers=0,3,6 metric=correct n=2 c=0.8 fuse' red.ppm
err_has "policy: evit keep=0.7 layers=0,3,6 metric=correct n=2 c=0.8"
run 0 classify -q --prune mosaic red.ppm
[ ! -s err ] || fail "-q prints"

# --- cascades ---
run 0 classify --prune 'cascade(mosaic -> none if margin < 1)' red.ppm
err_has "policy: cascade(mosaic keep=0.7 layers=0,3,6 -> none if margin < 1) combine=second"
run 0 classify --json --prune none red.ppm noise.ppm
grep -v '"policy"\|"ms' out >want
run 0 classify --json --prune 'cascade(mosaic -> none if margin < 1000)' red.ppm noise.ppm
grep -v '"policy"\|"ms' out | cmp -s - want || fail "a cascade that always runs again is not dense"
run 2 classify --prune 'cascade(mosaic -> none if margin < -1)' red.ppm
err_has "a number of at least 0"
run 0 "$RENYI" flops -m toy.safetensors --prune 'cascade(mosaic -> none if margin < 1)'
out_has "least: the first pass alone" && out_has "most: both passes"
run 0 "$RENYI" flops -m toy.safetensors --prune 'cascade(mosaic -> none if margin < 1)' --json
json 'abs(d["least"]["gmacs"] + d["second"]["gmacs"] - d["gmacs"]) < 1e-9 and d["second"]["gmacs"] < d["dense"]["gmacs"]'
run 2 classify --prune sure --trace t.json red.ppm
err_has "a cascade has two"
run 0 classify --prune half-adaptive red.ppm
err_has "policy: cascade(mosaic keep=0.72 layers=2-9 "
# half the MACs if a tenth of the images run again, at any size and depth
for arch in vit_tiny_patch16_224 vit_small_patch16_224 vit_large_patch16_224; do
  run 0 "$RENYI" flops --arch $arch --prune half-adaptive --json
  json '(d["least"]["gmacs_executed"] + 0.1 * d["second"]["gmacs_executed"]) / d["dense"]["gmacs_executed"] < 0.5'
done

# --- the single options mean the same as keys of the policy ---
# same POLICY OPTIONS...: both run the same policy.
same() {
  local policy=$1
  shift
  run 0 classify --json --prune "$policy" red.ppm
  grep '"policy"' out >want
  run 0 classify --json "$@" red.ppm
  grep '"policy"' out | cmp -s - want || fail "not '$policy': $*"
}
same 'evit keep=0.7 layers=0,3,6' --keep 0.7 --layers 0,3,6
same 'evit keep=0.7 layers=3,6,9' --keep=0.7 --layers '(3, 6, 9)'
same 'evit keep=0.7 layers=3,6,9' --prune evit --keep 0.7 --layers '[3, 6, 9]'
same 'evit keep=0.8 layers=3,6,9 metric=correct n=3 c=0.4 fuse' --keep 0.8 --layers 3,6,9 \
  --metric correct --n 3 --c 0.4 --fuse
same 'evit tokens=90 layers=3' --tokens 90 --layers 3
# names of earlier versions and of other programs
same 'evit keep=0.8 layers=3,6,9 metric=correct n=3 c=0.4 fuse' --keep-rate 0.8 --drop-loc 3,6,9 \
  --metric correct --norm 3 --rescue 0.4 --fuse-token
same 'evit tokens=90 layers=3' --keep-tokens=90 --drop-loc 3
same 'evit metric=random' --metric random
same 'naive p=8' -p 8
same 'naive p=8 layers=0-5 metric=col n=inf' -p8 --layers 0-5 --metric col --n inf
same 'tome r=4' --r 4
same 'mosaic keep=0.5 layers=0,3' --prune 'mosaic keep=0.5' --layers 0,3

# --- nothing dropped: bit-identical to the dense model ---
run 0 classify --json -k 10 red.ppm noise.ppm
grep -A2 '"index"' out >dense
for policy in 'evit keep=1 layers=3' 'naive p=0' 'mosaic keep=1 layers=0,3' 'tome r=0'; do
  run 0 classify --json -k 10 --prune "$policy" red.ppm noise.ppm
  grep -A2 '"index"' out | cmp -s - dense || fail "$policy is not dense"
done
# --- the same bits for all batch sizes and numbers of threads ---
for flags in "-b 1 -t 1" "-b 2 -t 2" "-b 1 -t 2 --streams 2"; do
  run 0 classify --json -k 10 $flags --prune 'mosaic keep=0.6 layers=0,3,6' --trace t.jsonl red.ppm noise.ppm
  grep -A2 '"index"' out | cat - t.jsonl >answer
  [ ! -f first ] && cp answer first
  cmp -s answer first || fail "another answer or trace with $flags"
done

# --- a model without class token: rules that need one are refused, the error names others ---
"$RENYI" init -q --arch vit_tiny_patch16_gap_224 --dim 64 --heads 2 --blocks 12 --classes 10 gap.safetensors
for policy in 'evit keep=0.7 metric=col fuse' 'naive p=8 metric=renyi' 'mosaic keep=0.7' 'tome r=8'; do
  run 0 "$RENYI" classify -m gap.safetensors --json --prune "$policy" red.ppm
done
for policy in evit 'naive p=8 metric=correct'; do
  run 2 "$RENYI" classify -m gap.safetensors --prune "$policy" red.ppm
  err_has "looks at the class token, and this model has none; use metric=col, colv, renyi, shannon or random"
  err_lines 1
done
run 0 "$RENYI" flops --arch vit_tiny_patch16_gap_224 --json --prune 'mosaic keep=0.7 layers=0,3,6'
json 'd["layers"][0]["tokens_in"] == 196'

# --- traces ---
# trace EXPRESSION...: each true for every line `d` of t.jsonl; `cuts` are its cuts.
trace() {
  command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; return 0; }
  python3 -c 'import json,sys
for line in open("t.jsonl"):
    d = json.loads(line)
    cuts = d["cuts"]
    for expression in sys.argv[1:]:
        if not eval(expression): sys.exit("not true: " + expression)' "$@" || fail "the trace"
}
# For every rule: each token is kept, dropped, fused or merged.
trace_adds_up() {
  trace 'set(d) == {"file", "policy", "tokens", "cuts"} and len(d["tokens"]) == 13 and d["tokens"][0] == 197' \
    'all(set(c) == {"layer", "tokens_in", "tokens_out", "kept", "scores", "sizes", "rescued", "dropped", "fused", "merged"} for c in cuts)' \
    'all(d["tokens"][c["layer"]] == c["tokens_in"] and d["tokens"][c["layer"] + 1] == c["tokens_out"] for c in cuts)' \
    'all(len(c["kept"]) == len(c["scores"]) == len(c["sizes"]) == c["tokens_out"] - 1 for c in cuts)' \
    'all(sorted(p for p in c["kept"] + c["dropped"] + c["fused"] + [m[0] for m in c["merged"]] if p is not None) ==
      sorted(p for p in before if p is not None) for before, c in zip([range(196)] + [c["kept"] for c in cuts], cuts))' \
    'all(set(c["rescued"]) <= set(c["kept"]) and {m[1] for m in c["merged"]} <= set(c["kept"]) for c in cuts)'
}
echo older >t.jsonl # replaced only by a whole trace
on_full_disk() { (ulimit -f 0 && classify --trace t.jsonl red.ppm) 2>&1 | cat; }
(set +e; on_full_disk >full; [ $? -eq 1 ]) || fail "a full disk is no failure"
[ "$(cat t.jsonl)" = older ] && [ "$(ls t.jsonl*)" = t.jsonl ] || fail "a full disk changed the older trace"
run 0 classify --trace t.jsonl --prune 'evit keep=0.7 layers=0,3,6 metric=correct c=0.2 fuse' red.ppm noise.ppm
[ "$(wc -l <t.jsonl)" -eq 2 ] || fail "a line for each image"
trace_adds_up
trace 'd["policy"].startswith("evit keep=0.7 layers=0,3,6 metric=correct")'
trace 'd["tokens"] == [197] + [140] * 3 + [100] * 3 + [72] * 6'
trace '[c["layer"] for c in cuts] == [0, 3, 6] and [len(c["rescued"]) for c in cuts] == [27, 19, 14]'
trace 'all(c["kept"][-1] is None and c["scores"][-1] is None and not c["dropped"] and not c["merged"] for c in cuts)'
run 0 classify --trace t.jsonl -p 16 --layers 0-5 --metric col --n 4 noise.ppm red.ppm
trace_adds_up
trace 'd["file"] in ("red.ppm", "noise.ppm") and d["tokens"] == [197, 181, 165, 149, 133, 117] + [101] * 7'
trace 'all(c["scores"] == sorted(c["scores"], reverse=True) and len(c["dropped"]) == 16 for c in cuts)'
trace 'all(set(c["sizes"]) == {1} and not c["rescued"] and not c["fused"] and not c["merged"] for c in cuts)'
run 0 classify --trace t.jsonl --prune 'mosaic keep=0.7 layers=0,3,6' noise.ppm
trace_adds_up
trace 'd["tokens"][7] == 69 and len(cuts[0]["dropped"]) == 58 and not cuts[0]["merged"]'
trace 'all(not c["dropped"] and sum(c["sizes"]) == 138 for c in cuts[1:])'
run 0 classify --trace t.jsonl --prune 'tome r=13' noise.ppm
trace_adds_up
trace 'len(cuts) == 12 and all(len(c["merged"]) == 13 and sum(c["sizes"]) == 196 for c in cuts)'
if classify -q --prune ats red.ppm >/dev/null 2>&1; then # a number of tokens that adapts, never above the budget
  run 0 classify --trace t.jsonl --prune 'ats keep=0.7 layers=3,6,9' noise.ppm red.ppm
  trace_adds_up
  trace 'd["tokens"][4] <= 139 and d["tokens"][7] <= 99 and d["tokens"][10] <= 71 and min(d["tokens"]) > 1'
else
  echo "SKIP: this build has no rule ats"
fi
run 0 classify --trace t.jsonl noise.ppm
trace 'd["policy"] == "none" and d["tokens"] == [197] * 13 and cuts == []'
run 3 classify --trace t.jsonl --prune mosaic absent.jpg noise.ppm
[ "$(wc -l <t.jsonl)" -eq 1 ] || fail "the trace of an absent image"
run 1 classify --trace absent/t.jsonl red.ppm
err_has "absent/t.jsonl: cannot create a file in its folder: No such file"
run 1 classify --trace /dev/full red.ppm
err_has "/dev/full: cannot write after 0 bytes"
run 2 classify --trace - red.ppm
err_has "--trace needs a file"

# --- policies: the library accepts all that are listed, every key it prints is explained ---
run 0 "$RENYI" policies
out_has "Presets"
out_has "mosaic"
out_has "KEPT"
cp out listed
run 0 "$RENYI" policies --json
json 'len(d["presets"]) > 3 and all(p["full"] and p["about"] and p["policy"] for p in d["presets"])'
json '[r["name"] for r in d["rules"]] == ["none", "mosaic", "evit", "naive", "tome", "ats", "tca", "fastv", "pyramiddrop", "dart", "sparsevlm", "prumerge", "vispruner", "visionzip", "divprune", "hiprune", "mosaic-behind", "cdpruner", "random", "uniform", "pool", "downsample"] and all(r["full"] for r in d["rules"])'
json '{w.split("=")[0] for p in d["presets"] + d["rules"] if not p["full"].startswith("cascade") for w in p["full"].split()[1:]} <= {k["key"] for k in d["keys"]}'
json 'all(p["name"] in open("listed").read() for p in d["presets"])'
# the library names every key of a rule when it meets a word that it does not know
for rule in $(sed -n '/^Rules/,/^Keys/s/^  \([a-z-]*\) .*/\1/p' listed); do
  [ "$rule" = none ] && continue
  run 2 "$RENYI" flops --arch vit_base_patch16_224 --prune "$rule unknown=1"
  for key in $(sed -n 's/.*takes \([a-z_, ]*\); see.*/\1/p' err | tr -d ,); do
    grep -q "^  $key=" listed || fail "key $key of $rule is not listed"
  done
done
run 0 "$RENYI" policies --json
if command -v python3 >/dev/null; then
  python3 -c 'import json; [print(p["name"]) for p in json.load(open("out"))["presets"]]' >presets
  while read -r preset; do
    case $preset in # rules for the visual tokens of a LLaVA
      lvlm:* | paper:prumerge* | paper:vispruner*)
        run 2 "$RENYI" flops --arch vit_base_patch16_224 --prune "$preset"
        err_has "visual tokens" ;;
      *) run 0 "$RENYI" flops --arch vit_base_patch16_224 --prune "$preset" ;;
    esac
  done <presets
fi

# --- rules for the visual tokens of a LLaVA are refused elsewhere, the error names others ---
run 2 "$RENYI" flops --arch vit_base_patch16_224 --prune "prumerge tokens=64"
err_has "prumerge chooses among the visual tokens that a LLaVA gives its language model"
run 2 classify --prune vispruner red.ppm
err_has "Use naive, evit, mosaic, tome or ats"

# --- flops: the numbers of the paper ---
flops() { "$RENYI" flops --json --arch "$@"; }
run 0 flops vit_small_patch16_224
json 'round(d["gmacs_paper"], 3) == 4.608 and round(d["gmacs"], 3) == 4.599 and d["params"] == 22050664'
json 'd["policy"] == "none" and d["gmacs_executed"] < d["gmacs"] and len(d["layers"]) == 12'
json 'abs(sum(x["gmacs"] for x in [d["embed"], d["head"]] + d["layers"]) - d["gmacs"]) < 1e-6'
run 0 flops vit_base_patch16_224 -p 24 --layers 0-5
json 'round(d["gmacs_paper"], 3) == 7.728 and round(d["gmacs"], 3) == 7.720 and d["layers"][11]["tokens_out"] == 53'
run 0 flops vit_large_patch16_224 --prune 'naive p=4 layers=all'
json 'round(d["gmacs_paper"], 3) == 46.146'
run 0 flops deit_small_patch16_224 --keep 0.7 --layers 0,3,6 --fuse
json 'round(d["gmacs_paper"], 3) == 2.293 and [d["layers"][i]["tokens_out"] for i in (0, 3, 6)] == [140, 100, 72]'
json 'round(d["dense"]["gmacs_paper"], 3) == 4.608'
run 0 flops vit_base_patch16_224 --prune mosaic --prune 'evit fuse' --keep 0.8 --layers 3,6,9
json 'len(d["results"]) == 2 and round(d["results"][1]["gmacs_paper"], 3) == 13.341'
run 0 "$RENYI" flops --arch vit_base_patch16_224 --prune mosaic --prune 'evit fuse' --keep 0.8 --layers 3,6,9
out_has "evit keep=0.8"
out_has "75.9 %"
run 0 flops vit_base_patch16_224 --image-size 384
json 'd["layers"][0]["tokens_in"] == 577 and d["architecture"] == "vit_base_patch16_384"'
run 0 "$RENYI" flops -m toy.safetensors --image-size 112 --prune 'evit keep=0.5 layers=3'
out_has " 27 "
out_has "of dense"
run 0 "$RENYI" flops -m toy.safetensors --json
json 'd["layers"][0]["tokens_in"] == 197 and d["params"] > 0'
run 1 "$RENYI" flops -m absent.safetensors

# --- bad input: exit code 2, one line that names the mistake and what is allowed ---
# bad WORD ALLOWED ARGUMENTS...: for classify with a model and for flops with an architecture.
bad() {
  local word=$1 allowed=$2
  shift 2
  for verb in "classify -m toy.safetensors red.ppm" "flops --arch vit_tiny_patch16_224"; do
    run 2 "$RENYI" $verb "$@"
    out_empty
    err_lines 1
    err_has "$word"
    err_has "$allowed"
  done
}
bad "frobnicate" "mosaic" --prune frobnicate
bad "color" "layers" --prune 'evit color=red'
bad "paper:nothing" "renyi policies" --prune paper:nothing
bad "12" "11" --layers 3,12
bad "3" "twice" --layers 3,6,3
bad "keep" "at most 1" --keep 1.5
bad "keep" "above 0" --keep 0
bad "keep" "above 0" --keep -0.5
bad "keep" "at most 1" --keep nan
bad "p" "196" -p 40 --layers 0-5
bad "p=1.5" "the number of patches removed" -p 1.5
bad "c" "from 0 to 1" --metric correct --c 1.2
bad "c" "from 0 to 1" --metric correct --c -0.1
bad "n" "at least 1" --metric col --n 0.5
bad "metric" "shannon" --metric best
bad "keep" "naive" -p 8 --keep 0.7
bad "keep" "tome" --r 8 --keep 0.7
bad "keep" "twice" --prune 'evit keep=0.5' --keep 0.7
bad "c" "correct" --metric col --c 0.4
bad "keep" "none" --prune none --keep 0.7
bad "layers" "early" --layers nowhere
bad "--metric" "has a space in it" --metric 'col n=3'
bad "--layers" "has a space in it" --layers '()'
bad "policy" "renyi policies" --prune ''
bad "policy" "renyi policies" --prune "evit layers=$(seq -s, 0 900)"
run 2 classify --prune evit --prune mosaic red.ppm
err_has "one --prune POLICY at a time, 2 given"
run 2 "$RENYI" flops -m toy.safetensors --arch vit_tiny_patch16_224
run 2 "$RENYI" flops --arch vit_enormous_patch16_224
err_has "vit_enormous_patch16_224"
run 2 "$RENYI" flops --arch vit_base_patch16_224 stray
run 2 "$RENYI" policies stray

# --- a policy that the shell has split ---
for verb in classify embed viz ask search encode-image eval zeroshot bench flops sweep tune vqa; do
  run 2 "$RENYI" $verb -m toy.safetensors --prune evit keep=0.3 layers=0,3,6 red.ppm
  out_empty
  err_lines 1
  err_has "'keep=0.3' is not a file; quote the policy: --prune 'evit keep=0.3 layers=0,3,6'"
done
cp red.ppm size=small
run 0 classify --prune evit size=small red.ppm # a file may have such a name
run 2 classify --prune col red.ppm
err_has "'col' is a metric, not a rule; did you mean evit metric=col?"
echo "prune: ok"
