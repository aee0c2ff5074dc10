"use strict";
// Curves by dygraphs, where it was there when mp-trace was built; the ladder on a canvas of our own.

const graphs = [];
const haveCurves = document.documentElement.dataset.curves === "dygraphs";
// Only its axes: the legend sets styles as attributes, which the page's policy forbids, and we have our own.
if (haveCurves) Dygraph.PLUGINS = [Dygraph.Plugins.Axes];

function withoutCurves(place) {
  place.classList.remove("chart");
  place.append(el("p.soft", "No curve: mp-trace was built without dygraphs (Debian's libjs-dygraphs). --json has the figures."));
}

// A curve over steps. `read` says one row for the line below; `under` draws behind the curves.
function curve(place, readout, rows, { ticks, recolor, ...options }, read, under) {
  const mark = { row: -1 };
  const show = (row) => {
    mark.row = clamp(row, 0, rows.length - 1);
    readout.replaceChildren(...read(mark.row));
    graph.updateOptions({});
  };
  const graph = new Dygraph(place, rows, {
    strokeWidth: 1.8, rightGap: 8, axisLineColor: color("line"), interactionModel: {}, highlightCircleSize: 0,
    xRangePad: 6, ...options,
    axes: { x: { axisLabelFormatter: (v) => (Number.isInteger(v) ? String(v) : ""), axisLabelWidth: 56 },
      y: { axisLabelFormatter: number, axisLabelWidth: 58, pixelsPerLabel: 26, ...ticks } },
    underlayCallback: (context, area, g) => {
      under(context, area, g);
      if (mark.row < 0) return;
      context.fillStyle = color("focus");
      context.fillRect(g.toDomXCoord(rows[mark.row][0]) - 0.75, area.y, 1.5, area.h);
    },
  });
  place.addEventListener("click", (event) => {
    const x = graph.toDataXCoord(event.clientX - place.getBoundingClientRect().left);
    show(nearest(rows, x));
  });
  graphs.push(() => graph.updateOptions({ axisLineColor: color("line"), ...recolor() }));
  return { graph, show, mark };
}

function nearest(rows, x) {
  let best = 0;
  rows.forEach((row, i) => {
    if (Math.abs(row[0] - x) < Math.abs(rows[best][0] - x)) best = i;
  });
  return best;
}

function verticalLine(context, area, x, text) {
  context.save();
  context.strokeStyle = color("s-overflow");
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(x, area.y);
  context.lineTo(x, area.y + area.h);
  context.stroke();
  context.fillStyle = color("soft");
  context.font = "11px DejaVu Sans, sans-serif";
  const right = x > area.x + area.w * 0.6;
  context.textAlign = right ? "right" : "left";
  context.fillText(text, x + (right ? -4 : 4), area.y + 11);
  context.restore();
}

function keyOf(parts) {
  const made = el("span");
  for (const [name, dashed, text] of parts) {
    made.append(legendKey((c) => {
      c.clearRect(0, 0, 18, 11);
      c.strokeStyle = color(name);
      c.lineWidth = 2.5;
      c.setLineDash(dashed ? [4, 3] : []);
      c.beginPath();
      c.moveTo(0, 6);
      c.lineTo(18, 6);
      c.stroke();
    }, text));
    made.append(" \u00a0 ");
  }
  return made;
}

function drawLoss() {
  const { steps } = data, place = at("loss-chart"), readout = at("loss-readout");
  const twin = steps.twin.some((v) => v !== null);
  if (!twin) at("loss-title").textContent = "Loss of the run";
  if (!steps.loss.some((v) => v !== null)) {
    place.classList.remove("chart");
    place.append(el("p", steps.loss.length ? "No loss that is a number was recorded." : "No step was recorded."));
    return;
  }
  if (!haveCurves) {
    withoutCurves(place);
    return;
  }
  const rows = steps.step.map((step, i) => (twin ? [step, steps.loss[i], steps.twin[i]] : [step, steps.loss[i]]));
  const first = data.findings.find((f) => f.severity !== "note" && f.step !== null);
  const colors = () => (twin ? [color("run"), color("twin")] : [color("run")]);
  const labels = twin ? ["step", "run", "twin (fp32)"] : ["step", "run"];
  const key = twin ? keyOf([["run", false, "run"], ["twin", true, "fp32 twin"]]) : "";
  const said = (v) => number(v, "not a number");
  const drawn = curve(place, readout, rows, { labels, colors: colors(), recolor: () => ({ colors: colors() }),
    series: twin ? { "twin (fp32)": { strokePattern: [5, 3] } } : {} },
  (i) => ["step " + rows[i][0] + ": run " + said(rows[i][1]) + (twin ? ", twin " + said(rows[i][2]) : "")],
  (context, area, g) => { if (first) verticalLine(context, area, g.toDomXCoord(first.step), "first cause"); });
  steerable(place, "Loss over steps: arrow keys move from step to step, the line below says its values",
    (dx) => drawn.show(drawn.mark.row + (dx || 0)));
  const last = rows.length - 1;
  readout.append(key, "at the end: run " + said(rows[last][1]) + (twin ? ", twin " + said(rows[last][2]) : ""));
}

