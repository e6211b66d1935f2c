#!/usr/bin/env bash
# renyi vqa: scores and compares answer files, writes submissions, fills the paper's tables; wrong usage.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
vqa() { "$RENYI" vqa "$@"; }
tail='\nAnswer the question using a single word or phrase.'

# --- POPE: two categories, F1 50 and 100 ---
mkdir coco
for i in 1 2 3 4; do
  label=yes; [ $((i % 2)) = 1 ] || label=no
  printf '{"question_id": %d, "image": "a.jpg", "text": "Is it %d?", "label": "%s"}\n' $i $i $label
done >coco/coco_pope_random.json
head -2 coco/coco_pope_random.json >coco/coco_pope_adversarial.json
answer() { printf '{"question_id": "%s", "prompt": "%s'"${tail//\\/\\\\}"'", "text": "%s", "answer_id": "x", "model_id": "llava-v1.5-7b", "metadata": {"policy": "%s"}}\n' "$@"; }
{ answer adversarial/1 "Is it 1?" Yes none
  answer adversarial/2 "Is it 2?" No none
  answer random/1 "Is it 1?" Yes none
  answer random/2 "Is it 2?" "No, not." none
  answer random/3 "Is it 3?" No none
  answer random/4 "Is it 4?" Yes none; } >dense.jsonl
sed 's/"policy": "none"/"policy": "evit keep=0.5 layers=3"/; s/"text": "No"/"text": "Yes"/' dense.jsonl | head -5 >pruned.jsonl
run 0 vqa --task pope --questions coco --score dense.jsonl --score pruned.jsonl
out_has "75.00"
out_has "question by question"
out_has "noise"
err_has "6 questions of POPE; 6 have known answers"
run 0 vqa --task pope --questions coco --score dense.jsonl --score pruned.jsonl --json
json 'd["results"][0]["score"] == 75 and d["results"][0]["score_from"] == "here" and d["results"][0]["scored"] == 6'
json 'd["results"][1]["unanswered"] == 1 and d["results"][1]["policy"] == "evit keep=0.5 layers=3"'
json 'd["pairs"][0]["questions"] == 5 and d["pairs"][0]["noise"]'
json '[p["category"] for p in d["results"][0]["parts"]] == ["adversarial", "random"]'
run 0 vqa -q --task pope --questions coco --score dense.jsonl --json
cp out pope.json
run 0 vqa --task pope --questions coco --limit 1 --score dense.jsonl
err_has "5 answers are to other questions"

# --- into the paper's table ---
run 0 "$RENYI" paper --table 6 --results pope.json
out_has "llava-v1.5-7b as the paper's LLaVA-1.5-7B"
out_has "75.0 ±"
out_has "± is half of its 95 % interval, as 'renyi vqa' found it"
! grep -q 'GFLOPs\|top-1\|McNemar' out || fail "a legend of classifiers below LLaVA's table"
run 0 "$RENYI" paper --table 6,12 --results pope.json --json --csv cells.csv
json '[t["table"] for t in d["panels"]] == [6, 12] and d["tables"] == [] and d["surveys"] == []'
json 'd["panels"][0]["rows"][5]["cells"][0]["state"] == "measured" and d["panels"][0]["rows"][5]["cells"][0]["score"] == 75'
grep -q '^6,LLaVA-1.5-7B,LLaVA-1.5,none,,85.9,llava-v1.5-7b,,measured,,,6,75.000,' cells.csv || fail "a cell in the CSV"
run 1 "$RENYI" paper --table 6 --results pope.json --results pope.json
err_has "a second result"

# --- separate annotations, parts in a folder, a broken line ---
printf '{"question_id": "1", "image": "a.jpg", "text": "One?"}\nbroken\n{"question_id": "2", "image": "a.jpg", "text": "Two?"}\n' >gqa.jsonl
printf '{"1": {"answer": "yes"}, "2": {"answer": "left"}}' >truth.json
mkdir parts
printf '{"question_id": "1", "text": "Yes."}\n' >parts/2_0.jsonl
printf '{"question_id": "2", "text": "right"}\n' >parts/2_1.jsonl
run 3 vqa --task gqa --questions gqa.jsonl --annotations truth.json --score parts --submission gqa.json --json
json 'd["results"][0]["score"] == 50 and "gqa.jsonl:2" in d["failed"][0]'
err_has "gqa.jsonl:2"
[ "$(cat gqa.json)" = '[{"questionId":"1","prediction":"yes"},{"questionId":"2","prediction":"right"}]' ] || fail "submission"
run 3 vqa --task gqa --questions gqa.jsonl --score parts
err_has "scores need --annotations: testdev_balanced_questions.json"

