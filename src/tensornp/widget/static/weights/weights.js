// The weights of a model as a tree, with a scan of all and what that has found.

import { button } from "../page/elements.js";
import { docking } from "../page/docking.js";
import { Tree } from "../tree/tree.js";
import { Findings } from "./findings.js";
import { WeightPanel } from "./panel.js";
import { Scan } from "./scan.js";

class Weights extends Tree {
  constructor(model, ask) {
    const panelOf = (calls) => new WeightPanel(ask, calls, model.get("can_bind"));
    const label = `Weights of ${model.get("label")}`;
    super(model, ask, { kind: "weights", label, unsorted: "the model's order", panelOf });
    this.scan = new Scan({
      isRunning: () => model.get("progress") >= 0,
      press: (type) => ask({ type, ...this.asked }),
    });
    this.controls.node.append(this.scan.button, this.scan.meter);
    this.findings = new Findings({
      open: (weight, goal) => this.open(weight, undefined, goal),
      list: (what) => this.ask({ search: "", sort: "", filters: { findings: what } }),
    });
    // What a scan finds moves nothing that was pressed for it.
    this.controls.node.after(this.findings.node);
    // What a scan has found leads to it.
    const title = "List all weights, those with the worst findings first";
    const list = () => this.ask({ sort: "findings", descending: false });
    this.results = button("", title, list, "copy tensornp-results");
    this.said.after(this.results);
    this.listen({
      // What one says at its end may be what another has said, and is no change then.
      "change:progress": () => (model.get("progress") < 0 ? this.foundOut() : this.paintScan()),
      "change:scanned": () => this.paintResults(),
      "change:findings": () => this.paintResults(),
    });
    this.paintResults();
  }

  paint() {
    super.paint();
    this.paintScan();
  }

  paintScan() {
    const isPart = Boolean(this.asked.search || Object.keys(this.asked.filters).length);
    const isAgain = Boolean(this.model.get("scanned"));
    this.scan.paint(this.model.get("progress"), isPart, isAgain, this.facts?.cost);
  }

  foundOut() {
    this.live.textContent = this.model.get("scanned");
    this.paintScan();
    this.paintResults();
    this.wish();
  }

  paintResults() {
    this.results.textContent = this.model.get("scanned");
    this.results.hidden = !this.results.textContent;
    this.findings.paint(this.model.get("findings") ?? []);
  }
}

export default () => docking(Weights);
