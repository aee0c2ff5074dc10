"use strict";
// What every view uses. Text reaches the page through textContent alone, whatever a recording holds.

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

// el("p.soft", "text", child ...): an element with a class, its texts and children.
function el(name, ...inside) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const one of inside) {
    if (one === null || one === undefined || one === "") continue;
    made.append(one instanceof Node ? one : document.createTextNode(String(one)));
  }
  return made;
}

// A name from the recording: set apart from the direction of the text around it, shortened in its middle.
function named(text, length = 60, tag = "bdi") {
  const full = String(text);
  const keep = Math.floor((length - 3) / 2);
  const made = el(tag, full.length > length ? full.slice(0, keep) + "..." + full.slice(-keep) : full);
  if (full.length > length) made.title = full;
  return made;
}
const layerName = (name, length) => (name === "" ? el("span.soft", "(no layer)") : named(name, length));

// Three digits; large and small numbers as a terminal would show them. Null is not a number but its absence.
function number(value, missing = "not measured") {
  if (value === null || value === undefined) return missing;
  const size = Math.abs(value);
  if (size >= 100 && size < 1e7) return Math.round(value).toLocaleString("en-US");
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
  return String(Number(value.toPrecision(3)));
}
const phi = (value) => (value === null || value === undefined ? "not measured" : number(value) + " φ");
// Rounded down: 99.99 % of the ops is not all of them.
const percent = (share) => (share === null || share === undefined ? "unknown" : (Math.floor(share * 1e4) / 100) + " %");
const plural = (n, what) => n.toLocaleString("en-US") + " " + what + (n === 1 ? "" : "s");
const list = (words) => words.filter((w) => w !== "").join(" · ");

// "17, 34-36": steps as runs.
function runs(steps, most = 8) {
  const out = [];
  for (let i = 0; i < steps.length; ++i) {
    const from = steps[i];
    while (i + 1 < steps.length && steps[i + 1] === steps[i] + 1) ++i;
    out.push(from === steps[i] ? String(from) : from + "-" + steps[i]);
  }
  return out.length > most ? out.slice(0, most).join(", ") + ", ..." : out.join(", ");
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// A canvas as wide as its place, sharp on every screen; draw(context, width, height) in CSS pixels.
function canvasIn(place, height, draw) {
  const canvas = el("canvas");
  place.append(canvas);
  canvas.redraw = () => {
    const dense = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(60, canvas.clientWidth || place.clientWidth);
    const high = typeof height === "function" ? height() : height;
    canvas.width = Math.round(width * dense);
    canvas.height = Math.round(high * dense);
    canvas.style.height = high + "px";
    const context = canvas.getContext("2d");
    context.setTransform(dense, 0, 0, dense, 0, 0);
    draw(context, width, high);
  };
  redraws.push(canvas.redraw);
  return canvas;
}
const redraws = [];
function redrawAll() {
  for (const redraw of redraws) redraw();
}

function hatch(context, x, y, width, height) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = color("hatch");
  context.lineWidth = 1;
  context.beginPath();
  for (let d = -height; d < width; d += 5) {
    context.moveTo(x + d, y + height);
    context.lineTo(x + d + height, y);
  }
  context.stroke();
  context.restore();
}

// Arrow keys, Home, End and page keys on `element`: move(dx, dy) in cells, or to an end.
function steerable(element, label, move) {
  element.tabIndex = 0;
  element.setAttribute("role", "application");
  element.setAttribute("aria-label", label);
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
    Home: [-Infinity, 0], End: [Infinity, 0], PageUp: [0, -10], PageDown: [0, 10] };
  element.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    move(step[0], step[1]);
  });
}
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

// Rows of cells; a cell is text, a node, or [class, content].
function table(heads, rows, label) {
  const cell = (tag, inside) => (Array.isArray(inside) ? el(tag + "." + inside[0], inside[1]) : el(tag, inside));
  const head = el("tr", ...heads.map((h) => cell("th", h)));
  for (const th of head.children) th.scope = "col";
  const made = el("table", el("thead", head),
    el("tbody", ...rows.map((row) => el("tr", ...row.map((inside) => cell("td", inside))))));
  made.setAttribute("aria-label", label);
  return made;
}
// A long table scrolls in its own place, which the keyboard reaches.
function scrolling(inside, label) {
  const made = el("div.scroll", inside);
  made.tabIndex = 0;
  made.setAttribute("role", "region");
  made.setAttribute("aria-label", label);
  return made;
}
