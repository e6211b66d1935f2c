// viz_patch.js - the tooltip of the patch under the pointer: its score and rank by every metric, what
// became of it, and its rank over the layers. SPDX-License-Identifier: Apache-2.0
function vizPatch({ state, cards, shown, labelOf, mapOf, stepOf, drawCards, change }) {
const { data, P, GRID } = viz, { byId, make, makeSvg } = dom, tip = byId('tip');
const patch = { at: -1, on: null, isPinned: false, refresh: () => { if (patch.at >= 0) fillTip(); } };

const number = (v) => (Number.isFinite(v) ? (v === 0 ? '0' : Math.abs(v) >= 0.001 && Math.abs(v) < 1e4 ? v.toPrecision(3) : v.toExponential(2)) : '–');

// ---- content --------------------------------------------------------------------------------------

function fate(card, p) {
  const step = stepOf(card, state.layer);
  if (step.isPreview) return step.isGone(p) ? 'would be cut' : 'would stay';
  if (step.isGone(p)) return `${step.isFused(p) ? 'fused' : 'dropped'} at layer ${step.goneAt(p)}`;
  const others = step.members(p).length - 1;
  if (others > 0) return `in one token with ${others} more`;
  return step.rescued.has(p) ? 'rescued' : 'kept';
}

// Rank over the layers as a small line, the best at the top.
function sparkline(map) {
  const photo = viz.photo(state.photo), n = data.layers.length;
  const at = (i) => [n > 1 ? 3 + 66 * i / (n - 1) : 36, 3 + 14 * photo.map(map, i).rank[patch.at] / (P - 1)].map((v) => v.toFixed(1));
  const [cx, cy] = at(state.layer);
  return makeSvg('svg', { viewBox: '0 0 72 20', 'aria-hidden': 'true' },
    makeSvg('path', { d: 'M' + data.layers.map((_, i) => at(i).join(' ')).join('L') }), makeSvg('circle', { cx, cy, r: 2.6 }));
}

function zoom() {
  const canvas = make('canvas', { width: 96, height: 96 }), photo = viz.photo(state.photo), side = photo.size / GRID;
  const x = (patch.at % GRID) * side, y = Math.floor(patch.at / GRID) * side;
  canvas.getContext('2d').drawImage(photo.image, x, y, side, side, 0, 0, 96, 96);
  return canvas;
}

function fillTip() {
  const p = patch.at, photo = viz.photo(state.photo), row = (...cells) => make('tr', {}, ...cells);
  const lines = cards.map((card) => {
    const name = make('th', { textContent: labelOf(card), scope: 'row' }), isOn = shown[patch.on]?.card === card;
    const map = card.map >= 0 ? photo.map(mapOf(card), state.layer) : null;
    const scores = map ? map.score : stepOf(card, state.layer).scores ?? [], isRanked = map || Number.isFinite(scores[p]);
    const place = isRanked ? make('td', {}, make('b', { textContent: (map?.rank ?? viz.ranked(scores))[p] + 1 }), ` of ${map ? P : scores.filter(Number.isFinite).length}`) : make('td', { textContent: '–' });
    const line = row(name, make('td', { className: 'score', textContent: number(scores[p] ?? NaN) }), place,
      make('td', {}, map && data.layers.length > 1 ? sparkline(mapOf(card)) : ''), make('td', { className: 'fate', textContent: fate(card, p) }));
    line.className = isOn ? 'on' : '';
    return line;
  });
  const head = row(...['', 'score', 'rank', 'over layers', 'pruned'].map((t) => make('th', { textContent: t, scope: 'col' })));
  tip.replaceChildren(
    make('div', { className: 'who' }, zoom(), make('div', {}, make('b', { textContent: `Patch ${Math.floor(p / GRID)}, ${p % GRID}` }),
      make('small', { textContent: `row, column · layer ${data.layers[state.layer]}${patch.isPinned ? ' · held' : ''}` }))),
    make('table', {}, make('thead', {}, head), make('tbody', {}, ...lines)));
}

// ---- position -------------------------------------------------------------------------------------

function placeTip() {
  if (matchMedia('(max-width: 699.98px)').matches) { tip.style.left = tip.style.top = ''; return; }
  const canvas = shown[patch.on].canvas.getBoundingClientRect(), side = canvas.width / GRID, size = tip.getBoundingClientRect();
  const x = canvas.x + (patch.at % GRID) * side, y = canvas.y + Math.floor(patch.at / GRID) * side;
  const left = x + side + 14 + size.width > innerWidth - 8 ? x - size.width - 14 : x + side + 14;
  tip.style.left = Math.max(8, Math.min(left, innerWidth - size.width - 8)) + 'px';
  tip.style.top = Math.max(8, Math.min(y + side / 2 - size.height / 2, innerHeight - size.height - 8)) + 'px';
}

function show(on, at) {
  if (patch.at === at && patch.on === on && !tip.hidden) return;
  Object.assign(patch, { at, on });
  tip.hidden = false;
  fillTip();
  drawCards();
  placeTip();
}
function hide() {
  if (patch.at < 0) return;
  Object.assign(patch, { at: -1, on: null, isPinned: false });
  tip.hidden = true;
  drawCards();
}

// ---- pointer and keys -----------------------------------------------------------------------------

const patchUnder = (event) => {
  const box = event.currentTarget.getBoundingClientRect();
  const of = (v, from, side) => Math.min(GRID - 1, Math.max(0, Math.floor((v - from) / side * GRID)));
  return of(event.clientY, box.y, box.height) * GRID + of(event.clientX, box.x, box.width);
};
const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function pressKey(event, on) {
  const p = patch.at < 0 ? Math.floor(P / 2) + GRID / 2 - (GRID % 2 ? 0.5 : 0) : patch.at;
  if (event.key in steps) {
    const [dx, dy] = steps[event.key], x = p % GRID + dx, y = Math.floor(p / GRID) + dy;
    event.preventDefault();
    if (patch.at < 0) show(on, p);
    else if (x >= 0 && x < GRID && y >= 0 && y < GRID) show(on, y * GRID + x);
  }
  if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); patch.isPinned = !patch.isPinned; if (patch.at >= 0) fillTip(); }
  const by = { PageUp: -1, PageDown: 1 }[event.key];
  if (by) { event.preventDefault(); change({ layer: Math.min(Math.max(state.layer + by, 0), data.layers.length - 1) }); }
}

shown.forEach(({ canvas }, on) => {
  canvas.addEventListener('pointermove', (e) => { if (e.pointerType === 'mouse' && !patch.isPinned) show(on, patchUnder(e)); });
  canvas.addEventListener('pointerleave', (e) => { if (e.pointerType === 'mouse' && !patch.isPinned) hide(); });
  canvas.addEventListener('click', (e) => {
    const p = patchUnder(e), wasHere = patch.isPinned && patch.at === p;
    if (wasHere) { hide(); return; }
    patch.isPinned = false;
    show(on, p);
    patch.isPinned = true;
    fillTip();
  });
  canvas.addEventListener('keydown', (e) => pressKey(e, on));
  canvas.addEventListener('blur', () => { if (!patch.isPinned) hide(); });
});
addEventListener('keydown', (e) => { if (e.key === 'Escape') hide(); });
addEventListener('scroll', () => { if (patch.at >= 0) { if (patch.isPinned) placeTip(); else hide(); } }, { passive: true });
return patch;
}
