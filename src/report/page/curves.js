// curves.js - the script of the page of training runs. SPDX-License-Identifier: Apache-2.0
// It shows the values of all runs under the pointer, and one run alone. Without it the page shows the
// same charts and table.
(() => {
const { all, byId, make, makeSvg } = dom;

const data = JSON.parse(byId('data').textContent), tip = byId('tip');
let chosen = -1; // the run that is shown alone; -1 = all

// ---- values ---------------------------------------------------------------------------------------

// Index of the point of a curve nearest to x; null before its first, after its last and in gaps.
function nearest(curve, x) {
  const { x: xs, y: ys } = curve;
  if (!xs.length) return null;
  let low = 0, high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle; else high = middle;
  }
  const i = Math.abs(xs[high] - x) < Math.abs(xs[low] - x) ? high : low;
  const slack = (xs[xs.length - 1] - xs[0]) / Math.max(1, xs.length - 1) / 2 + 1e-9;
  return ys[i] === null || x < xs[0] - slack || x > xs[xs.length - 1] + slack ? null : i;
}

function tipRow(run, text) {
  const sample = byId('runs').tBodies[0].rows[run].querySelector('svg').cloneNode(true);
  return make('div', { className: 'value' }, sample, make('span', { textContent: data.runs[run] }), make('b', { textContent: text }));
}

for (const plot of all(document, '.rc-plot')) {
  const svg = plot.closest('svg'), panel = data.panels[plot.dataset.panel];
  const [x0, y0, x1, y1] = plot.dataset.box.split(' ').map(Number);
  const [lowX, highX, lowY, highY] = plot.dataset.range.split(' ').map(Number);
  const toX = (v) => x0 + (v - lowX) / (highX - lowX) * (x1 - x0);
  const toY = (v) => y1 - (Math.min(Math.max(v, lowY), highY) - lowY) / (highY - lowY) * (y1 - y0);
  const cursor = makeSvg('g', { class: 'rc-cursor', 'aria-hidden': 'true' });
  plot.append(cursor);
  // Every x of a curve; the arrow keys step through them.
  const stops = [...new Set(panel.curves.flatMap((c) => c.x))].sort((a, b) => a - b);
  let at = stops.length - 1;

  const hide = () => { tip.hidden = true; cursor.replaceChildren(); };
  const show = (x) => {
    const found = panel.curves.map((c) => ({ c, i: nearest(c, x) }))
      .filter(({ c, i }) => i !== null && (chosen < 0 || chosen === c.run));
    if (!found.length) return hide();
    const nearestX = found.map(({ c, i }) => c.x[i]).reduce((a, b) => (Math.abs(b - x) < Math.abs(a - x) ? b : a));
    cursor.replaceChildren(makeSvg('path', { class: 'rc-line', d: `M${toX(nearestX).toFixed(1)} ${y0}V${y1}` }),
      ...found.map(({ c, i }) => {
        const look = svg.querySelector(`.rc-curve.r${c.run}`)?.getAttribute('class').match(/\bc\d/)[0] ?? 'c0';
        return makeSvg('circle', { class: 'rc-here ' + look, r: 4, cx: toX(c.x[i]).toFixed(1), cy: toY(c.y[i]).toFixed(1) });
      }));
    found.sort((a, b) => b.c.y[b.i] - a.c.y[a.i]);
    tip.replaceChildren(make('small', { textContent: `${panel.x} ${nearestX.toFixed(panel.decimals[0])}` }),
      ...found.map(({ c, i }) => tipRow(c.run, c.y[i].toFixed(panel.decimals[1]))));
    tip.hidden = false;
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width, size = tip.getBoundingClientRect();
    const px = box.x + toX(nearestX) * scale, isLeft = px + size.width + 24 > innerWidth;
    tip.style.left = Math.max(8, isLeft ? px - size.width - 14 : px + 14) + 'px';
    tip.style.top = Math.max(8, Math.min(innerHeight - size.height - 8, box.y + y0 * scale + 8)) + 'px';
  };

  const follow = (event) => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.x) * scale, y = (event.clientY - box.y) * scale;
    if (x < x0 - 8 || x > x1 + 8 || y < y0 - 8 || y > y1 + 30) return hide();
    return show(lowX + (x - x0) / (x1 - x0) * (highX - lowX));
  };
  svg.addEventListener('pointermove', follow);
  svg.addEventListener('pointerdown', follow);
  svg.addEventListener('pointerleave', (event) => { if (event.pointerType === 'mouse') hide(); });
  svg.setAttribute('tabindex', '0');
  svg.addEventListener('focus', () => { if (svg.matches(':focus-visible')) show(stops[at]); });
  svg.addEventListener('blur', hide);
  svg.addEventListener('keydown', (event) => {
    const by = Math.max(1, Math.round(stops.length / 100));
    const to = { ArrowRight: at + by, ArrowLeft: at - by, Home: 0, End: stops.length - 1 }[event.key];
    if (event.key === 'Escape') hide();
    if (to === undefined || !stops.length) return;
    event.preventDefault();
    at = Math.min(Math.max(to, 0), stops.length - 1);
    show(stops[at]);
  });
}
addEventListener('scroll', () => { tip.hidden = true; }, { passive: true });

// ---- one run alone --------------------------------------------------------------------------------

function choose(run) {
  chosen = chosen === run ? -1 : run;
  for (const row of byId('runs').tBodies[0].rows) row.classList.toggle('on', +row.dataset.i === chosen);
  data.runs.forEach((_, i) => {
    for (const e of all(document, `svg.rc .r${i}`)) e.classList.toggle('off', chosen >= 0 && chosen !== i);
  });
}
for (const row of byId('runs').tBodies[0].rows) {
  row.tabIndex = 0;
  row.addEventListener('click', () => choose(+row.dataset.i));
  row.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    choose(+row.dataset.i);
  });
}
document.querySelector('.hint').hidden = data.runs.length < 2;
})();
