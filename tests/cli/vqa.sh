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

# --- a folder: each file is a run, but LLaVA's parts N_I.jsonl are one run ---
mkdir runs
cp parts/2_0.jsonl runs/b.jsonl
printf '{"question_id": "1", "text": "no"}\n{"question_id": "2", "text": "left"}\n' >runs/a.jsonl
echo "not read" >runs/notes.txt
run 3 vqa --task gqa --questions gqa.jsonl --annotations truth.json --score runs --score parts --json
json '[r["answers"] for r in d["results"]] == ["runs/a.jsonl", "runs/b.jsonl", "parts"]'
json '[r["score"] for r in d["results"]] == [50, 100, 50] and len(d["pairs"]) == 3'
cp runs/a.jsonl parts/more.jsonl
run 3 vqa --task gqa --questions gqa.jsonl --annotations truth.json --score parts --json
json '[r["answers"] for r in d["results"]] == ["parts/2_0.jsonl", "parts/2_1.jsonl", "parts/more.jsonl"]'
rm parts/more.jsonl
run 2 vqa --task gqa --questions gqa.jsonl --score runs --submission x
err_has "2 are given with --score"
mkdir nothing
run 1 vqa --task gqa --questions gqa.jsonl --score nothing
err_has "nothing: this folder has no .jsonl file"

# --- MME: the subtask from the id, perception, cognition and their sum ---
for id in OCR/1.jpg OCR/2.jpg code_reasoning/3.png; do
  for what in Is Was; do printf '{"question_id": "%s", "image": "x.png", "text": "%s it?", "category": "default", "answer": "yes"}\n' $id $what; done
done >mme.jsonl
sed 's/"text": "\([A-Za-z]*\) it?"/"prompt": "\1 it?\\nAnswer the question using a single word or phrase.", "text": "Yes"/' mme.jsonl | sed '2s/"Yes"/"No"/' >mme_said.jsonl
run 0 vqa --task mme --questions mme.jsonl --score mme_said.jsonl --json
json 'd["results"][0]["score"] == 125 and d["results"][0]["cognition"] == 200 and d["results"][0]["total"] == 325'
run 0 vqa --task mme --questions mme.jsonl --score mme_said.jsonl
out_has "(cognition)"
for word in perception cognition total 125.00 200.00 325.00; do out_has "$word"; done

# --- VQAv2's own scorer against an independent one, question by question ---
if command -v python3 >/dev/null; then
  cat >official.py <<'PY'
import json, random, re, sys
MARKS = ";/[]\"{}()=+\\_-><@`,?!"
NUMBERS = dict(zip("none zero one two three four five six seven eight nine ten".split(), "0 0 1 2 3 4 5 6 7 8 9 10".split()))
APOSTROPHES = {"dont": "don't", "oclock": "o'clock", "its": "its", "ow's'at": "'ow's'at", "yall'll": "y'all'll"}
def official(text):
    text = re.sub("[\n\t]", " ", text).strip()
    tight = re.search(r"[0-9],[0-9]", text)
    gone = {m for m in MARKS if tight or m + " " in text or " " + m in text}
    text = "".join(("" if c in gone else " ") if c in MARKS else c for c in text)
    text = re.sub(r"\.(?![0-9])", "", text, count=32)
    words = [NUMBERS.get(w, w) for w in text.lower().split()]
    return " ".join(APOSTROPHES.get(w, w) for w in words if w not in ("a", "an", "the"))
def worth(said, people):
    said, people = official(said), [official(p) for p in people]
    others = [sum(p == said for p in people[:i] + people[i + 1:]) for i in range(len(people))]
    return 100 * sum(min(1, n / 3) for n in others) / len(people)
if sys.argv[1] == "make":
    rng = random.Random(7)
    words = "a the Two three dont oclock it's ow's'at yall'll red t-shirt 1,000 3.5 .5 U.S. what? red,white (yes) x/y no! None".split()
    text = lambda: "".join(rng.choice(words) + rng.choice([" ", "", ", ", "-", ". ", "\t"]) for _ in range(rng.randint(1, 3)))
    with open("v2.jsonl", "w") as q, open("v2_said.jsonl", "w") as s:
        notes = []
        for i in range(400):
            said = text()
            vary = [said.upper(), "the " + said.strip()] + [text() for _ in range(6)]
            vary += [said.replace(c, by) for c, by in [(",", ""), (",", " "), ("-", ""), ("-", " "), ("'", " '"), ("/", " "), (".", "")]]
            people = [rng.choice(vary) for _ in range(10)] if i % 10 else ["Yes"] * 10
            if i % 10 == 0: said = "yes."
            notes.append({"question_id": i, "answer_type": "q%d" % i, "answers": [{"answer": p} for p in people]})
            print(json.dumps({"question_id": i, "image": "x.jpg", "text": "What?"}), file=q)
            print(json.dumps({"question_id": i, "text": said}), file=s)
    json.dump({"annotations": notes}, open("v2.json", "w"))
else:
    notes = {"q%d" % n["question_id"]: [a["answer"] for a in n["answers"]] for n in json.load(open("v2.json"))["annotations"]}
    said = {"q%d" % l["question_id"]: l["text"] for l in map(json.loads, open("v2_said.jsonl"))}
    d = json.load(open(sys.argv[2]))
    got = {p["category"]: p["score"] for p in d["results"][0]["parts"]}
    assert len(got) == 400
    wrong = [(said[q], notes[q], got[q]) for q in got if abs(got[q] - worth(said[q], notes[q])) > 1e-9]
    if sys.argv[1] == "differs":
        assert len(wrong) > 10, len(wrong)
    else:
        assert not wrong, wrong[:3]
        assert len({round(s) for s in got.values()}) > 3, set(got.values())
        assert all(abs(got["q%d" % i] - 100) < 1e-9 for i in range(0, 400, 10)) # also where all ten agree
PY
  python3 official.py make
  run 0 vqa -q --task vqav2 --questions v2.jsonl --annotations v2.json --score v2_said.jsonl --scorer official --json
  cp out official.json
  json 'd["scorer"] == "official"'
  python3 official.py same official.json || fail "the official scorer"
  run 0 vqa -q --task vqav2 --questions v2.jsonl --annotations v2.json --score v2_said.jsonl --json
  cp out textvqa.json
  json 'd["scorer"] == "textvqa"'
  python3 official.py differs textvqa.json || fail "both scorers give the same scores"
fi

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
usage "--scorer is for vqav2, vizwiz and textvqa, not for gqa" --task gqa --questions gqa.jsonl --score parts --scorer official
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
