#!/usr/bin/env bash
# The viz page in a browser: no error, sliders and switches change what is drawn, a patch shows its
# score and rank, keys work, and a screenshot has the expected colours.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
need_browser
look=(--window-size=1400,1000 --force-device-scale-factor=1 --hide-scrollbars --blink-settings=preferredColorScheme=1) # light

"$RENYI_BUILD/tests/test_viz_page" write || fail "no files were written"

cat >probe.js <<'JS'
<pre id="result">not run</pre><script>
const said = [], ok = (what, is) => { if (!is) said.push('NOT ' + what); };
window.addEventListener('error', (e) => said.push('NOT without error: ' + e.message));
const q = (s) => document.querySelector(s), qa = (s) => [...document.querySelectorAll(s)];
const canvas = (card) => qa('#cards canvas')[card];
// The colour in the middle of patch p of a card.
const at = (card, p, c = canvas(card)) => [...c.getContext('2d').getImageData((p % 4 + 0.5) * c.width / 4, (Math.floor(p / 4) + 0.5) * c.height / 4, 1, 1).data].slice(0, 3);
const own = (p) => [40 + 60 * (p % 4), 40 + 60 * Math.floor(p / 4), 60];
const near = (a, b, far = 6) => a.every((v, i) => Math.abs(v - b[i]) <= far);
const all = (card) => Array.from({ length: 16 }, (_, p) => p).filter((p) => near(at(card, p), own(p))).join();
const slide = (id, v) => { q('#' + id).value = v; q('#' + id).dispatchEvent(new Event('input', { bubbles: true })); };
const choose = (name, v) => q(`input[name=${name}][value=${v}]`).click();
const pick = (id, v) => { q('#' + id).value = v; q('#' + id).dispatchEvent(new Event('change', { bubbles: true })); };
const move = (card, p, type = 'pointermove') => { const b = canvas(card).getBoundingClientRect();
  canvas(card).dispatchEvent(new PointerEvent(type, { clientX: b.x + (p % 4 + 0.5) * b.width / 4, clientY: b.y + (Math.floor(p / 4) + 0.5) * b.height / 4, bubbles: true, pointerType: 'mouse' })); };
const press = (e, key) => e.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
const tip = () => (q('#tip').hidden ? '' : [...q('#tip').querySelectorAll('tbody tr')].map((r) => [...r.cells].map((c) => c.textContent).join('|')).join('\n'));

