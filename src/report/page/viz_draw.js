// viz_draw.js - the data of the viz page and how its canvases are drawn. SPDX-License-Identifier: Apache-2.0
// Numbers come as JSON, long lists as base64 of little-endian floats or 16-bit integers. Ranks, mean
// colours and steps are computed here, once per image, when it is first shown.
'use strict';
const viz = (() => {
const data = JSON.parse(document.getElementById('data').textContent);
const GRID = data.grid, P = GRID * GRID, NONE = 0xffff;

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const floats = (text) => new Float32Array(bytes(text).buffer);
const shorts = (text) => new Uint16Array(bytes(text).buffer);
const memo = (make) => {
  const known = new Map();
  return (key) => (known.has(key) ? known.get(key) : (known.set(key, make(key)), known.get(key)));
};

// ---- numbers --------------------------------------------------------------------------------------

// Rank of every patch, 0 = best: larger scores first, ties to the lower index, NaN last.
function ranked(scores) {
  const key = (v) => (Number.isNaN(v) ? -Infinity : v);
  const order = Array.from(scores, (_, p) => p).sort((a, b) => key(scores[b]) - key(scores[a]) || a - b);
  const rank = new Uint16Array(scores.length);
  order.forEach((p, place) => { rank[p] = place; });
  return rank;
}

// One image, decoded: in colour and in grey, mean colours, and its maps and rows.
const photo = memo((at) => {
  const of = data.photos[at], image = document.querySelectorAll('#photos img')[at];
  const size = image.naturalWidth, small = pixelsOf(image, size), grey = greyOf(small, size);
  const scores = floats(of.scores), clip = floats(of.clip), n = data.layers.length;
  const map = memo((key) => { // key = map * layers + layer
    const score = scores.subarray(key * P, key * P + P);
    return { score, rank: ranked(score), low: clip[2 * key], high: clip[2 * key + 1] };
  });
  return {
    ...of, image, grey, size,
    means: meansOf(small, size),
    isDark: isDarkOf(small),
    map: (m, layer) => map(m * n + layer),
    steps: memo((row) => stepsOf(of.rows[row])),
    attention: of.attention && { ...of.attention, rows: floats(of.attention.rows), columns: floats(of.attention.columns) },
  };
});

// What a row did at each layer. `gone` is where a patch was dropped (2 x layer, + 1 if it was fused).
function stepsOf(row) {
  const gone = shorts(row.gone);
  let last = null;
  return data.layers.map((layer, i) => {
    const group = row.group?.[i] ? shorts(row.group[i]) : last;
    last = group;
    const members = new Map();
    group?.forEach((g, p) => { if (g !== NONE) members.set(g, [...(members.get(g) ?? []), p]); });
    const isGone = (p) => gone[p] !== NONE && gone[p] >> 1 <= layer;
    return {
      layer, isCut: row.cut[i], isGone, group, tokens: row.tokens[i], macs: row.macs[i],
      isNew: (p) => isGone(p) && gone[p] >> 1 > (i ? data.layers[i - 1] : -1),
      isFused: (p) => isGone(p) && (gone[p] & 1) === 1,
      goneAt: (p) => gone[p] >> 1,
      members: (p) => (group && group[p] !== NONE ? members.get(group[p]) : [p]),
      rescued: new Set(row.rescued?.[i] ?? []),
      scores: row.scores?.[i] ? floats(row.scores[i]) : null,
      left: Array.from({ length: P }, (_, p) => p).filter((p) => !isGone(p)).length,
    };
  });
}

// A single cut at this layer, by rank alone: the best `kept` patches stay.
function previewOf(map, kept) {
  return {
    isPreview: true, isCut: 1, isGone: (p) => map.rank[p] >= kept, isNew: (p) => map.rank[p] >= kept,
    isFused: () => false, group: null, members: (p) => [p], rescued: new Set(), left: kept,
  };
}

// ---- pixels ---------------------------------------------------------------------------------------

function newCanvas(size) {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = size;
  return canvas;
}
function pixelsOf(image, size) {
  const ctx = newCanvas(size).getContext('2d');
  ctx.drawImage(image, 0, 0);
  return ctx.getImageData(0, 0, size, size);
}
// Under a heat map the image is grey, so that only scores have colours.
function greyOf(pixels, size) {
  const canvas = newCanvas(size), ctx = canvas.getContext('2d'), out = ctx.createImageData(size, size);
  for (let i = 0; i < out.data.length; i += 4) {
    const y = 0.2126 * pixels.data[i] + 0.7152 * pixels.data[i + 1] + 0.0722 * pixels.data[i + 2];
    out.data[i] = out.data[i + 1] = out.data[i + 2] = y;
    out.data[i + 3] = 255;
  }
  ctx.putImageData(out, 0, 0);
  return canvas;
}
function meansOf(pixels, size) {
  const side = size / GRID, means = new Float32Array(P * 3);
  for (let y = 0; y < size; y++)
    for (let x = 0; x < size; x++) {
      const p = Math.floor(y / side) * GRID + Math.floor(x / side), from = 4 * (y * size + x);
      for (let c = 0; c < 3; c++) means[3 * p + c] += pixels.data[from + c] / (side * side);
    }
  return means;
}

// Are more pixels dark than light? As figure_canvas.c counts them.
function isDarkOf(pixels) {
  let dark = 0, light = 0;
  for (let i = 0; i < pixels.data.length; i += 4) {
    const y = 0.299 * pixels.data[i] + 0.587 * pixels.data[i + 1] + 0.114 * pixels.data[i + 2];
    dark += y < 60;
    light += y > 170;
  }
  return dark > light;
}

const colour = {};
for (const [name, hex] of Object.entries(data.colours)) colour[name] = hex.match(/.{6}/g).map((c) => '#' + c);
const colourOf = (name, t) => colour[name][Math.round(Math.min(Math.max(t, 0), 1) * (colour[name].length - 1))];

// ---- canvases -------------------------------------------------------------------------------------

// Edges of patches are on whole pixels, so that nothing is blurred.
const edge = (canvas, i) => Math.round(i * canvas.width / GRID);
function boxOf(canvas, p) {
  const x = edge(canvas, p % GRID), y = edge(canvas, Math.floor(p / GRID));
  return [x, y, edge(canvas, p % GRID + 1) - x, edge(canvas, Math.floor(p / GRID) + 1) - y];
}

// Lines around the patches for which `inside` holds, and between two of them unless `same` holds.
function outline(ctx, inside, same, width, style) {
  const canvas = ctx.canvas;
  ctx.beginPath();
  for (let p = 0; p < P; p++) {
    const [x, y, w, h] = boxOf(canvas, p), column = p % GRID;
    const differs = (q, isEdge) => (isEdge ? inside(p) : (inside(p) || inside(q)) && !(inside(p) && inside(q) && same(p, q)));
    if (differs(p - 1, column === 0)) { ctx.moveTo(x, y); ctx.lineTo(x, y + h); }
    if (differs(p - GRID, p < GRID)) { ctx.moveTo(x, y); ctx.lineTo(x + w, y); }
    if (column === GRID - 1 && inside(p)) { ctx.moveTo(x + w, y); ctx.lineTo(x + w, y + h); }
    if (p >= P - GRID && inside(p)) { ctx.moveTo(x, y + h); ctx.lineTo(x + w, y + h); }
  }
  ctx.lineWidth = width;
  ctx.strokeStyle = style;
  ctx.lineCap = 'round';
  ctx.stroke();
}

function drawPhoto(ctx, source) {
  ctx.imageSmoothingQuality = 'high';
  ctx.drawImage(source, 0, 0, ctx.canvas.width, ctx.canvas.height);
}

// values: [P]; a NaN is left open.
function drawHeat(ctx, photo, values, low, high, name, strength = 0.7) {
  drawPhoto(ctx, photo.grey);
  ctx.globalAlpha = strength;
  for (let p = 0; p < P; p++) {
    if (Number.isNaN(values[p])) continue;
    ctx.fillStyle = colourOf(name, high > low ? (values[p] - low) / (high - low) : 0.5);
    ctx.fillRect(...boxOf(ctx.canvas, p));
  }
  ctx.globalAlpha = 1;
}

// Dropped patches are covered; those dropped at this layer are still half visible.
function drawMask(ctx, photo, step, theme) {
  const px = ctx.canvas.width / 300;
  drawPhoto(ctx, photo.image);
  ctx.fillStyle = theme.ground;
  for (let p = 0; p < P; p++) {
    if (!step.isGone(p)) continue;
    ctx.globalAlpha = step.isNew(p) && !step.isPreview ? theme.fadeNew : theme.fade;
    ctx.fillRect(...boxOf(ctx.canvas, p));
  }
  ctx.globalAlpha = 1;
  ctx.fillStyle = hatch(ctx, theme.hatch);
  for (let p = 0; p < P; p++) if (step.isGone(p)) ctx.fillRect(...boxOf(ctx.canvas, p));
  const isMerged = (p) => !step.isGone(p) && step.members(p).length > 1, isSame = (p, q) => step.group[p] === step.group[q];
  if (step.group) {
    outline(ctx, isMerged, isSame, Math.max(2, 3.2 * px), '#0007');
    outline(ctx, isMerged, isSame, Math.max(1, 1.6 * px), '#fffc');
  }
  const rescued = (p) => step.rescued.has(p) && !step.isGone(p);
  if (step.rescued.size) outline(ctx, rescued, () => true, Math.max(1.5, 2.4 * px), theme.rescued);
}

// Thin diagonal lines, so that dropped patches are visible on light and dark images.
function hatch(ctx, style) {
  const side = Math.max(4, Math.round(ctx.canvas.width / 50)), tile = newCanvas(side).getContext('2d');
  tile.strokeStyle = style;
  tile.lineWidth = side / 7;
  tile.beginPath();
  for (const by of [-side, 0, side]) { tile.moveTo(by - 1, side + 1); tile.lineTo(by + side + 1, -1); }
  tile.stroke();
  return ctx.createPattern(tile.canvas, 'repeat');
}

// Every token in its mean colour; dropped patches are left open.
function drawMosaic(ctx, photo, step, theme) {
  const px = ctx.canvas.width / 300;
  ctx.fillStyle = theme.ground;
  ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  ctx.fillStyle = hatch(ctx, theme.hatch);
  ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  for (let p = 0; p < P; p++) {
    if (step.isGone(p)) continue;
    const members = step.members(p);
    const mean = [0, 1, 2].map((c) => members.reduce((sum, q) => sum + photo.means[3 * q + c], 0) / members.length);
    ctx.fillStyle = `rgb(${mean.map(Math.round).join()})`;
    ctx.fillRect(...boxOf(ctx.canvas, p));
  }
  outline(ctx, (p) => !step.isGone(p), (p, q) => step.group !== null && step.group[p] === step.group[q], Math.max(0.75, px), theme.lines);
}

// Outlines the selected patch, and those in the same token.
function drawMark(ctx, patches) {
  const px = Math.max(1, ctx.canvas.width / 300), set = new Set(patches);
  outline(ctx, (p) => set.has(p), () => true, 5 * px, '#000b');
  outline(ctx, (p) => set.has(p), () => true, 2.5 * px, '#fff');
}

// Gives a canvas the size of its place on the screen and returns its context.
function fit(canvas, width) {
  const side = Math.max(1, Math.round(width * Math.min(devicePixelRatio || 1, 3)));
  if (canvas.width !== side) canvas.width = canvas.height = side;
  return canvas.getContext('2d');
}

return { data, P, GRID, NONE, photo, previewOf, ranked, fit, colour, drawPhoto, drawHeat, drawMask, drawMosaic, drawMark };
})();
