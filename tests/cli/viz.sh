#!/usr/bin/env bash
# renyi viz: the table, all numbers as JSON, reproducible files, images that cannot be
# read, wrong usage.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

make_toy
image=$RENYI_SRC/assets/traffic_light.png
viz() { "$RENYI" viz -m toy.safetensors "$@"; }

# --- the table ---
run 0 viz "$image"
out_has "traffic_light.png  vit_d64_l2_patch16_224, 14 x 14 patches, layers 0 1"
out_has "class attention  49 98"
out_has "Col-L4           49 98"
out_has "random           49 98"
! grep -q ' ms ' out || fail "times without --time"
run 0 viz "$image" --time --rule '' --prune 'tome r=13' -q
grep -q 'ms  ' out || fail "no times with --time"
[ ! -s err ] || fail "not quiet"
[ "$(grep -c '^  ' out)" -eq 3 ] || fail "heading, dense, tome"

# --- numbers ---
run 0 viz "$image" --json --metrics 'cls, col n=2' --layers 1 --orders 1,inf --keep 0.5,1 --rule 'naive p=20 layers=0,1' --prune 'evit keep=0.7 layers=0,1 metric=correct fuse' --prune 'mosaic keep=0.5 layers=0,1'
cp out first.json
json 'd["architecture"] == "vit_d64_l2_patch16_224" and not d["failed"] and len(d["photos"]) == 1'
json '[m["name"] for m in d["photos"][0]["metrics"]] == ["cls", "col n=2"] and [m["order"] for m in d["photos"][0]["norms"]] == [None, 1, "inf"]'
json 'all(sorted(m["maps"][0]["rank"]) == list(range(196)) and m["maps"][0]["layer"] == 1 for m in d["photos"][0]["metrics"])'
json 'all(m["maps"][0]["score"][m["maps"][0]["rank"].index(0)] == max(m["maps"][0]["score"]) for m in d["photos"][0]["metrics"])'
json '[(k["keep"], k["kept"]) for k in d["photos"][0]["keeps"]] == [(0.5, 98), (1, 196)]'
json '[r["steps"][0]["dropped"] for r in d["photos"][0]["rows"][:2]] == [40, 40]'
json 'all(sum(s[k] for k in ("kept", "merged", "fused", "dropped")) == 196 == len(s["state"]) for r in d["photos"][0]["rows"] for s in r["steps"])'
json 'd["photos"][0]["rows"][2]["steps"][0]["fused"] > 0 and len(d["photos"][0]["rows"][2]["steps"][0]["rescued_patches"]) == d["photos"][0]["rows"][2]["steps"][0]["rescued"] > 0'
json 'd["photos"][0]["rows"][3]["merges"] and len({g for g in d["photos"][0]["rows"][3]["steps"][0]["group"] if g is not None}) == d["photos"][0]["rows"][3]["steps"][0]["groups"] == 49'
json 'd["photos"][0]["sweep"] == [] and d["photos"][0]["attention"] is None and d["photos"][0]["dense"]["ms"] is None'
run 0 viz "$image" --json --metrics 'cls, col n=2' --layers 1 --orders 1,inf --keep 0.5,1 --rule 'naive p=20 layers=0,1' --prune 'evit keep=0.7 layers=0,1 metric=correct fuse' --prune 'mosaic keep=0.5 layers=0,1' -t 1
cmp -s out first.json || fail "other numbers the second time"
run 0 viz "$image" --json --sweep metrics --keep 0.25,0.5 --metrics col
json '[(r["keep"], r["steps"][1]["kept"]) for r in d["photos"][0]["sweep"]] == [(0.25, 50), (0.5, 98)]'

# --- attention ---
run 0 viz "$image" --json --rule '' --attention all --query 6,7 --token 13,13
json 'd["photos"][0]["attention"]["query"] == 6 * 14 + 7 and d["photos"][0]["attention"]["token"] == 195'
json 'all(len(l["row"]) == 2 == len(l["column"]) and abs(sum(h) - 1) < 1e-5 for l in d["photos"][0]["attention"]["layers"] for h in l["row"])'
run 0 viz "$image" --json --rule '' --attention 1
json 'd["photos"][0]["attention"]["head"] == 1 and d["photos"][0]["attention"]["query"] is None and len(d["photos"][0]["attention"]["layers"][0]["row"]) == 1'

# --- files: several at once, the same bytes again ---
run 0 viz "$image" -o a.png -o a.svg -o a.html --keep 0.5,0.7
err_has "a.png: "
err_has "a.svg: "
err_has "a.html: "
[ "$(head -c 4 a.png | tail -c 3)" = PNG ] || fail "a.png is no PNG"
grep -q '<svg' a.svg || fail "a.svg is no SVG"
grep -qi '<!doctype html>' a.html || fail "a.html is no page"
for ending in png svg html; do cp a.$ending b.$ending; done
run 0 viz "$image" -o a.png -o a.svg -o a.html --keep 0.5,0.7
for ending in png svg html; do cmp -s a.$ending b.$ending || fail "a.$ending has other bytes"; done
for figure in overlay heat norms predictions; do
  run 0 viz "$image" --svg --figure $figure
  grep -q '<svg' out || fail "--svg --figure $figure"
