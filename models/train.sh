#!/usr/bin/env bash
# train.sh - makes models/renyi-nette.safetensors, the built-in model.
# usage: models/train.sh IMAGENETTE TEACHER FOLDER [RENYI]
# SPDX-License-Identifier: Apache-2.0
#
# IMAGENETTE has train/ and val/ with a folder for each of the ten WordNet ids; images of 176 x 176
# were used. TEACHER is vit_tiny_patch16_224.augreg_in21k_ft_in1k. FOLDER gets the runs; a second
# call resumes where the first one stopped. The same commands on the same CPU level give the same
# bits.
set -euo pipefail
data=$(realpath "${1:?the folder of Imagenette}")
teacher=${2:?the teacher} folder=${3:?a folder for the runs}
renyi=${4:-$(cd "$(dirname "$0")/.." && pwd)/build/renyi}
mkdir -p "$folder"
folder=$(realpath "$folder")

# Every twentieth image of a class is held out to watch the runs. The validation images are not used
# until the model is finished.
if [ ! -d "$folder/photos" ]; then
  rm -rf "$folder/photos.part"
  for class in "$data"/train/*/; do
    name=$(basename "$class")
    mkdir -p "$folder/photos.part/train/$name" "$folder/photos.part/watch/$name"
    find "$class" -type f | LC_ALL=C sort > "$folder/photos.list"
    awk 'NR % 20' "$folder/photos.list" | xargs -d '\n' ln -s -t "$folder/photos.part/train/$name"
    awk 'NR % 20 == 0' "$folder/photos.list" |
      xargs -d '\n' ln -s -t "$folder/photos.part/watch/$name"
  done
  rm "$folder/photos.list"
  mv "$folder/photos.part" "$folder/photos"
fi

# stage NAME OPTIONS...: starts a run, or resumes it
stage() {
  local run=$folder/$1
  shift
  local same=(--data-dir "$folder/photos/train" --val-dir "$folder/photos/watch"
    --teacher "$teacher" --cache-mb 900 -o "$run")
  if [ -f "$run/checkpoint.safetensors" ]; then
    "$renyi" train --resume "${same[@]}"
  else
    "$renyi" train --recipe small "$@" --seed 1 --teacher-dtype int8 --distill-tau 2 \
      --features-layers 0-11 "${same[@]}"
  fi
}

# 1. From random weights. Each block learns on its own to do what the teacher's block does to the
#    teacher's tokens. The head has 1000 classes for now: the teacher's answer about all of
#    ImageNet's classes says more than ten numbers would.
stage blocks --arch vit_tiny_patch16_224 --mlp-dim 192 --image-size 160 --crop-mode squash \
  --mean 0.5,0.5,0.5 --std 0.5,0.5,0.5 --classes 1000 --mimic forced --features 40 \
  --epochs 4 --lr 2e-3 --warmup-epochs 1
# 2. All blocks together.
stage whole -m "$folder/blocks/model.safetensors" --classes 1000 --mimic direct --features 40 \
  --epochs 10 --lr 5e-4 --warmup-epochs 1
# 3. With a head of ten classes.
stage ten -m "$folder/whole/model.safetensors" --classes 10 --mimic direct --features 40 \
  --epochs 2 --lr 2e-4 --min-lr 1e-6 --warmup-epochs 0.2 --save-dtype f16
# 4. When it says "none of these", from the images that were held out.
"$(dirname "$0")/none_below.py" --renyi "$renyi" "$folder/ten/model.safetensors" "$folder/photos/watch"
echo "$folder/ten/model.safetensors"
