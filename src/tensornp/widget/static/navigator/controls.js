// What leads to an element: an index that is typed, and searches.

import { button, element, field, groupOf } from "../page/elements.js";

const SEARCHES = [
  ["absmax", "max |x|", "Go to the value of the largest magnitude"],
  ["min", "min", "Go to the least value"],
  ["max", "max", "Go to the largest value"],
  ["nan", "next NaN", "Go to the next NaN (n)"],
  ["inf", "next Inf", "Go to the next infinity"],
];

export class Controls {
  // `go(text)` goes to an index, `seek(what)` to a value.
  constructor({ go, seek }) {
    this.node = element("div", "controls");
    this.form = element("form", "go");
    this.index = field("input", "text", "field tensornp-index", "Go to an index, such as 3, :, 5:9");
    this.index.spellcheck = false;
    this.index.title = "An index as NumPy writes it: integers, slices, ... (g)";
    this.form.append(element("span", "label", "index"), this.index);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      go(this.index.value);
    });
    this.problem = element("span", "problem");
    const searches = SEARCHES.map(([what, text, title]) => button(text, title, () => seek(what)));
    this.node.append(this.form, this.problem, groupOf("Jump to", searches));
  }

  paint({ numpy }) {
    this.index.setAttribute("aria-invalid", "false");
    this.index.placeholder = (numpy.match(/\[([^[\]]*)\]$/) ?? ["", ""])[1];
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
