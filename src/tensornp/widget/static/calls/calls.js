// The calls of a pass as a tree; each opens into its inputs and outputs.

import { docking } from "../page/docking.js";
import { Tree } from "../tree/tree.js";

class Calls extends Tree {
  constructor(model, ask) {
    super(model, ask, { kind: "calls", label: `Calls of ${model.get("label")}`, unsorted: "the order of the calls" });
  }
}

export default () => docking(Calls);
