#!/usr/bin/env bash
# LLaVA-NeXT in the program: inspect, init, ask, encode-image, vqa; base, tiles and newlines, budgets, refusals.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }

python3 "$RENYI_SRC/tests/fixtures/make_llava.py" next tiles=1 context=1024
python3 - <<'P'
import random
rng = random.Random(3)
for name, w, h in ("wide", 112, 56), ("tall", 30, 90), ("long", 300, 30):
    with open(name + ".ppm", "wb") as f:
        f.write(b"P6 %d %d 255\n" % (w, h) + bytes(rng.randrange(256) for _ in range(3 * w * h)))
P

# --- what it is ---
run 0 "$RENYI" inspect next
out_has "LLaVA-NeXT"
out_has "2x1, 1x2, 2x2, 1x3, 3x1 (across x down) besides the base; at most 88 visual tokens"
run 0 "$RENYI" inspect next --json
json 'd["architecture"] == "LLaVA-NeXT" and d["image_tower"]["grids"][3] == [1, 3] and d["image_tower"]["most_visual_tokens"] == 88'
cp -r next flat
python3 -c 'import json
c = json.load(open("next/config.json"))
json.dump(c | {"mm_patch_merge_type": "flat"}, open("flat/config.json", "w"))'
run 0 "$RENYI" inspect flat
out_has "image tower     none"
grep -qF "mm_patch_merge_type 'flat'" err || fail "inspect does not say why the image tower cannot be run"
run 0 "$RENYI" init --arch llava-1.6-7b --dim 32 --heads 2 --blocks 2 --mlp-dim 64 made
run 0 "$RENYI" inspect made --json
json 'd["architecture"] == "LLaVA-NeXT" and d["image_tower"]["most_visual_tokens"] == 2928'

# --- answers: 16 patches of the base and of each of two tiles, four lines ---
ask() { "$RENYI" ask -m next -t 1 --max-new-tokens 6 "$@"; }
run 0 ask wide.ppm 'what is this' --json
json 'd["visual_tokens"] == 52 and d["kept"][:16] == list(range(16)) and d["kept"][16:25] == [16, 17, 18, 19, 32, 33, 34, 35, "newline"]'
json 'len(d["tokens"]) == 6 and d["prompt_tokens"] > 52'
run 0 ask wide.ppm 'what is this' --stats --prune 'uniform tokens=9 budget=image'
err_has "of 52 visual tokens kept"
for policy in 'prumerge tokens=4' 'visionzip tokens=20 budget=image' 'evit keep=0.5 layers=0' 'vispruner tokens=6 newlines=no'; do
  for photo in wide tall long; do
    run 0 ask $photo.ppm 'what' --json --prune "$policy"
    json '0 < d["visual_tokens"] < 60 and len(d["kept"]) == d["visual_tokens"]'
  done
done
json '"newline" not in d["kept"]' # the last policy
run 2 ask wide.ppm 'what' --prune 'prumerge tokens=17'
err_has "a tile has 16 patches"
run 0 ask wide.ppm 'what' --prune 'prumerge tokens=17 budget=image'
run 2 ask wide.ppm 'what' --prune 'evit keep=0.5 budget=image'
err_has "evit takes no budget"

# --- the rows for other engines are those that the model reads ---
run 0 "$RENYI" encode-image -m next -t 1 wide.ppm tall.ppm --prune 'uniform tokens=3' -o rows.safetensors --json
json 'd["images"][0]["kept"].count("newline") > 0 and "budget" not in d["policy"]'
python3 - <<'P' || fail "positions in the file"
import json, struct
f = open("rows.safetensors", "rb")
header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
data = f.read()
kept = [i["kept"] for i in json.load(open("out"))["images"]]
for i, want in enumerate(kept):
    t = header[f"positions.{i}"]
    got = struct.unpack(f"<{t['shape'][0]}i", data[slice(*t["data_offsets"])])
    assert list(got) == [-2 if k == "newline" else -1 if k is None else k for k in want], got
    assert header[f"tokens.{i}"]["shape"] == [len(want), 16]
P

# --- benchmarks ---
printf '{"question_id": %d, "image": "%s.ppm", "text": "what", "answer": "x"}\n' 1 wide 2 tall 3 long >q.jsonl
run 0 "$RENYI" vqa --task gqa --questions q.jsonl -m next --images . -t 1 --max-new-tokens 3 --answers both \
  --prune none --prune 'uniform tokens=12 budget=image newlines=no' --json
json '[r["answered"] for r in d["results"]] == [3, 3] and d["results"][0]["visual_tokens"] > 40 and d["results"][1]["visual_tokens"] <= 12'

# --- files that do not fit together ---
damage() { python3 - "$1" <<'P'
import json, sys
c = json.load(open("next/config.json"))
exec(sys.argv[1])
json.dump(c, open("next/config.json", "w"))
P
}
cp next/config.json whole.json
damage 'c["image_grid_pinpoints"] = [[56, 100]]'
run 1 ask wide.ppm 'what'
err_has "image_grid_pinpoints[0] is 100 wide and 56 high"
cp whole.json next/config.json
damage 'c["image_grid_pinpoints"] = [[56, 56 * 17]]'
run 1 ask wide.ppm 'what'
err_has "at most 16 tiles"
cp whole.json next/config.json
damage 'c["model_type"] = "llava"'
run 1 ask wide.ppm 'what'
err_has "so this is a LLaVA-NeXT"
