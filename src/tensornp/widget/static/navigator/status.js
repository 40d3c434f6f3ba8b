// The line under the grid: the element that one is at, what is to be said, and the scale of the colours.

import { element, liveRegion } from "../page/elements.js";
import { gradientOf, specialCalled, swatchOf } from "./shades.js";

const SEPARATOR = " · ";

export class Status {
  constructor() {
    this.node = element("div", "line-of-cell");
    this.where = element("span", "where");
    this.said = element("span", "said");
    const legend = element("span", "legend");
    this.scale = element("span", "scale");
    this.scale.setAttribute("aria-hidden", "true");
    this.legend = element("span", "legend-text");
    legend.append(this.scale, this.legend);
    this.live = liveRegion();
    this.node.append(this.where, this.said, legend, this.live);
  }

  paintScale({ legend, scale: [low, high] }) {
    this.legend.replaceChildren(
      ...legend.split(SEPARATOR).flatMap((text, i) => {
        const special = specialCalled(text);
        return [i ? SEPARATOR : "", ...(special ? [swatchOf(special)] : []), text];
      }),
    );
    this.scale.style.backgroundImage = gradientOf(low, high);
    this.scale.hidden = !(low < 0 || high > 0);
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

  // The index, the exact value and the bits of one element; nothing where it is out of the window.
  tell(grid, index) {
    const cell = index && grid.cellOf(index);
    if (!cell) {
      if (!grid.seen?.exact.length) this.where.textContent = "";
      return;
    }
    const bits = grid.bitsOf(cell);
    const { bits_dtype: bitsDtype, dtype } = grid.seen;
    const parts = [`[${index.join(", ")}]  ${grid.exactOf(cell)}`, bits && `${bits}  ${bitsDtype ?? dtype}`];
    this.where.textContent = parts.filter(Boolean).join("  ·  ");
  }
}
