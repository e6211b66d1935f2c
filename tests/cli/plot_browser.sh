#!/usr/bin/env bash
# The page of training runs in a browser: no error, values under the pointer, one run alone.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
need_browser
look=(--window-size=1200,900)

"$RENYI_BUILD/tests/test_curves" write || fail "no files were written"

cat >probe.js <<'JS'
<pre id="result">not run</pre><script>
const said = [], ok = (what, is) => { if (!is) said.push('NOT ' + what); };
window.addEventListener('error', (e) => said.push('NOT without error: ' + e.message));
try {
  const q = (s) => document.querySelector(s), qa = (s) => [...document.querySelectorAll(s)];
  const chart = qa('svg.rc-desk')[1], tip = q('#tip'), box = () => chart.getBoundingClientRect();
  const move = (x, y) => chart.dispatchEvent(new PointerEvent('pointermove', { clientX: box().x + x * box().width / 960, clientY: box().y + y * box().width / 960, bubbles: true, pointerType: 'mouse' }));
  const plot = chart.querySelector('.rc-plot').dataset.box.split(' ').map(Number);
  ok('no tip at first', tip.hidden);
  move(plot[2], plot[1] + 20);
  ok('a tip at the right end', !tip.hidden && tip.textContent.includes('epochs 10.00'));
  ok('all runs, the best first', qa('#tip .value span').map((e) => e.textContent).join() === 'run 1,run 2,run 3');
  ok('their values', qa('#tip .value b').map((e) => e.textContent).join() === '79.00,78.50,78.00');
  ok('marks on the lines', chart.querySelectorAll('.rc-here').length === 3);
  move(plot[0] - 40, plot[1]); ok('gone outside', tip.hidden && !chart.querySelector('.rc-here'));
  chart.focus(); chart.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true }));
  ok('keys walk', !tip.hidden && tip.textContent.includes('epochs 1.00'));
  chart.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true })); ok('and leave', tip.hidden);
  q('#runs tbody tr[data-i="1"]').click();
  ok('one run alone', qa('svg.rc .r0.off').length > 0 && !qa('svg.rc .r1.off').length && q('#runs tr.on').dataset.i === '1');
  move(plot[2], plot[1] + 20); ok('with its own value', qa('#tip .value').length === 1);
  q('#runs tbody tr[data-i="1"]').click(); ok('all again', !q('.off') && !q('#runs tr.on'));
  ok('no sideways scrolling', document.documentElement.scrollWidth <= innerWidth);
} catch (e) { said.push('NOT without error: ' + e.stack); }
document.getElementById('result').textContent = said.length ? said.join('\n') : 'all is well';
</script>
JS
sed '/^<\/body>/e cat probe.js' plain.html >probed.html
open_page probed.html
grep -q '<pre id="result">all is well' out || fail "$(sed -n '/id="result"/,/pre>/p' out | head -20)"

# Pages that are difficult for the script, and the chart as a file: errors are seen in the console.
printf '<!doctype html>' >frames.html
printf '<iframe src="%s"></iframe>' nasty.html many.html plain.svg >>frames.html
open_page frames.html
