#!/usr/bin/env bash
# renyi bench: the three forms, the keys of the JSON, random models that leave nothing behind.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

make_toy
mkdir tmp
export TMPDIR=$WORK/tmp
bench() { "$RENYI" bench -b 1 -t 1 -r 2 "$@"; }
run 0 bench -m toy.safetensors -b 1,2 -o json
json 'set(d) >= {"cpu", "peak_gflops", "results"} and d["peak_gflops"] > 0 and len(d["results"]) == 2'
json 'all(list(r) == "model dtype policy batch threads ms_median ms_p10 ms_p90 images_per_second gflops peak_share peak_rss_mb".split() for r in d["results"])'
json 'all(r["ms_p10"] <= r["ms_median"] <= r["ms_p90"] and r["peak_rss_mb"] > 1 and r["peak_share"] > 0 for r in d["results"])'
json '[r["batch"] for r in d["results"]] == [1, 2] and d["results"][0]["model"] == "toy.safetensors"'
# The rest without the peak, which takes its second or two.
run 0 bench --no-peak -m toy.safetensors -t 1,2 -o json
json 'd["peak_gflops"] is None and [(r["threads"], r["peak_share"]) for r in d["results"]] == [(1, None), (2, None)]'
run 0 bench --no-peak -m toy.safetensors -o csv
[ "$(wc -l <out)" -eq 2 ] && out_has "peak_rss_mb" || fail "csv"
run 0 bench --no-peak --arch vit_tiny_patch16_224
out_has "| vit_tiny_patch16_224 | f32 | none | 1 | 1 |"
[ -z "$(ls -A tmp)" ] || fail "a temporary model stayed"
run 3 bench --no-peak -m absent.safetensors -m toy.safetensors
err_has "absent.safetensors"
run 1 bench --arch vit_nonsense
[ -z "$(ls -A tmp)" ] || fail "a temporary model stayed"
out_empty
echo "bench: ok"
