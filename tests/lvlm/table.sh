#!/usr/bin/env bash
# renyi table: methods x budgets on two benchmarks: the answers of renyi vqa, percents, pairs, costs; resumed; spec file; wrong usage.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }

python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
mkdir photos coco
make_ppm photos/a.ppm 200 30 90
make_ppm photos/b.ppm 20 130 190
for i in 1 2 3 4 5 6; do
  photo=a.ppm label=yes; [ $((i % 2)) = 1 ] || { photo=b.ppm; label=no; }
  printf '{"question_id": %d, "image": "%s", "text": "Is it %d?", "label": "%s"}\n' $i $photo $i $label
done >coco/coco_pope_random.json
# "Yes" is never said by a random model, so the other benchmark's right answer is what the full model says.
printf '{"question_id": 1, "image": "a.ppm", "text": "what is 1", "answer": "x"}\n{"question_id": 2, "image": "b.ppm", "text": "what is 2", "answer": "x"}\n' >plain.jsonl
run 0 "$RENYI" vqa -q --task gqa --questions plain.jsonl -m llava --images photos -t 1 --max-new-tokens 4 --answers plain.out
python3 - <<'P'
import json
with open("gqa.jsonl", "w") as f:
    for q, a in zip(open("plain.jsonl"), open("plain.out")):
        f.write(json.dumps(dict(json.loads(q), answer=json.loads(a)["text"].lower().rstrip("."))) + "\n")
P
pope='pope questions=coco images=photos' gqa="gqa questions=gqa.jsonl images='photos'"
table() { "$RENYI" table -m llava -t 1 --max-new-tokens 4 "$@"; }

# --- the whole table; each row has the answers of renyi vqa ---
run 0 table --task "$pope" --task "$gqa" --prune prumerge --prune 'vispruner important=0.25' --tokens 5,2 --against prumerge -o kept --json
cp out whole.json
run 0 "$RENYI" vqa -q --task pope --questions coco -m llava --images photos -t 1 --max-new-tokens 4 --prune none --prune 'vispruner important=0.25 tokens=2' --answers alone --json
python3 - <<'P' || fail "the table"
import glob, json
from math import isclose
d, alone = json.load(open("whole.json")), json.load(open("out"))
assert [(r["method"], r["tokens"]) for r in d["rows"]] == [("all tokens", None), ("prumerge", 5), ("vispruner important=0.25", 5), ("prumerge", 2), ("vispruner important=0.25", 2)]
assert [t["task"] for t in d["tasks"]] == ["pope", "gqa"] and d["model"] == "llava" and not d["failed"]
assert d["rows"][0]["scores"][1]["score"] == 100
full = [s["score"] for s in d["rows"][0]["scores"]]
for r in d["rows"]:
    percents = [100 * s["score"] / f for s, f in zip(r["scores"], full) if f]
    assert isclose(r["mean_percent_of_full"], sum(percents) / len(percents)), r
    assert all(s["answered"] == n for s, n in zip(r["scores"], (6, 2)))
    assert r["cost"]["lm_tflops"] > 0 and r["cost"]["cache_bytes"] > 0
assert [r["visual_tokens"] for r in d["rows"]] == [16, 6, 5, 3, 2]
assert alone["results"][1]["score"] == d["rows"][4]["scores"][0]["score"] and alone["results"][1]["policy"] == d["rows"][4]["policy"]
# The pair adds up the benchmarks, question by question.
pair = d["rows"][4]["against"]
assert [p["method"] for p in pair] == ["prumerge"] and pair[0]["questions"] == 8
assert pair[0]["better"] + pair[0]["worse"] <= 8 and 0 <= pair[0]["p_value"] <= 1 and not d["rows"][3]["against"]
P

[ "$(ls kept/pope kept/gqa | grep -c "jsonl$")" = 10 ] && [ "$(ls kept/pope kept/gqa | grep -c "json$")" = 10 ] || fail "a file for each policy and benchmark"
strip() { sed -E 's/,"(ms|first_token_ms|choice_ms)":[0-9.e-]*//g' "$1"; }
cmp -s <(strip kept/pope/vispruner_tokens=2*.jsonl) <(strip alone/vispruner*) || fail "other answers than renyi vqa"