const SKIP_COLORS = { "forward overflow": "s-overflow", "reduction overflow": "s-reduction", "invalid op": "s-invalid",
  "bad data": "s-data", "scale too high": "s-scale" };
const skipColor = (cause) => color(SKIP_COLORS[cause] ?? "s-unknown");

function skipText(skip) {
  const where = [skip.parameter && " parameter ", skip.parameter && named(skip.parameter, 60),
    skip.layer && " layer ", skip.layer && named(skip.layer, 60), skip.op && " ", skip.op && el("code", named(skip.op,
      40))];
  return [el("b", "step " + skip.step + ": " + skip.cause), skip.rank === null ? "" : ", rank " + skip.rank,
    ...where.filter(Boolean), skip.why ? ". " + skip.why : "",
      skip.ranks_disagree ? " The ranks disagree on skipping." : ""];
}

function skipSummary() {
  const causes = new Map();
  for (const skip of data.skips) causes.set(skip.cause, [...(causes.get(skip.cause) ?? []), skip.step]);
  const out = el("span");
  for (const [cause, steps] of causes) {
    const dot = legendKey((c) => {
      c.clearRect(0, 0, 18, 11);
      c.fillStyle = skipColor(cause);
      c.beginPath();
      c.arc(10, 6, 4.5, 0, 7);
      c.fill();
    }, cause + ": step " + runs([...new Set(steps)]));
    out.append(dot, " \u00a0 ");
  }
  return out;
}

function drawScale() {
  const { steps } = data, place = at("scale-chart"), readout = at("scale-readout");
  const scaled = steps.scale.some((v) => v !== null);
  if (!scaled && !data.skips.length) {
    place.classList.remove("chart");
    place.append(el("p", "No loss scaler ran, and no step was skipped."));
    return;
  }
  readout.append(skipSummary());
  if (!data.skips.length) readout.append("No step was skipped.");
  if (!haveCurves || !steps.step.length) {
    withoutCurves(place);
    return;
  }
  const rows = steps.step.map((step, i) => [step, steps.scale[i]]);
  const state = { at: -1 };
  const dots = (context, area, g) => {
    data.skips.forEach((skip, i) => {
      context.fillStyle = skipColor(skip.cause);
      context.beginPath();
      context.arc(g.toDomXCoord(skip.step), area.y + area.h - 7, i === state.at ? 7 : 4.5, 0, 7);
      context.fill();
    });
  };
  const values = steps.scale.filter((v) => v !== null && v > 0);
  // Room for the dots below the curve; a scale is a power of two, so its axis is one of ratios.
  const low = values.reduce((a, b) => Math.min(a, b), Infinity), high = values.reduce((a, b) => Math.max(a, b), 0);
  const range = values.length ? [low / 8, high * 1.6] : [0.1, 1];
  // Labels where the scale was: at its ends and where it began.
  const marks = values.length ? [...new Set([values[0], values[values.length - 1], low, high])] : [];
  const ticker = () => marks.map((v) => ({ v, label: number(v) }));
  const drawn = curve(place, readout, rows, { ticks: { ticker }, labels: ["step", "loss scale"], stepPlot: true,
    logscale: true,
    colors: [color("scale")], recolor: () => ({ colors: [color("scale")] }), valueRange: range },
  (i) => ["step " + rows[i][0] + ": loss scale " + number(rows[i][1], "none")], dots);
  const pick = (i) => {
    state.at = clamp(i, 0, data.skips.length - 1);
    readout.replaceChildren(...skipText(data.skips[state.at]));
    drawn.graph.updateOptions({});
  };
  if (!data.skips.length) {
    steerable(place, "Loss scale over steps: arrow keys move from step to step", (dx) => drawn.show(drawn.mark.row
      + (dx || 0)));
    return;
  }
  steerable(place, "Loss scale and skipped steps: arrow keys move from skipped step to skipped step, the line below says the culprit",
    (dx) => pick(state.at + (dx || 0)));
  place.addEventListener("click", (event) => {
    const x = event.clientX - place.getBoundingClientRect().left;
    const close = data.skips.findIndex((skip) => Math.abs(drawn.graph.toDomXCoord(skip.step) - x) < 6);
    if (close >= 0) pick(close);
  });
  if (data.skips_total > data.skips.length)
    readout.append(el("span.soft", " Of " + data.skips_total + " the first " + data.skips.length + " are listed."));
}

// --- the ladder ---

const ladder = { rows: [], at: -1 };

// As many rows as there is room for; several rungs in one show the worst.
function ladderRows(most) {
  const rungs = data.ladder.map(([layer, op, phase, dtype, introduced, inherited, total], i) =>
    ({ layer, op, phase, dtype, introduced, inherited, total, i }));
  const group = Math.max(1, Math.ceil(rungs.length / most));
  const rows = [];
  for (let i = 0; i < rungs.length; i += group)
    rows.push(rungs.slice(i, i + group).reduce((a, b) => ((b.introduced ?? -1) > (a.introduced ?? -1) ? b : a)));
  ladder.group = group;
  return rows;
}

