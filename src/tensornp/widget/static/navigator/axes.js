// Which axes are rows and columns, and where one stands on the others.

import { element, field, focused } from "../page/elements.js";

export function clamp(value, size) {
  return Math.min(Math.max(value, 0), Math.max(size - 1, 0));
}

export class Axes {
  // `choose(axes)` shows others as rows and columns, `turn(axis, value)` another index on one of the others, `part(value)`
  // another tensor of several; `isMoving()` tells whether an answer is on its way.
  constructor({ choose, turn, part, isMoving }) {
    this.choose = choose;
    this.turn = turn;
    this.part = part;
    this.isMoving = isMoving;
    this.node = element("div", "controls");
    this.others = [];
    this.dials = [];
  }

  // The controls are made anew only where the tensor has other axes, so that none is lost under a finger.
  paint(seen) {
    const { shape, axes, num_parts: numParts } = seen;
    const kind = JSON.stringify([shape, axes, numParts]);
    if (kind !== this.kind) {
      this.kind = kind;
      this.make(shape, axes, numParts);
    }
    this.others.forEach((axis, i) => this.dials[i].set(seen.corner[axis]));
    this.partDial?.set(seen.part);
  }

  make(shape, axes, numParts) {
    this.others = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
    const had = this.node.contains(focused()) && focused()?.getAttribute("aria-label");
    this.partDial = numParts ? this.dial("part", numParts, this.part) : undefined;
    this.dials = this.others.map((axis) => this.dial(`axis ${axis}`, shape[axis], (value) => this.turn(axis, value)));
    const selects = shape.length > 1 ? [0, 1].map((i) => this.select(i, shape, axes)) : [];
    const dials = [...(this.partDial ? [this.partDial] : []), ...this.dials];
    this.node.replaceChildren(...selects, ...dials.map(({ node }) => node));
    if (had) [...this.node.querySelectorAll("[aria-label]")].find((n) => n.getAttribute("aria-label") === had)?.focus();
  }

  select(i, shape, axes) {
    const label = element("label", "choice", i ? "columns " : "rows ");
    const select = element("select", "select");
    select.setAttribute("aria-label", i ? "Axis of the columns" : "Axis of the rows");
    shape.forEach((size, axis) => {
      const option = new Option(`axis ${axis} (${size.toLocaleString("en")})`, String(axis));
      option.selected = axis === axes[i];
      select.append(option);
    });
    select.addEventListener("change", () => {
      const wanted = [...axes];
      wanted[i] = Number(select.value);
      // The other one gets what this one had, so that the two are never the same.
      if (wanted[1 - i] === wanted[i]) wanted[1 - i] = axes[i];
      this.choose(wanted);
    });
    label.append(select);
    return label;
  }

  dial(name, size, turn) {
    const node = element("span", "dial");
    const number = field("input", "number", "field tensornp-number", `Index on ${name} of ${size.toLocaleString("en")}`);
    number.min = "0";
    number.max = String(Math.max(size - 1, 0));
    number.addEventListener("input", () => {
      if (number.value !== "") turn(clamp(Math.trunc(Number(number.value)) || 0, size));
    });
    number.style.width = `${String(size).length + 6}ch`;
    node.append(element("span", "label", name), number);
    const set = (value) => {
      // What is typed right now stays.
      if (this.isMoving()) return;
      if (document.activeElement !== number || number.value !== "") number.value = String(value);
    };
    return { node, set };
  }
}