function masks() {
  ok('six cards', qa('.card').length === 6 && qa('.card h3').map((e) => e.textContent).join() === 'What the model sees,class attention,Col-L4,random,mosaic,evit');
  ok('the budget of the command', q('#cuts').value === 'rule' && q('#keep-box output').textContent === 'as given' && !q('#keep').disabled);
  ok('costs are totals', qa('.count span').map((e) => e.textContent).join() === '0.020 GMACs,' + Array(5).fill('0.012 GMACs') && qa('.count span')[1].title.includes('0.004 GMACs so far, up to the end of layer 3'));
  ok('the image', all(0) === '0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15');
  ok('8 of 16 kept at the end', all(1) === '5,6,7,8,9,10,11,12' && qa('.count b')[1].textContent === '8');
  slide('layer', 1); ok('12 after the first cut', all(1) === '1,2,3,4,5,6,7,8,9,10,11,12' && q('#layer-box output').textContent === '1');
  slide('layer', 0); ok('all before it', all(1).split(',').length === 16);
  slide('layer', 3); slide('keep', 0); ok('4 at keep 25 %', all(1) === '9,10,11,12' && q('#keep-box output').textContent === '25 %' && q('#cuts').value === 'sweep');
  ok('and another answer is marked', qa('.answer .other').length === 1 && qa('.answer .other')[0].textContent === 'apple');
  slide('keep', 1);
  const before = all(2); slide('order', 2);
  ok('another norm, another mask', all(2) !== before && qa('.card h3')[2].textContent === 'Col-L∞' && q('#order-box output').textContent === '∞');
  ok('of the run, not a preview', !q('#cards').textContent.includes('preview'));
  slide('order', 1); ok('as it was', all(2) === before);
  pick('cuts', 'once'); ok('one cut', all(1) === [0, 1, 2, 3, 4, 5, 6, 15].join() && q('#cards').textContent.includes('preview'));
  pick('cuts', 'rule'); ok('the rule', all(1) === '5,6,7,8,9,10,11,12' && q('#keep-box output').textContent === 'as given');
  pick('cuts', 'sweep');
}
function viewsWork() {
  choose('view', 'photo'); ok('image everywhere', all(3).split(',').length === 16);
  choose('view', 'heat'); const high = at(1, 0), low = at(1, 7); // scores 10 and 1 of 16 at layer 3
  ok('heat has colours', !near(high, low, 30) && qa('.count.scale .bar').length > 3);
  slide('layer', 0); ok('of the layer', !near(at(1, 0), high, 6)); slide('layer', 3);
  pick('colours', 'paper'); ok('red and blue', at(1, 6)[0] > at(1, 6)[2] && at(1, 7)[2] > at(1, 7)[0]); pick('colours', 'even');
  pick('scale', 'rank'); ok('by rank', q('.count.scale').textContent === 'rank 16rank 1'); pick('scale', 'score');
  choose('view', 'mosaic');
  const mean = [0, 1, 2].map((c) => [1, 2, 3, 4].reduce((s, p) => s + own(p)[c] / 4, 0)); // merged into one token
  ok('a token in its mean colour', near(at(4, 1), mean) && near(at(4, 4), mean) && near(at(4, 9), own(9)));
  choose('view', 'mask');
  const light = (rgb) => rgb[0] + rgb[1] + rgb[2] > 450, dark = (rgb) => rgb[0] + rgb[1] + rgb[2] < 250;
  const gone = (card) => Array.from({ length: 16 }, (_, p) => p).filter((p) => !near(at(0, p), at(card, p)));
  ok('a dark cover on a bright image', gone(1).length === 8 && gone(1).every((p) => dark(at(1, p))) && getComputedStyle(q('.key .gone')).backgroundImage.includes('52, 64, 80'));
  q('#photos button:nth-child(2)').click(); ok('the other image', near(at(0, 3), [110, 20, 60]) && q('#photos button:nth-child(2)').ariaPressed === 'true');
  ok('a light cover on a dark image', gone(1).length === 8 && gone(1).every((p) => light(at(1, p))) && getComputedStyle(q('.key .gone')).backgroundImage.includes('195, 202, 212'));
  q('#photos button').click();
}
function patches() {
  ok('no tip at first', !tip());
  move(1, 12); ok('score and rank of each metric', tip().includes('class attention|0.0600|11 of 16||kept') && tip().split('\n').length === 5);
  ok('what became of it', tip().includes('random|') && q('#tip').textContent.includes('Patch 3, 0'));
  move(4, 1); ok('in one token', tip().includes('in one token with 3 more')); // patches 1 to 4
  move(1, 0); ok('where it was dropped', /class attention\|0.100\|7 of 16\|\|dropped at layer 1/.test(tip()));
  ok('marked on all images', [0, 1, 2, 3].every((card) => near([...canvas(card).getContext('2d').getImageData(canvas(card).width / 4, 20, 1, 1).data].slice(0, 3), [255, 255, 255])));
  canvas(1).dispatchEvent(new PointerEvent('pointerleave', { pointerType: 'mouse' })); ok('gone outside', !tip());
  canvas(2).focus(); press(canvas(2), 'ArrowDown'); const first = q('#tip b').textContent;
  press(canvas(2), 'ArrowRight'); ok('keys walk', first === 'Patch 2, 2' && q('#tip b').textContent === 'Patch 2, 3');
  press(canvas(2), 'PageUp'); ok('and change the layer', q('#layer').value === '2' && q('#tip').textContent.includes('layer 2'));
  press(canvas(2), 'PageDown'); press(canvas(2), 'Escape'); ok('and leave', !tip());
  move(1, 5, 'click'); move(1, 9); ok('a click holds it', q('#tip b').textContent === 'Patch 1, 1'); press(document.body, 'Escape');
}
function rest() {
  ok('a strip', qa('#strip tbody tr').length === 5 && qa('#strip canvas').length === 20 && near(at(0, 12, qa('#strip canvas')[3]), own(12)));
  choose('rows', 'norms'); ok('of norms', qa('#strip tbody th').map((e) => e.textContent).join() === 'class attention,Col-L1,Col-L4,Col-L∞'); choose('rows', 'cards');
  qa('#strip button')[1].click(); ok('that chooses the layer', q('#layer').value === '1' && qa('#strip td.on').length === 5); slide('layer', 3);
  ok('predictions', qa('#answers thead th').length === 7 && qa('#answers tbody tr')[0].textContent.startsWith('pear75.0 %50.0 %'));
  ok('heads', !q('#attention').hidden && qa('#heads canvas').length === 6 && q('#attention-note').textContent.includes('patch 1, 2'));
  ok('everything has a name', qa('canvas[tabindex]').every((c) => c.ariaLabel.includes('bright.png')) && qa('input[type=range]').every((i) => i.labels.length && i.ariaValueText));
  ok('no sideways scrolling', document.documentElement.scrollWidth <= innerWidth);
}
setTimeout(() => {
  try { masks(); viewsWork(); patches(); rest(); } catch (e) { said.push('NOT without error: ' + e.stack); }
  const boxes = qa('#cards canvas').map((c) => c.getBoundingClientRect()).map((b) => [b.x, b.y + scrollY, b.width]);
  q('#result').textContent = (said.length ? said.join('\n') : 'all is well') + '\n' + JSON.stringify(boxes);
}, 1500);
</script>
JS
sed '/^<\/body>/e cat probe.js' plain.html >probed.html
open_page probed.html
grep -q '<pre id="result">all is well' out || fail "$(sed -n '/id="result"/,/pre>/p' out | head -20)"
sed -n '/<pre id="result">/{n;s/<.*//;p;}' out >boxes.json

