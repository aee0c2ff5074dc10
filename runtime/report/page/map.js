"use strict";
// Layers over steps. A column may hold several steps and, where there are more rows than fit, a row several
// layers: the worst of them is shown. What was not measured is hatched.

const heat = {
  metric: "total", rows: [], cells: [], shown: [], cursor: null,
  measures: { total: { at: 2, name: "total divergence (φ)", scale: "phi" },
    introduced: { at: 3, name: "introduced by the layer itself (φ)", scale: "phi" },
    flush: { at: 4, name: "flushed to zero (share)", scale: "flush" } },
};
const NOT_MEASURED = -1, NOT_FINITE = 200;  // beside the levels, which are below 100
const MOST_ROWS = 64;

function levelsOf(text, columns, codes) {
  const out = new Int16Array(columns).fill(NOT_MEASURED);
  for (let i = 0; i < text.length && i < columns; ++i) {
    const c = text.charCodeAt(i);
    out[i] = c === 33 ? NOT_FINITE : c === 32 ? NOT_MEASURED : codes[c];
  }
  return out;
}

function readHeat() {
  const { map } = data;
  const codes = new Int16Array(128).fill(NOT_MEASURED);
  for (let i = 0; i < map.alphabet.length; ++i) codes[map.alphabet.charCodeAt(i)] = i;
  heat.cells = map.rows.map((row) => levelsOf(row[heat.measures[heat.metric].at], map.columns, codes));
  heat.worst = heat.cells.map((cells) => cells.reduce((a, b) => Math.max(a, b), NOT_MEASURED));
}

function valueOf(level) {
  const scale = data.map[heat.measures[heat.metric].scale];
  return scale.low * Math.pow(scale.high / scale.low, level / (data.map.alphabet.length - 1));
}

// Blue where a layer is healthy, red where it matters. For what a layer introduces that is fixed; a total grows
// along a healthy run too, so its colours begin at the tenth of its cells that are smallest.
function readPalette() {
  const counts = new Array(data.map.alphabet.length).fill(0);
  for (const cells of heat.cells) for (const level of cells) if (level >= 0 && level !== NOT_FINITE) ++counts[level];
  const tenth = counts.reduce((a, b) => a + b, 0) / 10;
  let low = 0;
  for (let sum = counts[0]; sum < tenth; sum += counts[low]) ++low;
  const base = Math.max(1, valueOf(low));
  const ends = { total: [base, 32 * base], introduced: [1, 8], flush: [1e-4, 0.1] }[heat.metric];
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const stops = dark ? [[27, 44, 66], [52, 92, 140], [190, 150, 60], [240, 120, 50], [255, 72, 60]]
    : [[238, 244, 250], [183, 208, 233], [252, 211, 120], [236, 125, 60], [205, 42, 26]];
  heat.ends = ends;
  heat.colors = data.map.alphabet.split("").map((_, level) => {
    // A quarter of the way at the lower end, all of it at the upper.
    const share = clamp(0.25 + 0.75 * Math.log(valueOf(level) / ends[0]) / Math.log(ends[1] / ends[0]), 0, 1) * 4;
    const i = Math.min(3, Math.floor(share));
    return stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (share - i)));
  });
  heat.nonfinite = dark ? [255, 255, 255] : [60, 0, 18];
}

// The last column may be wider than the run.
const lastStep = (step) => Math.max(0, Math.min(step, data.steps.step[data.steps.step.length - 1] ?? step));

// Which rows: every one, or those of the largest values in the order of depth; of a phase or of all.
function chooseRows() {
  const phase = at("map-phase").value, all = at("map-rows").value === "all";
  let rows = data.map.rows.map((_, i) => i).filter((i) => phase === "all" || data.map.rows[i][1] === phase);
  const total = rows.length;
  if (!all && rows.length > MOST_ROWS)
    rows = rows.sort((a, b) => heat.worst[b] - heat.worst[a] || a - b)
      .slice(0, MOST_ROWS * 0.625).sort((a, b) => a - b);
  const most = 400;
  const group = Math.max(1, Math.ceil(rows.length / most));
  heat.shown = [];
  for (let i = 0; i < rows.length; ++i) {
    const last = heat.shown[heat.shown.length - 1];
    const sameBand = last && data.map.rows[last[0]][1] === data.map.rows[rows[i]][1];
    if (sameBand && last.length < group) last.push(rows[i]);
    else heat.shown.push([rows[i]]);
  }
  heat.note = rows.length < total ? "the " + rows.length + " rows of " + total + " with the largest values"
    : group > 1 ? total + " rows, " + group + " in one line: the worst counts" : plural(total, "row");
  heat.cursor = null;
}

