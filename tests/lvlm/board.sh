#!/usr/bin/env bash
# renyi board: manifests of a folder side by side, in groups of the same questions, with their pairs; damaged ones are named.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }

python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
mkdir photos
make_ppm photos/a.ppm 200 30 90
make_ppm photos/b.ppm 20 130 190
for i in {1..6}; do
  photo=a.ppm; [ $((i % 2)) = 1 ] || photo=b.ppm
  printf '{"question_id": %d, "image": "%s", "text": "what is %d", "answer": "x"}\n' $i $photo $i
done >q.jsonl
here=(-m llava -t 1 --max-new-tokens 4)
run 0 "$RENYI" table -q "${here[@]}" --task 'gqa questions=q.jsonl images=photos' --prune prumerge --prune 'vispruner important=0.25' --tokens 5 -o results
run 0 "$RENYI" vqa -q --task gqa --questions q.jsonl --images photos "${here[@]}" --limit 3 --manifest results/part.json
run 0 "$RENYI" vqa -q --task vqav2 --questions q.jsonl --images photos "${here[@]}" --manifest results/soft.json
echo '{"some": "other JSON"}' >results/other.json

run 0 "$RENYI" board results
[ -s results/board.html ] || fail "no page"
err_has "other.json: not a result manifest"
grep -q 'prumerge tokens=5' results/board.html && grep -q '<h2>GQA, 6 questions' results/board.html || fail "the page"
! grep -qE '(src|href)="http' results/board.html || fail "the page needs the network"
run 0 "$RENYI" board results -o page.html --json
cmp -s page.html results/board.html || fail "another page"
python3 - <<'P' || fail "the groups"
import json
d = json.load(open("out"))
assert sorted((g["task"], len(g["results"]), len(g["pairs"])) for g in d["groups"]) == [("gqa", 1, 0), ("gqa", 3, 3), ("vqav2", 1, 0)], d
whole = next(g for g in d["groups"] if len(g["results"]) == 3)
assert whole["results"][0]["policy"] == "none" and all(r["answers"] == 6 for r in whole["results"])
def answers(f): return [s[2:] for s in json.load(open(f))["answers"]["samples"]]
for p in whole["pairs"]:
    a, b = (answers(whole["results"][p[k]]["file"]) for k in "ab")
    assert p["questions"] == 6 and p["same"] == sum(x[0] == y[0] for x, y in zip(a, b))
    assert p["better_b"] == sum(y[1] > x[1] for x, y in zip(a, b)) and p["better_a"] == sum(y[1] < x[1] for x, y in zip(a, b))
P

# --- numbers of policies by their value; headings of texts are aligned as the texts ---
run 0 "$RENYI" vqa -q --task gqa --questions q.jsonl --images photos "${here[@]}" --limit 2 --prune 'uniform tokens=10' \
  --prune 'uniform tokens=5' --prune none --manifest ordered
run 0 "$RENYI" board ordered --json -o ordered.html
json '[r["policy"] for r in d["groups"][0]["results"]] == ["none", "uniform tokens=5", "uniform tokens=10"]'
grep -q 'class="mo">policy</th>' ordered.html || fail "the heading of a text"

# --- a damaged manifest is named, the others are shown ---
head -c 900 results/gqa/none.json >results/cut.json
run 3 "$RENYI" board results
err_has "results/cut.json"
mkdir empty
run 1 "$RENYI" board empty
err_has "empty: no result manifest in this folder"
run 1 "$RENYI" board absent
err_has "absent: No such file"
run 2 "$RENYI" board
run 2 "$RENYI" board results empty
run 1 "$RENYI" board results/gqa -o absent/page.html
echo "board: ok"
