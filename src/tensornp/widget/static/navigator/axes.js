// The axes in rows and columns, and the index on each other axis.

import { clamp, element, place } from "../page/elements.js";

const NAMES = ["rows", "columns"];

function select(name, shape, chosen) {
  const options = shape.map(
    (size, axis) => `<option value="${axis}"${axis === chosen ? " selected" : ""}>axis ${axis} (${size.toLocaleString("en")})</option>`,
  );
  return `<label class="tensornp-choice">${name} <select class="tensornp-select" name="${name}"
    aria-label="Axis of the ${name}">${options.join("")}</select></label>`;
}

function dial(name, label, size) {
  return `<span class="tensornp-dial"><span class="tensornp-label">${label}</span><input type="number" name="${name}" min="0"
    max="${Math.max(size - 1, 0)}" class="tensornp-field" style="width:${String(size).length + 6}ch" autocomplete="off"
    aria-label="Index on ${label} of ${size.toLocaleString("en")}"></span>`;
}

export class Axes {
  // `choose(axes)` shows other axes, and `turn(axis, value)` another index on an axis.
  constructor({ choose, turn }) {
    this.node = element("div", "controls");
    this.node.addEventListener("change", ({ target: { name, value } }) => {
      const i = NAMES.indexOf(name);
      if (i < 0) return;
      const axes = [...this.axes];
      axes[i] = Number(value);
      // The other one gets the axis that this one had.
      if (axes[1 - i] === axes[i]) axes[1 - i] = this.axes[i];
      choose(axes);
    });
    this.node.addEventListener("input", ({ target: { name, max, value } }) => {
      if (max && value !== "") turn(name, clamp(Math.trunc(Number(value)) || 0, Number(max) + 1));
    });
  }

  paint({ shape, axes, corner }) {
    this.axes = axes;
    const others = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
    const selects = shape.length > 1 ? NAMES.map((name, i) => select(name, shape, axes[i])) : [];
    const dials = others.map((axis) => dial(axis, `axis ${axis}`, shape[axis]));
    place(this.node, [...selects, ...dials].join(""));
    for (const input of this.node.querySelectorAll("input")) {
      if (input.value || input !== document.activeElement) input.value = corner[input.name];
    }
  }
}
