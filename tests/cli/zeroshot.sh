#!/usr/bin/env bash
# renyi zeroshot: folders and known datasets, templates, --adapt; sweeps of CLIP models; errors.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }

make_clip
make_toy vit.safetensors
for i in {0..8}; do
  class=$(printf 'golf_ball church cat' | cut -d' ' -f $((i % 3 + 1)))
  mkdir -p "photos/$class"
  make_ppm "photos/$class/$i.ppm" $((i * 27)) $((250 - i * 9)) $((i * 37 % 251))
done
zeroshot() { "$RENYI" zeroshot -m clip.safetensors -t 1 "$@"; }
prune=(--prune none --prune 'evit keep=0.5 layers=0 metric=col n=4' --prune 'tome r=8')

# --- folders are classes; several policies, every class; the classifier is cached ---
run 0 zeroshot --data-dir photos "${prune[@]}" --per-class
out_has "photo by photo"
out_has "9 photos, 3 classes"
out_has "top-1 %, mean over 3 classes:"
[ "$(grep -cE '^ +[0-2] +3 .*(cat|church|golf_ball)$' out)" -eq 3 ] || fail "a row per class"
err_has "classes: 3, names from the folders; templates: simple (1)"
ls "$HOME"/.cache/renyi/classifiers/classifier-*.safetensors >/dev/null || fail "no cache"
run 0 zeroshot --data-dir photos "${prune[@]}" --json
err_has "classes: embeddings read from $HOME/.cache/renyi/classifiers/"
json 'len(d["results"]) == 3 and len(d["pairs"]) == 3 and d["collection"] is None and "adapt" not in d["results"][0] and d["names_from"] == "folders"'
json '[c["name"] for c in d["classes"]] == ["cat", "church", "golf_ball"] and all(c["photos"] == 3 and len(c["top1"]) == 3 for c in d["classes"])'
json 'all(abs(r["top1_class_mean"] - sum(c["top1"][i] for c in d["classes"]) / 3) < 1e-6 for i, r in enumerate(d["results"]))'
json 'all(r["top5"] == 100 and abs(r["top1_class_mean"] - r["top1"]) < 1e-6 for r in d["results"])' # as many images of each class

# --- templates: a built-in list, a file, sentences ---
run 0 zeroshot --data-dir photos --json --templates imagenet80 --cache none
json 'd["templates_name"] == "imagenet80" and len(d["templates"]) == 80'
printf '# two of them\na photo of a {}.\n\nan {} of art\n' >templates.txt
run 0 zeroshot --data-dir photos --json --templates templates.txt --templates '{}!' --cache rows.safetensors
json 'd["templates"] == ["a photo of a {}.", "an {} of art", "{}!"]'
[ -f rows.safetensors ] || fail "--cache FILE"
run 0 zeroshot --data-dir photos --json --cache rows.safetensors -v # the cache has other sentences: computed again
err_has "rows.safetensors: was made of"
printf 'a cat\nchurch\nball\n' >names.txt
run 1 zeroshot --data-dir photos --class-names names.txt
err_lines 1
printf 'cat\nchurch\ngolf_ball\ndog\n' >names.txt
run 0 zeroshot --data-dir photos --class-names names.txt --json --log-samples log.jsonl
err_has "1 of 4 classes have no images here"
json 'd["names_from"] == "list" and d["empty_classes"] == 1 and len(d["classes"]) == 4 and d["classes"][3]["top1"] == [None]'

# --- ImageNet's classes: CLIP's names, or WordNet's by option; each has its own classifier ---
for wnid in n02012849 n03126707; do mkdir -p cranes/$wnid; make_ppm cranes/$wnid/a.ppm 30 90 200; done
run 0 zeroshot --data-dir cranes --json
err_has "names from CLIP's list for ImageNet"
json 'd["names_from"] == "clip" and [c["name"] for c in d["classes"]] == ["crane bird", "construction crane"]'
run 0 zeroshot --data-dir cranes --json --class-names wordnet
grep -q "embeddings read" err && fail "the classifier of other names"
json 'd["names_from"] == "imagenet" and [c["name"] for c in d["classes"]] == ["crane", "crane"]'
run 0 zeroshot --data-dir cranes --json --class-names clip
err_has "embeddings read"
run 2 zeroshot --data-dir photos --class-names clip
err_has "'clip' are those of ImageNet"

