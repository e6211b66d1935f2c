#!/usr/bin/env bash
# renyi bench: the three forms, the keys of the JSON, random models that leave nothing behind.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

make_toy
mkdir tmp
export TMPDIR=$WORK/tmp
run 0 "$RENYI" bench -m toy.safetensors -b 1,2 -t 1 -r 3 -o json
json 'set(d) >= {"cpu", "peak_gflops", "results"} and d["peak_gflops"] > 0 and len(d["results"]) == 2'
json 'all(list(r) == "model dtype policy batch threads ms_median ms_p10 ms_p90 images_per_second gflops peak_share peak_rss_mb".split() for r in d["results"])'
json 'all(r["ms_p10"] <= r["ms_median"] <= r["ms_p90"] and r["peak_rss_mb"] > 1 for r in d["results"])'
json '[r["batch"] for r in d["results"]] == [1, 2] and d["results"][0]["model"] == "toy.safetensors"'
run 0 "$RENYI" bench -m toy.safetensors -b 1 -t 1 -r 1 -o csv
[ "$(wc -l <out)" -eq 2 ] && out_has "peak_rss_mb" || fail "csv"
run 0 "$RENYI" bench --arch vit_tiny_patch16_224 -b 1 -t 1 -r 1
out_has "| vit_tiny_patch16_224 | f32 | none | 1 | 1 |"
[ -z "$(ls -A tmp)" ] || fail "a temporary model stayed"
run 3 "$RENYI" bench -m absent.safetensors -m toy.safetensors -b 1 -t 1 -r 1
err_has "absent.safetensors"
run 1 "$RENYI" bench --arch vit_nonsense -b 1 -t 1 -r 1
[ -z "$(ls -A tmp)" ] || fail "a temporary model stayed"
echo "bench: ok"
