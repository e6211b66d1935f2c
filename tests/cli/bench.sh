#!/usr/bin/env bash
# renyi bench: the three formats, the keys of the JSON, temporary models, policies in turn.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

make_toy
mkdir tmp
export TMPDIR=$WORK/tmp
bench() { "$RENYI" bench -b 1 -t 1 --repetitions 2 "$@"; }
run 0 bench -m toy.safetensors -b 1,2 --format json
json 'set(d) >= {"cpu", "peak_gflops", "results"} and d["peak_gflops"] > 0 and len(d["results"]) == 2'
json 'all(list(r) == "model dtype policy batch threads streams gmacs gmacs_plain ms_median ms_p10 ms_p90 images_per_second gflops peak_share peak_rss_mb time_ratio mac_ratio speedup ms_mean ms_p95".split() for r in d["results"])'
json 'all(r["ms_p10"] <= r["ms_median"] <= r["ms_p90"] and r["peak_rss_mb"] > 1 and r["peak_share"] > 0 for r in d["results"])'
json '[r["batch"] for r in d["results"]] == [1, 2] and d["results"][0]["model"] == "toy.safetensors"'
# The rest without the peak, which takes a second or two.
run 0 bench --no-peak -m toy.safetensors -t 1,2 --format json
json 'd["peak_gflops"] is None and [(r["threads"], r["peak_share"]) for r in d["results"]] == [(1, None), (2, None)]'
run 0 bench --no-peak -m toy.safetensors -b 3 -t 4 --streams 2 --json --repetitions 2
json '[(r["batch"], r["threads"], r["streams"]) for r in d["results"]] == [(3, 4, 2)]'
run 0 bench --no-peak -m toy.safetensors -b 1 -t 2 --streams 2 --repetitions 2
out_has "2 batches in flight" || fail "the table does not name the streams"
run 1 bench --no-peak -m toy.safetensors -b 1 -t 1 --streams 2 --repetitions 2
err_has "2 streams on 1 thread" || fail "more streams than threads"
run 0 bench --no-peak -m toy.safetensors --format csv
[ "$(wc -l <out)" -eq 2 ] && out_has "peak_rss_mb" || fail "csv"
run 0 bench --no-peak --arch vit_tiny_patch16_224
out_has "| vit_tiny_patch16_224 | f32 | none | 1 | 1 |"
[ -z "$(ls -A tmp)" ] || fail "a temporary model was left"
run 3 bench --no-peak -m absent.safetensors -m toy.safetensors
err_has "absent.safetensors"
run 1 bench --arch vit_nonsense
[ -z "$(ls -A tmp)" ] || fail "a temporary model was left"
out_empty

# Policies: the dense model first, ratios to it, the policy in full.
quick() { bench --no-peak -m toy.safetensors "$@"; }
run 0 quick --repetitions 3 --prune "naive p=16 layers=0" --prune "evit keep=0.5 layers=0,1" --format json
json '[r["policy"].split()[0] for r in d["results"]] == ["none", "naive", "evit"]'
json 'd["results"][0]["time_ratio"] is None and d["results"][0]["mac_ratio"] is None'
json 'all("layers=" in r["policy"] and "metric=" in r["policy"] and r["time_ratio"] > 0 for r in d["results"][1:])'
json 'all(abs(r["mac_ratio"] - r["gmacs"] / d["results"][0]["gmacs"]) < 1e-6 for r in d["results"][1:])'
json 'all(r["gmacs"] <= r["gmacs_plain"] < d["results"][0]["gmacs_plain"] for r in d["results"][1:])'
# A cascade: on photos each runs once, the mean and p95 are there; on random input there is a note.
mkdir photos
for i in 1 2 3; do make_ppm photos/$i.ppm $((i * 60)) 10 200; done
run 0 quick --repetitions 1 --prune "cascade(naive p=16 layers=0 -> none if margin < 1000)" --format json
err_has "random input has no meaningful margins"
run 0 "$RENYI" bench --no-peak -t 1 -b 2 -m toy.safetensors --data-dir photos \
  --prune "cascade(naive p=16 layers=0 -> none if margin < 1000)" --format json
json '"second_share" not in d["results"][0] and d["results"][1]["second_share"] == 1'
json 'd["results"][1]["ms_mean"] > 0 and d["results"][1]["ms_p95"] >= d["results"][1]["ms_median"]'
json 'd["results"][1]["mac_ratio"] > 1'
run 0 "$RENYI" bench --no-peak -t 1 -b 2 -m toy.safetensors --data-dir photos
out_has "| mean | p95 | second pass |" && out_has "3 photos"
run 0 quick --repetitions 1
out_has "of 1 run after a warm-up"
# Photos that no run takes are not read.
echo broken >photos/9.ppm
run 0 quick --repetitions 1 --data-dir photos
run 1 quick --repetitions 4 --data-dir photos
err_has "9.ppm"
rm photos/9.ppm
run 1 quick --data-dir absent
run 2 quick --train --data-dir photos

run 0 quick -b 1,2 --prune "mosaic keep=0.7 layers=0" --prune none --format csv
[ "$(wc -l <out)" -eq 5 ] || fail "csv: none twice, or a row is missing"
[ "$(awk -F'"' 'NF > 1' out | wc -l)" -le 4 ] && out_has "time_ratio,mac_ratio" || fail "csv"
run 0 quick --prune "naive p=16 layers=0"
out_has "time/dense | MACs/dense | x |"
out_has "| toy.safetensors | f32 | naive p=16 layers=0 | 1 | 1 |"
out_has "naive p=16 layers=0: naive "
run 0 quick -p 16 --layers 0 # the field's words
out_has "naive p=16 layers=0"
# Invalid policies: exit code 2, one line, no result. A model that a policy does not fit fails alone.
run 2 quick --prune "naive q=16"
err_lines 1
err_has "policy 'naive q=16'"
run 2 quick --prune "naive p=16 layers=5"
err_lines 1
out_empty
"$RENYI" init -q --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 6 --classes 10 --seed 1 deep.safetensors
run 3 quick -m deep.safetensors --prune "naive p=16 layers=5"
err_lines 1
out_has "| deep.safetensors | f32 | naive p=16 layers=5 |"

# Training steps: one row per policy, ratios to the dense one, memory independent of the batch.
steps() { "$RENYI" bench --train -m toy.safetensors -t 1 --repetitions 2 "$@"; }
run 0 steps -b 4 --prune "evit keep=0.5 layers=0" --format json
json '[r["policy"].split()[0] for r in d["train"]] == ["none", "evit"] and d["train"][0]["time_ratio"] is None'
json 'all(r["step_ms"] > 0 and r["step_forward"] > 0 and r["activations_mb"] > 0 and r["batch"] == 4 for r in d["train"])'
json 'd["train"][1]["mac_ratio"] < 1 and d["train"][1]["quotient"] > 0'
run 0 steps -b 16,24 --format csv # both more than a micro-batch
[ "$(wc -l <out)" -eq 3 ] && out_has "step_forward" || fail "csv of --train"
[ "$(cut -d, -f13 out | tail -2 | uniq | wc -l)" -eq 1 ] || fail "activations grow with the batch"
run 0 steps -b 2
out_has "step/forward"
run 2 steps --dtype f32,bf16
err_has "one --dtype"
run 2 steps --prune "naive p=16 layers=5"
err_lines 1
echo "bench: ok"
