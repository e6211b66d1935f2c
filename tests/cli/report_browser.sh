#!/usr/bin/env bash
# The report page in a browser: no error, tables sort and filter, marks select their rows, and the
# paired tests follow the baseline. SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
need_browser

"$RENYI_BUILD/tests/test_report" write || fail "no files were written"

cat >probe.js <<'JS'
<pre id="result">not run</pre><script>
const said = [], ok = (what, is) => { if (!is) said.push('NOT ' + what); };
window.addEventListener('error', (e) => said.push('NOT without error: ' + e.message));
try {
  const q = (s) => document.querySelector(s), qa = (s) => [...document.querySelectorAll(s)];
  const order = () => qa('#points tbody tr').map((r) => r.dataset.i).join();
  const column = (t, k) => qa(`#${t} tbody tr`).map((r) => parseFloat(r.cells[k].textContent.replace('\u2212', '-')));
  const rises = (list) => list.every((v, i) => !i || list[i - 1] <= v);
  const before = order(), head = qa('#points th button');
  head[7].click(); ok('sorted by GMACs', order() !== before && rises(column('points', 7)));
  ok('says so', q('#points th[aria-sort=ascending]').textContent === 'GMACs');
  head[7].click(); ok('sorted down', rises(column('points', 7).reverse()));
  head[0].click(); ok('as it was', order() === before);
  const input = (e, v) => { e.value = v; e.dispatchEvent(new Event('input', { bubbles: true })); };
  input(q('#filters input[type=search]'), 'mosaic keep=0.9');
  const seen = qa('#points tbody tr').filter((r) => !r.hidden);
  ok('filtered', seen.length > 0 && seen.every((r) => r.textContent.includes('mosaic keep=0.9')));
  ok('marks follow', qa('a.rc-m:not(.off)').length === 4 * seen.length);
  input(q('#filters input[type=search]'), '');
  ok('all again', qa('#points tbody tr').every((r) => !r.hidden) && !q('a.rc-m.off'));
  const tests = q('#tests tbody').textContent, verdict = q('#verdict').textContent;
  const select = q('#baseline');
  select.value = '7'; select.dispatchEvent(new Event('change', { bubbles: true }));
  ok('other tests', q('#tests tbody').textContent !== tests && q('#verdict').textContent !== verdict);
  ok('no test against itself', !q('#tests tr[data-i="7"]') && q('#against').textContent.startsWith('#8 '));
  select.value = '0'; select.dispatchEvent(new Event('change', { bubbles: true }));
  const squeeze = (s) => s.replace(/\s+/g, '');
  ok('the script writes the rows that the file has', squeeze(q('#tests tbody').textContent) === squeeze(tests));
  ok('and its sentence', squeeze(q('#verdict').textContent) === squeeze(verdict));
  ok('noise is grey', qa('#tests tr.noise').length > 0 && qa('#tests tr.noise').every((r) => r.textContent.endsWith('within the noise')));
  q('a.rc-m[data-i="3"]').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
  ok('mark to row', q('#r4').classList.contains('on') && qa('tr.on').length === 2);
  q('#r6 a').click();
  ok('row to mark', qa('a.rc-m.on').length === 4 && qa('a.rc-m.on').every((m) => m.dataset.i === '5'));
  const first = q('svg.rc-desk a.rc-m[tabindex="0"]');
  first.focus(); ok('tip on focus', !q('#tip').hidden && q('#tip').textContent.includes('GMACs'));
  first.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
  ok('arrows walk', document.activeElement !== first && document.activeElement.matches('a.rc-m'));
} catch (e) { said.push('NOT without error: ' + e.stack); }
document.getElementById('result').textContent = said.length ? said.join('\n') : 'all is well';
</script>
JS
sed '/^<\/body>/e cat probe.js' plain.html >probed.html
open_page probed.html
grep -q '<pre id="result">all is well' out || fail "$(sed -n '/id="result"/,/pre>/p' out | head -20)"

# Pages that are difficult for the script: their errors are seen in the console.
printf '<!doctype html>' >frames.html
printf '<iframe src="%s.html"></iframe>' nasty empty single large >>frames.html
open_page frames.html
