// viz.js - the controls of the viz page and everything they change. SPDX-License-Identifier: Apache-2.0
// There is one state; each change of it redraws what depends on it: the cards side by side, the strip
// of all layers, predictions, attention. The address holds the state too, so that a view can be saved.
(() => {
const { data, P, GRID } = viz;
const { all, byId, make } = dom;
const percent = (v, digits = 0) => (100 * v).toFixed(digits) + ' %';
const gmacs = (v) => (v / 1e9).toFixed(v < 1e8 ? 3 : 2);
const orderText = (order) => (order === 'inf' ? '∞' : order);
const sum = (list) => list.reduce((a, b) => a + b, 0);

// ---- what can be chosen ---------------------------------------------------------------------------

const views = { photo: 'photo', heat: 'heat map', mask: 'mask', mosaic: 'mosaic' };
const norms = data.norms.filter((m) => data.maps[m].order !== null);
const hasMosaic = data.rows.some((r) => r.merges), hasMasks = data.rows.length > 0 || data.keeps.length > 0;
const isRule = (r) => r.map >= 0 && r.keep === null;
// The page opens on what the command asked for, as its PNG does: the first of these.
const cutModes = [
  data.rows.some(isRule) && ['rule', 'as given: ' + inShort(data.rows.find(isRule).policy)],
  data.rows.some((r) => r.keep !== null) && ['sweep', 'at the keep rate'],
  data.keeps.length > 0 && ['once', 'one cut, at this layer only'],
].filter(Boolean);

// The important parts of a full policy: the rule, how much it drops, and where.
function inShort(policy) {
  return policy.split(' ').filter((part, i) => !i || /^(p|r|keep|drop|tokens|layers)=/.test(part)).join(' ');
}

// Cards: the metrics, then the policies. A single metric with an order follows the slider for n; if
// there are several, each keeps its order and one more card follows the slider.
const ordered = data.cards.filter((m) => data.maps[m].order !== null);
const cards = data.cards.map((map) => ({ map, follows: ordered.length === 1 && map === ordered[0] && norms.length > 1 }));
if (ordered.length > 1 && norms.length > 1) cards.push({ map: norms[0], follows: true });
data.rows.forEach((r, row) => { if (r.map < 0) cards.push({ map: -1, row }); });
const hasOrders = cards.some((c) => c.follows);

const startOrder = Math.max(0, norms.findIndex((m) => m === ordered[0]));
const state = {
  photo: 0, view: hasMasks ? 'mask' : 'heat', layer: lastCut(), order: startOrder,
  keep: nearestKeep(0.6), cuts: cutModes[0]?.[0] ?? 'once', colours: 'even', scale: 'score', rows: 'cards',
};
// The last layer in which a run cuts: what the whole budget leaves.
function lastCut() {
  const cuts = data.layers.map((_, i) => data.photos[0].rows.some((r) => r.cut[i]));
  return cuts.includes(true) ? cuts.lastIndexOf(true) : Math.min(3, data.layers.length - 1);
}
function nearestKeep(rate) {
  const far = data.keeps.map((k) => Math.abs(k - rate));
  return Math.max(0, far.indexOf(Math.min(...far)));
}

const most = { photo: data.photos.length - 1, layer: data.layers.length - 1, order: norms.length - 1, keep: data.keeps.length - 1 };
const allowed = {
  view: Object.keys(views).filter((v) => v === 'mosaic' ? hasMosaic : v === 'mask' ? hasMasks : true), cuts: cutModes.map(([name]) => name),
  colours: Object.keys(data.colours), scale: ['score', 'rank'], rows: ['cards', 'norms'],
};
function readAddress() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (name in most && /^\d+$/.test(value) && +value <= most[name]) state[name] = +value;
    if (allowed[name]?.includes(value)) state[name] = value;
  }
}
function writeAddress() {
  const text = Object.entries(state).map(([name, value]) => `${name}=${value}`).join('&');
  try { history.replaceState(null, '', '#' + text); } catch { /* where the address may not change */ }
}

// ---- what the choice means ------------------------------------------------------------------------

