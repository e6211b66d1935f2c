#!/usr/bin/env bash
# mpirun -n K renyi train: the updates of one process, files of the first rank, no rank hangs.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to compare runs"; exit 77; }
need_mpi

for i in {0..29}; do
  mkdir -p "photos/00$((i % 3))" "val/00$((i % 3))"
  make_ppm "photos/00$((i % 3))/$i.ppm" $((i * 8)) $((250 - i * 7)) $((i * 37 % 251))
  if [ "$i" -lt 9 ]; then cp "photos/00$((i % 3))/$i.ppm" "val/00$((i % 3))/"; fi
done

# A large eps, so that gradients that are only rounding errors (biases of keys) cause no updates.
train=("$RENYI" train --arch vit_tiny_patch16_224 --dim 32 --blocks 2 --heads 2 --img-size 64 --data-dir photos --val-dir val
  --epochs 3 --steps 5 --batch-size 12 --micro-batch 4 --lr 1e-3 --eps 1e-4 --warmup-epochs 0 --drop-path 0.1 --ema 0.9 --threads 1
  --prune 'evit keep=0.7 layers=0 metric=col n=2' --seed 3)

# compare A B: losses of every update within 1e-4, parameters within 1e-5; the same lines otherwise.
compare() {
  python3 - "$1" "$2" <<'P' || fail "$1 and $2 differ"
import json, struct, sys
def lines(run): return [json.loads(l) for l in open(run + "/log.jsonl")]
def tensors(run):
    b = open(run + "/checkpoint.safetensors", "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    h = json.loads(b[8:8 + n]); h.pop("__metadata__")
    return {k: struct.unpack("<%df" % ((v["data_offsets"][1] - v["data_offsets"][0]) // 4), b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in h.items()}
a, b = (lines(r) for r in sys.argv[1:])
assert [(l["kind"], l.get("epoch"), l.get("step")) for l in a] == [(l["kind"], l.get("epoch"), l.get("step")) for l in b]
n = 0
for x, y in zip(a, b):
    if x["kind"] == "step":
        n += 1
        assert abs(x["loss"] - y["loss"]) <= 1e-4 * abs(x["loss"]), (x, y)
        assert abs(x["grad_norm"] - y["grad_norm"]) <= 1e-3 * abs(x["grad_norm"]), (x, y)
assert n == 5, n
p, q = (tensors(r) for r in sys.argv[1:])
assert p.keys() == q.keys()
worst = max(abs(x - y) for k in p for x, y in zip(p[k], q[k]))
print("largest difference of parameters and moments:", worst)
assert worst <= 1e-5, worst
P
}

run 0 "${train[@]}" -o one
for n in 2 4; do # of 4 ranks one has nothing to do: a step has 3 micro-batches
  run 0 ranks "$n" "${train[@]}" -o "of$n"
  compare one "of$n"
done
[ "$(ls of2)" = "$(ls one)" ] || fail "other files"
[ "$(grep -c '"kind":"config"' of2/log.jsonl)" -eq 1 ] || fail "more than one log"
json_equal() { # members of the last epoch that the evaluation makes
  python3 -c 'import json, sys
a, b = (json.loads(open(r + "/log.jsonl").readlines()[-1]) for r in sys.argv[1:])
assert a["val_top1"] == b["val_top1"] and a["ema_top1"] == b["ema_top1"], (a, b)' "$1" "$2" || fail "other accuracies"
}
json_equal one of2

# --- the second rank does not see the folder of the run: the first evaluates alone ---
mkdir apart
ln -s ../photos ../val apart
run 0 ranks 2 bash -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then cd apart; fi; exec "$@"' - "${train[@]}" -o unseen
err_has "other ranks do not see unseen: this one evaluates alone"
compare one unseen
json_equal one unseen

# --- the same number of ranks gives the same bits, also when resumed ---
run 0 ranks 2 "${train[@]}" -o again
cmp -s <(sed -E 's/"(seconds|images_per_second)": ?[^,}]*//g' of2/log.jsonl | tail -n +2) <(sed -E 's/"(seconds|images_per_second)": ?[^,}]*//g' again/log.jsonl | tail -n +2) || fail "other numbers the second time"
run 0 ranks 2 "${train[@]}" --steps 3 -o parts
run 0 ranks 2 "$RENYI" train --resume --steps 5 -o parts
steps() { grep '"kind":"step"\|"kind": "step"' "$1/log.jsonl" | sed -E 's/"(seconds|images_per_second)": ?[^,}]*//g'; }
cmp -s <(steps of2) <(steps parts) || fail "a resumed run of 2 ranks differs"
# with another number of ranks, equal up to rounding
run 0 ranks 2 "${train[@]}" --steps 2 -o mixed
run 0 "$RENYI" train --resume --steps 5 -o mixed
cmp -s <(steps one | wc -l) <(steps mixed | wc -l) || fail "lines are missing"

# --- errors of one rank are reported by the first, and no rank hangs ---
run 2 ranks 2 "${train[@]}" -o of2
err_has "of2"
[ "$(grep -c '^renyi: ' err)" -eq 1 ] || fail "an error of all ranks is reported once"
run 2 ranks 2 bash -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then set -- "$@" --lr 1e-4; fi; exec "$@"' - "${train[@]}" -o other
err_has "rank 1 has other settings than rank 0"
[ ! -e other ] || fail "a folder for nothing"
run 2 ranks 2 bash -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then set -- "$@" --data-dir val; fi; exec "$@"' - "${train[@]}" -o other
run 1 ranks 2 bash -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then set -- "$@" --teacher absent; fi; exec "$@"' - "${train[@]}" -o other
err_has "rank 1: "
head -c 20 photos/001/1.ppm >photos/001/1.ppm.cut && mv photos/001/1.ppm.cut photos/001/1.ppm
run 1 ranks 2 "${train[@]}" --epochs 4 --steps 8 -o broken
err_has "1.ppm"
[ "$(grep -c '^renyi: ' err)" -eq 1 ] || fail "a bad image is reported once"
[ -s broken/checkpoint.safetensors ] || fail "no checkpoint"
make_ppm photos/001/1.ppm 8 243 37

# --- a rank is interrupted or killed: the run ends, and its checkpoint can be resumed ---
pid_of_rank() {
  local file
  for file in $(grep -lzx -- "$WORK/stopped" /proc/[0-9]*/cmdline 2>/dev/null); do
    if grep -qzx "OMPI_COMM_WORLD_RANK=$1" "${file%/*}/environ" 2>/dev/null; then
      basename "${file%/*}"
      return
    fi
  done
}
long=(--epochs 100000 --steps 200000 --checkpoint-every 2 --eval-every 0)
resume=("$RENYI" train --resume --epochs 100000 -o "$WORK/stopped")
# stop_rank_1 SIGNAL UPDATES COMMAND...: after so many updates; the exit code is in $code.
stop_rank_1() {
  ranks 2 "${@:3}" >out 2>err </dev/null &
  for _ in {1..1200}; do
    [ -f stopped/log.jsonl ] && [ "$(steps stopped | wc -l)" -gt "$2" ] && break
    sleep 0.05
  done
  kill "$1" "$(pid_of_rank 1)" || fail "no rank 1 to stop"
  code=0 && wait $! || code=$?
}
stop_rank_1 -INT 6 "${train[@]}" "${long[@]}" -o "$WORK/stopped"
[ "$code" -eq 1 ] || fail "exit code $code after an interruption"
[ "$(grep -c 'continues from here' err)" -eq 1 ] || fail "the interruption is reported once"
updates=$(steps stopped | wc -l)
stop_rank_1 -9 $((updates + 6)) "${resume[@]}" --steps 200000
[ "$code" -ne 0 ] || fail "a killed rank went unnoticed"
updates=$(steps stopped | wc -l)
run 0 ranks 2 "${resume[@]}" --steps $((updates + 3))
[ "$(steps stopped | wc -l)" -eq $((updates + 3)) ] || fail "lines are missing after a kill"
echo "train_ranks: ok"
