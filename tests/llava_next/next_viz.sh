#!/usr/bin/env bash
# renyi viz with a LLaVA-NeXT: states and counts of base and tiles agree with encode-image and ask; figures, a page, refusals.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }

python3 "$RENYI_SRC/tests/fixtures/make_llava.py" next tiles=1 context=1024
python3 - <<'P'
import random
rng = random.Random(5)
for name, w, h in ("wide", 112, 56), ("tall", 30, 90), ("square", 130, 120), ("tiny", 9, 9), ("long", 300, 30), ("small", 40, 40):
    with open(name + ".ppm", "wb") as f:
        f.write(b"P6 %d %d 255\n" % (w, h) + bytes(rng.randrange(256) for _ in range(3 * w * h)))
P
photos="wide.ppm tall.ppm square.ppm tiny.ppm long.ppm"
viz() { "$RENYI" viz -m next -t 1 "$@"; }

# --- every policy and shape: the same patches as encode-image, the same numbers as ask ---
policies=('visionzip tokens=20 budget=image' 'vispruner tokens=6' 'prumerge tokens=9 budget=image newlines=no' 'prumerge tokens=5'
  'evit keep=0.5 layers=0' 'pool tokens=4' 'random tokens=3 budget=image' none)
options=()
for i in "${!policies[@]}"; do
  options+=(--prune "${policies[$i]}")
  run 0 "$RENYI" encode-image -q -t 1 -m next $photos --prune "${policies[$i]}" -o rows.safetensors --json
  cp out "kept$i.json"
done
run 0 "$RENYI" ask -m next -t 1 --max-new-tokens 1 wide.ppm 'what' --json --prune "${policies[0]}"
cp out ask.json
run 0 viz $photos --json "${options[@]}"
cp out viz.json
python3 - "${#policies[@]}" <<'P' || fail "states and counts"
import json, sys
P, G = 16, 4
photos = json.load(open("viz.json"))["photos"]
ask = json.load(open("ask.json"))
assert photos[0]["rows"][0]["visual_tokens"] == ask["visual_tokens"]
shapes = set()
for i, photo in enumerate(photos):
    t = photo["tiles"]
    squares = [photo] + t["squares"]
    shapes.add((t["across"], t["down"]))
    assert len(squares) == 1 + t["across"] * t["down"] and all(s["grid"] == G and s["size"] == 56 for s in squares)

    def is_border(k, p):
        if not k:
            return False
        x, y = (k - 1) % t["across"] * G + p % G, (k - 1) // t["across"] * G + p // G
        return not (0 <= x - t["first_column"] < t["columns"] and 0 <= y - t["first_line"] < t["lines"])

    for r in range(int(sys.argv[1])):
        kept = json.load(open(f"kept{r}.json"))["images"][i]["kept"]
        steps = [s["rows"][r]["steps"][0] for s in squares]
        newlines, merged = kept.count("newline"), kept.count(None)
        row = photo["rows"][r]
        assert (row["visual_tokens"], row["newlines"]) == (len(kept), newlines), (row["policy"], len(kept))
        assert sum(s["tokens"] for s in steps) + newlines == len(kept), row["policy"]
        assert sum(s["tokens"] - s["kept"] for s in steps) == merged
        for k, step in enumerate(steps):
            mine = {n - k * P for n in kept if isinstance(n, int) and n // P == k}
            assert {p for p, s in enumerate(step["state"]) if s == "kept"} == mine, (row["policy"], k)
            assert all(step["state"][p] == "dropped" for p in range(P) if is_border(k, p))
            fused = step["state"].count("fused")
            assert (fused > 0) == (step["tokens"] > step["kept"] and any(s != "kept" and not is_border(k, p) for p, s in enumerate(step["state"])))
    dense = photo["rows"][-1]
    assert (dense["visual_tokens"], dense["newlines"]) == (photo["dense"]["visual_tokens"], photo["dense"]["newlines"])
    for k, s in enumerate(squares):
        inside = [p for p in range(P) if not is_border(k, p)]
        assert s["rows"][-1]["steps"][0]["tokens"] == len(inside)
        assert [m["name"].split()[0] for m in s["metrics"]] == ["visionzip", "vispruner", "prumerge", "prumerge", "random"]
        for r, m in zip((0, 1, 2, 3, 6), s["metrics"]):
            score = m["maps"][0]["score"]
            ran = s["rows"][r]["steps"][0]["tokens"] > 0
            assert all(score[p] is None for p in range(P) if is_border(k, p))
            assert not ran or all(score[p] is not None for p in inside)
assert len(shapes) >= 4, shapes
P
run 0 viz wide.ppm --json --prune 'prumerge tokens=1 budget=image'
json '[s["rows"][0]["steps"][0]["tokens"] for s in [d["photos"][0]] + d["photos"][0]["tiles"]["squares"]] == [2, 0, 0]'
json 'all(v is None for v in d["photos"][0]["tiles"]["squares"][1]["metrics"][0]["maps"][0]["score"])'

# --- the table ---
run 0 viz wide.ppm --prune 'uniform tokens=9 budget=image'
out_has "4 x 4 patches in base and 2 x 1 tiles; tiles without border: 8 x 4"
out_has "uniform tokens=9 budget=image"

# --- figures: both kinds, several images, a terminal; a page shows every square ---
for figure in all overlay heat; do
  run 0 viz $photos -o a.png -o a.svg --figure $figure --scale 1 --prune 'visionzip tokens=20 budget=image' --prune 'prumerge tokens=5'
  head -c 4 a.png | grep -q PNG || fail "png of $figure"
done
run 0 viz wide.ppm -o a.svg -o b.svg --dark --prune 'vispruner tokens=6'
cmp a.svg b.svg
for text in '2 × 1 tiles' 'base' '6 of 16' '12 of 32 in all tiles' '4 newlines' 'border, no tokens'; do
  grep -q "$text" a.svg || fail "no '$text' in the figure"
done
run 0 viz wide.ppm tiny.ppm -o a.html --prune 'vispruner tokens=6'
for text in 'base of wide.ppm' 'tile 2 of wide.ppm' 'tile 1 of tiny.ppm'; do
  grep -q "$text" a.html || fail "no '$text' in the page"
done
COLUMNS=60 run 0 viz square.ppm --term --graphics blocks --prune 'vispruner tokens=6'
out_has "tile 4"
out_has "tokens ("
run 0 viz wide.ppm tiny.ppm --term --graphics kitty --prune 'vispruner tokens=6'

# --- refusals are those of LLaVA-1.5 ---
run 2 viz wide.ppm
err_has "--prune POLICY is needed"
run 2 viz wide.ppm --prune 'vispruner tokens=6' --rule naive
err_has "--rule is for vision models"
run 2 viz wide.ppm --prune 'vispruner tokens=17'
err_has "a tile has 16 patches"
run 2 viz wide.ppm --prune 'fastv layer=1 keep=0.5'
err_has "language model"
run 2 viz wide.ppm --prune 'prumerge adaptive budget=image'
# downsample: its smaller squares of a small image are another grid
run 3 viz wide.ppm small.ppm --json --prune 'vispruner tokens=6' --prune 'downsample tokens=4'
err_has "small.ppm: 'downsample tokens=4' reads this image in 2 x 2 tiles, without pruning it is 2 x 1"
json 'len(d["photos"]) == 1 and set(d["photos"][0]["rows"][1]["steps"][0]["state"]) == {"fused"}'
echo "viz of a LLaVA-NeXT: ok"
