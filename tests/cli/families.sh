#!/usr/bin/env bash
# Every verb on files of DINOv2, DINOv3, DeiT-III, models with registers, SigLIP and OpenCLIP
# (tests/vit_families).
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

FAMILIES=$RENYI_SRC/tests/vit_families
COL='evit keep=0.7 layers=1 metric=col n=2'
mkdir -p data/a data/b masks
for name in golf_ball wall_clock; do cp "$RENYI_SRC/assets/$name.png" data/a/; done
for name in parachute traffic_light; do cp "$RENYI_SRC/assets/$name.png" data/b/; done
# --- models without and with a classifier ---
for name in hf_dinov2 hf_dinov2_reg hf_dinov2_giant meta_dinov2 meta_dinov2_giant_reg timm_dinov2 timm_dinov2_reg \
  timm_dinov2_giant timm_deit3 timm_reg4_gap timm_reg4_norm_gap timm_pre_norm hf_siglip hf_siglip_classes hf_clip_gelu timm_siglip_tanh \
  open_clip open_clip_bin open_clip_mean open_clip_siglip hf_dinov3 hf_dinov3_plus timm_dinov3 timm_dinov3_plus; do
  model=$FAMILIES/$name
  [ -e "$model/dinov2.pth" ] && model=$model/dinov2.pth
  run 0 "$RENYI" inspect -m "$model" --json
  json 'd["n_patches"] == 36'
  case $name in *reg* | *dinov3*) json 'd["n_registers"] == 4' ;; *) json 'd["n_registers"] == 0' ;; esac
  run 0 "$RENYI" embed -q -m "$model" --prune "$COL" -r data -o rows.npy
  for features in mean patches; do run 0 "$RENYI" embed -q -m "$model" --features $features data/a/golf_ball.png; done
  run 0 "$RENYI" search -q -m "$model" --index index.safetensors data --image data/a/golf_ball.png
  out_has golf_ball.png
  rm -f index.safetensors
  run 0 "$RENYI" viz -q -m "$model" data/a/golf_ball.png --layers 0,1 --prune 'mosaic keep=0.7 layers=0,1' -o page.html
  run 0 "$RENYI" flops -q -m "$model" --prune "$COL"
  run 0 "$RENYI" quantize -q -m "$model" --calib data -o int8.safetensors
  run 0 "$RENYI" embed -q -m int8.safetensors data/a/golf_ball.png
  rm int8.safetensors
done
case $("$RENYI" embed -q -m "$FAMILIES/timm_reg4_gap" --features class data/a/golf_ball.png 2>&1 || true) in
*"no class token; use mean or patches"*) ;;
*) fail "features of a class token that is not there" ;;
esac
run 2 "$RENYI" classify -m "$FAMILIES/timm_reg4_gap" --prune 'evit keep=0.7 layers=1 metric=cls' data/a/golf_ball.png
err_has "use metric=col"
run 2 "$RENYI" embed -m "$FAMILIES/hf_dinov2" --features all data/a/golf_ball.png
run 1 "$RENYI" embed -m "$FAMILIES/hf_dinov2" --features patches --prune "$COL" data/a/golf_ball.png
err_has "a policy that removes some"

# --- the probe of a pooling head ---
for name in hf_siglip timm_siglip open_clip_siglip; do
  for prune in 'evit keep=0.7 layers=1 metric=pool' 'naive p=3 layers=0,1 metric=pool' 'ats keep=0.7 layers=1' \
    'evit keep=0.7 layers=1 metric=correct c=0.5'; do
    run 0 "$RENYI" embed -q -m "$FAMILIES/$name" --prune "$prune" data/a/golf_ball.png
  done
  run 2 "$RENYI" embed -m "$FAMILIES/$name" --prune 'evit keep=0.7 layers=1 metric=cls' data/a/golf_ball.png
  err_has "use metric=col, pool"
done
run 2 "$RENYI" embed -m "$FAMILIES/open_clip" --prune 'evit keep=0.7 layers=1 metric=pool' data/a/golf_ball.png
err_has "this model has a class token, use metric=cls or col"
run 2 "$RENYI" embed -m "$FAMILIES/timm_reg4_gap" --prune 'evit keep=0.7 layers=1 metric=pool' data/a/golf_ball.png
err_has "use metric=col"

