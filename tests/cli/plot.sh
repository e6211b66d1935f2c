#!/usr/bin/env bash
# renyi plot: numbers, charts and page of training runs; logs that are cut, resumed, or not logs.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
. "$RENYI_SRC/tests/fixtures/run_logs.sh"

make_run runs/cls 1 2.35 1.86 78.9 "evit keep=0.7 layers=0,3,6 metric=cls" 10 60
make_run runs/col 2 2.10 1.80 79.8 "evit keep=0.7 layers=0,3,6 metric=col n=2" 10 60

# --- the table and the files ---
echo mine >victim && ln -s victim loss.svg.part # planted: nothing is written through links
run 0 "$RENYI" plot runs/cls runs/col -o loss.svg
[ "$(cat victim)" = mine ] && [ -f loss.svg ] && [ ! -L loss.svg ] || fail "written through a planted link"
out_has "training loss"
out_has "metric=col n=2"
err_has "loss.svg: "
[ "$(grep -c '^c[lo][sl] ' out)" -eq 2 ] || fail "a row per run"
for text in '<title>Training runs</title>' 'training loss' 'top-1 accuracy, %' 'Means of 6 logged steps; thin lines: every step.' '>cls <tspan' '>col <tspan'; do
  grep -qF -- "$text" loss.svg || fail "loss.svg lacks $text"
done
cp loss.svg first.svg
run 0 "$RENYI" plot runs/cls runs/col/ -o loss.svg -q
[ ! -s err ] || fail "not quiet"
cmp -s loss.svg first.svg || fail "other bytes the second time"
run 0 "$RENYI" plot runs/cls/log.jsonl runs/col -o page.html --names 'class row,columns' --what loss,val_loss,top5,lr,keep,speed,epoch_loss --title 'Two <runs>' --smooth 1
for text in 'Two &lt;runs&gt;' 'class row' 'learning rate, millionths' 'share of tokens kept' 'validation loss' '<table id="runs">'; do
  grep -qF -- "$text" page.html || fail "page.html lacks $text"
done
grep -q 'Means of' page.html && fail "--smooth 1 is no mean"
if command -v xmllint >/dev/null; then
  xmllint --noout loss.svg || fail "no XML"
elif command -v python3 >/dev/null; then
  python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("loss.svg")' || fail "no XML"
fi

# --- in the terminal: charts above the table; a table alone where it is no terminal ---
run 0 "$RENYI" plot runs/cls runs/col
! grep -q '┤' out || fail "a drawing in a pipe"
COLUMNS=70 run 0 "$RENYI" plot --term runs/cls runs/col
out_has "a cls 1.8"
out_has "b col 1.7"
[ "$(grep -c '┤' out)" -ge 4 ] && [ "$(grep -c '^c[lo][sl] ' out)" -eq 2 ] || fail "charts and table"
! grep -q $'\e' out || fail "escape sequences in spite of NO_COLOR"
if command -v script >/dev/null; then
  env -u NO_COLOR TERM=xterm script -qec "'$RENYI' plot runs/cls" /dev/null >out </dev/null
  grep -q '┤' out && grep -q $'\e\[38;5;' out || fail "no drawing in a terminal"
fi
run 2 "$RENYI" plot runs/cls --term -o loss.svg
err_has "--term and -o exclude each other"

# --- numbers ---
run 0 "$RENYI" plot runs/cls runs/col --json --what loss,top1,lr --x step
json 'd["x"] == "step" and d["smooth"] == 6 and [r["name"] for r in d["runs"]] == ["cls", "col"]'
json 'all(len(r["curves"]["loss"]["x"]) == 600 and len(r["curves"]["top1"]["y"]) == 10 for r in d["runs"])'
json 'd["runs"][0]["curves"]["loss"]["x"][-1] == 600 and max(d["runs"][0]["curves"]["lr"]["y"]) <= 2e-5'
json 'd["runs"][0]["train_loss"] > d["runs"][1]["train_loss"] and d["runs"][1]["best_top1"] >= d["runs"][1]["top1"]'
run 0 "$RENYI" plot runs/cls+runs/col --json --x seconds
json 'd["runs"][0]["name"] == "cls+col" and d["runs"][0]["stages"] == 2 and d["runs"][0]["epochs"] == 20 and d["runs"][0]["steps"] == 1200'
json 'sorted(d["runs"][0]["curves"]["loss"]["x"]) == d["runs"][0]["curves"]["loss"]["x"]'

# --- two runs whose folders have the same name ---
make_run other/cls 3 2.2 1.8 79 none 2 10
run 0 "$RENYI" plot runs/cls other/cls --json
json '[r["name"] for r in d["runs"]] == ["runs/cls", "other/cls"]'

# --- interrupted, then resumed: the later lines count ---
mkdir cut
{ head -100 runs/cls/log.jsonl; sed -n '90,150p' runs/cls/log.jsonl; printf '{"kind":"step","epo'; } >cut/log.jsonl
run 0 "$RENYI" plot cut --json
json 'd["runs"][0]["cut"] and d["runs"][0]["bad_lines"] == 0 and d["runs"][0]["steps"] == 147'
[ ! -s err ] || fail "a warning about a cut last line"
{ head -50 runs/cls/log.jsonl; echo 'what is this'; sed -n '51,80p' runs/cls/log.jsonl; } >cut/log.jsonl
run 0 "$RENYI" plot cut
err_has "1 lines of the log cannot be read and are left out; the first is line 51"

# --- errors ---
run 2 "$RENYI" plot
err_has "no run"
run 2 "$RENYI" plot runs/cls -o loss.pdf
err_has "must end in .svg or .html"
run 2 "$RENYI" plot runs/cls --what loss,nonsense
err_has "'nonsense' is not one of loss, epoch_loss, val_loss"
run 2 "$RENYI" plot runs/cls runs/col --names one
err_has "2 runs need 2 names"
run 2 "$RENYI" plot runs/cls --x miles
run 1 "$RENYI" plot nowhere
err_has "nowhere"
mkdir empty
run 1 "$RENYI" plot empty
err_has "empty/log.jsonl"
echo '{"file":"a.jpg","policy":"none"}' >empty/log.jsonl
run 1 "$RENYI" plot runs/cls empty -o none.svg
err_has "is this a log of renyi train?"
out_empty
[ ! -e none.svg ] || fail "an empty chart was written"
run 1 "$RENYI" plot runs/cls -o absent/loss.svg
err_has "absent/loss.svg"
run 2 "$RENYI" plot $(printf 'runs/cls %.0s' {1..25})
err_has "at most 24"
echo "plot: ok"
