"use strict";
// The verdict strip, the first-cause card and the list of findings.

function drawStrip() {
  const { run, verdict, trust } = data;
  at("strip").className = verdict.result;
  at("verdict").textContent = verdict.result.toUpperCase();
  at("headline").textContent = verdict.headline;
  const lost = trust.missing_total ? trust.missing_total + " of " + (run.world ?? run.ranks) + " ranks missing" : "";
  at("facts").textContent = list([
    verdict.loss,
    trust.coverage.ops_fraction === null ? "no twin" : "coverage " + percent(trust.coverage.ops_fraction) + " of ops",
    plural(run.ranks, "rank"), lost,
    plural(run.steps, "step") + (run.skipped ? ", " + run.skipped + " skipped" : ""),
    "mode " + run.mode]);
  document.title = verdict.result + " - " + run.directory + " - mp-trace report";
  at("made").textContent = list([run.directory, run.program, run.frameworks.join(", ")]);
}

function bar(value, most, name) {
  return canvasBar(value === null || value === undefined ? 0 : value / Math.max(most, 1e-9), name);
}
function canvasBar(share, name) {
  const place = el("span.bar");
  const canvas = canvasIn(place, 7, (context, width, height) => {
    context.fillStyle = color("faint");
    context.fillRect(0, 0, width, height);
    context.fillStyle = color(name);
    context.fillRect(0, 0, share > 0 ? Math.max(2, clamp(share, 0, 1) * width) : 0, height);
  });
  canvas.setAttribute("aria-hidden", "true");
  return place;
}

function figure(name, ...value) {
  return el("div", el("dt", name), el("dd", ...value));
}

function causeFigures(finding, cause) {
  const most = Math.max(cause.introduced ?? 0, cause.inherited ?? 0, cause.total ?? 0, 1);
  const out = el("dl.figures");
  if (cause.total !== undefined) {
    out.append(figure("introduced here", bar(cause.introduced, most, "hot"), phi(cause.introduced)),
      figure("inherited", bar(cause.inherited, most, "introduced"), phi(cause.inherited)),
      figure("total", bar(cause.total, most, "scale"), phi(cause.total)));
  }
  if (cause.amax !== undefined) {
    const bad = cause.nonfinite
      ? plural(cause.nonfinite, "value") + " of " + number(cause.elements) + " not finite" : "±" + number(cause.amax);
    out.append(figure("output of the run", bad), figure("output of the twin", cause.twin_amax === null
      ? "no twin" : "±" + number(cause.twin_amax)));
  }
  if (cause.input_amax) out.append(figure("its inputs", "±" + number(cause.input_amax)));
  if (cause.absorbed) out.append(figure("addends swallowed", percent(cause.absorbed)));
  if (finding.unit) {
    const unit = finding.unit === "phi" ? " φ" : finding.unit === "share" ? "" : " " + finding.unit;
    const said = (v) => (finding.unit === "share" ? percent(v) : number(v, "not finite") + unit);
    const limit = finding.unit === "share" ? percent(finding.limit) : number(finding.limit, "not finite");
    out.append(figure("judged", said(finding.value) + " (limit " + limit + ")"));
  }
  if (finding.confirmed_by.length)
    out.append(figure("also found by mp-lint", ...finding.confirmed_by.map((text) => named(text, 80))));
  return out;
}

function neighbours(cause) {
  if (!cause.before || cause.before.length + cause.after.length === 0) return null;
  const one = (op) => [named(op.layer || "(no layer)", 34), " ", el("code", op.op), " "
    + (op.total === null ? "" : phi(op.total))];
  const chain = el("p.neighbours.soft");
  const put = (title, ops) => {
    if (!ops.length) return;
    chain.append(el("b", title));
    ops.forEach((op, i) => chain.append(i ? ", " : " ", ...one(op)));
    chain.append("  ");
  };
  put("before it", cause.before);
  put("after it", cause.after);
  return chain;
}

function whereOf(finding, dtype) {
  const parts = [];
  if (finding.op) parts.push(el("code", named(finding.op, 40)), " in ");
  parts.push(el("strong", finding.layer ? named(finding.layer, 60) : "the run as a whole"));
  if (finding.phase !== "unknown") parts.push(", " + finding.phase);
  if (finding.step !== null) parts.push(", step " + finding.step);
  if (finding.rank !== null) parts.push(", rank " + finding.rank);
  if (dtype && dtype !== "unknown") parts.push(", " + dtype);
  if (finding.source) parts.push("  ", el("span.soft.mono", named(finding.source, 60)));
  return parts;
}

function drawCause() {
  const body = at("cause-body");
  const finding = data.findings.find((f) => f.severity !== "note");
  if (!finding) {
    drawNoCause(body);
    return;
  }
  const cause = (finding === data.findings[0] && data.cause) || {};
  body.append(el("p.where", ...whereOf(finding, cause.dtype)));
  if (!data.verdict.headline.endsWith(finding.message)) body.append(el("p", finding.message));
  body.append(causeFigures(finding, cause));
  if (finding.advice) body.append(el("p.change", el("b", "Change: "), finding.advice));
  if (cause.stagnant && cause.stagnant.length) {
    body.append(el("p.neighbours.soft", el("b", "weights that do not move "),
      ...cause.stagnant.flatMap((t, i) => [i ? ", " : "", named(t.name, 50), " " + percent(t.share)])));
  }
  const near = neighbours(cause);
  if (near) body.append(near);
  const more = data.findings_total - 1;
  const link = el("a", more ? plural(more, "more finding") : "details");
  link.href = "#findings";
  body.append(el("p.others.soft", finding.rule + " " + finding.name + " · ", link));
}

function drawNoCause(body) {
  const yes = data.checks.filter((c) => c.answer === "yes").length;
  if (data.verdict.inconclusive.length) {
    body.append(el("p.where", "Nothing wrong was seen, but too little was observed to say that nothing is."));
    body.append(el("ul", ...data.verdict.inconclusive.map((why) => el("li", why))));
    return;
  }
  body.append(el("p.where", "Nothing found."));
  body.append(el("p", list([plural(data.run.steps, "step") + " judged", data.run.skipped
    ? plural(data.run.skipped, "step") + " skipped by the loss scaler, as it should" : "no step skipped",
  yes ? plural(yes, "statement") + " about dtypes checked and true" : "",
  data.trust.coverage.ops_fraction === null ? "no twin: divergence was not measured"
    : "the twin followed " + percent(data.trust.coverage.ops_fraction) + " of the float ops"])));
}

function drawFindings() {
  const body = at("findings-body");
  const kernels = data.findings.filter((f) => f.rule === "MPT023" && f.severity === "note");
  const findings = data.findings.filter((f) => !kernels.includes(f));
  body.append(findings.length ? findingsTable(findings, "Findings") : el("p", "None."));
  if (kernels.length) {
    body.append(el("h3", "Kernels of this torch on this device, not of the program"));
    body.append(findingsTable(kernels, "Kernels"));
  }
  if (data.findings_total > data.findings.length)
    body.append(el("p.soft", "The first " + data.findings.length + " of " + data.findings_total + "; --json has all."));
}

function findingsTable(findings, name) {
  const rows = findings.map((f) => [
    ["severity." + f.severity, f.severity], el("span", el("span.mono", f.rule), " " + f.name),
    el("span", ...whereOf(f, "")), el("span", f.message), el("span", f.advice),
    el("span", ...f.confirmed_by.map((text) => named(text, 60)))]);
  return scrolling(table(["", "rule", "where", "what", "change", "mp-lint"], rows, name), name);
}
