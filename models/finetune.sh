#!/usr/bin/env bash
# finetune.sh - the paper's fine-tuning experiment in small: the built-in model, EViT at keep 0.7,
# several rules.
# usage: models/finetune.sh IMAGENETTE FOLDER [RENYI]   (MODEL=builtin, EPOCHS=2 by default)
# SPDX-License-Identifier: Apache-2.0
#
# FOLDER gets a run for each rule and layer set, loss-036.svg, loss-369.svg and table.md. A second
# call resumes where the first one stopped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=${1:?the folder of Imagenette} folder=${2:?a folder for the runs}
renyi=${3:-$here/../build/renyi}
model=${MODEL:-builtin} epochs=${EPOCHS:-2}
rules=("cls:evit metric=cls" "correct:evit metric=correct"
  "random:evit metric=random" "mosaic:mosaic")
mkdir -p "$folder"

for layers in 0,3,6 3,6,9; do
  runs=()
  for rule in "${rules[@]}"; do
    run=$folder/${rule%%:*}-${layers//,/}
    runs+=("$run")
    if [ -f "$run/checkpoint.safetensors" ]; then
      "$renyi" train --resume --data-dir "$data" -o "$run"
    else
      "$renyi" train --recipe finetune -m "$model" --data-dir "$data" --epochs "$epochs" \
        --eval-start --seed 1 --prune "${rule#*:} keep=0.7 layers=$layers" --cache-mb 900 -o "$run"
    fi
  done
  "$renyi" plot "${runs[@]}" --names cls,correct,random,mosaic --what loss,top1 --smooth 25 \
    --title "EViT and mosaic at keep 0.7, layers ($layers)" -o "$folder/loss-${layers//,/}.svg"
done
python3 "$here/finetune_table.py" "$folder" | tee "$folder/table.md"