function heatLayout(width) {
  const rowHeight = clamp(Math.floor(800 / Math.max(1, heat.shown.length)) / 2, 1, 14);
  const named = heat.shown.length <= MOST_ROWS;
  const left = named ? 180 : 64;
  const ys = [];
  let y = 12, band = "";
  for (const rows of heat.shown) {
    const phase = data.map.rows[rows[0]][1];
    if (phase !== band) y += band ? 16 : 12, band = phase;
    ys.push(y);
    y += rowHeight;
  }
  // Where rows are lower than a line of text, every second or third is named.
  return { rowHeight, named, every: Math.ceil(11 / rowHeight), left, ys, right: width - 8, bottom: y };
}

function levelAt(rows, column) {
  let worst = NOT_MEASURED;
  for (const row of rows) worst = Math.max(worst, heat.cells[row][column]);
  return worst;
}

// The cells as an image of one pixel each, stretched; hatching below shows where it is transparent.
function heatImage() {
  const { columns } = data.map;
  const image = el("canvas");
  image.width = Math.max(1, columns);
  image.height = Math.max(1, heat.shown.length);
  const context = image.getContext("2d");
  const pixels = context.createImageData(image.width, image.height);
  heat.shown.forEach((rows, y) => {
    for (let x = 0; x < columns; ++x) {
      const level = levelAt(rows, x);
      if (level === NOT_MEASURED) continue;
      const rgb = level === NOT_FINITE ? heat.nonfinite : heat.colors[level];
      const to = 4 * (y * columns + x);
      pixels.data[to] = rgb[0];
      pixels.data[to + 1] = rgb[1];
      pixels.data[to + 2] = rgb[2];
      pixels.data[to + 3] = 255;
    }
  });
  context.putImageData(pixels, 0, 0);
  return image;
}

function fit(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  for (let keep = Math.min(40, text.length); keep > 2; --keep) {
    const cut = "..." + text.slice(-keep);
    if (context.measureText(cut).width <= width) return cut;
  }
  return "";
}

function drawHeat(context, width) {
  const place = heatLayout(width);
  const { left, right, ys, rowHeight } = place;
  const { columns, column_steps: per } = data.map;
  heat.place = place;
  context.textBaseline = "middle";
  const culprit = data.findings.find((f) => f.severity !== "note" && f.layer !== "");
  const guilt = (rows) => culprit && rows && rows.some((r) => data.map.rows[r][0] === culprit.layer
    && [data.map.rows[r][1], "unknown", "optimizer"].includes(culprit.phase));
  let band = "", since = 0;
  heat.shown.forEach((rows, i) => {
    const [layer, phase] = data.map.rows[rows[0]];
    if (phase !== band) {
      band = phase;
      since = i;
      context.save();
      context.font = "600 11px DejaVu Sans, sans-serif";
      context.fillStyle = color("soft");
      context.textAlign = "left";
      context.fillText(phase, left, ys[i] - 7);
      context.restore();
    }
    const guilty = guilt(rows);
    const crowded = place.every > 1 && (guilt(heat.shown[i - 1]) || guilt(heat.shown[i + 1]));
    if (!place.named || (!guilty && ((i - since) % place.every || crowded))) return;
    context.font = (guilty ? "bold " : "") + "11px DejaVu Sans, sans-serif";
    context.fillStyle = color(guilty ? "s-overflow" : "soft");
    context.textAlign = "right";
    context.fillText(fit(context, layer === "" ? "(no layer)" : layer, left - 8), left - 5, ys[i] + rowHeight / 2);
  });
  context.imageSmoothingEnabled = false;
  for (const [first, last] of bandsOf(place)) hatch(context, left, ys[first], right - left, ys[last]
    + rowHeight - ys[first]);
  drawBands(context, heatImage(), place);
  context.fillStyle = color("s-overflow");
  for (const step of data.steps.skipped) {
    const x = left + (Math.floor(step / per) + 0.5) / Math.max(1, columns) * (right - left);
    context.fillRect(x - 1, 3, 2.5, 6);
  }
  context.fillStyle = color("soft");
  context.font = "11px DejaVu Sans, sans-serif";
  context.textAlign = "left";
  context.fillText("step 0", left, place.bottom + 9);
  context.textAlign = "right";
  context.fillText("step " + lastStep(columns * per - 1), right, place.bottom + 9);
  if (data.steps.skipped.length) context.fillText("skipped", left - 5, 7);
  drawCursor(context, place);
}