# --- verbs that need classes ---
for i in {0..3}; do
  for name in a/golf_ball b/parachute a/wall_clock b/traffic_light; do
    cp data/$name.png $i${name##*/}.png
    echo "$i${name##*/}.png $i"
  done
done >list.txt
for name in timm_dinov2_reg timm_deit3 timm_reg4_gap timm_pre_norm hf_dinov2 timm_siglip_tanh hf_siglip_classes timm_dinov3; do
  model=$FAMILIES/$name
  run 0 "$RENYI" classify -q -m "$model" --prune "$COL" data/a/golf_ball.png
  run 0 "$RENYI" eval -q -m "$model" --data-dir list.txt --prune "$COL"
done
for name in timm_reg4_gap timm_dinov2_reg timm_deit3 hf_siglip_classes timm_dinov3; do
  run 0 "$RENYI" sweep -q -m "$FAMILIES/$name" --data-dir list.txt --prune "$COL"
  run 0 "$RENYI" tune -q -m "$FAMILIES/$name" --data-dir list.txt --max-drop 100 --prune 'tome r=3'
done
run 1 "$RENYI" tune -m "$FAMILIES/open_clip" --data-dir list.txt --max-drop 100
err_has "no classifier"
for name in hf_dinov2_reg timm_deit3 timm_reg4_gap hf_siglip open_clip hf_dinov3; do
  run 0 "$RENYI" bench -q -m "$FAMILIES/$name" -b 1 -t 1 --repetitions 1 --no-peak --prune "$COL"
done

# --- training keeps registers and layer scale, and writes timm's names ---
for name in timm_dinov2_reg timm_deit3 timm_reg4_gap hf_dinov2_reg; do
  rm -rf run
  run 0 "$RENYI" train -q -m "$FAMILIES/$name" --data-dir data --val-dir data --recipe finetune --epochs 1 \
    --batch-size 4 --prune "$COL" -o run
  run 0 "$RENYI" inspect -m run/model.safetensors --json
  json 'd["layout"] == "timm" and any("ls1.gamma" in t["name"] for t in d["tensors"])'
  case $name in *reg*) json 'd["n_registers"] == 4' ;; esac
  run 0 "$RENYI" classify -q -m run/model.safetensors data/a/golf_ball.png
done
# --- so do SwiGLU, a LayerNorm before the blocks and attention pooling; interrupted runs have the same bits ---
train() { "$RENYI" train -q --data-dir data --val-dir data --recipe finetune --epochs 2 --batch-size 2 --drop-path 0.1 --prune "$COL" "$@"; }
for name in timm_pre_norm timm_dinov2_giant hf_dinov2_giant meta_dinov2_giant_reg timm_siglip_tanh hf_siglip open_clip_siglip hf_dinov2; do
  model=$FAMILIES/$name
  [ -e "$model/dinov2.pth" ] && model=$model/dinov2.pth
  rm -rf whole part
  run 0 train -m "$model" -o whole
  run 0 train -m "$model" --steps 3 --checkpoint-every 1 --checkpoint-activations -t 2 -o part
  run 0 "$RENYI" train -q --resume --steps 4 -t 1 -o part
  cmp whole/model.safetensors part/model.safetensors || fail "$name: a resumed run differs"
  run 0 "$RENYI" inspect -m whole/model.safetensors --json
  case $name in
  hf_dinov2) # only transformers has its head: its names
    json 'd["layout"] == "huggingface" and any(t["name"] == "classifier.weight" and t["shape"][1] == 2 * d["dim"] for t in d["tensors"])' ;;
  *) json 'd["layout"] == "timm"' ;;
  esac
  case $name in *giant*) json 'd["activation"] == "swiglu"' ;; esac
  run 0 "$RENYI" classify -q -m whole/model.safetensors data/a/golf_ball.png
  run 0 "$RENYI" quantize -q -m whole/model.safetensors -o int8.safetensors
  rm int8.safetensors
done
run 0 train -m "$FAMILIES/hf_siglip_classes" --prune 'evit keep=0.7 layers=1 metric=col fuse' -o fused
run 0 train -m "$FAMILIES/timm_siglip_tanh" --prune 'evit keep=0.7 layers=1 metric=pool fuse' -o pooled
run 0 train --arch siglip_base_patch16_64 --dim 32 --heads 2 --depth 2 --prune 'mosaic keep=0.7 layers=0,1' -o new
run 1 train -m "$FAMILIES/open_clip" -o clip
err_has "timm's names (vit_*_clip_*)"
for name in hf_dinov3 timm_dinov3; do
  run 1 "$RENYI" train -m "$FAMILIES/$name" --data-dir data --epochs 1 -o run2
  err_has "a DINOv3, with rotary positions, is not trained here"
done
rm -rf run
run 0 "$RENYI" train -q -m "$FAMILIES/hf_siglip_classes" --data-dir data --val-dir data --recipe finetune --epochs 1 \
  --batch-size 4 --prune "$COL" -o run