# Pages that are difficult for the script, and one on a phone: their errors are seen in the console.
printf '<!doctype html>' >frames.html
printf '<iframe src="%s" width="360" height="640"></iframe>' nasty.html spare.html 'plain.html#view=heat&layer=9&order=x' >>frames.html
if command -v python3 >/dev/null; then # squares of a LLaVA-NeXT, and a rule without scores
  python3 "$RENYI_SRC/tests/fixtures/make_llava.py" next tiles=1
  make_ppm wide.ppm 90 60 200
  run 0 "$RENYI" viz -m next -t 1 wide.ppm -o squares.html --prune 'vispruner tokens=6' --prune 'pool tokens=4'
  printf '<iframe src="%s" width="360" height="640"></iframe>' 'squares.html#view=heat' 'squares.html#photo=1' >>frames.html
fi
open_page frames.html

# A screenshot: kept patches have their own colour, the others are covered as in viz.css.
command -v python3 >/dev/null || { echo "SKIP: no python3 to look at the screenshot"; exit 0; }
browse --screenshot="$WORK/shot.png" "file://$WORK/plain.html#view=mask&layer=3&keep=1"
python3 - <<'PY' || fail "the screenshot has other colours"
import json, struct, zlib
raw, at, body = open("shot.png", "rb").read(), 8, b""
while at < len(raw):
    size, kind = struct.unpack(">I4s", raw[at:at + 8])
    if kind == b"IHDR": width, height, depth, colour = struct.unpack(">IIBB", raw[at + 8:at + 18])
    if kind == b"IDAT": body += raw[at + 8:at + 8 + size]
    at += 12 + size
n = {2: 3, 6: 4}[colour]
body, stride, rows, up = zlib.decompress(body), width * n, [], bytearray(width * n)
for y in range(min(height, 900)):
    how, row = body[y * (stride + 1)], bytearray(body[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
    for i in range(stride):
        a, b, c = (row[i - n] if i >= n else 0), up[i], (up[i - n] if i >= n else 0)
        p = a + b - c
        paeth = min((a, b, c), key=lambda v: abs(p - v)) if how == 4 else 0
        row[i] = (row[i] + (0, a, b, (a + b) // 2, paeth)[how]) & 255
    rows.append(row)
    up = row
def mean(box, patch):
    x, y, side = box
    x0, y0, s = x + patch % 4 * side / 4, y + patch // 4 * side / 4, side / 4
    points = [(int(x0 + s * (i + .5) / 9), int(y0 + s * (j + .5) / 9)) for i in range(2, 7) for j in range(2, 7)]
    return [sum(rows[v][u * n + k] for u, v in points) / len(points) for k in range(3)]
boxes, wrong = json.load(open("boxes.json")), 0
own = lambda p: [40 + 60 * (p % 4), 40 + 60 * (p // 4), 60]
for p in range(16):
    pale = 0 if 5 <= p <= 12 else 0.6 if 1 <= p <= 4 else 0.92  # kept, gone at this layer, before
    for card, fade in ((0, 0), (1, pale)):
        want = [v + (g - v) * fade for v, g in zip(own(p), (29, 37, 48))]
        got = mean(boxes[card], p)
        if max(abs(a - b) for a, b in zip(want, got)) > (14 if fade else 6):  # thin lines through what is gone
            print("card", card, "patch", p, "is", got, "not", want)
            wrong += 1
raise SystemExit(wrong > 0)
PY
