#!/usr/bin/env bash
# --dtype of all verbs that open a model: the dtype that ran is reported, an unsupported one refused.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }

make_toy
for i in {0..15}; do
  mkdir -p "photos/00$((i % 2))"
  make_ppm "photos/00$((i % 2))/$i.ppm" $((i * 15)) $((250 - i * 9)) $((i * 37 % 251))
done
classify() { "$RENYI" classify -m toy.safetensors --json photos/000/0.ppm "$@"; }
eval_toy() { "$RENYI" eval -m toy.safetensors --json photos "$@"; }
inspect() { "$RENYI" inspect toy.safetensors --json "$@"; }
bench() { "$RENYI" bench -m toy.safetensors -b 1 -t 1 -r 3 --no-peak -o json "$@"; }
sweep() { "$RENYI" sweep -m toy.safetensors --data-dir photos --prune none --json "$@"; }
tune() { "$RENYI" tune -m toy.safetensors photos --target-gmacs 1 --prune 'evit keep=0.5 layers=0' --img-size 224 --json "$@"; }
paper() { "$RENYI" paper -m toy.safetensors --table 9 --json "$@"; }
verbs="classify eval_toy inspect bench sweep tune paper"

# The document has the dtype that ran: at the top level, or in each result.
said() {
  python3 - "$1" <<'P' || fail "dtype $1 is not reported"
import json, sys
d = json.load(open("out"))
rows = [d] if "dtype" in d else d.get("results") or [b for t in d["tables"] for b in t["blocks"] if b["model"]]
assert rows and all(r["dtype"] == sys.argv[1] for r in rows), rows
P
}

formats=$("$RENYI" --version | sed -n 's/^dtypes: //p')
has() { case ", $formats," in *", $1,"*) ;; *) return 1 ;; esac; }
has f32 || fail "--version lists no f32"
for dtype in f32 bf16 int8; do
  for verb in $verbs; do
    if has $dtype; then
      run 0 $verb --dtype $dtype
      said $dtype
    else # one line that says why, and what is fastest
      run 1 $verb --dtype $dtype
      out_empty
      err_lines 1
      err_has "$dtype needs"
      err_has "The fastest here is"
    fi
  done
done
for verb in $verbs; do
  run 2 $verb --dtype f16
  out_empty
  err_has "f32|bf16|int8|auto"
done
run 0 inspect
said f32 # what this file was made for
fastest=$(bench --dtype auto 2>/dev/null | sed -n 's/.*"dtype": "\([a-z0-9]*\)".*/\1/p')
has "$fastest" || fail "auto chose '$fastest' of $formats"

# --- plain C supports int8 ---
run 0 classify --cpu scalar --dtype int8
said int8
err_has "dtype: the blocks multiply in int8"
run 1 classify --cpu scalar --dtype bf16
err_has "bf16 needs"

# --- bench: dtypes and policies in turn; the speedup is over the first dtype ---
run 0 bench --cpu scalar --dtype f32,int8 --prune "naive p=16 layers=0"
json '[(r["dtype"], r["policy"].split()[0]) for r in d["results"]] == [(t, p) for t in ("f32", "int8") for p in ("none", "naive")]'
json '[r["speedup"] is None for r in d["results"]] == [True, True, False, False] and d["results"][3]["speedup"] > 0'
json '[r["mac_ratio"] is None for r in d["results"]] == [True, False, True, False] and d["results"][1]["mac_ratio"] == d["results"][3]["mac_ratio"]'
run 0 bench --cpu scalar --dtype int8,f32 -o md
out_has "| x int8 |"
run 0 bench --cpu scalar --dtype f32,int8 -o csv
out_has "mac_ratio,speedup"
for words in f32, ,f32 f32,,int8 default f32,f32,f32,f32,f32,f32,f32,f32,f32; do
  run 2 bench --dtype $words
  err_lines 1
done

# --- a log of an int8 run cannot be continued in f32, nor the reverse ---
logged() { eval_toy --cpu scalar --log-samples run.jsonl --resume "$@"; }
run 0 logged
run 0 logged --dtype int8
json 'd["resumed"] == 0 and d["dtype"] == "int8"'
run 0 logged --dtype int8
json 'd["resumed"] == 16'
run 0 logged --dtype f32
json 'd["resumed"] == 16'
[ "$(wc -l <run.jsonl)" -eq 32 ] || fail "a line per image and dtype"

# --- the last line of tune is complete; CSV files have the column ---
run 0 tune --cpu scalar --dtype int8
json 'd["chosen"]["arguments"].endswith(" --dtype int8")'
run 0 eval_toy --csv results.csv
[ "$(head -1 results.csv | sed 's/.*,//')" = dtype ] && [ "$(tail -1 results.csv | sed 's/.*,//')" = f32 ] || fail "column dtype"
run 0 sweep -o swept
[ "$(head -1 swept/results.csv | sed 's/.*,//')" = dtype ] && [ "$(tail -1 swept/results.csv | sed 's/.*,//')" = f32 ] || fail "column dtype"
echo "dtype: ok"