const mapOf = (card) => (card.follows ? norms[state.order] : card.map);
// A policy is labelled by its first word; the rest is below the label.
const policyParts = (card) => data.rows[card.row].label.match(/^(\S*)\s*(.*)$/s);
const isOnlyOfRule = (card) => cards.filter((c) => c.map < 0 && policyParts(c)[1] === policyParts(card)[1]).length === 1;
const labelOf = (card) => (card.map >= 0 ? data.maps[mapOf(card)].label : isOnlyOfRule(card) ? policyParts(card)[1] : data.rows[card.row].label);

// The run that a card shows: index of its row, or -1 if there is only a preview.
function rowOf(card) {
  if (card.map < 0) return card.row;
  const map = mapOf(card), keep = data.keeps[state.keep];
  if (state.cuts === 'sweep') return data.rows.findIndex((r) => r.map === map && r.keep === keep);
  return state.cuts === 'rule' ? data.rows.findIndex((r) => r.map === map && r.keep === null) : -1;
}
function stepOf(card, layer) {
  const row = rowOf(card), photo = viz.photo(state.photo);
  return row >= 0 ? photo.steps(row)[layer] : viz.previewOf(photo.map(mapOf(card), layer), data.kept[state.keep] ?? P);
}

// What the heat map of a card shows: the metric on the unpruned model, or the scores of a policy's cut.
function heatOf(card, layer) {
  const photo = viz.photo(state.photo);
  if (card.map >= 0) {
    const map = photo.map(mapOf(card), layer);
    if (state.scale === 'rank') return { values: Float32Array.from(map.rank, (r) => P - r), low: 1, high: P, ends: [`rank ${P}`, 'rank 1'] };
    return { values: map.score, low: map.low, high: map.high };
  }
  const values = photo.steps(card.row)[layer].scores;
  if (!values) return null;
  const seen = [...values].filter(Number.isFinite).sort((a, b) => a - b);
  if (!seen.length) return null; // a rule without scores
  return { values, low: seen[Math.floor(0.01 * (seen.length - 1))], high: seen[Math.ceil(0.99 * (seen.length - 1))] };
}

// The colours of the page, and those of the cover, which the image decides.
let theme;
function readTheme() {
  document.documentElement.classList.toggle('dark-image', viz.photo(state.photo).isDark);
  const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
  theme = { ground: of('--open'), fade: +of('--fade'), fadeNew: +of('--fade-new'), rescued: of('--rescued'), lines: of('--tile-lines'), hatch: of('--hatch') };
}

function drawCard(canvas, card, layer, width) {
  const ctx = viz.fit(canvas, width), photo = viz.photo(state.photo);
  const heat = state.view === 'heat' && !card.isDense ? heatOf(card, layer) : null;
  if (card.isDense || state.view === 'photo') viz.drawPhoto(ctx, photo.image);
  else if (state.view === 'heat' && heat) viz.drawHeat(ctx, photo, heat.values, heat.low, heat.high, state.colours);
  else if (state.view === 'heat') viz.drawPhoto(ctx, photo.grey);
  else if (state.view === 'mosaic') viz.drawMosaic(ctx, photo, stepOf(card, layer), theme);
  else viz.drawMask(ctx, photo, stepOf(card, layer), theme);
  return ctx;
}

// ---- side by side ---------------------------------------------------------------------------------

const shown = [{ isDense: true }, ...cards].map((card) => {
  const canvas = make('canvas', { tabIndex: 0 }), title = make('h3'), sub = make('p', { className: 'sub' });
  const facts = make('p', { className: 'count' }), answer = make('p', { className: 'answer' });
  canvas.setAttribute('role', 'application');
  const box = make('article', { className: card.isDense ? 'card dense' : 'card' }, make('header', {}, title, sub), make('div', { className: 'frame' }, canvas), facts, answer);
  byId('cards').append(box);
  return { card, canvas, title, sub, facts, answer, box };
});

function answerLine(place, answer, dense) {
  if (!answer.top.length) return place.replaceChildren(); // a model without classes
  const [, name, p] = answer.top[0], isSame = !dense || dense.top[0]?.[0] === answer.top[0]?.[0];
  place.replaceChildren(make('span', { className: isSame ? 'same' : 'other', textContent: name.split(',')[0], title: name }),
    make('b', { textContent: percent(p) }));
  if (!isSame) place.title = 'not what the unpruned model says';
  else place.removeAttribute('title');
}

