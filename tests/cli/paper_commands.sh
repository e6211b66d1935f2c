#!/usr/bin/env bash
# renyi paper: the commands that docs/EVAL.md gives for each table, run as written on made-up models and folders.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read CSV"; exit 77; }

# The block of commands after the heading.
awk '/^### The commands of each table/ { seen = 1 } seen && /^```$/ { n++; next } seen && n == 1' \
  "$RENYI_SRC/docs/EVAL.md" >commands
[ "$(grep -c 'renyi paper --table' commands)" -ge 7 ] || fail "no commands in docs/EVAL.md"

# --- models in the cache: small, with random weights, under the names of the documents ---
cached() { # NAME: makes its folder in the cache and prints it
  local repo commit=0123456789abcdef0123456789abcdef01234567
  repo=$HOME/.cache/huggingface/hub/models--${1//\//--}
  mkdir -p "$repo/refs" "$repo/snapshots/$commit"
  printf %s $commit >"$repo/refs/main"
  echo "$repo/snapshots/$commit"
}
for name in vit_small_patch16_224.augreg_in21k_ft_in1k vit_base_patch16_224.augreg_in21k_ft_in1k \
  deit_small_patch16_224.fb_in1k deit_base_patch16_224.fb_in1k; do
  grep -q "timm/$name" commands || fail "$name is not in the commands"
  "$RENYI" init -q --arch vit_tiny_patch8_112 --dim 32 --heads 2 --classes 3 --seed 1 "$(cached "timm/$name")/model.safetensors"
done
"$RENYI" init -q --arch clip_vit_tiny_patch16_224 --dim 32 --heads 2 --seed 1 "$(cached openai/clip-vit-base-patch16)/model.safetensors"
printf '#version: 0.2\nc a\nca t</w>\n' >"$(cached openai/clip-vit-base-patch16)/bpe_simple_vocab_16e6.txt"
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" "$(cached llava-hf/llava-1.5-7b-hf)" side=336 context=1024

# --- folders: images of three classes, a dataset of each table of CLIP, POPE's questions ---
mkdir -p imagenet/{train,val}/{a,b,c} data/oxford_pets/images data/imagenet-rendition/{n01443537,n01484850} val2014 coco_pope
for part in train val; do
  i=0
  for class in a b c; do make_ppm imagenet/$part/$class/1.ppm $((i += 60)) $((200 - i)) $((i * 7 % 251)); done
done
for folder in data/oxford_pets/images data/imagenet-rendition/*; do cp imagenet/val/a/1.ppm "$folder"; cp imagenet/val/b/1.ppm "$folder/2.ppm"; done
echo '{"train": [], "val": [], "test": [["1.ppm", 0, "abyssinian"], ["2.ppm", 1, "basset_hound"]]}' >data/oxford_pets/split_zhou_OxfordPets.json
cp imagenet/val/a/1.ppm val2014/1.ppm
for kind in random popular adversarial; do
  printf '{"question_id": %d, "image": "1.ppm", "text": "Is there a %s?", "label": "%s"}\n' 1 cat yes 2 dog no >coco_pope/coco_pope_$kind.json
done

# --- the commands as they are; short trainings, one thread, and every cell in a CSV file ---
n=0
renyi() {
  local verb=$1
  shift
  echo "renyi $verb $*" >>ran
  case $verb in
    train) "$RENYI" train -q -t 1 --epochs 1 --batch-size 3 --repeats 1 --micro-batch 3 "$@" >>log 2>&1 ;;
    vqa) "$RENYI" vqa -q -t 1 --max-new-tokens 2 "$@" 2>>log ;;
    paper) "$RENYI" paper -t 1 --csv "cells$((n += 1)).csv" "$@" >"table$n" 2>>log ;;
    *) "$RENYI" "$verb" -q -t 1 "$@" 2>>log ;;
  esac || { cat log >&2; fail "renyi $verb $*"; }
}
. ./commands
! grep "is in no column" log || fail "a documented policy is in no column"
! grep "no result for these tables" log || fail "a documented result is in no table"

# --- every table that the program prints was filled ---
HOME=$WORK/empty "$RENYI" paper -q | sed -n 's/^Table \([0-9]*\):.*/\1/p' | sort -n >printed
sed -n 's/^Table \([0-9]*\):.*/\1/p' table* | sort -nu >filled
diff printed filled >differ || fail "tables without a command: $(cat differ)"
python3 - <<'P' || fail "cells that were not measured"
import csv, glob
rows = [r for f in glob.glob("cells*.csv") for r in csv.DictReader(open(f))]
sets = {4: "ImageNet-R", 5: "Oxford Pets", 6: "POPE", 12: "POPE"}
for table in range(1, 16):
    cells = [r for r in rows if int(r["table"]) == table and r["model"] and r["data_set"] == sets.get(table, "")]
    if table == 13:
        cells = [r for r in cells if r["method"] != "mosaic"]
    states = {r["state"] for r in cells}
    assert cells and states == {"measured"} and all(r["top1"] for r in cells), (table, len(cells), states)
    want = {4: 5, 5: 5, 6: 5, 12: 5, 13: 6}.get(table)
    assert want in (None, len(cells)), (table, len(cells))
P
grep -q "Rescue Ratio (c)      0.8  .* -  .* 0.8 " table$n || fail "Table 16 has no recipe"
echo "paper_commands: ok ($(wc -l <ran) commands)"
