#!/usr/bin/env bash
# renyi train: a run and its files, resuming after kill -9, a full disk, wrong usage and bad input.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make images"; exit 77; }

python3 - <<'P'
import os, random
random.seed(1)
for part, n in (("train", 12), ("val", 4)):
    for c, colour in enumerate([(200, 60, 60), (60, 200, 60), (60, 60, 200)]):
        os.makedirs(f"photos/{part}/class{c}")
        for i in range(n):
            pixels = bytes(v + random.randrange(-30, 30) for _ in range(24 * 20) for v in colour)
            open(f"photos/{part}/class{c}/{i:02}.ppm", "wb").write(b"P6\n24 20\n255\n" + pixels)
P
toy=(--arch vit_tiny_patch8_32 --dim 32 --heads 2 --depth 2 --mlp-dim 64 --batch-size 8 -t 1)
train() { "$RENYI" train "$@"; }
losses() { python3 -c 'import json, sys
for line in open(sys.argv[1]):
    d = json.loads(line)
    if d["kind"] == "step": print(d["epoch"], d["step"], d["loss"].hex(), d["lr"].hex())
    if d["kind"] == "epoch": print(d["epoch"], d["val_top1"], d["val_loss"].hex(), d["train_loss"].hex())' "$1"; }

# --- a run: every setting is shown, every file is there and can be used ---
run 0 train "${toy[@]}" --data-dir photos --epochs 2 --ema 0.9 --eval-start -o run
out_has "running mean   top-1"
err_has "weight-decay 0.05"
err_has "val-dir photos/val"
err_has "before the first update; val loss"
err_has "epoch 1: loss"
err_has "epoch 2: loss" # counted as renyi plot does
best=$(sed -n 's/.* in epoch \([0-9]*\) (best.*/\1/p' out)
run 0 "$RENYI" plot run --json
json "d[\"runs\"][0][\"best_epoch\"] == $best and d[\"runs\"][0][\"epochs\"] == 2"
# --- stopped inside the first epoch, of 4 updates ---
run 0 train "${toy[@]}" --data-dir photos --steps 1 -o part
out_has ", 0.25 epochs, 1 update, "
grep -q 'best .* in epoch 1 (best.safetensors)' out || fail "the best of a part of an epoch"
err_has "epoch 1, up to update 1: loss"
run 0 "$RENYI" plot part
grep -Eq ' 0\.25 +1 .* \(0\.25\) ' out || fail "plot of a part of an epoch"
run 0 train --resume --steps 4 -o part
out_has ", 1 epoch, 4 updates, "
err_has "epoch 1: loss"
for f in log.jsonl {checkpoint,model,model-ema,best}.safetensors; do [ -s "run/$f" ] || fail "no $f"; done
head -1 run/log.jsonl >out
json 'd["kind"] == "config" and d["settings"]["batch-size"] == "8" and d["steps_per_epoch"] == 4 and d["classes"] == 3'
run 0 "$RENYI" eval -q -m run/best.safetensors --data-dir photos/val
run 0 "$RENYI" classify -q -m run/model.safetensors photos/val/class1/00.ppm
out_has "class1"
run 0 "$RENYI" inspect run/checkpoint.safetensors
run 0 train "${toy[@]}" --data-dir photos --epochs 1 --save-dtype f16 --json -q -o half
json 'd["complete"] and d["steps"] == 4 and d["val"]["top1"] >= 0 and d["ema"] is None'
[ "$(stat -c %s half/model.safetensors)" -lt "$(($(stat -c %s run/model.safetensors) * 3 / 4))" ] || fail "f16 is not smaller"
run 0 "$RENYI" eval -q -m half/model.safetensors --data-dir photos/val

# --- from weights: another head, cuts, a teacher ---
run 0 train -m run/model.safetensors --recipe finetune --data-dir photos --classes 3 --batch-size 8 --epochs 1 -t 1 \
  --prune 'evit keep=0.5 layers=1 metric=cls fuse' --teacher run/best.safetensors -o tuned
err_has "evit keep=0.5"
run 0 train -m run/model.safetensors --data-dir photos/train --batch-size 8 --epochs 1 --steps 2 -t 1 --img-size 48 -o larger
err_has "48 px, 37 tokens"
[ "$(tail -1 larger/log.jsonl | cut -c 1-14)" = '{"kind":"stop"' ] || fail "--steps stops inside an epoch"

# --- kill -9: the resumed run gives the same bits ---
long=("${toy[@]}" --data-dir photos --epochs 6 --ema 0.9 --drop-path 0.1 --checkpoint-every 3)
run 0 train "${long[@]}" -q -o whole
"$RENYI" train "${long[@]}" -q -o killed >/dev/null 2>&1 &
pid=$!
for _ in $(seq 200); do
  [ -f killed/log.jsonl ] && [ "$(wc -l <killed/log.jsonl)" -ge 9 ] && break
  sleep 0.02
done
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
cp -r killed torn
: >torn/checkpoint.safetensors.99-0.tmp # what a process that was killed while writing leaves
printf '{"kind":"st' >>torn/log.jsonl
run 0 train --resume -q -o torn
[ ! -e torn/checkpoint.safetensors.99-0.tmp ] || fail "leftovers stay"
losses whole/log.jsonl >a
losses torn/log.jsonl >b
cmp a b || fail "resumed losses differ"
cmp whole/model.safetensors torn/model.safetensors && cmp whole/model-ema.safetensors torn/model-ema.safetensors ||
  fail "resumed weights differ"
run 0 train "${long[@]}" --resume -o torn # the same command with --resume; nothing left to do
err_has "nothing to do: all"

# --- killed before the first checkpoint: the same command starts again, with and without --resume ---
unbegun() { # what such a run leaves: no checkpoint, and a log with its settings or none
  rm -rf unbegun && mkdir unbegun && head -n "$1" whole/log.jsonl >unbegun/log.jsonl
  cp whole/model-ema.safetensors unbegun/model.safetensors
  cp whole/model.safetensors unbegun/model-ema.safetensors
  : >unbegun/checkpoint.safetensors.99-0.tmp
}
for lines in 0 1; do
  unbegun $lines
  run 1 train --resume -o unbegun
  err_has "unbegun: this run was ended before its first checkpoint; give model and images"
  run 0 train "${long[@]}" -q -o unbegun
  cmp whole/model.safetensors unbegun/model.safetensors || fail "a run that starts again differs"
  [ ! -e unbegun/checkpoint.safetensors.99-0.tmp ] || fail "leftovers stay"
  unbegun $lines
  run 0 train "${long[@]}" -q --resume -o unbegun
  cmp whole/model.safetensors unbegun/model.safetensors || fail "--resume of a run that had not begun differs"
done
mkdir unbegun2 # killed even earlier
run 0 train "${toy[@]}" --data-dir photos --epochs 1 --resume -o unbegun2
unbegun 1
run 0 train -m unbegun2/model.safetensors --data-dir photos --batch-size 8 -t 1 --epochs 1 --resume -o unbegun
[ ! -e unbegun/model-ema.safetensors ] || fail "a model of the run that had not begun stays"
unbegun 2 # with updates: not ours to overwrite
run 2 train "${long[@]}" -o unbegun
err_has "is not empty"
unbegun 1 && : >unbegun/notes.txt
run 2 train "${long[@]}" -o unbegun
[ -s unbegun/model.safetensors ] || fail "files of others are gone"
rm -r unbegun && mkdir unbegun && cp whole/model.safetensors unbegun
run 2 train "${long[@]}" -o unbegun
# another process is beginning this run: its files stay
unbegun 1
python3 -c 'import fcntl, sys, time
f = open("unbegun/log.jsonl", "r+")
fcntl.lockf(f, fcntl.LOCK_EX)
print(flush=True)
time.sleep(60)' >locked &
for _ in $(seq 200); do [ -s locked ] && break; sleep 0.05; done
run 1 train "${long[@]}" -o unbegun
kill $!
err_has "another process is writing this run"
[ -s unbegun/log.jsonl ] && [ -s unbegun/model.safetensors ] || fail "files of another process are gone"

# --- Ctrl-C writes a checkpoint ---
"$RENYI" train "${toy[@]}" --data-dir photos --epochs 100000 --eval-every 0 --checkpoint-every 0 -q -o stopped >out 2>err &
pid=$!
for _ in $(seq 200); do
  [ -f stopped/log.jsonl ] && [ "$(wc -l <stopped/log.jsonl)" -ge 4 ] && break
  sleep 0.02
done
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "exit code $code after Ctrl-C"
err_has "interrupted; 'renyi train --resume -o stopped' continues"
steps=$(grep -c '"kind":"step"' stopped/log.jsonl)
run 0 train --resume --epochs 1000000 --steps $((steps + 1)) -o stopped
err_has "resumed after update $steps"

# --- a full disk: the error names the file; the older file stays ---
cp -r killed full
sum=$(md5sum <full/checkpoint.safetensors)
run 1 bash -c "ulimit -f 64; exec '$RENYI' train --resume -o full"
err_has "full/checkpoint.safetensors: cannot write"
[ "$(md5sum <full/checkpoint.safetensors)" = "$sum" ] || fail "the checkpoint changed"
run 1 bash -c "ulimit -f 8; exec '$RENYI' train ${toy[*]} --data-dir photos -o never"
[ ! -e never ] || fail "a run that could not begin left a folder"

# --- bad input: a checkpoint may be any bytes ---
run 1 train --resume -o photos
err_has "photos/checkpoint.safetensors"
mkdir bad
cp run/model.safetensors bad/checkpoint.safetensors
run 1 train --resume -o bad
err_has "not a checkpoint of a training run"
head -c 20000 killed/checkpoint.safetensors >bad/checkpoint.safetensors
run 1 train --resume -o bad
python3 - killed/checkpoint.safetensors bad/checkpoint.safetensors <<'P'
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n])
t = h["training.v.blocks.0.norm1.weight"]["data_offsets"][0]
b = bytearray(b)
b[8 + n + t:8 + n + t + 4] = struct.pack("<f", -1.0)
open(sys.argv[2], "wb").write(b)
P
run 1 train --resume -o bad
err_has "'training.v.blocks.0.norm1.weight' holds -1"
rm photos/train/class0/03.ppm
run 1 train --resume -o killed
err_has "not those that the run began with"
run 1 train "${toy[@]}" --data-dir absent -o no
err_has "absent"
run 1 train "${toy[@]}" --data-dir photos --val-dir absent -o no
[ ! -e no ] || fail "a run that could not begin left a folder"