run 0 "$RENYI" inspect -m run/model.safetensors --json
json 'd["activation"] == "gelu_pytorch_tanh" and d["n_prefix"] == 0'
run 0 "$RENYI" classify -q -m run/model.safetensors data/a/golf_ball.png

# --- new models by timm's names; parameters as in timm ---
[ "$("$RENYI" flops --arch vit_base_patch16_siglip_224 | sed -n '1s/.*: \([0-9]*\) parameters/\1/p')" = 92884224 ] ||
  fail "parameters of SigLIP B/16"
[ "$("$RENYI" flops --arch vit_so400m_patch14_siglip_224 | sed -n '1s/.*: \([0-9]*\) parameters/\1/p')" = 427680704 ] ||
  fail "parameters of SigLIP So400m/14"
count() { "$RENYI" flops --arch "$1" | sed -n '1s/.*: \([0-9]*\) parameters/\1/p'; }
[ "$(count vit_small_patch14_dinov2)" = 22056192 ] || fail "parameters of DINOv2 S/14"
[ "$(count vit_small_patch14_reg4_dinov2)" = 22057344 ] || fail "parameters of DINOv2 S/14 with registers"
[ "$(count vit_giant_patch14_dinov2)" = 1136479232 ] || fail "parameters of DINOv2 g/14"
[ "$(count vit_base_patch16_clip_224)" = 86568424 ] || fail "parameters of timm's CLIP B/16"
[ "$(count vit_small_patch16_dinov3)" = 21586944 ] || fail "parameters of DINOv3 S/16"
[ "$(count vit_large_patch16_dinov3_qkvb)" = 303128576 ] || fail "parameters of DINOv3 L/16"
[ "$(count vit_small_plus_patch16_dinov3_qkvb)" = 28692480 ] || fail "parameters of DINOv3 S+/16"
[ "$(count deit3_small_patch16_224)" = 22059496 ] || fail "parameters of DeiT-III S/16"
[ "$(count vit_medium_patch16_reg4_gap_256)" = 38881768 ] || fail "parameters of a ViT with registers"
for arch in vit_small_patch14_reg4_dinov2 vit_base_patch16_clip_quickgelu_224 deit3_small_patch16_224 vit_medium_patch16_reg4_gap_256 vit_giant_patch14_dinov2 \
  vit_so400m_patch14_siglip_224 siglip_base_patch16_224 vit_small_patch16_dinov3_qkvb vit_small_plus_patch16_dinov3; do
  run 0 "$RENYI" init -q --force --arch $arch --dim 64 --heads 2 --blocks 2 new.safetensors
  run 0 "$RENYI" embed -q -m new.safetensors --image-size 112 data/a/golf_ball.png
done

# --- timm's names without config and metadata: what is assumed is said ---
run 0 "$RENYI" init -q --arch vit_so400m_patch14_siglip_224 --dim 64 --heads 1 --blocks 2 told.safetensors
python3 - <<'P'
import json, struct
data = open("told.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
del header["__metadata__"]
text = json.dumps(header).encode()
open("bare.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + n:])
P
run 0 "$RENYI" inspect -m told.safetensors
[ ! -s err ] || fail "a note about a model that its metadata describe"
note='bare.safetensors: no config.json, and no architecture in its metadata. Assumed: vit_d64_l2_patch14_siglip_224, 224 x 224 pixels, 1 head, mean 0.5 0.5 0.5, std 0.5 0.5 0.5.'
for verb in "embed data/a/golf_ball.png" "inspect" "quantize --calib data --force -o int8.safetensors"; do
  run 0 "$RENYI" $verb -m bare.safetensors
  err_has "$note"
  run 0 "$RENYI" $verb -q -m bare.safetensors
  [ ! -s err ] || fail "-q does not silence the note"
done

# --- masks: the left third of each image is the object ---
mkdir flat
for name in golf_ball wall_clock parachute; do
  cp "$RENYI_SRC/assets/$name.png" flat/
  python3 - "masks/$name.png" <<'P'
import struct, sys, zlib
def chunk(t, d): return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
rows = (b"\0" + bytes(1 if x < 85 else 0 for x in range(256))) * 256
open(sys.argv[1], "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 256, 256, 8, 0, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
P
done
masks() { run 0 "$RENYI" eval -q -m "$FAMILIES/$1" --data-dir flat --masks masks --prune "$2" && out_has "$3"; }
masks timm_reg4_gap "$COL" col
for name in hf_dinov2_reg hf_dinov3 timm_deit3 open_clip; do masks $name 'evit keep=0.7 layers=1' cls; done
masks hf_siglip 'evit keep=0.7 layers=1 metric=pool' pool
