// The weights of a model as a tree, with a scan of the listed ones and its findings.

import { docking } from "../page/docking.js";
import { button, element, place } from "../page/elements.js";
import { Tree } from "../tree/tree.js";

class Weights extends Tree {
  constructor(model, ask) {
    super(model, ask, { kind: "weights", label: `Weights of ${model.get("label")}`, unsorted: "the model's order" });
    // The second press of a double click does not stop the scan that the first began.
    this.scan = button("Read values", "", ({ detail }) => {
      if (detail < 2) ask({ type: model.get("progress") >= 0 ? "end" : "scan", ...this.asked });
    });
    this.meter = element("progress", "meter");
    this.meter.setAttribute("aria-label", "Read");
    this.controls.append(this.scan, this.meter);
    this.findings = element("div", "found");
    this.findings.addEventListener("click", ({ target }) => {
      const { list, number, goal } = target.dataset;
      if (list) this.look({ search: list, sort: "" });
      else if (number) this.open(Number(number), undefined, goal || undefined);
    });
    // Rows do not move under a mouse that waits for the findings.
    this.controls.after(this.findings);
    this.results = element("span", "said");
    this.said.after(this.results);
    this.listen({
      "change:progress": () => (model.get("progress") < 0 ? this.ended() : this.paintScan()),
      "change:scanned": () => this.paintScan(),
      "change:findings": () => this.paintScan(),
    });
    this.paintScan();
  }

  paint() {
    super.paint();
    this.paintScan();
  }

  ended() {
    this.live.textContent = this.model.get("scanned");
    this.paintScan();
    this.wish();
  }

  paintScan() {
    const share = this.model.get("progress");
    const scanned = this.model.get("scanned");
    const begin = `Read all that is listed, and tell what stands out (${this.facts?.cost})`;
    this.scan.textContent = share >= 0 ? "Stop" : this.asked.search ? "Read these" : scanned ? "Read again" : "Read values";
    this.scan.title = share >= 0 ? "Stop, and show what was read so far" : begin;
    this.meter.hidden = share < 0;
    if (share >= 0) this.meter.value = share;
    this.results.textContent = scanned;
    place(this.findings, this.model.get("findings"));
    this.findings.hidden = !this.findings.placed;
  }
}

export default () => docking(Weights);
