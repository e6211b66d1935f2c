#!/usr/bin/env bash
# renyi init and renyi inspect.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

# --- the same seed gives the same bytes ---
make_toy a.safetensors
make_toy b.safetensors
cmp a.safetensors b.safetensors
"$RENYI" init -q --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 2 --classes 10 --seed 2 c.safetensors
! cmp -s a.safetensors c.safetensors || fail "two seeds, one model"
run 1 "$RENYI" init --arch vit_enormous out.safetensors
err_lines 1
run 1 "$RENYI" init --arch vit_tiny_patch16_224 no/such/folder/out.safetensors
err_lines 1
run 1 "$RENYI" init --arch vit_tiny_patch16_224 /dev/full
[ -z "$(ls out.safetensors* 2>/dev/null)" ] || fail "a failed init left a file"
limited() { (ulimit -f 100 && exec "$RENYI" init --arch vit_tiny_patch16_224 big.safetensors); }
run 1 limited
[ -z "$(ls big.safetensors* 2>/dev/null)" ] || fail "a full disk left a file"
cp a.safetensors before.safetensors
run 1 "$RENYI" init --arch vit_tiny_patch16_224 a.safetensors
err_has "a.safetensors exists already; give --force to replace it"
cmp a.safetensors before.safetensors || fail "a model was replaced without --force"
run 0 "$RENYI" init --force --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 2 --classes 10 --seed 1 b.safetensors
cmp a.safetensors b.safetensors

# --- what a killed process leaves is removed by the next one that writes the file ---
"$RENYI" init -q --arch vit_large_patch16_224 killed.safetensors &
writer=$!
for _ in $(seq 500); do
  compgen -G 'killed.safetensors.*.tmp' >/dev/null && break
  sleep 0.01
done
kill -9 $writer
wait $writer 2>/dev/null || true
[ ! -e killed.safetensors ] || fail "half a model has the name of a whole one"
compgen -G 'killed.safetensors.*.tmp' >/dev/null || fail "nothing is left of a killed process: the test proves nothing"
make_toy killed.safetensors
[ "$(ls killed.safetensors*)" = killed.safetensors ] || fail "the leftover stays: $(ls killed.safetensors*)"

# --- inspect: text and JSON ---
run 0 "$RENYI" inspect a.safetensors
for text in "input           224 x 224, patches of 16" "classes         10" "parameters      162634" "taken from"; do out_has "$text"; done
! grep -q blocks.0 out || fail "tensors without --tensors"
run 0 "$RENYI" inspect a.safetensors --tensors
out_has "blocks.1.mlp.fc2.weight"
run 0 "$RENYI" inspect --json a.safetensors
json 'd["dim"] == 64 and d["n_blocks"] == 2 and d["n_heads"] == 2 and d["n_classes"] == 10 and d["mlp_dim"] == 256'
json 'd["parameters"] == 162634 and d["macs"] > 3e7 and d["preprocessing"]["source"]'
json 'd["tensors"][0]["shape"] and sum(t["bytes"] for t in d["tensors"]) == 4 * 162634'
run 0 "$RENYI" inspect --json --image-size 112 a.safetensors
json 'd["image_size"] == 112 and d["n_patches"] == 49'
"$RENYI" init -q --arch vit_tiny_patch16_gap_224 --dim 64 --heads 2 --blocks 2 --classes 10 gap.safetensors
run 0 "$RENYI" inspect gap.safetensors
for text in "196 tokens, no class token" "10, from the mean of the patches" "parameters      162506"; do out_has "$text"; done
run 0 "$RENYI" inspect --json gap.safetensors
json 'd["n_prefix"] == 0 and d["pool"] == "avg" and d["architecture"] == "vit_d64_l2_patch16_gap_224"'
run 1 "$RENYI" inspect absent.safetensors
run 1 "$RENYI" inspect .
err_lines 1
head -c 1000 a.safetensors >cut.safetensors
run 1 "$RENYI" inspect cut.safetensors
err_has cut.safetensors
err_lines 1

# --- CLIP: both towers, no classifier ---
"$RENYI" init -q --arch clip_vit_tiny_patch16_64 --dim 64 --heads 2 --blocks 2 clip.safetensors
run 0 "$RENYI" inspect clip.safetensors
for text in "family          clip, names as in huggingface" "none; embeddings of 64 values" "(quick_gelu)"; do out_has "$text"; done
run 0 "$RENYI" inspect --json clip.safetensors
json 'd["n_classes"] == 0 and d["embed_dim"] == 64 and d["activation"] == "quick_gelu" and d["architecture"] == "clip_vit_d64_l2_patch16_64"'
run 1 "$RENYI" init --arch clip_vit_tiny_patch16_64 --classes 10 out.safetensors
err_has "a CLIP has none"
mkdir -p photos/cat
printf 'P6 8 8 255\n%0192d' 0 >photos/cat/a.ppm
run 1 "$RENYI" classify -m clip.safetensors photos/cat/a.ppm
err_has "'renyi zeroshot' classify by class names"
err_lines 1
run 1 "$RENYI" eval -m clip.safetensors --data-dir photos
err_has "has no classifier; 'renyi zeroshot'"
err_lines 1
run 1 "$RENYI" train --model clip.safetensors --data-dir photos --output run
err_has "a CLIP compares images with texts and has no classifier"
run 0 "$RENYI" viz -m clip.safetensors photos/cat/a.ppm --layers 0-1
! grep -q nan out || fail "a probability without classes"
run 0 "$RENYI" flops -m clip.safetensors --prune "evit keep=0.7 layers=0"
run 0 "$RENYI" quantize -m clip.safetensors -o clip8.safetensors
run 0 "$RENYI" inspect --json clip8.safetensors
json 'd["embed_dim"] == 64 and d["quantization"]'

# --- real models, if they are beside the project ---
shared=${RENYI_SHARED:-$RENYI_SRC/../shared}
if [ -d "$shared/models" ]; then
  run 0 "$RENYI" inspect --json "$shared"/models/vit_tiny*
  json 'd["architecture"].startswith("vit_tiny_patch16_224") and 5.7e6 < d["parameters"] < 5.8e6 and d["n_classes"] == 1000'
else
  echo "SKIP: inspect of real models: no ../shared (1)"
fi
echo "models: ok"
