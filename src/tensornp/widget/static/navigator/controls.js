// What leads to an element, an index that is typed and searches, and how the numbers are shown.

import { button, element, field, groupOf } from "../page/elements.js";

const EXTREMES = [
  ["absmax", "max |x|", "Go to the value of the largest magnitude"],
  ["min", "min", "Go to the least value"],
  ["max", "max", "Go to the largest value"],
];
export class Controls {
  // `go(text)` goes to an index, `seek(what)` to a value, `face(number)` shows another side, and `close()` ends it.
  constructor({ go, seek, face, close }) {
    this.turn = face;
    this.faces = groupOf("Side");
    this.node = element("div", "controls");
    this.form = element("form", "go");
    this.index = field("input", "text", "field tensornp-index", "Go to an index, such as 3, :, 5:9");
    this.index.spellcheck = false;
    this.index.title = "An index as NumPy writes it: integers, slices, ... (g)";
    this.form.append(this.index);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      go(this.index.value);
    });
    this.problem = element("span", "problem");
    const next = button("NaN ▸", "Go to the next NaN (n)", () => seek("nan"));
    next.setAttribute("aria-label", "next NaN");
    const extremes = EXTREMES.map(([what, text, title]) => button(text, title, () => seek(what)));
    const inf = button("Inf ▸", "Go to the next infinity", () => seek("inf"));
    inf.setAttribute("aria-label", "next Inf");
    const jumps = groupOf("Jump to", [next, ...extremes, inf]);
    this.end = button("close ✕", "Close the grid", close, "copy tensornp-end");
    this.end.setAttribute("aria-label", "Close the grid");
    this.node.append(this.faces, jumps, this.form, this.problem, this.end);
  }

  paint({ index, faces = [], face }) {
    if (this.faces.childElementCount !== faces.length) {
      const labels = faces.map((label, i) => button(label, `Show ${label}`, () => this.turn(i)));
      this.faces.replaceChildren(...labels);
    }
    [...this.faces.children].forEach((one, i) => one.setAttribute("aria-pressed", String(i === face)));
    this.faces.hidden = !faces.length;
    this.index.setAttribute("aria-invalid", "false");
    this.index.placeholder = index;
  }

  refuse(text) {
    this.problem.textContent = text;
    this.index.setAttribute("aria-invalid", "true");
  }

  clear() {
    this.problem.textContent = "";
    this.index.value = "";
  }
}
