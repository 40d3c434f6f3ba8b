// One call that was opened: the static card of the call, with links to other calls and to kept values.

import { copyButton } from "../page/copy.js";
import { button, element, focused } from "../page/elements.js";
import { Panel } from "../tree/panel.js";

export class CallPanel extends Panel {
  /** @param {Model} model @param {Record<string, (...args: any[]) => any>} calls */
  constructor(model, calls) {
    super(calls);
    this.model = model;
    this.lead = calls.lead;
  }

  inHead({ code }) {
    return code ? [copyButton("the expression of this call", () => code, code)] : [];
  }

  // The kernel has escaped all that the user's program named.
  /** @param {SeenCall} content */
  paint({ html }) {
    const card = element("div", "scroller");
    card.tabIndex = 0;
    card.setAttribute("role", "region");
    card.setAttribute("aria-label", "Inputs, outputs and parameters");
    card.innerHTML = html;
    this.link(card, "to", "Show this call", (index) => this.lead(index));
    this.link(card, "kept", "Walk through the values", (number) => this.showValues(number));
    // The navigator docks into it by this class.
    this.place = element("div");
    this.place.className = this.model.get("place");
    this.node.append(card, this.place);
  }

  link(card, kind, title, press) {
    for (const node of card.querySelectorAll(`[class^='tensornp-${kind}-']`)) {
      const number = Number(node.className.slice(`tensornp-${kind}-`.length));
      node.replaceChildren(button(node.textContent, title, () => press(number), "copy tensornp-link"));
    }
  }

  close() {
    if (!this.node.hidden && this.hasNavigator()) this.post({ type: "values", open: false });
    super.close();
  }

  left() {
    this.comes?.disconnect();
  }

  hasNavigator() {
    return Boolean(this.place?.querySelector(".tensornp-values"));
  }

  // The grid has the focus once it is there, unless the user has gone on meanwhile.
  showValues(value) {
    const from = focused();
    this.comes?.disconnect();
    this.comes = new MutationObserver(() => {
      const cell = this.place.querySelector("[role='grid'] [tabindex='0']");
      if (!cell) return;
      this.comes.disconnect();
      if (from === focused()) cell.focus({ preventScroll: true });
      this.seen();
    });
    this.comes.observe(this.place, { childList: true, subtree: true });
    this.post({ type: "values", row: this.opened, value, open: true });
  }
}