// Tokens after this layer. The cost is the total of the whole model, as on the card of the photo.
function countLine(place, step, run) {
  const tokens = step.group ? new Set([...step.group].filter((g) => g !== viz.NONE)).size : step.left;
  place.replaceChildren(make('b', { textContent: tokens }), ` of ${P} ${step.group ? 'tokens' : 'patches'}`);
  if (run) place.append(make('span', { textContent: `${gmacs(run.total)} GMACs`, title: `in all; ${gmacs(step.macs)} GMACs so far, up to the end of layer ${step.layer}` }));
}

const barText = (v) => (v === 0 ? '0' : Math.abs(v) >= 0.01 && Math.abs(v) < 1000 ? v.toPrecision(3) : v.toExponential(1));
function colourBar(place, heat) {
  if (!heat) return place.replaceChildren(make('i', { textContent: 'no scores at this layer' }));
  const stops = viz.colour[state.colours].filter((_, i) => i % 15 === 0);
  const bar = make('span', { className: 'bar' }), ends = heat.ends ?? [barText(heat.low), barText(heat.high)];
  bar.style.background = `linear-gradient(90deg,${stops.join()})`;
  return place.replaceChildren(make('small', { textContent: ends[0] }), bar, make('small', { textContent: ends[1] }));
}

function describe({ card, title, canvas }) {
  const photo = viz.photo(state.photo), layer = data.layers[state.layer];
  const what = card.isDense || state.view === 'photo' ? 'photo' : `${views[state.view]} at layer ${layer}`;
  canvas.setAttribute('aria-label', `${photo.name}: ${title.textContent}, ${what}. Arrow keys walk over the patches.`);
}

// As many columns as fit, with rows of about equal length.
function layOut() {
  const n = shown.length, width = byId('cards').clientWidth, most = Math.max(1, Math.floor((width + 18) / ((width < 700 ? 150 : 180) + 18)));
  byId('cards').style.setProperty('--columns', Math.ceil(n / Math.ceil(n / most)));
}

function drawCards() {
  const photo = viz.photo(state.photo), isPolicy = (card) => card.map < 0;
  for (const one of shown) {
    const { card, canvas, title, sub, facts, answer } = one, row = card.isDense ? -1 : rowOf(card);
    title.textContent = card.isDense ? 'What the model sees' : labelOf(card);
    sub.textContent = card.isDense ? `${data.model}, ${photo.size} px` : isPolicy(card) && isOnlyOfRule(card) ? policyParts(card)[2] : row < 0 ? 'one cut here' : data.rows[row].adaptive ? 'adapts to the photo' : inShort(data.rows[row].policy);
    sub.title = row < 0 ? '' : data.rows[row].policy;
    if (!card.isDense && state.view === 'heat') sub.textContent = isPolicy(card) ? 'what its cut saw' : `${state.scale}, unpruned model`;
    if (card.follows && ordered.length > 1) sub.textContent = 'follows n · ' + sub.textContent;
    const ctx = drawCard(canvas, card, state.layer, canvas.parentNode.clientWidth);
    if (patch.at >= 0) viz.drawMark(ctx, card.isDense || state.view === 'heat' || state.view === 'photo' ? [patch.at] : stepOf(card, state.layer).members(patch.at));
    facts.className = 'count';
    if (card.isDense) facts.replaceChildren(make('b', { textContent: P }), ' patches', make('span', { textContent: `${gmacs(photo.dense.total)} GMACs` }));
    else if (state.view === 'heat') { facts.className = 'count scale'; colourBar(facts, heatOf(card, state.layer)); }
    else countLine(facts, stepOf(card, state.layer), photo.rows[row]);
    if (card.isDense) answerLine(answer, photo.dense);
    else if (row >= 0) answerLine(answer, photo.rows[row], photo.dense);
    else answer.replaceChildren(make('span', { className: 'none', textContent: 'a preview: from ranks alone' }));
    describe(one);
  }
}