done
cp out first
run 0 viz "$image" --svg --figure predictions --colors red-blue --dark --title 'Other <words>'
grep -qF 'Other &lt;words&gt;' out || grep -q '<svg' out || fail "title"
! cmp -s out first || fail "dark, red-blue and a title change nothing"
run 0 viz "$image" -o m.png --figure mosaic --rule '' --prune 'mosaic keep=0.5 layers=0,1'
run 0 viz "$image" -o h.png --figure attention --attention 0
run 1 viz "$image" -o none/a.png
err_has "none/a.png"
run 1 viz "$image" -o m.png --figure mosaic
err_lines 1

# --- the picture of the README: the command below it draws one of this size, and if the photo is
# here (Debian's python3-skimage, or what `make demo` fetched), with these answers. ---
awk '/images\/viz.png/ { below = 1 }
  below && /^```/ { if (inside) exit; inside = 1; next }
  inside' "$RENYI_SRC/README.md" >command
[ "$(head -c 9 command)" = "renyi viz" ] || fail "no command below the picture of the README"
small=${RENYI_SHARED:-$RENYI_SRC/../shared}/models/vit_tiny_patch16_224.augreg_in21k_ft_in1k
photo=/usr/lib/python3/dist-packages/skimage/data/camera.png
[ -f $photo ] || photo=$RENYI_BUILD/demo/python3-skimage$photo
if [ -d "$small" ] && fc-list | grep -q OpenSans-Regular; then
  mkdir -p readme/timm && ln -s "$(realpath "$small")" readme/timm/
  cp "$([ -f "$photo" ] && echo "$photo" || echo "$RENYI_SRC/assets/wall_clock.png")" readme/camera.png
  (cd readme && renyi() { "$RENYI" "$@"; } && . ../command >../out 2>../err) || fail "README: $(cat err)"
  if [ -f "$photo" ]; then
    grep -q 'class attention .* umbrella$' out && grep -q 'Col-L2 .* tripod$' out || fail "README: other answers"
  fi
  size() { head -c 24 "$1" | tail -c 8 | od -An -tx1; }
  [ "$(size readme/viz.png)" = "$(size "$RENYI_SRC/docs/images/viz.png")" ] || fail "README: another size"
fi

# --- terminals ---
run 0 viz "$image" --term --figure overlay
grep -q $'\e\\[48;2;' out || grep -q $'\e\\[38;2;' out || fail "no colours for half blocks"
run 0 viz "$image" --term --figure heat --graphics kitty
grep -q $'\e_G' out || fail "not kitty's protocol"
run 0 env TERM_PROGRAM=iTerm.app "$RENYI" viz -m toy.safetensors "$image" --term --figure heat
grep -q $'\e\\]1337;File=' out || fail "not iTerm2's protocol"
run 0 env TMUX=x KITTY_WINDOW_ID=1 "$RENYI" viz -m toy.safetensors "$image" --term --figure heat
! grep -q $'\e_G' out || fail "graphics inside tmux"

# --- images ---
make_ppm red.ppm 250 10 10
echo 'no image' >bad.jpg
run 3 viz red.ppm bad.jpg "$image" --json
json '[p["name"] for p in d["photos"]] == ["red.ppm", "traffic_light.png"] and d["failed"][0]["file"] == "bad.jpg"'
err_lines 1
run 1 viz bad.jpg
out_empty
run 1 viz absent.jpg
err_has "absent.jpg"

# --- wrong usage: one line each ---
usage() {
  local message=$1
  shift
  run 2 "$@"
  out_empty
  err_lines 1
  err_has "$message"
}
usage "no images given" viz
usage "'a.gif' must end in .html, .png or .svg" viz "$image" -o a.gif
usage "one of them" viz "$image" --json --svg
usage "--query needs --attention" viz "$image" --query 1,1
usage "--graphics needs --term" viz "$image" --graphics kitty
usage "needs --attention HEAD" viz "$image" --figure attention
usage "neither a head, 0 to 1, nor 'all'" viz "$image" --attention 2
usage "not ROW,COL such as 6,7" viz "$image" --attention 0 --query 3
usage "14 x 14 patches are 0 to 13" viz "$image" --attention 0 --token 3,14
usage "metric \"colour\"" viz "$image" --metrics cls,colour
usage "given twice" viz "$image" --metrics col,cls,col
usage "give the policy" viz "$image" --metrics correct
usage "layer 2; the model has 0 to 1" viz "$image" --layers 0-2
usage "not a layer or a range" viz "$image" --layers 1-x
usage "layers must be ascending" viz "$image" --layers 1,0
usage "order 0.5; 1 and above" viz "$image" --orders 0.5
usage "'x' is not a number" viz "$image" --orders 1,x
usage "keep rate 1.5; above 0" viz "$image" --keep 1.5
usage "rates must ascend" viz "$image" --keep 0.5,0.4
usage "policy \"evit keep=2\"" viz "$image" --prune 'evit keep=2'
usage "rule \"mosaic keep=0.5 layers=1\"" viz "$image" --rule 'mosaic keep=0.5 layers=1'
usage "needs a rule" viz "$image" --rule '' --sweep all
for i in {0..64}; do echo "$image"; done >many.txt
usage "65 images; at most 64 at a time" viz --list many.txt --svg
usage "all|overlay" viz "$image" --figure pie
run 1 "$RENYI" viz -m absent.safetensors "$image"
err_has "absent.safetensors"
echo "viz: ok"
