// page.js - the script of the report page. SPDX-License-Identifier: Apache-2.0
// It sorts and filters the tables, connects marks with rows, and shows the paired tests against any
// baseline. Without it the page shows the same content, but cannot be changed.
(() => {
const { all, byId, make } = dom;

const data = JSON.parse(byId('data').textContent);
const points = byId('points'), tests = byId('tests'), tip = byId('tip');
const rows = all(points.tBodies[0], 'tr');       // by index of the point, which is the order of the file
const marks = rows.map(() => []);                // marks[i]: the marks of point i in all charts
for (const mark of all(document, 'a.rc-m')) marks[mark.dataset.i].push(mark);
const cell = (i, name) => rows[i].querySelector('.' + name);
const number = (text) => parseFloat(text.replace('\u2212', '-').replace('< ', ''));
const gmacs = rows.map((_, i) => number(cell(i, 'g').textContent));
const models = rows.map((_, i) => cell(i, 'mo').textContent);
const isMany = new Set(models).size > 1;
const size = (i) => cell(i, 'si').textContent;
const extra = (i) => (isMany ? ', ' + models[i] : '') + (cell(i, 'si').matches('.rs') ? ', ' + size(i) + ' px' : '');
const policy = (i) => cell(i, 'po').textContent;
const title = (i) => '#' + (i + 1) + ' ' + (rows[i].dataset.f === 'none' ? 'dense' : policy(i)) + extra(i);

// ---- sorting ------------------------------------------------------------------------------------

function sortBy(table, column, isDown) {
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => {
    const text = row.cells[column].textContent.trim(), v = number(text);
    return { row, text, v, i: +row.dataset.i };
  });
  const areNumbers = keyed.every((k) => !Number.isNaN(k.v) || k.text === '–');
  const order = (a, b) => {
    if (!areNumbers) return a.text < b.text ? -1 : a.text > b.text ? 1 : 0;
    return Number.isNaN(a.v) || Number.isNaN(b.v) ? 0 : a.v - b.v;
  };
  const isLast = (k) => (areNumbers && Number.isNaN(k.v) ? 1 : 0);
  keyed.sort((a, b) => isLast(a) - isLast(b) || (isDown ? -1 : 1) * order(a, b) || a.i - b.i);
  body.append(...keyed.map((k) => k.row));
  for (const th of all(table, 'th')) th.removeAttribute('aria-sort');
  table.tHead.rows[0].cells[column].setAttribute('aria-sort', isDown ? 'descending' : 'ascending');
}

for (const table of [points, tests]) {
  all(table, 'th').forEach((th, column) => {
    const button = make('button', { type: 'button', textContent: th.textContent });
    th.replaceChildren(button);
    button.addEventListener('click', () => {
      const now = th.getAttribute('aria-sort');
      sortBy(table, column, now ? now === 'ascending' : 'down' in th.dataset);
    });
  });
}

// ---- the selected point, in charts and tables -----------------------------------------------------

let chosen = -1;

function choose(i, mayScroll) {
  for (const e of all(document, '.on')) e.classList.remove('on');
  chosen = chosen === i ? -1 : i;
  if (chosen < 0) return;
  for (const mark of marks[i]) { mark.classList.add('on'); mark.parentNode.append(mark); }
  for (const row of all(document, `tr[data-i="${i}"]`)) row.classList.add('on');
  if (mayScroll) rows[i].scrollIntoView({ block: 'center', behavior: 'smooth' });
}

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[href^="#r"]');
  if (link) {
    event.preventDefault();
    const isRow = link.closest('tbody');
    choose(parseInt(link.getAttribute('href').slice(2), 10) - 1, !isRow);
  } else if (event.target.closest('tbody tr')) {
    choose(+event.target.closest('tr').dataset.i, false);
  }
});

// ---- tooltips of marks ----------------------------------------------------------------------------

function showTip(mark) {
  const i = +mark.dataset.i, text = (name) => cell(i, name).textContent.trim();
  const [top1, range] = [cell(i, 't1').querySelector('b').textContent, cell(i, 't1').querySelector('small').textContent];
  const c = rows[i].cells;
  tip.replaceChildren(make('b', { textContent: title(i) }),
    `${top1} % top-1 (${range}), ${c[5].textContent} % top-5`, make('br'),
    `${text('g')} GMACs, ${c[8].textContent} ms, ${c[9].textContent} images/s`);
  const on = text('fr');
  if (on) tip.append(make('br'), 'on the front by ' + on.replace(' ', ' and '));
  tip.hidden = false;
  const at = mark.getBoundingClientRect(), box = tip.getBoundingClientRect();
  const x = Math.min(Math.max(8, at.x + at.width / 2 - box.width / 2), innerWidth - box.width - 8);
  const above = at.y - box.height - 10;
  tip.style.left = x + 'px';
  tip.style.top = (above > 4 ? above : at.bottom + 10) + 'px';
}