const swatch = (name, text) => make('span', { className: 'key' }, make('i', { className: name }), text);
function drawLegend() {
  const hasRescued = data.photos.some((p) => p.rows.some((r) => r.rescued?.some((list) => list.length)));
  const rows = {
    photo: [],
    heat: [state.scale === 'rank' ? 'Every patch by its rank on the unpruned model.' : 'Scores on the unpruned model, colored between the 1st and the 99th percentile of each picture.'],
    mask: [swatch('kept', 'kept'), state.cuts !== 'once' && swatch('new', 'gone at this layer'), swatch('gone', 'gone before'), hasRescued && swatch('rescued', 'rescued by Col-Ln'), hasMosaic && swatch('merged', 'merged into one token')],
    mosaic: [swatch('tile', 'one token, in the mean color of its patches'), swatch('open', 'gone')],
  }[state.view];
  byId('legend').replaceChildren(...rows.filter(Boolean));
  byId('colours-box').hidden = byId('scale-box').hidden = state.view !== 'heat';
  byId('cuts-box').hidden = cutModes.length < 2 || state.view === 'heat' || state.view === 'photo';
}

// Scrolls a box sideways until a child is visible to the right of its covered left part.
function scrollIntoSight(box, child, covered = 0) {
  const from = child.offsetLeft - covered - 8, to = child.offsetLeft + child.offsetWidth + 8;
  if (box.scrollLeft > from) box.scrollLeft = from;
  else if (box.scrollLeft + box.clientWidth < to) box.scrollLeft = to - box.clientWidth;
}

// ---- every layer ----------------------------------------------------------------------------------

const stripRows = () => (state.rows === 'norms' ? data.norms.map((map) => ({ map, follows: false })) : cards);

function drawStrip() {
  const table = byId('strip'), rows = stripRows(), view = state.view;
  const head = make('tr', {}, make('th', { textContent: 'layer', scope: 'col' }), ...data.layers.map((layer, i) =>
    make('th', { textContent: layer, scope: 'col', className: i === state.layer ? 'on' : '' })));
  table.replaceChildren(make('caption', { textContent: `Every layer, ${views[view]}` }), make('thead', {}, head), make('tbody', {}, ...rows.map((card) =>
    make('tr', {}, make('th', { textContent: labelOf(card), scope: 'row' }), ...data.layers.map((layer, i) => {
      const button = make('button', { type: 'button', tabIndex: -1, title: `${labelOf(card)}, layer ${layer}`, dataset: { layer: i } }, make('canvas'));
      return make('td', { className: i === state.layer ? 'on' : '' }, button);
    })))));
  table.style.maxWidth = 100 + 160 * data.layers.length + 'px';
  if (view === 'photo') state.view = 'heat';
  all(table, 'tbody tr').forEach((tr, r) => all(tr, 'canvas').forEach((canvas, i) => drawCard(canvas, rows[r], i, canvas.clientWidth || 84)));
  state.view = view;
  markStrip();
  byId('strip-note').textContent = state.rows === 'norms' ? 'Class attention, and Col-Ln from n = 1 to the largest single entry. Choose a picture to go to its layer.'
    : view === 'photo' ? 'Heat maps of all layers. Choose one to go to its layer.' : 'The view above, for all layers. Choose a picture to go to its layer.';
}
function markStrip() {
  for (const tr of byId('strip').rows) [...tr.cells].forEach((cell, i) => cell.classList.toggle('on', i - 1 === state.layer));
  const head = byId('strip').rows[0].cells;
  scrollIntoSight(byId('strip').parentNode, head[state.layer + 1], head[0].offsetWidth);
}

// ---- predictions ----------------------------------------------------------------------------------

