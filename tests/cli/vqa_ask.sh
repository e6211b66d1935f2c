#!/usr/bin/env bash
# renyi vqa with a model: the answers of renyi ask, resumed, in parts and shared by ranks; missing and corrupt images.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }

python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
mkdir photos
make_ppm photos/a.ppm 200 30 90
make_ppm photos/b.ppm 20 130 190
echo "no image" >photos/bad.ppm
for i in 1 2 3 4 5; do
  photo=a.ppm; [ $i -lt 3 ] || photo=b.ppm
  printf '{"question_id": %d, "image": "%s", "text": "what is %d", "answer": "x"}\n' $i $photo $i
done >q.jsonl
vqa() { "$RENYI" vqa --task gqa --questions "$@"; }
here=(-m llava --images photos -t 1 --max-new-tokens 4)

# --- the same prompt and answer as renyi ask ---
run 0 vqa q.jsonl "${here[@]}" --answers all.jsonl --json
json 'd["results"][0]["answered"] == 5 and d["results"][0]["visual_tokens"] == 16 and d["results"][0]["model"] == "llava" and d["results"][0]["policy"] == "none"'
"$RENYI" ask -q -m llava -t 1 --max-new-tokens 4 photos/b.ppm $'what is 4\nAnswer the question using a single word or phrase.' --json >asked.json
python3 - <<'P' || fail "another answer than that of renyi ask"
import json
lines = [json.loads(l) for l in open("all.jsonl")]
assert [l["question_id"] for l in lines] == [1, 2, 3, 4, 5]
assert set(lines[0]) == {"question_id", "prompt", "text", "answer_id", "model_id", "metadata"}
assert lines[3]["text"] == json.load(open("asked.json"))["text"].strip(), lines[3]
P
run 2 vqa q.jsonl "${here[@]}" --answers all.jsonl
err_has "resume to continue them"

