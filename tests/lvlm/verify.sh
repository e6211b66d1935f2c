#!/usr/bin/env bash
# renyi vqa --manifest and renyi verify: a result reproduces; a changed answer, score, image, question or model is found; bad manifests.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }

python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
mkdir photos
make_ppm photos/a.ppm 200 30 90
make_ppm photos/b.ppm 20 130 190
for i in {1..12}; do
  photo=a.ppm; [ $((i % 2)) = 1 ] || photo=b.ppm
  printf '{"question_id": %d, "image": "%s", "text": "what is %d", "answer": "x"}\n' $i $photo $i
done >q.jsonl
here=(-m llava --images photos -t 1 --max-new-tokens 4)
run 0 "$RENYI" vqa -q --task gqa --questions q.jsonl "${here[@]}" --prune 'prumerge tokens=5' --answers a.jsonl --manifest m.json --json
cp out vqa.json
python3 - <<'P' || fail "the manifest"
import hashlib, json, os
m, d = json.load(open("m.json")), json.load(open("vqa.json"))["results"][0]
assert m["format"] == "renyi.result" and m["policy"]["full"] == d["policy"] and m["data"]["task"] == "gqa"
assert m["result"]["score"] == d["score"] and m["cost"]["lm_tflops"] == d["cost"]["lm_tflops"]
files = {f["name"]: f for f in m["files"]}
for name in os.listdir("llava"):
    b = open("llava/" + name, "rb").read()
    assert files[name]["sha256"] == hashlib.sha256(b).hexdigest() and files[name]["size"] == len(b), name
assert [s[0] for s in m["answers"]["samples"]] == [str(i) for i in range(1, 13)]
P

# --- it reproduces, whatever part is drawn, also with another number of threads ---
run 0 "$RENYI" verify m.json
out_has "reproduces: 1 of 1 answers are the same (of 12; --seed "
run 2 "$RENYI" verify m.json --seed 99999999999999999999
err_has "'99999999999999999999' is not a whole number of at most 64 bits"
run 0 "$RENYI" verify m.json --share 0.5 --seed 7 -t 2 --json
json 'd["reproduces"] and d["checked"] == d["same"] == 6 and d["samples"] == 12 and d["seed"] == "7" and d["same_model"]'
mkdir moved && cp -r llava photos q.jsonl moved
mv photos elsewhere
run 1 "$RENYI" verify m.json
err_has "photos: No such file"
run 0 "$RENYI" verify m.json -m moved/llava --questions moved/q.jsonl --images moved/photos --share 1
out_has "12 of 12"
mv elsewhere photos

# --- a changed answer, with hashes that fit: found by running again, named ---
python3 - <<'P'
import json, struct
m = json.load(open("m.json"))
m["answers"]["samples"][4][2] = "00000000000000aa"
def fnv(h, b):
    for c in b: h = (h ^ c) * 0x100000001b3 & (1 << 64) - 1
    return h
h = 0xcbf29ce484222325
for s in m["answers"]["samples"]: h = fnv(fnv(h, s[0].encode() + b"\0"), struct.pack("<Q", int(s[2], 16)))
m["answers"]["hash"] = f"{h:016x}"
json.dump(m, open("forged.json", "w"))
m["answers"]["hash"] = "0" * 16
json.dump(m, open("cut.json", "w"))
P
run 1 "$RENYI" verify forged.json --share 1 --json
json 'not d["reproduces"] and d["same"] == 11 and d["other_answer"] == 1 and d["differing"] == ["5"]'
run 1 "$RENYI" verify forged.json --share 1
out_has "does not reproduce: 11 of 12"
out_has "question 5"
run 1 "$RENYI" verify cut.json
err_has "cut.json: answers.data_hash and answers.hash do not fit"

# --- a changed score; a changed worth, first alone, then with the figures that follow from it ---
python3 - <<'P'
import json
m = json.load(open("m.json"))
m["result"]["score"] = 99.0
json.dump(m, open("score.json", "w"))
m = json.load(open("m.json"))
m["answers"]["samples"][6][3] = 1
json.dump(m, open("worth.json", "w"))
m["settings"]["seed"] = "x"
json.dump(m, open("seed.json", "w"))
m["settings"]["seed"], m["data"]["scorer"] = "1", "mine"
json.dump(m, open("scorer.json", "w"))
for name, group, value in [("dtype", "model", "f33"), ("tower_dtype", "model", ""), ("temperature", "settings", -1), ("top_p", "settings", 1.5), ("full", "policy", "prumerge tokens=0")]:
    m = json.load(open("m.json"))
    m[group][name] = value
    json.dump(m, open(name + ".json", "w"))