function drawAnswers() {
  const photo = viz.photo(state.photo);
  const runs = [{ label: 'dense', ...photo.dense, tokens: [] }, ...cards.map((card) => [card, rowOf(card)]).filter(([, row]) => row >= 0)
    .map(([card, row]) => ({ label: labelOf(card), policy: data.rows[row].policy, ...photo.rows[row] }))];
  const names = new Map();
  for (const run of runs) for (const [index, name, p] of run.top) names.set(index, { name, p: Math.max(p, names.get(index)?.p ?? 0) });
  const order = [...names].sort((a, b) => b[1].p - a[1].p).filter(([, { p }], i) => i < 2 || p >= 0.001).slice(0, 8);
  const cell = (run, index) => {
    const found = run.top.find(([i]) => i === index);
    if (!found) return make('td', { className: 'bar-cell none' }, make('span', { textContent: '·' }));
    const td = make('td', { className: found === run.top[0] ? 'bar-cell first' : 'bar-cell' }, make('span', { textContent: percent(found[2], 1) }));
    td.style.setProperty('--p', percent(found[2], 2).replace(' ', ''));
    return td;
  };
  const line = (name, text) => make('tr', { className: 'sum' }, make('th', { textContent: name, scope: 'row' }), ...runs.map((r) => make('td', { textContent: text(r) })));
  const body = order.map(([index, { name }]) => make('tr', {}, make('th', { textContent: name, scope: 'row' }), ...runs.map((r) => cell(r, index))));
  body.push(line('GMACs', (r) => gmacs(r.total) + (r.tokens.length ? ` (${percent(r.total / photo.dense.total)})` : '')));
  if (runs.some((r) => r.ms)) body.push(line('ms', (r) => (r.ms ? r.ms.toFixed(1) : '–')));
  if (!order.length) { // a model without classes
    byId('answers-title').textContent = 'Costs';
    byId('answers-text').textContent = 'Multiply-accumulates of the unpruned model, and with the tokens that are left. It has no classes to predict.';
  }
  byId('answers').replaceChildren(make('caption', { textContent: order.length ? 'Predictions' : 'Costs' }),
    make('thead', {}, make('tr', {}, make('th', { textContent: order.length ? 'class' : '', scope: 'col' }), ...runs.map((r) => make('th', { textContent: r.label, scope: 'col', title: r.policy ?? '' })))),
    make('tbody', {}, ...body));
}

// ---- attention ------------------------------------------------------------------------------------

function drawHeads() {
  const photo = viz.photo(state.photo), a = photo.attention;
  byId('attention').hidden = !a;
  if (!a) return;
  const place = (p) => `patch ${Math.floor(p / GRID)}, ${p % GRID}`, layer = data.layers[state.layer];
  const query = a.query < 0 ? 'the class token' : place(a.query), tokens = a.tokens, per = a.heads * tokens;
  byId('attention-note').textContent = `Layer ${layer} of the unpruned model. Above: where ${query} looks, one picture per head. Below: which patches look at ${place(a.token)}; the norm of the mean of these columns is its Col-Ln.`;
  const patches = (list, h) => list.subarray(state.layer * per + h * tokens + a.prefix, state.layer * per + (h + 1) * tokens);
  const mean = (list) => Float32Array.from({ length: P }, (_, p) => sum(Array.from({ length: a.heads }, (_, h) => patches(list, h)[p])) / a.heads);
  const rows = [[`from ${query}`, a.rows, a.query], [`to ${place(a.token)}`, a.columns, a.token]];
  const cellOf = (values, mark) => {
    const canvas = make('canvas'), sorted = [...values].sort((x, y) => x - y), ctx = viz.fit(canvas, 110);
    viz.drawHeat(ctx, photo, values, sorted[Math.floor(0.01 * P)], sorted[Math.floor(0.99 * P)], state.colours);
    if (mark >= 0) viz.drawMark(ctx, [mark]);
    return make('td', {}, canvas);
  };
  byId('heads').replaceChildren(make('caption', { textContent: 'Attention by head' }),
    make('thead', {}, make('tr', {}, make('th', { textContent: '', scope: 'col' }), make('th', { textContent: 'mean', scope: 'col' }), ...Array.from({ length: a.heads }, (_, h) => make('th', { textContent: `head ${h}`, scope: 'col' })))),
    make('tbody', {}, ...rows.map(([name, list, mark]) => make('tr', {}, make('th', { textContent: name, scope: 'row' }), cellOf(mean(list), mark), ...Array.from({ length: a.heads }, (_, h) => cellOf(patches(list, h), mark))))));
}

// ---- changes --------------------------------------------------------------------------------------