// Marks are small, so the pointer selects the nearest one within a finger's width. The Tab key reaches
// one mark of a chart; the arrow keys move on from there, from left to right.
for (const chart of all(document, 'svg.rc')) {
  const own = all(chart, 'a.rc-m');
  if (!own.length) continue;
  const place = new Map(own.map((m) => [m, m.getAttribute('transform').match(/[\d.-]+/g).map(Number)]));
  const walk = [...own].sort((a, b) => place.get(a)[0] - place.get(b)[0] || place.get(b)[1] - place.get(a)[1]);
  own.forEach((m) => { m.tabIndex = -1; m.querySelector('title')?.remove(); m.setAttribute('aria-label', title(+m.dataset.i)); });
  walk[0].tabIndex = 0;
  const nearest = (event) => {
    const box = chart.getBoundingClientRect(), scale = chart.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.x) * scale, y = (event.clientY - box.y) * scale;
    let best = null, least = 22 * 22;
    for (const m of own) {
      if (m.classList.contains('off')) continue;
      const [mx, my] = place.get(m), d = (mx - x) ** 2 + (my - y) ** 2;
      if (d < least) { least = d; best = m; }
    }
    return best;
  };
  chart.addEventListener('pointermove', (event) => {
    const m = nearest(event);
    chart.style.cursor = m ? 'pointer' : '';
    if (m) showTip(m); else tip.hidden = true;
  });
  chart.addEventListener('pointerleave', () => { tip.hidden = true; });
  chart.addEventListener('click', (event) => {
    const m = event.target.closest('a.rc-m') ? null : nearest(event);
    if (m) { choose(+m.dataset.i, event.pointerType !== 'touch'); showTip(m); }
  });
  chart.addEventListener('focusin', (event) => { const m = event.target.closest('a.rc-m'); if (m) showTip(m); });
  chart.addEventListener('focusout', () => { tip.hidden = true; });
  chart.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const from = walk.indexOf(event.target.closest('a.rc-m'));
    if (!step || from < 0) return;
    event.preventDefault();
    for (let k = from + step; k >= 0 && k < walk.length; k += step) {
      if (walk[k].classList.contains('off')) continue;
      walk[from].tabIndex = -1;
      walk[k].tabIndex = 0;
      walk[k].focus();
      break;
    }
  });
}

// ---- filters ------------------------------------------------------------------------------------

function pick(label, values) {
  const select = make('select', {}, make('option', { value: '', textContent: 'all' }),
    ...values.map((v) => make('option', { value: v, textContent: v })));
  return { select, label: make('label', {}, label, select) };
}

{
  const form = byId('filters');
  const distinct = (list) => [...new Set(list)];
  const search = make('input', { type: 'search', placeholder: 'keep=0.7 mosaic', ariaLabel: 'words that a row must have' });
  const families = rows.map((r) => r.dataset.f);
  const model = pick('model', distinct(models)), px = pick('size', distinct(rows.map((_, i) => size(i)))),
    family = pick('policy', distinct(families));
  const front = make('input', { type: 'checkbox' });
  const count = make('output');
  form.append(make('label', {}, 'find', search));
  if (distinct(models).length > 1) form.append(model.label);
  if (distinct(rows.map((_, i) => size(i))).length > 1) form.append(px.label);
  if (distinct(families).length > 1) form.append(family.label);
  form.append(make('label', {}, front, 'front only'), count);
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    rows.forEach((row, i) => {
      const text = (row.textContent + ' ' + cell(i, 'po').title).toLowerCase();
      const isIn = words.every((w) => text.includes(w)) && (!front.checked || cell(i, 'fr').textContent.trim())
        && (!model.select.value || model.select.value === models[i]) && (!px.select.value || px.select.value === size(i))
        && (!family.select.value || family.select.value === families[i]);
      row.hidden = !isIn;
      n += isIn ? 1 : 0;
      for (const m of marks[i]) m.classList.toggle('off', !isIn);
    });
    count.textContent = n === rows.length ? `${n} rows` : `${n} of ${rows.length} rows`;
  };
  form.addEventListener('input', filter);
  form.addEventListener('submit', (event) => event.preventDefault());
  form.hidden = rows.length < 2;
  filter();
}

// ---- paired tests -------------------------------------------------------------------------------

// pairs[a] is a text, see report_pairs.c: "[b=]only_a,only_b,same,p[~][,both,neither]" for each b > a.
const known = data.pairs.map((text, a) => {
  const of = new Map();
  let b = a;
  for (const item of text ? text.split(' ') : []) {
    const parts = item.split('=');
    b = parts.length > 1 ? +parts[0] : b + 1;
    of.set(b, parts[parts.length - 1]);
  }
  return of;
});