# --- a log depends on sentences and names ---
[ "$(wc -l <log.jsonl)" -eq 9 ] || fail "a line per image"
run 0 zeroshot --data-dir photos --class-names names.txt --json --log-samples log.jsonl --resume
json 'd["resumed"] == 9'
run 0 zeroshot --data-dir photos --class-names names.txt --json --log-samples log.jsonl --resume --templates 'a drawing of a {}.'
json 'd["resumed"] == 0 and d["results"][0]["images"] == 9'
for i in 1 2; do run 0 zeroshot --data-dir photos --shard $i/2 --log-samples part$i.jsonl -q; done
run 0 "$RENYI" merge all.jsonl part1.jsonl part2.jsonl --json
json 'd["results"][0]["images"] == 9'

# --- a dataset by name, and its results in the paper's table ---
mkdir -p oxford_pets/images
for i in 0 1 2 3; do cp "photos/cat/2.ppm" "oxford_pets/images/$i.ppm"; done
echo '{"train": [], "val": [], "test": [["0.ppm", 0, "abyssinian"], ["1.ppm", 1, "basset_hound"], ["2.ppm", 0, "abyssinian"], ["3.ppm", 1, "basset_hound"]]}' \
  >oxford_pets/split_zhou_OxfordPets.json
run 0 zeroshot --data-dir oxford_pets --json
json 'd["collection"] == "pets" and d["templates"] == ["a photo of a {}, a type of pet."] and d["names_from"] == "data" and d["results"][0]["top1"] == 50'
cp out pets.json
run 0 "$RENYI" paper --table 5 --results pets.json --json
run 0 zeroshot --data-dir . --collection OxfordPets --limit 2 --json
json 'd["collection"] == "pets" and d["photos"] == 2'
run 0 zeroshot --data-dir photos --limit 3 --seed 1 --json
json 'd["photos"] == 3 and d["classes_seen"] > 1 and d["threads"] >= 1 and d["batch_size"] == 8'
run 0 zeroshot --data-dir photos --limit 3 --no-shuffle --json
json 'd["photos"] == 3 and d["classes_seen"] == 1'
mkdir -p parts/images parts/masks
cp photos/cat/2.ppm parts/images/a.ppm && cp photos/cat/2.ppm parts/masks/a.ppm
run 1 zeroshot --data-dir parts
err_has 'parts: its folders, "images" and "masks", are parts of a dataset, not classes'
run 2 zeroshot --data-dir photos --collection pots
err_has "pets"

# --- a sweep of CLIP models ---
run 0 "$RENYI" sweep -m clip.safetensors --data-dir photos --templates simple -t 1 --image-size 160,model \
  --prune none --prune 'evit keep=0.5 layers=0' -o swept --json
json 'len(d["results"]) == 4 and all(r["images"] == 9 for r in d["results"]) and d["pairs"]'
run 0 "$RENYI" sweep -m clip.safetensors --data-dir photos --templates simple -t 1 --image-size 160,model \
  --prune none --prune 'evit keep=0.5 layers=0' -o swept --json --resume
json 'd["resumed"] == 18'
run 1 "$RENYI" sweep -m clip.safetensors --data-dir photos --prune none
err_has "has no classifier"

# --- --adapt: all policies but "none"; the same result again; continuing from a saved state ---
adapt=(--data-dir photos --json --adapt 'tca size=2 scale=0.5 lambda=2 beta=6' --prune none --prune 'tca drop=0.1 layers=1')
run 0 zeroshot "${adapt[@]}" --log-samples adapted.jsonl
json 'd["results"][0]["adapt"] is None and "tca" not in d["results"][0] and d["results"][1]["adapt"] == "tca" and len(d["pairs"]) == 1'
json '{k: d["results"][1]["tca"][k] for k in ("size", "scale", "lambda", "beta", "images")} == {"size": 2, "scale": 0.5, "lambda": 2, "beta": 6, "images": 9}'
answers() { sed -E 's/"ms(_rest)?":[^,]*,//g' "$1"; }
answers adapted.jsonl >first.jsonl
rm adapted.jsonl
run 0 zeroshot "${adapt[@]}" --log-samples adapted.jsonl -b 1
answers adapted.jsonl | cmp -s - first.jsonl || fail "other answers the second time"
for n in 9 18; do
  run 0 zeroshot --data-dir photos --json --adapt tca --layers 1 --adapt-state learnt.safetensors --in-order
  json 'd["results"][0]["policy"].startswith("tca ") and d["results"][0]["tca"]["images"] == '$n
