#!/usr/bin/env bash
# renyi viz with a LLaVA: states of the patches agree with renyi encode-image; figures and a page; options that do not fit.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }

python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
make_ppm a.ppm 200 30 90
make_ppm b.ppm 20 130 190
echo "no image" >bad.ppm
viz() { "$RENYI" viz -m llava -t 1 "$@"; }

run 0 viz a.ppm b.ppm --json --prune 'prumerge tokens=5' --prune 'vispruner tokens=7' --prune 'evit keep=0.5 layers=0' --prune none
cp out viz.json
for policy in 'prumerge tokens=5' 'vispruner tokens=7' 'evit keep=0.5 layers=0' none; do
  run 0 "$RENYI" encode-image -q -t 1 -m llava a.ppm b.ppm --prune "$policy" -o "$policy.safetensors"
done
python3 - <<'P' || fail "states"
import json, struct
def positions(policy, i):
    b = open(policy + ".safetensors", "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    t = json.loads(b[8:8 + n])[f"positions.{i}"]
    at = b[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
    return struct.unpack(f"<{len(at) // 4}i", at)
d = json.load(open("viz.json"))
assert [p["name"] for p in d["photos"]] == ["a.ppm", "b.ppm"]
for i, photo in enumerate(d["photos"]):
    assert photo["grid"] == 4 and photo["patch"] == 14 and photo["layers"] == [1]
    assert len(photo["metrics"]) == 2 and all(sorted(m["maps"][0]["rank"]) == list(range(16)) for m in photo["metrics"])
    for row, policy in zip(photo["rows"], ["prumerge tokens=5", "vispruner tokens=7", "evit keep=0.5 layers=0", "none"]):
        want, step = positions(policy, i), row["steps"][0]
        kept = {p for p in want if p >= 0}
        assert {k for k, s in enumerate(step["state"]) if s in (0, "kept")} == kept, (policy, want, step["state"])
P
run 0 viz a.ppm -o kept.png -o kept.svg -o kept.html --prune 'vispruner tokens=7' --prune 'pool tokens=4' --prune 'downsample tokens=4'
head -c 4 kept.png | grep -q PNG && grep -q '<svg' kept.svg && grep -q '</html>' kept.html || fail "files"
out_has "vispruner tokens=7"
# --- inside the language model: what renyi ask keeps for the same question ---
run 2 viz a.ppm --prune 'fastv layer=1 tokens=5'
err_has "viz --question"
for policy in 'fastv layer=1 tokens=5' 'dart layer=1 tokens=8 pivots=1 text_pivots=1' 'sparsevlm layers=1 tokens=4 recycle=1 members=4'; do
  run 0 viz a.ppm b.ppm --question 'what is this' --json --prune "$policy" --prune 'vispruner tokens=7'
  cp out inside.json
  run 0 "$RENYI" ask -q -t 1 -m llava a.ppm b.ppm 'what is this' --json --max-new-tokens 1 --prune "$policy"
  python3 - "$policy" <<'P' || fail "$policy"
import json, sys
asked = [json.loads(line) for line in open("out")]
photos = json.load(open("inside.json"))["photos"]
tower = json.load(open("viz.json"))["photos"]
for a, p, t in zip(asked, photos, tower, strict=True):
    cut, step = a["cuts"][0], p["rows"][0]["steps"][0]
    assert {k for k, s in enumerate(step["state"]) if s == "kept"} == {k for k in cut["kept"] if k is not None}
    assert step["tokens"] == sum(k is not None for k in cut["kept"]) and step["fused"] == 0
    assert p["rows"][0]["policy"] == a["policy"]
    if cut["scores"]:
        assert p["metrics"][0]["maps"][0]["score"] == cut["scores"]
    assert p["rows"][1]["steps"] == t["rows"][1]["steps"]
P
done
run 0 viz a.ppm --question 'what is this' -o inside.png --prune 'fastv layer=1 tokens=5 metric=col'
head -c 4 inside.png | grep -q PNG || fail "figure"
run 2 viz a.ppm --prune 'cdpruner tokens=4' --text-tower llava
err_has "--text-tower needs --question"
run 2 "$RENYI" viz a.ppm --question 'what is this' -m builtin
err_has "--question is for a LLaVA"
run 3 viz a.ppm bad.ppm --prune 'vispruner tokens=7'
err_has "bad.ppm"
run 2 viz a.ppm
err_has "--prune POLICY is needed"
run 2 viz a.ppm --prune 'vispruner tokens=7' --metrics cls
err_has "--metrics is for vision models"
run 2 viz a.ppm --prune 'vispruner tokens=17'
echo "viz of a LLaVA: ok"