// The rows that stand without a gap, as pairs of first and last.
function bandsOf({ ys, rowHeight }) {
  const bands = [];
  ys.forEach((y, i) => {
    if (i && y - ys[i - 1] < rowHeight + 1) bands[bands.length - 1][1] = i;
    else bands.push([i, i]);
  });
  return bands;
}

function drawBands(context, image, place) {
  const { left, right, ys, rowHeight } = place;
  const gap = rowHeight >= 6;
  const cell = (right - left) / Math.max(1, data.map.columns);
  for (const [first, last] of bandsOf(place)) {
    const rows = last - first + 1;
    context.drawImage(image, 0, first, image.width, rows, left, ys[first], right - left, rows * rowHeight);
    context.fillStyle = color("card");
    for (let row = first; gap && row <= last; ++row) context.fillRect(left, ys[row] + rowHeight - 0.5, right - left, 1);
    for (let x = 1; gap && cell >= 6 && x < data.map.columns; ++x)
      context.fillRect(left + x * cell - 0.5, ys[first], 1, rows * rowHeight);
  }
}

function drawCursor(context, { left, right, ys, rowHeight }) {
  if (!heat.cursor || !ys.length) return;
  const cell = (right - left) / Math.max(1, data.map.columns);
  context.strokeStyle = color("focus");
  context.lineWidth = 2;
  context.strokeRect(left + heat.cursor.x * cell - 1, ys[heat.cursor.y] - 1, Math.max(cell, 3) + 2, rowHeight + 2);
}

function moveCursor(x, y) {
  if (!heat.shown.length || !data.map.columns) return;
  heat.cursor = { x: clamp(x, 0, data.map.columns - 1), y: clamp(y, 0, heat.shown.length - 1) };
  heat.canvas.redraw();
  const rows = heat.shown[heat.cursor.y], per = data.map.column_steps;
  const from = heat.cursor.x * per;
  const worst = rows.reduce((a, b) => (heat.cells[b][heat.cursor.x] > heat.cells[a][heat.cursor.x] ? b : a));
  const level = heat.cells[worst][heat.cursor.x];
  const [layer, phase] = data.map.rows[worst];
  const what = level === NOT_MEASURED ? "not measured" : level === NOT_FINITE ? "values that are not finite"
    : heat.metric === "flush" ? "about " + number(valueOf(level) * 100) + " % flushed to zero"
      : "about " + phi(valueOf(level)) + (heat.metric === "total" ? " in total" : " introduced");
  const steps = per > 1 ? "steps " + from + " to " + lastStep(from + per - 1) : "step " + from;
  const skipped = data.steps.skipped.some((s) => s >= from && s < from + per) ? ", skipped" : "";
  at("map-readout").replaceChildren(layerName(layer, 80), " · " + phase + " · " + steps + skipped + ": " + what
    + (rows.length > 1 ? " (worst of " + rows.length + " rows)" : ""));
}

function selectOf(id, label, choices, change) {
  const made = el("select");
  made.id = id;
  for (const [value, text] of choices) {
    const option = el("option", text);
    option.value = value;
    made.append(option);
  }
  made.addEventListener("change", change);
  const named = el("label", label + " ", made);
  return named;
}

