// The calls of a pass as a tree, each of which opens into what it got and gave.

import { copyButton } from "../page/copy.js";
import { docking } from "../page/docking.js";
import { element } from "../page/elements.js";
import { Panel } from "../tree/panel.js";
import { Tree } from "../tree/tree.js";

class CallPanel extends Panel {
  inHead({ code }) {
    return code ? [copyButton("the expression of this call", () => code, code)] : [];
  }

  // The static card of the call, with links to other calls and to values that were kept.
  paint({ html }) {
    const card = element("div", "scroller");
    card.tabIndex = 0;
    card.setAttribute("role", "region");
    card.setAttribute("aria-label", "Inputs, outputs and parameters");
    card.innerHTML = html;
    const place = element("div");
    card.addEventListener("click", (event) => {
      const link = (event.target).closest("button");
      if (!link) return;
      const { to, kept } = link.dataset;
      if (to) this.lead(Number(to));
      if (kept) this.openValues({ row: this.opened, value: Number(kept) }, place, true, () => link.focus());
    });
    this.node.append(card, place);
  }
}

class Calls extends Tree {
  constructor(model, ask) {
    const label = `Calls of ${model.get("label")}`;
    super(model, ask, { kind: "calls", label, unsorted: "the order of the calls", panelOf: (calls) => new CallPanel(ask, calls) });
  }
}

export default () => docking(Calls);