const outputs = {
  layer: () => String(data.layers[state.layer]),
  order: () => orderText(data.maps[norms[state.order]].order),
  keep: () => (state.cuts === 'rule' ? 'as given' : percent(data.keeps[state.keep])),
};
function showControls() {
  for (const name of ['layer', 'order', 'keep']) {
    const input = byId(name);
    if (byId(name + '-box').hidden) continue;
    input.max = most[name];
    input.value = state[name];
    input.parentNode.querySelector('output').textContent = outputs[name]();
    input.setAttribute('aria-valuetext', outputs[name]());
    input.style.setProperty('--at', most[name] ? percent(state[name] / most[name], 2).replace(' ', '') : '0%');
  }
  const isOff = (state.cuts === 'rule' && !allowed.cuts.includes('sweep')) || state.view === 'heat' || state.view === 'photo';
  byId('keep').disabled = isOff;
  byId('keep-box').classList.toggle('off', isOff);
  for (const name of ['view', 'rows']) for (const radio of all(document, `input[name=${name}]`)) radio.checked = radio.value === state[name];
  byId('cuts').value = state.cuts;
  byId('colours').value = state.colours;
  byId('scale').value = state.scale;
  all(document, '#photos button').forEach((b, i) => b.setAttribute('aria-pressed', i === state.photo));
}

let waiting = 0;
function change(by = {}) {
  const before = { ...state };
  Object.assign(state, by);
  const differs = (...names) => names.some((name) => before[name] !== state[name]);
  const isAll = !Object.keys(by).length;
  if (isAll || differs('photo')) readTheme();
  showControls();
  drawCards();
  drawLegend();
  if (isAll || differs('photo', 'view', 'order', 'keep', 'cuts', 'colours', 'scale', 'rows')) drawStrip(); else markStrip();
  if (isAll || differs('photo')) scrollIntoSight(byId('photos'), byId('photos').children[state.photo]);
  if (isAll || differs('photo', 'order', 'keep', 'cuts')) drawAnswers();
  if (isAll || differs('photo', 'layer', 'colours')) drawHeads();
  patch.refresh();
  clearTimeout(waiting);
  waiting = setTimeout(writeAddress, 200);
}

function play() {
  const button = byId('play'), isOn = button.classList.toggle('on');
  button.setAttribute('aria-label', isOn ? 'Stop' : 'Play the layers');
  const tick = () => {
    if (!button.classList.contains('on')) return;
    change({ layer: (state.layer + 1) % data.layers.length });
    setTimeout(tick, 700);
  };
  if (isOn) tick();
}

function listen() {
  for (const name of ['layer', 'order']) byId(name).addEventListener('input', (e) => change({ [name]: +e.target.value }));
  // Moving the slider leaves the budget of the command.
  byId('keep').addEventListener('input', (e) => change({ keep: +e.target.value, cuts: state.cuts === 'rule' ? 'sweep' : state.cuts }));
  for (const name of ['view', 'rows']) for (const radio of all(document, `input[name=${name}]`)) radio.addEventListener('change', () => change({ [name]: radio.value }));
  for (const name of ['cuts', 'colours', 'scale']) byId(name).addEventListener('change', (e) => change({ [name]: e.target.value }));
  byId('controls').addEventListener('submit', (e) => e.preventDefault());
  byId('play').addEventListener('click', play);
  byId('strip').addEventListener('click', (e) => {
    const button = e.target.closest('button');
    if (button) change({ layer: +button.dataset.layer });
  });
  all(document, '#photos button').forEach((b, i) => b.addEventListener('click', () => change({ photo: i })));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => change());
  addEventListener('hashchange', () => { readAddress(); change(); });
  let width = innerWidth;
  addEventListener('resize', () => { if (innerWidth !== width) { width = innerWidth; layOut(); change(); } });
}

const patch = vizPatch({ state, cards, shown, labelOf, mapOf, stepOf, drawCards, change });

async function start() {
  await Promise.all(all(document, '#photos img').map((image) => image.decode()));
  byId('photos').hidden = data.photos.length < 2;
  for (const radio of all(byId('views'), 'input')) radio.parentNode.hidden = !allowed.view.includes(radio.value);
  byId('order-box').hidden = !hasOrders;
  byId('keep-box').hidden = data.keeps.length < 2;
  byId('layer-box').hidden = data.layers.length < 2;
  byId('rows').hidden = norms.length < 2;
  byId('cuts').append(...cutModes.map(([value, text]) => make('option', { value, textContent: text })));
  readAddress();
  listen();
  document.body.classList.add('ready');
  layOut();
  change();
}
start();
})();
