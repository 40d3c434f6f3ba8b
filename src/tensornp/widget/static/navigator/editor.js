// The line of code that would write an element: nothing is changed here.

import { copyButton } from "../page/copy.js";
import { element, field } from "../page/elements.js";

const READ_ONLY = "nothing is changed here: run this line in a cell";

export class Editor {
  // `wish(edit)` asks for the code that writes a text to an index.
  constructor(wish) {
    this.wish = wish;
    this.node = element("form", "edits");
    this.node.hidden = true;
    const label = element("label", "label", "new value ");
    this.text = field("input", "text", "field tensornp-edit", "New value");
    this.text.spellcheck = false;
    label.append(this.text);
    this.code = element("code", "code");
    this.copy = copyButton("the line of code", () => this.code.textContent);
    this.note = element("span", "note");
    this.text.addEventListener("input", () => this.ask());
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      this.copy.focus();
    });
    this.node.append(label, this.code, this.copy, this.note);
  }

  open(index, text) {
    this.index = [...index];
    this.node.hidden = false;
    this.text.value = text;
    this.text.focus();
    this.text.select();
    this.ask();
  }

  ask() {
    this.code.textContent = "";
    this.wish({ index: this.index, text: this.text.value });
  }

  take(code, problem) {
    this.code.textContent = code;
    this.copy.hidden = !code;
    this.note.textContent = problem || READ_ONLY;
    this.note.classList.toggle("tensornp-error", Boolean(problem));
    this.text.setAttribute("aria-invalid", String(Boolean(problem)));
  }

  close() {
    this.node.hidden = true;
  }
}