# --- scores of a server, for the paper's table ---
printf '{"question_id": 0, "image": "v1_0.png", "text": "What?"}\n' >mmvet.jsonl
printf '{"question_id": 0, "text": "A plate.", "model_id": "llava-v1.5-7b", "metadata": {"policy": "none"}}\n' >said.jsonl
run 0 vqa --task mmvet --questions mmvet.jsonl --score said.jsonl --submission mmvet.json --reported 31.1 --json
json 'd["results"][0]["score"] == 31.1 and d["results"][0]["score_from"] == "reported"'
[ "$(cat mmvet.json)" = '{"v1_0":"A plate."}' ] || fail "MM-Vet's file"

# --- MMBench's table becomes a spreadsheet ---
printf 'index\tquestion\tA\tB\tanswer\timage\n7\tWhich?\tdog\tcat\tB\tAAAA\n' >mmb.tsv
printf '{"question_id": 7, "text": "B"}\n' >mmb.jsonl
run 0 vqa --task mmbench --questions mmb.tsv --score mmb.jsonl --submission mmb.xlsx
out_has "100.00"
if command -v python3 >/dev/null; then
  python3 - <<'PY' || fail "the spreadsheet"
import sys, zipfile, xml.dom.minidom
z = zipfile.ZipFile("mmb.xlsx")
assert z.testzip() is None
sheet = [xml.dom.minidom.parseString(z.read(n)) for n in z.namelist()][-1]
rows = [[c.firstChild.firstChild.data if c.getAttribute("t") == "" else c.getElementsByTagName("t")[0].firstChild.data
         for c in r.getElementsByTagName("c")] for r in sheet.getElementsByTagName("row")]
assert rows == [["index", "question", "A", "B", "answer", "prediction"], ["7", "Which?", "dog", "cat", "B", "B"]], rows
PY
fi

# --- wrong usage and wrong files ---
usage() { local message=$1; shift; run 2 vqa "$@"; err_has "$message"; out_empty; }
usage "--task NAME is missing" --questions gqa.jsonl
usage "unknown benchmark 'nope'" --task nope --questions gqa.jsonl
usage "llava_mme.jsonl" --task mme --score said.jsonl
usage "-m LLAVA is missing" --task gqa --questions gqa.jsonl
usage "--images DIR is missing" --task gqa --questions gqa.jsonl -m model
usage "--resume needs --answers" --task gqa --questions gqa.jsonl -m model --images . --resume
usage "takes no model" --task gqa --questions gqa.jsonl -m model --score parts
usage "of one run" --task gqa --questions gqa.jsonl --score parts --score parts --submission x
usage "exclude each other" --task gqa --questions gqa.jsonl --score parts --shard 1/2 --num-chunks 2
usage "go together" --task gqa --questions gqa.jsonl --score parts --num-chunks 2
usage "counts from 0 to 1" --task gqa --questions gqa.jsonl --score parts --num-chunks 2 --chunk-idx 2
usage "is not I/N" --task gqa --questions gqa.jsonl --score parts --shard 3/2
usage "unexpected" --task gqa --questions gqa.jsonl extra
usage "takes no submission" --task pope --questions coco --score dense.jsonl --submission x.json
run 1 vqa --task gqa --questions absent.jsonl --score parts
echo broken >broken.jsonl
run 1 vqa --task gqa --questions broken.jsonl --score parts
err_has "no question could be read: broken.jsonl:1"
: >empty.jsonl
run 1 vqa --task gqa --questions empty.jsonl --score parts
err_has "empty.jsonl: the file has no questions"
run 1 vqa --task gqa --questions gqa.jsonl --score absent.jsonl
run 1 vqa --task gqa --questions gqa.jsonl --score said.jsonl
err_has "no answer to any of these questions"
run 0 vqa -q --task pope --questions coco --num-chunks 2 --chunk-idx 0 --score dense.jsonl --json
json 'd["questions"] == 3 and d["found"] == 6'
echo "vqa: ok"