m["settings"]["seed"] = "18446744073709551616"
json.dump(m, open("large_seed.json", "w"))
P
python3 - <<'P'
import json
m = json.load(open("m.json"))
del m["settings"]["seed"]
json.dump(m, open("no_seed.json", "w"))
m["settings"]["temperature"] = 0.7
json.dump(m, open("unseeded.json", "w"))
P
run 0 "$RENYI" verify no_seed.json
run 1 "$RENYI" verify unseeded.json
err_has "unseeded.json: settings.seed is missing, and settings.temperature is 0.7"
run 1 "$RENYI" verify score.json
out_has "does not reproduce: 1 of 1 answers are the same"
out_has "its figures do not follow from its answers: score 99.0000, from the answers 0.0000"
run 1 "$RENYI" verify worth.json --share 1 --json
json 'not d["reproduces"] and d["other_worth"] == 1 and d["same"] == 11 and not d["same_score"] and d["differing"] == ["7"]'
run 1 "$RENYI" verify worth.json --share 1
out_has "1 with another worth of the same answer"
run 1 "$RENYI" verify seed.json
err_has "seed.json: settings.seed is not a whole number"
run 1 "$RENYI" verify scorer.json
err_has "data.scorer 'mine' is not textvqa or official"
run 1 "$RENYI" verify dtype.json
err_has "dtype.json: model.dtype 'f33' is no number format"
run 1 "$RENYI" verify tower_dtype.json
err_has "tower_dtype.json: model.tower_dtype '' is no number format"
run 1 "$RENYI" verify temperature.json
err_has "temperature.json: settings.temperature -1 is not from 0 to 1e6"
run 1 "$RENYI" verify top_p.json
err_has "top_p.json: settings.top_p 1.5 is not from 0 to 1"
run 1 "$RENYI" verify full.json
err_has "full.json: policy.full: tokens=0"
run 1 "$RENYI" verify large_seed.json
err_has "large_seed.json: settings.seed is not a whole number of at most 64 bits"

# --- another image, another question, another model ---
cp photos/a.ppm kept.ppm
make_ppm photos/a.ppm 1 2 3
run 1 "$RENYI" verify m.json --share 1 --json
json 'd["other_input"] == 6 and d["other_answer"] == 0 and d["same"] == 6'
cp kept.ppm photos/a.ppm
sed 's/what is 3"/what was 3"/' q.jsonl >other.jsonl
run 1 "$RENYI" verify m.json --share 1 --questions other.jsonl --json
json 'd["other_input"] == 1 and d["differing"] == ["3"]'
head -5 q.jsonl >short.jsonl
run 1 "$RENYI" verify m.json --questions short.jsonl
err_has "question '6', is not among these questions"
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" other seed=9
run 1 "$RENYI" verify m.json -m other --share 1
err_has "another SHA-256"
out_has "the model has other files"

# --- a text tower is a part of the model: its files are compared, and it may be elsewhere now ---
mkdir clip
"$RENYI" init -q --arch clip_vit_tiny_patch14_56 --dim 16 --heads 2 --blocks 1 clip/model.safetensors
printf '#version: 0.2\nc a\nca t</w>\n' >clip/bpe_simple_vocab_16e6.txt
run 0 "$RENYI" vqa -q --task gqa --questions q.jsonl "${here[@]}" --limit 2 --prune 'cdpruner tokens=5' --text-tower clip --manifest text.json
run 0 "$RENYI" verify text.json --share 1
# by its name in the cache of Hugging Face
hub=$HOME/.cache/huggingface/hub/models--test--words commit=0123456789abcdef0123456789abcdef01234567
mkdir -p "$hub/refs" "$hub/snapshots"
cp -r clip "$hub/snapshots/$commit"
printf %s $commit >"$hub/refs/main"
run 0 "$RENYI" vqa -q --task gqa --questions q.jsonl "${here[@]}" --limit 2 --prune 'cdpruner tokens=5' --text-tower test/words --manifest named.json
run 0 "$RENYI" verify named.json --share 1
mv clip texts
run 1 "$RENYI" verify text.json
err_has "clip: No such file"
run 0 "$RENYI" verify text.json --share 1 --text-tower texts
printf '#version: 0.2\na t\nc at</w>\n' >texts/bpe_simple_vocab_16e6.txt
run 1 "$RENYI" verify text.json --share 1 --text-tower texts
err_has "bpe_simple_vocab_16e6.txt: another SHA-256"
"$RENYI" init -q --force --seed 7 --arch clip_vit_tiny_patch14_56 --dim 16 --heads 2 --blocks 1 texts/model.safetensors
run 1 "$RENYI" verify text.json --share 1 --text-tower texts
err_has "model.safetensors: another SHA-256"

# --- several policies; wrong usage; not a manifest ---
run 0 "$RENYI" vqa -q --task gqa --questions q.jsonl "${here[@]}" --limit 2 --prune none --prune 'prumerge tokens=5' --manifest both
[ "$(ls both | wc -l)" = 2 ] || fail "a manifest for each policy"
run 0 "$RENYI" verify both/none.json --share 1
out_has "2 of 2"
run 2 "$RENYI" verify
run 2 "$RENYI" verify m.json both/none.json
run 2 "$RENYI" verify m.json --share 0
run 2 "$RENYI" verify m.json --seed x
run 1 "$RENYI" verify absent.json
err_has "absent.json"
run 1 "$RENYI" verify vqa.json
err_has "vqa.json: not a result manifest"
run 2 "$RENYI" vqa --task gqa --questions q.jsonl --score a.jsonl --manifest x.json

# --- two questions of one id, the first without an answer: the sample is that of the second ---
printf '{"question_id": "%s", "image": "%s", "text": "%s", "answer": "x"}\n' i gone.ppm 'what is one' i a.ppm 'what is two' k b.ppm 'what is three' >twice.jsonl
run 3 "$RENYI" vqa -q --task gqa --questions twice.jsonl "${here[@]}" --prune none --manifest twice.json
run 0 "$RENYI" verify twice.json --share 1
out_has "2 of 2"
echo "verify: ok"