function drawLegend(place) {
  place.className = "bar";
  const bar = canvasIn(place, 12, (context, width, height) => {
    for (let x = 0; x < width; ++x) {
      const [low, high] = [heat.ends[0] / 4, heat.ends[1]];
      const value = low * Math.pow(high / low, x / width), scale = data.map[heat.measures[heat.metric].scale];
      const level = Math.round(Math.log(value / scale.low) / Math.log(scale.high / scale.low) * (heat.colors.length - 1));
      context.fillStyle = "rgb(" + heat.colors[clamp(level, 0, heat.colors.length - 1)].join(",") + ")";
      context.fillRect(x, 0, 1, height);
    }
    const unit = heat.metric === "flush" ? (v) => number(v * 100) + " %" : phi;
    at("map-low").textContent = unit(heat.ends[0] / 4);
    at("map-high").textContent = unit(heat.ends[1]) + " and more";
    at("map-note").textContent = heat.note;
  });
  bar.setAttribute("aria-hidden", "true");
}

function legendKey(draw, text) {
  const canvas = el("canvas.key");
  canvas.width = 18;
  canvas.height = 11;
  canvas.setAttribute("aria-hidden", "true");
  redraws.push(() => draw(canvas.getContext("2d")));
  const key = el("span", canvas, text);
  return key;
}

// What a layer introduced points at the culprit; where it was measured in few steps the total shows more.
function startingMetric() {
  const filled = (metric) => data.map.rows.reduce((sum, row) =>
    sum + row[heat.measures[metric].at].replaceAll(" ", "").length, 0);
  if (filled("introduced") * 4 >= filled("total") && filled("introduced")) return "introduced";
  return filled("total") ? "total" : "flush";
}

function drawMap() {
  const { map } = data;
  const body = at("map-body");
  if (!map.rows.length || !map.columns) {
    body.append(el("p", data.run.mode === "watch"
      ? "Nothing to draw: watch mode has no twin. Run again with --mode trajectory or --mode step."
      : "Nothing to draw: no op of a layer was measured."));
    return;
  }
  const before = redraws.length;
  heat.metric = startingMetric();
  const renew = () => {
    heat.metric = at("map-metric").value;
    readHeat();
    readPalette();
    chooseRows();
    at("map-readout").textContent = "";
    for (const redraw of heat.redraws) redraw();
  };
  const phases = [...new Set(map.rows.map((row) => row[1]))];
  at("map-controls").append(
    selectOf("map-metric", "show", Object.entries(heat.measures).map(([key, m]) => [key, m.name]), renew),
    selectOf("map-phase", "phase", [["all", "all"], ...phases.map((p) => [p, p])], renew),
    selectOf("map-rows", "rows", [["worst", "the largest"], ["all", "all"]], renew), el("span.soft"));
  at("map-controls").lastChild.id = "map-note";
  at("map-metric").value = heat.metric;
  readHeat();
  readPalette();
  chooseRows();
  heat.canvas = canvasIn(body, () => heatLayout(600).bottom + 18, drawHeat);
  steerable(heat.canvas, "Layers over steps: arrow keys move from cell to cell, the line below says its value",
    (dx, dy) => (heat.cursor ? moveCursor(heat.cursor.x + dx, heat.cursor.y + dy) : moveCursor(dx > 1 ? dx : 0, 0)));
  heat.canvas.addEventListener("click", (event) => {
    const { left, right, ys, rowHeight } = heat.place;
    const x = Math.floor((event.offsetX - left) / (right - left) * map.columns);
    let y = ys.findIndex((top) => event.offsetY < top + rowHeight);
    if (y < 0) y = ys.length - 1;
    moveCursor(x, y);
  });
  const low = el("span"), high = el("span"), bar = el("span");
  low.id = "map-low";
  high.id = "map-high";
  const legend = el("div.legend", low, bar, high,
    legendKey((c) => { c.fillStyle = "rgb(" + heat.nonfinite.join(",") + ")"; c.fillRect(0, 0, 18, 11); },
      "not finite"),
    legendKey((c) => { c.clearRect(0, 0, 18, 11); hatch(c, 0, 0, 18, 11); }, "not measured"),
    legendKey((c) => { c.clearRect(0, 0, 18, 11); c.fillStyle = color("s-overflow"); c.fillRect(8, 2, 3, 7); },
      "skipped step"));
  body.append(legend);
  drawLegend(bar);
  heat.redraws = redraws.slice(before);
}
