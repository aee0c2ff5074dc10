"use strict";
// What is in which type, and how far to trust the page.

const ROLES = [["parameter", "parameters"], ["buffer", "buffers"], ["activation", "activations"],
  ["gradient", "gradients"], ["collective", "collectives"], ["optimizer_state", "optimizer state"],
  ["checkpoint", "checkpoints"]];
const PHASES = ["data", "forward", "backward", "optimizer", "unknown"];

// The dtypes of a role in a phase, the most elements first; of the rarer ones the layers.
function typeCell(places) {
  if (!places.length) return el("span.soft", "-");
  const types = new Map();
  let all = 0;
  for (const [, layer, , dtype, , elements, since] of places) {
    const one = types.get(dtype) ?? { elements: 0, layers: new Set(), since: Infinity };
    one.elements += elements;
    one.layers.add(layer);
    one.since = Math.min(one.since, since ?? Infinity);
    types.set(dtype, one);
    all += elements;
  }
  const made = el("span");
  const sorted = [...types].sort((a, b) => b[1].elements - a[1].elements);
  sorted.forEach(([dtype, one], i) => {
    const line = el("div", el("strong", dtype));
    if (sorted.length > 1) {
      line.append(" " + (all ? number(one.elements / all * 100) + " %" : ""));
      if (i) {
        const names = [...one.layers];
        line.append(" · ");
        names.slice(0, 3).forEach((n, k) => line.append(k ? ", " : "", layerName(n, 30)));
        if (names.length > 3) line.append(" and " + (names.length - 3) + " more");
      }
    }
    if (one.since > 0 && one.since < Infinity) line.append(el("span.soft", " since step " + one.since));
    made.append(line);
  });
  return made;
}

function drawTypes() {
  const body = at("types-body");
  if (data.checks.length) {
    const order = { no: 1, "not observed": 2, yes: 3 };
    const place = (c) => c.violated ? 0 : order[c.answer];
    const shade = (c) => c.violated ? "violated" : c.answer.split(" ")[0];
    const rows = [...data.checks].sort((a, b) => place(a) - place(b)).map((c) => [
      ["answer." + shade(c), c.answer], el("span", named(c.sentence, 160)), el("span.soft",
        named(c.evidence, 200))]);
    body.append(table(["true?", "statement", "evidence"], rows, "Checked statements about dtypes"));
  }
  if (data.policies.length)
    body.append(el("p.soft", "Declared in the program: ", ...data.policies.flatMap((p, i) => [i ? " · " : "", named(p,
      100)])));
  if (!data.dtype_map.length) {
    body.append(el("p", "No tensor's place was recorded."));
    return;
  }
  const roles = ROLES.filter(([role]) => data.dtype_map.some((p) => p[0] === role));
  const phases = PHASES.filter((phase) => data.dtype_map.some((p) => p[2] === phase));
  const rows = phases.map((phase) => [phase === "unknown" ? "at rest" : phase,
    ...roles.map(([role]) => typeCell(data.dtype_map.filter((p) => p[0] === role && p[2] === phase)))]);
  body.append(el("h3", "By phase and role, shares of elements"),
    table(["phase", ...roles.map(([, name]) => name)], rows, "Types by phase and role"));
  if (data.places_total > data.dtype_map.length)
    body.append(el("p.soft", "Of " + data.places_total + " places the first " + data.dtype_map.length
      + " are counted; --json has all."));
  drawCollectives(body);
}

function drawCollectives(body) {
  if (!data.collectives.length) return;
  const rows = data.collectives.map((c) => [el("code", named(c.op, 40)), c.reduction, c.dtype, named(c.group, 30),
    ["n", c.calls.toLocaleString("en-US")], ["n", (c.bytes / 1048576).toFixed(1)], ["n", phi(c.worst_phi)],
    ["n", c.made_nonfinite ? c.made_nonfinite + " from step " + (c.first_nonfinite_step ?? "?") : "0"]]);
  body.append(el("h3", "Collectives"), scrolling(table(["collective", "reduction", "type", "group", ["n", "calls"],
    ["n", "MiB sent"],
    ["n", "error against fp32"], ["n", "results not finite"]], rows, "Collectives"), "Collectives"));
}

function drawTrust() {
  const body = at("trust-body"), { trust } = data, c = trust.coverage;
  const ranks = trust.ranks;
  if (trust.missing_total) {
    body.append(el("p", el("b", "Ranks without a recording: "), runs(trust.missing, 20)
      + (trust.missing_total > trust.missing.length ? ", ... (" + trust.missing_total + " in all)" : "")));
  }
  for (const why of data.verdict.inconclusive) body.append(el("p", el("b", "Inconclusive: "), why));
  for (const text of trust.unreadable) body.append(el("p", el("b", "Not readable: "), text));
  body.append(el("h3", "What the twin followed"), el("dl.figures",
    figure("float ops", percent(c.ops_fraction)), figure("their bytes", percent(c.bytes_fraction)),
    figure("not followed", number(c.unshadowed)), figure("failed in the twin", number(c.failed)),
    figure("histories lost after step 0", number(Math.max(0, c.seeds_after_step_0 - c.external_after_step_0))),
    figure("data from outside", number(c.external_after_step_0)), figure("written unseen", number(c.stale)),
    figure("integer results that differ", number(c.flips)), figure("values that left differing", number(c.leaks)),
    figure("gradient sums in another order", number(c.regrouped)),
    figure("random draws in 16 bits", number(c.drawn))));
  if (trust.figures.length) {
    body.append(el("h3", "What the figures rest on"), scrolling(table(["basis", "figure", ["n", "of"], "unit"],
      trust.figures.map((f) => [f.basis, f.what, ["n", number(f.count)], f.unit]), "Figures"), "Figures"));
  }
  body.append(el("h3", "The unit φ"), el("p",
    "1 φ is what storing a result in its type costs at least, the relative error of one rounding: "
    + trust.floors.map((f) => f.dtype + " " + f.floor.toExponential(2)).join(", ")
    + ". Cells of the map are known to about a tenth; the findings and the ladder are exact."));
  const other = trust.notes.filter((n) => n.kind !== "policy");
  if (other.length) {
    body.append(el("h3", "Not observed, and what else was noted"), scrolling(table(["kind", "what", ["n", "times"],
      ["n", "processes"]],
      other.map((n) => [n.kind.replaceAll("_", " "), el("span", named(n.text, 200)), ["n", number(n.count)], ["n",
        number(n.processes)]]),
      "Notes"), "Notes"));
  }
  const rows = ranks.map((r) => [r.rank === null ? "-" : r.rank, r.restart, named(r.host, 40), r.pid, r.mode,
    ["n", r.steps.toLocaleString("en-US")], r.last_step === null ? "-" : r.last_step,
    r.ended ? "ended in order" : "killed, or still running",
    el("span", list([r.problems ? plural(r.problems, "damaged place") : "", r.lost_records ? plural(r.lost_records,
      "record") + " lost" : ""]),
      ...r.first_problems.slice(0, 2).map((p) => el("div.soft", named(p, 160))))]);
  body.append(el("h3", "Recordings" + (data.run.ranks > rows.length ? ", " + rows.length + " of "
    + data.run.ranks : "")),
    scrolling(table(["rank", "restart", "host", "process", "mode", ["n", "steps"], "last step", "end", "damage"], rows,
      "Recordings"), "Recordings"));
}
