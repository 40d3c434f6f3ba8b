// The line under the grid: the element that one is at, what is to be said, and the scale of the colours.

import { element, tell } from "../page/elements.js";
import { inWhole } from "./grid.js";

const PARTS = `<span class="tensornp-where"></span><span class="tensornp-said"></span><span class="tensornp-legend"></span>
<span class="tensornp-live-region" aria-live="polite"></span>`;

export class Status {
  constructor() {
    this.node = element("div", "line-of-cell");
    this.node.innerHTML = PARTS;
    [this.where, this.said, this.legend, this.live] = this.node.children;
  }

  say(text, tone = "plain") {
    this.said.textContent = text;
    this.said.className = `tensornp-said tensornp-${tone}`;
  }

  announce(text) {
    this.live.textContent = text;
  }

  // What is said of the element that has kept the focus, and so is not read out by itself.
  announceAll() {
    this.announce([this.said.textContent, this.where.textContent].filter(Boolean).join("; "));
  }

  // The index and the exact value of one element; nothing if it is out of the window.
  tell(grid, index) {
    const cell = index && grid.cellOf(index);
    if (cell) tell(this.where, `[${inWhole(grid.seen, index).join(", ")}]  ${grid.exactOf(cell)}  ${grid.seen.dtype ?? ""}`.trim());
    else if (!grid.seen?.exact.length) this.where.textContent = "";
  }
}
