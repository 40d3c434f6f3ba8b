// What leads to an element: an index that is typed, searches, and the side that is shown.

import { button, element } from "../page/elements.js";

const PARTS = `<span class="tensornp-group" role="group" aria-label="Side"></span>
<span class="tensornp-group" role="group" aria-label="Jump to">
  <button type="button" class="tensornp-button" name="nan" title="Go to the next NaN (n)" aria-label="next NaN">NaN ▸</button>
  <button type="button" class="tensornp-button" name="absmax" title="Go to the value of the largest magnitude">max |x|</button>
  <button type="button" class="tensornp-button" name="min" title="Go to the least value">min</button>
  <button type="button" class="tensornp-button" name="max" title="Go to the largest value">max</button>
  <button type="button" class="tensornp-button" name="inf" title="Go to the next infinity" aria-label="next Inf">Inf ▸</button>
</span>
<form class="tensornp-go"><input type="text" class="tensornp-field tensornp-index" spellcheck="false" autocomplete="off"
  aria-label="Go to an index, such as 3, :, 5:9" title="An index as NumPy writes it: integers, slices, ... (g)"></form>
<span class="tensornp-problem"></span>
<button type="button" class="tensornp-copy tensornp-end" title="Close the grid" aria-label="Close the grid">close ✕</button>`;

export class Controls {
  // `go(text)` goes to an index, `seek(what)` to a value, `face(number)` shows another side, and `close()` ends it.
  constructor({ go, seek, face, close }) {
    this.turn = face;
    this.node = element("div", "controls");
    this.node.innerHTML = PARTS;
    const [faces, jumps, form, problem, end] = this.node.children;
    Object.assign(this, { faces, form, problem });
    this.index = form.firstChild;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      go(this.index.value);
    });
    jumps.addEventListener("click", ({ target }) => target.name && seek(target.name));
    end.addEventListener("click", close);
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
