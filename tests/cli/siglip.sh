#!/usr/bin/env bash
# renyi with a SigLIP: its tokenizer, classes by name with sigmoids, search, and names of models in
# the Hugging Face cache.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
renyi() { "$RENYI" "$@"; }

mkdir siglip
renyi init -q --arch siglip_tiny_patch16_32 --blocks 1 siglip/model.safetensors
cp "$RENYI_SRC/tests/tokenizers/siglip_spiece.model" siglip/spiece.model
image=$RENYI_SRC/assets/golf_ball.png
printf 'cat\ndog\ngolden_retriever\n' >names.txt

# --- tokenizer ---
run 0 renyi tokenize -m siglip 'A photo, of the CAT!' 'a photo of the cat'
[ "$(sed -n 1p out)" = "$(sed -n 3p out)" ] || fail "case and punctuation"
sed -n 2p out | grep -q '</s>$' || fail "end of text"
run 0 renyi tokenize -m siglip --json --no-special ''
json 'd["kind"] == "unigram" and d["texts"][0]["ids"] == []'

# --- classes by name: each probability is a sigmoid of its logit ---
run 1 renyi classify -m siglip "$image"
err_has "classify --class-names FILE"
run 0 renyi classify -m siglip --class-names names.txt --json "$image"
err_has "probabilities are sigmoids"
json 'd["probabilities"] == "sigmoid"'
json 'all(abs(t["probability"] - 1 / (1 + 2.718281828 ** -t["logit"])) < 1e-9 for t in d["results"][0]["top"])'
json 'len(d["results"][0]["top"]) == 3 and all(t["logit"] <= 0 for t in d["results"][0]["top"])'
run 0 renyi classify --json "$image"
json 'd["probabilities"] == "softmax"'
run 2 renyi classify -m siglip --templates 'a {}.' "$image"
err_has "--templates needs --class-names"
run 1 renyi classify --class-names names.txt "$image"
err_has "has a classifier"
mkdir -p data/cat data/dog
cp "$image" data/cat/ && cp "$image" data/dog/
run 0 renyi zeroshot -q -m siglip --data-dir data --json
json 'd["probabilities"] == "sigmoid" and d["templates"] == ["a photo of a {}."]'

# --- search: the sigmoid beside the cosine ---
mkdir photos && cp "$image" photos/
run 0 renyi search -q -m siglip photos 'a photo of a cat' --json
json '0 < d["queries"][0]["hits"][0]["sigmoid"] < 1'

# --- names ---
commit=0123456789abcdef0123456789abcdef01234567
add() {
  local repo=$HOME/.cache/huggingface/hub/models--$1
  mkdir -p "$repo/refs" "$repo/snapshots/$commit"
  printf %s $commit >"$repo/refs/main"
  cp siglip/* "$repo/snapshots/$commit/"
}
add timm--vit_some_224.tag_a
run 0 renyi inspect -m vit_some_224
err_has "model: timm/vit_some_224.tag_a"
run 0 renyi inspect -q -m hf-hub:timm/vit_some_224.tag_a
run 0 renyi inspect -q -m vit_some_224.tag_a
run 1 renyi inspect -m vit_some
err_has "renyi pull owner/vit_some"
run 1 renyi inspect -m hf-hub:
err_has "'hf-hub:' names no model: give a file, a folder, or a repository such as"
run 1 renyi inspect -m ''
err_has "'' names no model"
run 1 renyi inspect -m hf-hub:timm/other
err_has "renyi pull timm/other"
add other--vit_some_224.tag_b
run 1 renyi inspect -m vit_some_224
err_has "several models in the Hugging Face cache: other/vit_some_224.tag_b, timm/vit_some_224.tag_a"
run 0 renyi inspect -q -m vit_some_224.tag_b