# --- usage ---
run 0 train --help
out_has "paper-evit"
out_has "--no-lr-scale"
out_has "peak (5e-4)"
run 0 train --recipe paper-evit --epochs 3 --dry-run
out_has "batch-size              2048"
grep -qE '^epochs +3$' out || fail "an option does not override the recipe"
run 2 train "${toy[@]}" --data-dir photos
err_has "-o RUN_DIR"
run 2 train --data-dir photos -o no
err_has "-m MODEL"
run 2 train "${toy[@]}" -o no
err_has "--data-dir"
run 2 train "${toy[@]}" --data-dir photos -o run
err_has "--resume"
run 2 train "${toy[@]}" --data-dir photos --lr fast -o no
err_has "--lr': 'fast' is not a number"
run 2 train "${toy[@]}" --data-dir photos --batch-size 4000 -o no
err_has "a batch of 4000 from 35 images"
run 2 train "${toy[@]}" --data-dir photos --prune 'evit keep=7' -o no
run 2 train "${toy[@]}" --data-dir photos --features 1 -o no
err_has "features need a teacher"
mimic=(--features 1 --features-layers 0,1 --mimic forced --teacher run/model.safetensors)
run 2 train "${toy[@]}" --data-dir photos "${mimic[@]}" --prune 'evit keep=0.5 layers=0' -o no
err_has "mimic forced excludes prune"
run 2 train "${toy[@]}" --data-dir photos "${mimic[@]}" --depth 3 -o no
err_has "mimic forced: the student has"
run 2 train "${toy[@]}" --data-dir photos "${mimic[@]}" --dim 64 -o no
err_has "tokens of 64 numbers cannot be compared directly with a teacher's of 32"
run 2 train "${toy[@]}" --data-dir photos --mimic direct --teacher run/model.safetensors -o no
err_has "mimic direct and forced need features and features-layers"
run 2 train "${toy[@]}" --data-dir photos --features 1 --features-layers 0,9 --teacher run/model.safetensors -o no
err_has "features-layers: '9' is not a block or a range of blocks; blocks are 0 to"
run 2 train "${toy[@]}" --data-dir photos --lernrate 1 -o no
run 2 train --resume --lr 1 -o stopped
err_has "lr is '0.0005' in the checkpoint and '1' now"
echo "train: ok"
