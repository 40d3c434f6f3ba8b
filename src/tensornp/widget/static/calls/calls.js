// The calls of a pass as a tree, each of which opens into what it got and gave.

import { dockingEach } from "../page/docking.js";
import { Tree } from "../tree/tree.js";
import { CallPanel } from "./panel.js";

class Calls extends Tree {
  /** @param {Model} model */
  constructor(model) {
    const panelOf = (calls) => new CallPanel(model, calls);
    const label = `Calls of ${model.get("label")}`;
    super(model, { kind: "calls", label, unsorted: "the order of the calls", panelOf });
  }
}

export default () => dockingEach(Calls, ".tensornp-calls, .tensornp-to-line", "data-tensornp-calls");