function drawLadderOn(context, width, height) {
  const rows = ladder.rows, left = 6, right = width - 68, top = 4, bottom = height - 30;
  const step = (bottom - top) / rows.length;
  const most = Math.min(1e6, rows.reduce((a, r) => Math.max(a, r.total ?? 0, r.introduced ?? 0), 2));
  // Near 0 as it is, far out by ratio: one bad layer does not flatten the others.
  const x = (v) => left + (right - left) * Math.log2(1 + Math.min(v, most)) / Math.log2(1 + most);
  const bar = (name, value, y, high) => {
    context.fillStyle = color(name);
    context.fillRect(left, y, Math.max(1, x(value) - left), high);
  };
  context.font = "11px DejaVu Sans, sans-serif";
  rows.forEach((r, i) => {
    const y = top + i * step, high = Math.max(1, step - (step > 4 ? 1.5 : 0));
    if (r.total === null && r.introduced === null) {
      hatch(context, left, y, 40, high);
      return;
    }
    if (r.total !== null) bar("total", r.total, y, high);
    if (r.introduced !== null) bar(r.introduced > 2 ? "hot" : "introduced", r.introduced, y + high * 0.15, high * 0.7);
    if (i === ladder.at) {
      context.strokeStyle = color("focus");
      context.lineWidth = 2;
      context.strokeRect(left - 2, y - 1, x(Math.max(r.total ?? 0, r.introduced ?? 0)) - left + 4, high + 2);
    }
  });
  ladderLines(context, { x, left, top, bottom, step, most });
}

function ladderLines(context, { x, top, bottom, step, most }) {
  const rows = ladder.rows;
  context.strokeStyle = color("ink");
  context.lineWidth = 1;
  context.setLineDash([2, 3]);
  context.beginPath();
  context.moveTo(x(1), top);
  context.lineTo(x(1), bottom + 4);
  context.stroke();
  // Independent roundings add up as the root of their number.
  context.setLineDash([6, 3]);
  context.strokeStyle = color("soft");
  context.beginPath();
  rows.forEach((r, i) => {
    const depth = Math.sqrt(r.i + 1);
    if (r.phase !== "optimizer" && depth <= most) context.lineTo(x(depth), top + (i + 0.5) * step);
  });
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = color("soft");
  context.textAlign = "center";
  let last = -99;
  for (const tick of [0, 1, 2, 5, 10, 20, 50, 100, 1e3, 1e4, 1e5, 1e6]) {
    if (tick > most || x(tick) - last < 26) continue;
    last = x(tick);
    context.fillText(tick >= 1e3 ? "1e" + Math.log10(tick) : String(tick), last, bottom + 15);
  }
  context.textAlign = "left";
  context.fillText("φ", Math.min(x(most) + 8, last + 22), bottom + 15);
  let band = "";
  rows.forEach((r, i) => {
    if (r.phase === band) return;
    band = r.phase;
    context.textAlign = "right";
    context.fillText(band, x(most) + 66, top + i * step + 9);
  });
}

function ladderPick(i) {
  if (!ladder.rows.length) return;
  ladder.at = clamp(i, 0, ladder.rows.length - 1);
  const r = ladder.rows[ladder.at];
  at("ladder-readout").replaceChildren(layerName(r.layer, 60), " ", el("code", named(r.op, 40)),
    " " + r.phase + " " + r.dtype + ": introduced " + phi(r.introduced) + ", inherited " + phi(r.inherited)
      + ", total " + phi(r.total)
    + (ladder.group > 1 ? " (worst of " + ladder.group + ")" : ""));
  ladder.canvas.redraw();
}

function drawLadder() {
  const body = at("ladder-body");
  if (!data.ladder.length) {
    body.append(el("p", data.run.mode === "watch" ? "Not measured: watch mode has no twin." : "Not measured."));
    return;
  }
  const before = redraws.length;
  ladder.rows = ladderRows(220);
  const height = clamp(ladder.rows.length * 9, 60, 240) + 34;
  ladder.canvas = canvasIn(body, height, drawLadderOn);
  steerable(ladder.canvas, "Divergence along depth: arrow keys move from layer to layer, the line below says its figures",
    (dx, dy) => ladderPick(ladder.at + dy + dx));
  ladder.canvas.addEventListener("click", (event) =>
    ladderPick(Math.floor((event.offsetY - 4) / (height - 34) * ladder.rows.length)));
  const box = (name) => (c) => { c.fillStyle = color(name); c.fillRect(0, 0, 18, 11); };
  const worst = ladder.rows.reduce((a, r, i) => ((r.introduced ?? -1) > (ladder.rows[a].introduced ?? -1) ? i : a), 0);
  body.append(el("div.legend", legendKey(box("introduced"), "introduced"), legendKey(box("hot"),
    "introduced, above 2 φ"),
    legendKey(box("total"), "total"), keyOf([["ink", true, "one rounding"], ["soft", true, "root of depth"]])));
  const r = ladder.rows[worst];
  if (r.introduced !== null)
    at("ladder-readout").append("most introduced: ", layerName(r.layer, 50), " " + r.phase + ", " + phi(r.introduced));
  for (const redraw of redraws.slice(before)) redraw();
}