done
# --in-order is --no-shuffle: with --limit it takes the first images.
run 0 zeroshot --data-dir photos --json --adapt tca --drop-loc 1 --limit 3 --in-order
json 'd["seed"] is None and d["classes_seen"] == 1'
run 0 zeroshot --data-dir photos --json --adapt tca --drop-loc 1 --limit 3
json 'd["seed"] == 1 and d["classes_seen"] > 1'
run 0 zeroshot --data-dir photos --adapt tca --prune 'tca layers=1'
out_has "policy 1 adapted: 9 photos seen"
run 2 zeroshot "${adapt[@]}" --log-samples adapted.jsonl --resume
err_has "cannot be resumed"
run 2 zeroshot "${adapt[@]}" --shard 1/2
err_has "cannot run in shards"
run 2 zeroshot --data-dir photos --adapt 'tca gamma=3'
err_has "gamma=3"
run 2 zeroshot --data-dir photos --in-order
err_has "need --adapt tca"

# --- errors, one line each ---
one_line() {
  err_lines 1
  err_has "$1"
  out_empty
}
run 1 "$RENYI" zeroshot -q -m vit.safetensors --data-dir photos
one_line "not a CLIP"
mkdir eyes && cp bpe_simple_vocab_16e6.txt eyes
without_tensors clip.safetensors eyes/clip.safetensors text_
run 1 "$RENYI" zeroshot -q -m eyes/clip.safetensors --data-dir photos
one_line "no text tower"
run 1 "$RENYI" zeroshot -q -m photos --data-dir clip.safetensors # the wrong way round
one_line "photos"
run 2 zeroshot -q --data-dir clip.safetensors
one_line "clip.safetensors"
mkdir nothing
run 1 zeroshot -q --data-dir nothing
one_line "nothing"
run 1 zeroshot -q --data-dir nowhere
one_line "nowhere"
run 1 zeroshot -q --data-dir photos/cat # images, but no class folders
one_line "photos/cat"
run 2 zeroshot -q --data-dir photos --templates 'a photo.'
one_line "{}"
run 2 zeroshot -q --data-dir photos --templates '{} and {}'
one_line "{}"
printf 'a {}.\nno place\n' >bad.txt
run 1 zeroshot -q --data-dir photos --templates bad.txt
one_line "bad.txt"
: >bad.txt
run 1 zeroshot -q --data-dir photos --templates bad.txt
one_line "bad.txt"
run 1 zeroshot -q --data-dir photos --class-names nowhere.txt
one_line "nowhere.txt"
mkdir -p long/"$(printf 'very_%.0s' {1..45})long"
cp photos/cat/2.ppm long/very*
mkdir -p long/cat
cp photos/cat/2.ppm long/cat
run 1 zeroshot -q --data-dir long
one_line "--truncate"
run 0 zeroshot -q --data-dir long --truncate
mkdir -p empty/cat empty/dog
cp photos/cat/2.ppm empty/cat
run 1 zeroshot -q --data-dir empty
one_line "empty/dog"
mkdir -p mixed/n01440764 mixed/church
cp photos/cat/2.ppm mixed/n01440764
cp photos/cat/2.ppm mixed/church
run 1 zeroshot -q --data-dir mixed
one_line "mixed"
run 2 zeroshot -q --data-dir photos --adapt magic
one_line "--adapt"
run 2 zeroshot -q
one_line "--data-dir DIR is missing"
mkdir lone && cp clip.safetensors lone
run 1 "$RENYI" zeroshot -q -m lone/clip.safetensors --data-dir photos
one_line "--tokenizer"
run 0 "$RENYI" zeroshot -q -m lone/clip.safetensors --data-dir photos --tokenizer bpe_simple_vocab_16e6.txt -t 1
run 1 "$RENYI" classify -q -m clip.safetensors photos/cat/2.ppm
one_line "renyi zeroshot"
run 1 "$RENYI" eval -q -m clip.safetensors --data-dir photos
one_line "renyi zeroshot"