# --- resumed after a cut line, in parts, with a policy ---
strip() { sed -E 's/,"(ms|first_token_ms|choice_ms)":[0-9.e-]*//g' "$1"; }
{ head -2 all.jsonl; printf '{"question_id": 3, "pro'; } >torn.jsonl
run 0 vqa q.jsonl "${here[@]}" --answers torn.jsonl --resume
cmp -s <(strip torn.jsonl) <(strip all.jsonl) || fail "resumed answers"
mkdir parts
for i in 0 1; do run 0 vqa q.jsonl "${here[@]}" --num-chunks 2 --chunk-idx $i --answers parts/2_$i.jsonl; done
cmp -s <(strip <(cat parts/*.jsonl)) <(strip all.jsonl) || fail "answers in parts"
run 2 vqa q.jsonl "${here[@]}" --answers torn.jsonl --resume --prune 'prumerge tokens=5'
err_has "not of this run"
run 2 vqa q.jsonl "${here[@]}" --answers torn.jsonl --resume --max-new-tokens 5
run 0 vqa q.jsonl "${here[@]}" --answers made/both --prune none --prune 'prumerge tokens=5 metric=col' --json
json '[r["visual_tokens"] for r in d["results"]] == [16, 6] and len(d["pairs"]) == 1'
cmp -s <(strip made/both/none.jsonl) <(strip all.jsonl) || fail "answers of the first of two policies"
[ -s made/both/prumerge_tokens=5_metric=col.jsonl ] || fail "a file for each policy"
run 0 vqa q.jsonl "${here[@]}" --answers made/plain --prune 'random tokens=5 seed=2' --prune 'pool tokens=5' \
  --prune 'downsample tokens=5' --prune 'visionzip tokens=5' --prune 'divprune tokens=5' --json
json '[r["visual_tokens"] for r in d["results"]] == [5, 5, 4, 5, 5] and len(d["pairs"]) == 10'
run 0 vqa q.jsonl --score made/both --json
json '[r["policy"].split()[0] for r in d["results"]] == ["none", "prumerge"] and [r["visual_tokens"] for r in d["results"]] == [16, 6]'
echo >taken
run 1 vqa q.jsonl "${here[@]}" --answers taken/both --prune none --prune 'prumerge tokens=5'
err_has "taken/both: cannot make this folder: Not a directory"

# --- costs: counted by hand for this model (2 layers of width 16; a tower of 2 blocks of width 16, 16 patches) ---
"$RENYI" ask -q -m llava -t 1 --max-new-tokens 1 photos/a.ppm $'what is 1\nAnswer the question using a single word or phrase.' --json >asked.json
run 0 vqa q.jsonl "${here[@]}" --limit 1 --prune none --prune 'prumerge tokens=5' --json
python3 - <<'P' || fail "costs"
import json
d = json.load(open("out"))
n = json.load(open("asked.json"))["prompt_tokens"]
def lm(n): return 2 * (n * (4 * 16 * 16 + 3 * 16 * 24) + n * (n + 1) * 16) + 16 * 320
tower = 16 * 3 * 14 * 14 * 16 + 2 * (17 * (4 * 16 * 16 + 2 * 16 * 32) + 2 * 17 * 17 * 16)
for r, visual, rows, look in (d["results"][0], 16, n, 0), (d["results"][1], 6, n - 10, 1):
    c = r["cost"]
    assert r["visual_tokens"] == c["layer_tokens"] == visual, c
    assert abs(c["lm_tflops"] - 2e-12 * lm(rows)) < 1e-18, (c, lm(rows))
    # prumerge reads the keys of another block, and compares the keys of all pairs of patches
    assert abs(c["tower_tflops"] - 2e-12 * (tower + look * (17 * 16 * 32 + 17 * 16 + 16 * 16 * 16 / 2))) < 1e-18, (c, tower)
    assert abs(c["projector_tflops"] - 2e-12 * visual * (16 * 16 + 16 * 16)) < 1e-18, c
    assert c["cache_bytes"] == 2 * 2 * rows * 16 * 4, c
    assert c["first_token_ms"] > c["choice_ms"] >= 0, c
P

# --- a policy inside the language model: other questions about the image do not change an answer ---
run 0 vqa q.jsonl "${here[@]}" --answers cut.jsonl --prune 'fastv layer=1 tokens=4' --json
"$RENYI" ask -q -m llava -t 1 --max-new-tokens 4 photos/b.ppm $'what is 4\nAnswer the question using a single word or phrase.' \
  --prune 'fastv layer=1 tokens=4' --json >asked.json
python3 - <<'P' || fail "a policy inside the language model"
import json
c, ask = json.load(open("out"))["results"][0]["cost"], json.load(open("asked.json"))
assert [json.loads(l) for l in open("cut.jsonl")][3]["text"] == ask["text"].strip()
n = ask["prompt_tokens"]
def layer(n): return n * (4 * 16 * 16 + 3 * 16 * 24) + n * (n + 1) * 16
want = layer(n) + layer(n - 12) + 16 * 320 + 16 * n # and the last row looks at the others
assert abs(ask["cost"]["lm_tflops"] - 2e-12 * want) < 1e-18 and abs(c["lm_tflops"] - 2e-12 * want) < 1e-18, (c, want)
assert c["layer_tokens"] == 10 and c["cache_bytes"] == 2 * (2 * n - 12) * 16 * 4, c
P

# --- missing and corrupt images are reported; a later run asks them again ---
{ cat q.jsonl; printf '{"question_id": 6, "image": "bad.ppm", "text": "x"}\n{"question_id": 7, "image": "none.ppm", "text": "x"}\n'; } >seven.jsonl
run 3 vqa seven.jsonl "${here[@]}" --answers seven.out --json
json 'd["results"][0]["answered"] == 5 and len(d["failed"]) == 2 and "bad.ppm" in d["failed"][0] and "none.ppm" in d["failed"][1]'
cmp -s <(strip seven.out) <(strip all.jsonl) || fail "answers beside failures"

# --- a question cannot read files outside --images ---
make_ppm secret.ppm 9 9 9
{ head -1 q.jsonl
  for name in ../secret.ppm "$PWD/secret.ppm" x/../../secret.ppm; do printf '{"question_id": "%s", "image": "%s", "text": "x"}\n' "$name" "$name"; done
} >outside.jsonl
run 3 vqa outside.jsonl "${here[@]}" --json
json 'd["results"][0]["answered"] == 1 and len(d["failed"]) == 3 and all("is outside photos; --allow-outside reads it" in f for f in d["failed"])'
mkdir photos/x
run 0 vqa outside.jsonl "${here[@]}" --allow-outside --json
json 'd["results"][0]["answered"] == 4'
printf '{"question_id": 1, "image": "./x/../a.ppm", "text": "x"}\n' >inside.jsonl
run 0 vqa inside.jsonl "${here[@]}"

tail -2 seven.jsonl >none.jsonl
run 1 vqa none.jsonl "${here[@]}"
err_lines 2
run 1 vqa q.jsonl "${here[@]}" -q --images nowhere
err_lines 1
err_has "nowhere: No such file"

# --- lines that are not questions; a question too long for the context ---
{ printf '{"question_id": 8, "image"\n[]\n{"question_id": 8, "text": "x"}\n{"image": "a.ppm", "text": "x"}\n'
  cat q.jsonl
  printf '{"question_id": 9, "image": "a.ppm", "text": "%s"}\n' "$(printf 'on and on %.0s' {1..99})"; } >broken.jsonl
run 3 vqa broken.jsonl "${here[@]}" --answers broken.out --json
json 'd["results"][0]["answered"] == 5 and len(d["failed"]) == 5 and d["questions"] == 6'
for line in "broken.jsonl:1: " "broken.jsonl:2: not an object" "broken.jsonl:3: no image" "broken.jsonl:4: question_id must be a number or a text" \
  "9: the prompt has" "holds 512"; do
  err_has "$line"
done
cmp -s <(strip broken.out) <(strip all.jsonl) || fail "answers beside broken lines"

# --- questions without an image ---
printf '[{"id": "1", "conversations": [{"value": "Which?"}, {"value": "A"}]}, {"id": "2", "image": "a.ppm", "conversations": [{"value": "<image>Which?"}]}]' >sqa.json
run 0 "$RENYI" vqa --task sqa --questions sqa.json "${here[@]}" --answers sqa.jsonl
grep -q '"visual_tokens":0' sqa.jsonl && grep -q '"visual_tokens":16' sqa.jsonl || fail "with and without an image"

# --- errors ---
run 1 vqa q.jsonl -m absent --images photos
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" sharded shards=2
rm sharded/model-00002-of-00002.safetensors
run 1 vqa q.jsonl -m sharded --images photos
err_has "sharded/model-00002-of-00002.safetensors: No such file"
run 1 vqa q.jsonl "${here[@]}" --tokenizer photos/bad.ppm
err_has "photos/bad.ppm"
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" mute tokenizer=0
run 1 vqa q.jsonl -m mute --images photos
err_has "has no tokenizer.json, tokenizer.model or pieces.json; give --tokenizer PATH"
run 2 vqa q.jsonl "${here[@]}" --prune 'prumerge tokens=17'
run 2 vqa q.jsonl "${here[@]}" --temperature -1
run 2 vqa q.jsonl "${here[@]}" --top-p 0

# --- ranks ---
need_mpi
run 0 ranks 2 "$RENYI" vqa --task gqa --questions q.jsonl "${here[@]}" --answers ranks.jsonl
cmp -s <(strip ranks.jsonl) <(strip all.jsonl) || fail "answers of two ranks"
[ ! -e ranks.jsonl.rank1 ] || fail "a part is left"
echo "vqa with a model: ok"
