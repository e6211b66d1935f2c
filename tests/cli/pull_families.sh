#!/usr/bin/env bash
# renyi pull of each family as its publisher lays it out, with its tokenizer, from a local server;
# then the model by its hub name: what reads images, and what reads texts where there is a text tower.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: renyi pull: no python3 to run the server"; exit 77; }
renyi() { "$RENYI" "$@"; }

FAMILIES=$RENYI_SRC/tests/vit_families
TOKENIZERS=$RENYI_SRC/tests/tokenizers
image=$RENYI_SRC/assets/golf_ball.png
mkdir -p photos data/cat data/dog
for folder in photos data/cat data/dog; do cp "$image" $folder/; done
printf 'cat\ndog\n' >names.txt

# --- the repositories ---
# siglip FOLDER: two small towers, as google/siglip-* has them, without a tokenizer
siglip() {
  mkdir "$1"
  renyi init -q --arch siglip_tiny_patch16_32 --dim 64 --heads 2 --blocks 1 "$1/model.safetensors"
  printf '{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 2, "size": {"height": 32, "width": 32}}' \
    >"$1/preprocessor_config.json"
}
siglip siglip && cp "$TOKENIZERS/siglip_spiece.model" siglip/spiece.model
siglip siglip2 && cp "$TOKENIZERS/siglip2_tokenizer.json" siglip2/tokenizer.json
printf '{"tokenizer_class": "GemmaTokenizer", "add_bos_token": false, "add_eos_token": true}' >siglip2/tokenizer_config.json
# OpenCLIP: 20 token ids are no vocabulary, so the text tower gets more rows
mkdir laion laion_bin
cp "$FAMILIES"/open_clip_bin/open_clip_* laion_bin/
python3 - "$FAMILIES/open_clip" laion <<'PY'
import json, struct, sys
source, target = sys.argv[1:]
VOCAB = 49408
b = open(source + "/open_clip_model.safetensors", "rb").read()
start = 8 + struct.unpack("<Q", b[:8])[0]
header, data = json.loads(b[8:start]), b""
for name, t in header.items():
    part = b[start + t["data_offsets"][0]:start + t["data_offsets"][1]]
    if name == "token_embedding.weight":
        t["shape"][0], part = VOCAB, (part * (VOCAB // 20 + 1))[:len(part) // 20 * VOCAB]
    t["data_offsets"] = [len(data), len(data) + len(part)]
    data += part
text = json.dumps(header).encode()
open(target + "/open_clip_model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
config = json.load(open(source + "/open_clip_config.json"))
config["model_cfg"]["text_cfg"]["vocab_size"] = VOCAB
json.dump(config, open(target + "/open_clip_config.json", "w"))
# CLIP's vocabulary: 256 characters for the bytes, the same at the end of a word, merges, two marks
bytes_ = [*range(33, 127), *range(161, 173), *range(174, 256)]
letters = [chr(c) for c in bytes_] + [chr(256 + i) for i in range(256 - len(bytes_))]
merges = ["c a", "ca t</w>", "o f</w>", "p h", "ph o", "pho t", "phot o</w>", "d o", "do g</w>"]  # 8 ids a text
tokens = letters + [c + "</w>" for c in letters] + [m.replace(" ", "") for m in merges]
tokens += [f"<unused{i}>" for i in range(VOCAB - 2 - len(tokens))] + ["<|startoftext|>", "<|endoftext|>"]
json.dump({t: i for i, t in enumerate(tokens)}, open(target + "/vocab.json", "w"))
open(target + "/merges.txt", "w").write("#version: 0.2\n" + "\n".join(merges) + "\n")
PY

make_toy model.safetensors
: >log
python3 "$RENYI_SRC/tests/fixtures/hub_server.py" model.safetensors log ports google/siglip-tiny=siglip \
  google/siglip2-tiny=siglip2 laion/CLIP-tiny=laion laion/CLIP-bin=laion_bin facebook/dinov2-tiny="$FAMILIES/hf_dinov2" \
  facebook/dinov3-tiny="$FAMILIES/hf_dinov3" timm/vit_tiny_patch4_dinov3.lvd="$FAMILIES/timm_dinov3" \
  timm/deit3_tiny_patch4_24.fb_in1k="$FAMILIES/timm_deit3" timm/vit_tiny_patch4_reg4_dinov2.lvd="$FAMILIES/timm_dinov2_reg" &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$WORK"' EXIT
for _ in $(seq 100); do [ -f ports ] && break; sleep 0.1; done
read -r hub_port _ <ports
export HF_ENDPOINT=http://127.0.0.1:$hub_port/ no_proxy='*'
snapshot() { echo "$HOME/.cache/huggingface/hub/models--${1/\//--}/snapshots/0123456789abcdef0123456789abcdef01234567"; }
# fetch NAME FILE...: pulls a repository; exactly these files are there afterwards
fetch() {
  run 0 renyi pull -q "$1"
  [ "$(cd "$(snapshot "$1")" && echo *)" = "${*:2}" ] || fail "$1: files $(ls "$(snapshot "$1")")"
}
# on_images NAME FAMILY: the verbs that only need images
on_images() {
  run 0 renyi inspect -m "$1" --json
  json "d['family'] == '$2'"
  run 0 renyi embed -q -m "$1" photos/golf_ball.png
  run 0 renyi search -q -m "$1" photos --image photos/golf_ball.png
  out_has golf_ball.png
}
# on_texts NAME: the verbs that need a text tower and its tokenizer
on_texts() {
  run 0 renyi tokenize -m "$1" --json 'a cat'
  json 'len(d["texts"][0]["ids"]) >= 2'
  run 0 renyi search -q -m "$1" photos 'a photo of a cat'
  out_has golf_ball.png
  run 0 renyi classify -q -m "$1" --class-names names.txt photos/golf_ball.png
  run 0 renyi zeroshot -q -m "$1" --data-dir data --prune 'evit keep=0.7 layers=0 metric=col'
  run 0 renyi sweep -q -m "$1" --data-dir data --templates 'a {}.' --prune 'evit keep=0.7 layers=0 metric=col'
}

fetch google/siglip-tiny model.safetensors preprocessor_config.json spiece.model
on_images google/siglip-tiny siglip
on_texts google/siglip-tiny
fetch google/siglip2-tiny model.safetensors preprocessor_config.json tokenizer.json tokenizer_config.json
on_images google/siglip2-tiny siglip
on_texts google/siglip2-tiny
fetch laion/CLIP-tiny merges.txt open_clip_config.json open_clip_model.safetensors vocab.json
on_images laion/CLIP-tiny clip
on_texts laion/CLIP-tiny
fetch laion/CLIP-bin open_clip_config.json open_clip_pytorch_model.bin
on_images laion/CLIP-bin clip
fetch facebook/dinov2-tiny config.json model.safetensors
on_images facebook/dinov2-tiny dinov2
fetch facebook/dinov3-tiny config.json model.safetensors
on_images facebook/dinov3-tiny dinov3
fetch timm/vit_tiny_patch4_dinov3.lvd config.json model.safetensors
on_images vit_tiny_patch4_dinov3 dinov3
fetch timm/deit3_tiny_patch4_24.fb_in1k config.json model.safetensors
on_images timm/deit3_tiny_patch4_24.fb_in1k deit3
fetch timm/vit_tiny_patch4_reg4_dinov2.lvd config.json model.safetensors

# --- timm's names, with and without the tag, and hf-hub: ---
run 0 renyi classify -q -m timm/deit3_tiny_patch4_24.fb_in1k --json photos/golf_ball.png
cp out by_name
for name in deit3_tiny_patch4_24 deit3_tiny_patch4_24.fb_in1k hf-hub:timm/deit3_tiny_patch4_24.fb_in1k; do
  run 0 renyi classify -m $name --json photos/golf_ball.png
  json 'd["results"][0]["top"] == json.load(open("by_name"))["results"][0]["top"]'
done
run 0 renyi inspect -m deit3_tiny_patch4_24
err_has "model: timm/deit3_tiny_patch4_24.fb_in1k"
# a model with two towers is opened twice, its full name said once
run 0 renyi classify -m CLIP-tiny --class-names names.txt photos/golf_ball.png
[ "$(grep -c '^model: laion/CLIP-tiny$' err)" = 1 ] || fail "full name: $(cat err)"
on_images vit_tiny_patch4_reg4_dinov2 dinov2
run 0 renyi pull -q hf-hub:timm/deit3_tiny_patch4_24.fb_in1k
run 1 renyi embed -m google/siglip-other photos/golf_ball.png
err_has "renyi pull google/siglip-other"