# --- resumed: nothing is asked again, the same table ---
run 2 table --task "$pope" --prune prumerge --tokens 5 -o kept
err_has "resume to continue them"
run 0 table --task "$pope" --task "$gqa" --prune prumerge --prune 'vispruner important=0.25' --tokens 5,2 --against prumerge -o kept --resume --json
cmp -s out whole.json || fail "the table of a resumed run"

# --- each cell has a manifest that reproduces ---
run 0 "$RENYI" verify kept/gqa/none.json --share 1
out_has "2 of 2"

# --- text, Markdown, a spec file; an option replaces its lines ---
printf '# two lines\ntask %s\n\nprune prumerge\nprune prumerge metric=col\ntokens 5 2\nagainst prumerge\n' "$pope" >spec.txt
run 0 table spec.txt
out_has "prumerge metric=col 2"
out_has "against prumerge"
out_has "mean % of full"
out_has "language model"
run 0 table spec.txt --tokens 3 --prune vispruner --prune prumerge --markdown
out_has "| vispruner 3"
! grep -q 'metric=col\| 5 ' out || fail "lines of the spec that options replace"
run 0 "$RENYI" table spec.txt --dry-run
out_has "prumerge tokens=2 plus=no metric=col"
run 0 "$RENYI" table --task "$pope" --dry-run
out_has "prumerge 192"
! grep -q cdpruner out || fail "cdpruner without a text tower"
run 0 "$RENYI" table --task "$pope" --dry-run --text-tower clip
out_has "cdpruner tokens=64"
run 0 "$RENYI" table spec.txt --dry-run --json
json '[r["tokens"] for r in d["rows"]] == [None, 5, 5, 2, 2] and d["tasks"][0]["task"] == "pope" and not d["failed"]'

# --- a question that cannot be read is reported ---
{ cat gqa.jsonl; echo '{"question_id": 3}'; } >bad.jsonl
run 3 "$RENYI" table --task "gqa questions=bad.jsonl images=photos" --dry-run
err_has "bad.jsonl:3"
printf 'tokens 5 x\n' >bad.txt
run 2 "$RENYI" table bad.txt --task "$pope" --dry-run
err_has "bad.txt:1: '5 x': tokens are"

# --- LLaVA-NeXT: budgets of base and tiles together ---
run 0 "$RENYI" init -q --arch llava-1.6-7b --dim 64 --heads 2 --blocks 2 next
run 0 "$RENYI" table -m next -t 1 --task "$pope" --prune pool --prune downsample --prune 'random budget=tile' --dry-run
out_has "pool tokens=640 budget=image"
out_has "random tokens=160 seed=0"
err_has "left out: 'downsample tokens=320 budget=image'"

# --- a missing image is reported ---
head -1 coco/coco_pope_random.json | sed 's/a.ppm/none.ppm/; s/: 1,/: 9,/' >>coco/coco_pope_random.json
run 3 table --task "$pope" --prune prumerge --tokens 5 --json
json 'd["failed"] and "none.ppm" in d["failed"][0] and d["rows"][1]["scores"][0]["answered"] == 6'

# --- wrong usage ---
run 2 table --prune prumerge
err_has "--task"
run 2 table --task 'nothing questions=coco'
err_has "unknown benchmark 'nothing'"
run 2 table --task 'pope questions=coco image=photos'
err_has "'image=photos' is none of questions=PATH, images=DIR"
run 2 table --task 'pope questions=coco'
err_has "needs images=DIR"
run 2 table --task "$pope" --task "$pope"
err_has "pope is given twice"
run 2 table --task "$pope" --prune prumerge --tokens 17
err_has "17"
run 2 table --task "$pope" --prune prumerge --prune 'prumerge metric=cls' --tokens 5
err_has "is given twice"
run 2 table --task "$pope" --prune prumerge --against random
err_has "'random' is none of the methods"
run 2 table --task "$pope" --prune nonsense
run 2 table --task "$pope" --resume
printf 'tokens many\n' >bad.txt
run 2 table bad.txt
err_has "bad.txt:1: 'many'"
printf '\nbudget 3\n' >bad.txt
run 2 table bad.txt
err_has "bad.txt:2: 'budget' is none of"
run 1 table --task 'pope questions=coco images=nowhere'
err_has "nowhere: No such file"
echo "table: ok"
