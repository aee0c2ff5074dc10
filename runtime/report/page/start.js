"use strict";
// Draws every view, and again when the window or the colours change.

const views = [["strip", drawStrip], ["cause-body", drawCause], ["map-body", drawMap], ["loss-chart", drawLoss],
  ["scale-chart", drawScale], ["ladder-body", drawLadder], ["exponents-body", drawExponents], ["findings-body", drawFindings], ["types-body", drawTypes],
  ["trust-body", drawTrust]];

for (const [place, draw] of views) {
  try {
    draw();
  } catch (error) {
    // A view that fails says so and leaves the others.
    console.error(error);
    at(place).append(el("p", "This view could not be drawn: " + error.message));
  }
}
redrawAll();

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (heat.canvas) readPalette();
  redrawAll();
  for (const recolor of graphs) recolor();
});
let pending = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(redrawAll);
});
// Behind the frame that shows the last chart.
requestAnimationFrame(() => setTimeout(() => performance.mark("report-drawn"), 0));
