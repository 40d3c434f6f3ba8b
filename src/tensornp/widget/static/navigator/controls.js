// What leads to an element: an index, searches, and the side that is shown.

import { element, place } from "../page/elements.js";

const CONTROLS = `<span class="tensornp-group" role="group" aria-label="Side"></span>
<span class="tensornp-group" role="group" aria-label="Jump to">
  <button type="button" class="tensornp-button" data-seek="nan" title="Go to the next NaN (n)" aria-label="next NaN">NaN ▸</button>
  <button type="button" class="tensornp-button" data-seek="absmax" title="Go to the value of the largest magnitude">max |x|</button>
  <button type="button" class="tensornp-button" data-seek="min" title="Go to the least value">min</button>
  <button type="button" class="tensornp-button" data-seek="max" title="Go to the largest value">max</button>
  <button type="button" class="tensornp-button" data-seek="inf" title="Go to the next infinity" aria-label="next Inf">Inf ▸</button>
</span>
<form class="tensornp-go"><input type="text" class="tensornp-field tensornp-index" spellcheck="false" autocomplete="off"
  aria-label="Go to an index, such as 3, :, 5:9" title="An index as NumPy writes it; a slice leads to its first element (g)"></form>
<span class="tensornp-problem"></span>
<button type="button" class="tensornp-copy tensornp-end" title="Close the grid" aria-label="Close the grid">close ✕</button>`;

export class Controls {
  // `go(text)` goes to an index, `seek(what)` to a value, `turn(face)` shows another side, and `close()` ends it.
  constructor({ go, seek, turn, close }) {
    this.node = element("div", "controls");
    this.node.innerHTML = CONTROLS;
    [this.faces, , this.form, this.problem] = this.node.children;
    this.index = this.form.firstChild;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      go(this.index.value);
    });
    this.node.addEventListener("click", (event) => {
      const { dataset = {}, classList } = event.target.closest("button") ?? {};
      // A seek elsewhere in the card opens a window.
      event.stopPropagation();
      if (dataset.seek) seek(dataset.seek);
      else if (dataset.face) turn(Number(dataset.face));
      else if (classList?.contains("tensornp-end")) close();
    });
  }

  paint({ index, faces, face }) {
    const labels = faces.map(
      (label, i) => `<button type="button" class="tensornp-button" name="${label}" data-face="${i}" title="Show ${label}"
        aria-pressed="${i === face}">${label}</button>`,
    );
    place(this.faces, labels.join(""));
    this.faces.hidden = !faces.length;
    this.index.placeholder = index;
    this.refuse("");
  }

  refuse(text) {
    this.problem.textContent = text;
    this.index.setAttribute("aria-invalid", String(Boolean(text)));
  }
}