// The pair as seen from `base`: where `other` is better and worse.
function pair(base, other) {
  const [a, b] = base < other ? [base, other] : [other, base];
  const text = known[a].get(b);
  if (text === undefined) return null;
  const f = text.split(','), onlyA = +f[0], onlyB = +f[1];
  const both = f.length > 4 ? +f[4] : data.right[a] - onlyA;
  const neither = f.length > 4 ? +f[5] : data.images[a] - both - onlyA - onlyB;
  const onlyBase = base < other ? onlyA : onlyB, onlyThis = base < other ? onlyB : onlyA;
  const n = both + onlyA + onlyB + neither, p = f[3].replace('~', '');
  return { both, neither, onlyBase, onlyThis, same: n ? (100 * f[2] / n).toFixed(1) : '–', isNoise: f[3].endsWith('~'),
    points: n ? 100 * (onlyThis - onlyBase) / n : NaN, range: interval(onlyBase, onlyThis, n),
    p: p === '-' ? '–' : p === '0' ? '< 0.0001' : (p / 1e4).toFixed(4) };
}

// The same as ry_pair_interval in report_pairs.c.
function interval(onlyBase, onlyThis, n) {
  const change = onlyThis - onlyBase, half = 1.959964 * Math.sqrt(onlyThis + onlyBase + 1 - change ** 2 / (n + 2));
  return signed(100 * Math.max(-1, (change - half) / (n + 2)), 1) + ' to ' + signed(100 * Math.min(1, (change + half) / (n + 2)), 1);
}

function signed(v, decimals) {
  const text = Math.abs(v).toFixed(decimals);
  return Number.isNaN(v) ? '–' : (+text === 0 ? '' : v < 0 ? '\u2212' : '+') + text;
}
const link = (i) => make('a', { href: '#r' + (i + 1), textContent: title(i) });

function testRow(i, p) {
  const row = make('tr', { className: rows[i].className.match(/c\d/)[0] + (p.isNoise ? ' noise' : '') + (i === chosen ? ' on' : '') });
  row.dataset.i = i;
  const td = (text) => row.append(make('td', { textContent: text }));
  td(i + 1);
  row.append(make('td', { className: 'po' }, make('i'), make('a', { href: '#r' + (i + 1), textContent: policy(i) }),
    make('small', { textContent: extra(i) })));
  row.append(make('td', { className: 'g', textContent: cell(i, 'g').textContent }));
  row.append(make('td', {}, make('b', { textContent: signed(p.points, 2) }), ' ', make('small', { textContent: p.range })));
  [p.both, p.onlyBase, p.onlyThis, p.neither, p.same, p.p].forEach(td);
  td(p.isNoise ? 'within the noise' : p.points < 0 ? 'worse' : 'better');
  return row;
}

function writeVerdict(base, list) {
  const cheaper = list.filter(({ i, p }) => p.points >= -1 && gmacs[i] < gmacs[base]);
  const best = cheaper.reduce((a, b) => (a && gmacs[a.i] <= gmacs[b.i] ? a : b), null);
  const verdict = byId('verdict');
  if (!list.length) {
    verdict.replaceChildren('No paired tests against ', link(base), ' are known.');
    return;
  }
  if (best) {
    verdict.replaceChildren('Cheapest within one point of ', link(base), ': ', make('b', {}, link(best.i)), ', with ',
      make('b', { textContent: (100 * gmacs[best.i] / gmacs[base]).toFixed(0) + ' %' }), ' of its GMACs and ',
      make('b', { textContent: signed(best.p.points, 2) }), ` points of accuracy (95 % interval: ${best.p.range}), p = ${best.p.p}. `);
  } else {
    verdict.replaceChildren('Nothing cheaper comes within one point of ', link(base), '. ');
  }
  const noise = list.filter(({ p }) => p.isNoise).length;
  verdict.append(make('span', { textContent: (best ? 'The interval says how much may really be lost. ' : '')
    + `${noise} of ${list.length} tests are within the noise of ${data.images[base]} photos.` }));
}

function compareWith(base) {
  const list = rows.map((_, i) => ({ i, p: i === base ? null : pair(base, i) })).filter(({ p }) => p);
  tests.tBodies[0].replaceChildren(...list.map(({ i, p }) => testRow(i, p)));
  byId('against').textContent = title(base);
  const th = tests.querySelector('th[aria-sort]');
  if (th) sortBy(tests, th.cellIndex, th.getAttribute('aria-sort') === 'descending');
  writeVerdict(base, list);
}

{
  const form = byId('choose');
  const has = rows.map(() => false);
  known.forEach((of, a) => { for (const b of of.keys()) has[a] = has[b] = true; });
  const select = make('select', { id: 'baseline' }, ...rows.flatMap((_, i) =>
    (has[i] ? [make('option', { value: i, textContent: title(i) })] : [])));
  select.value = data.baseline;
  form.append(make('label', {}, 'baseline', select));
  form.hidden = !select.options.length;
  select.addEventListener('change', () => compareWith(+select.value));
  form.addEventListener('submit', (event) => event.preventDefault());
}
})();
