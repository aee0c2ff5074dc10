"use strict";
// Exponents of results, a row a layer, phase and dtype: how much of them lies where, beside the range of fp16. The
// colour is that of the row's own format: what fp16 would lose is no alarm in a run in bf16.

const kFp16 = { lowest: -14, subnormal: -24, highest: 15 };  // exponents of normal values; below: subnormals
const exponents = { rows: [], at: -1 };

// The exponents that some row shows, fp16's range included.
function exponentRange() {
  let low = kFp16.subnormal - 2, high = kFp16.highest + 2;
  for (const row of exponents.rows) {
    low = Math.min(low, row.lowest);
    high = Math.max(high, row.lowest + row.shares.length);
  }
  return { low, high };
}

function drawExponentsOn(context, width, height) {
  const { low, high } = exponentRange(), left = 6, right = width - 68, top = 4, bottom = height - 20;
  const rows = exponents.rows, step = (bottom - top) / rows.length, cell = (right - left) / (high - low);
  const x = (exponent) => left + (exponent - low) * cell;
  const usual = color("introduced"), extreme = color("hot");  // asked once: thousands of cells are drawn
  context.fillStyle = color("faint");
  context.fillRect(x(kFp16.lowest), top, x(kFp16.highest + 1) - x(kFp16.lowest), bottom - top);
  rows.forEach((row, i) => {
    row.shares.forEach((share, k) => {
      if (!(share > 0)) return;
      const e = row.lowest + k, outside = row.normal && (e < row.normal[0] || e > row.normal[1]);
      // By ratio: a millionth is still to be seen.
      const full = clamp(1 + Math.log10(share) / 6, 0.08, 1), high = Math.max(1, step - (step > 4 ? 1.5 : 0)) * full;
      context.fillStyle = outside ? extreme : usual;
      context.fillRect(x(e), top + (i + 1) * step - high, Math.max(1, cell - (cell > 4 ? 1 : 0)), high);
    });
    if (i !== exponents.at) return;
    context.strokeStyle = color("focus");
    context.lineWidth = 2;
    context.strokeRect(left - 2, top + i * step, right - left + 4, step);
  });
  exponentTicks(context, { x, low, high, top, bottom, right, step });
}

function exponentTicks(context, { x, low, high, top, bottom, right, step }) {
  context.strokeStyle = color("soft");
  context.lineWidth = 1;
  context.setLineDash([2, 3]);
  for (const edge of [kFp16.subnormal, kFp16.lowest, kFp16.highest + 1]) {
    context.beginPath();
    context.moveTo(x(edge), top);
    context.lineTo(x(edge), bottom + 3);
    context.stroke();
  }
  context.setLineDash([]);
  context.font = "11px DejaVu Sans, sans-serif";
  context.fillStyle = color("soft");
  context.textAlign = "center";
  let last = -99;
  for (let e = Math.ceil(low / 8) * 8; e < high; e += 8) {
    if (x(e) - last < 34) continue;
    last = x(e);
    context.fillText("2^" + e, last, bottom + 14);
  }
  context.textAlign = "right";
  let band = "";
  exponents.rows.forEach((row, i) => {
    if (row.phase === band) return;
    band = row.phase;
    context.fillText(band, right + 66, top + i * step + 9);
  });
}

const shareWhere = (row, inside) => row.shares.reduce((a, share, k) => a + (inside(row.lowest + k) ? share : 0), 0);
const percentOf = (share) =>
  (share === 0 ? "none" : share < 1e-4 ? "below 0.01 %" : (100 * share).toPrecision(3) + " %");

function exponentPick(i) {
  if (!exponents.rows.length) return;
  exponents.at = clamp(i, 0, exponents.rows.length - 1);
  const row = exponents.rows[exponents.at];
  at("exponents-readout").replaceChildren(layerName(row.layer, 60), " " + row.phase + " " + row.dtype + ": "
    + number(row.total) + " values other than 0 from 2^" + row.lowest + " to 2^" + (row.lowest + row.shares.length)
    + "; above fp16: " + percentOf(shareWhere(row, (e) => e > kFp16.highest))
    + ", subnormal in fp16: " + percentOf(shareWhere(row, (e) => e < kFp16.lowest && e >= kFp16.subnormal))
    + ", below fp16: " + percentOf(shareWhere(row, (e) => e < kFp16.subnormal)));
  exponents.canvas.redraw();
}

function drawExponents() {
  const body = at("exponents-body");
  if (!data.exponents.length) {
    body.append(el("p", data.run.mode === "watch" ? "Not recorded: watch mode takes no histograms."
      : "Not recorded: no low-precision result in a sampled step."));
    return;
  }
  exponents.rows = data.exponents.map(([layer, phase, dtype, lowest, total, shares, normal]) =>
    ({ layer, phase, dtype, lowest, total, shares, normal }));
  const height = clamp(exponents.rows.length * 12, 60, 420) + 24;
  exponents.canvas = canvasIn(body, height, drawExponentsOn);
  steerable(exponents.canvas,
    "Exponents of results: arrow keys move from layer to layer, the line below says its figures",
    (dx, dy) => exponentPick(exponents.at + dy + dx));
  exponents.canvas.addEventListener("click", (event) =>
    exponentPick(Math.floor((event.offsetY - 4) / (height - 24) * exponents.rows.length)));
  const box = (name) => (c) => { c.fillStyle = color(name); c.fillRect(0, 0, 18, 11); };
  body.append(el("div.legend", legendKey(box("introduced"), "in its format's normal range"),
    legendKey(box("hot"), "outside of it"), legendKey(box("faint"), "fp16's normal range; bf16's is 2^-126 to 2^127")));
  if (data.exponents_total > data.exponents.length)
    at("exponents-readout").append(
      "The first " + data.exponents.length + " of " + data.exponents_total + " are shown.");
}
