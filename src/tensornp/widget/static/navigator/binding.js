// The array of what is shown: its code to copy, and a name to bind it to.

import { copyButton } from "../page/copy.js";
import { element } from "../page/elements.js";

const PARTS = `<code class="tensornp-code"></code>
<form class="tensornp-go">
  <input type="text" class="tensornp-field tensornp-window-name" spellcheck="false" autocomplete="off"
    aria-label="Name to bind what is shown to">
  <button class="tensornp-button" title="Bind the array of what is shown, and of nothing else, to that name in the notebook">Bind window</button>
</form>
<code class="tensornp-code tensornp-same"></code><span class="tensornp-outcome" role="status"></span>`;

export class Binding {
  // `bind(name, overwrite)` binds the array of the window, `suggestion` is a name for it, empty where none can be bound.
  constructor({ bind, suggestion }) {
    this.node = element("div", "expressions");
    this.node.innerHTML = PARTS;
    [this.expression, this.form, this.line, this.said] = this.node.children;
    [this.name, this.press] = this.form.children;
    this.copies = [["numpy", "NumPy"], ["torch", "PyTorch"]].map(([kind, name]) =>
      copyButton(`the ${name} expression of what is shown`, () => this.seen?.[kind] ?? "", name),
    );
    this.element = copyButton("the expression of this element", () => this.elementCode ?? "", "element");
    this.node.prepend(this.element);
    this.expression.after(...this.copies);
    this.form.hidden = !suggestion;
    this.name.value = suggestion;
    this.name.addEventListener("input", () => {
      this.offer();
      this.paintLine();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      // What may be overwritten is the name that was asked for, and no other.
      bind(this.name.value.trim(), this.canOverwrite);
    });
  }

  paint(seen) {
    // What was said is true of the same window still.
    if (this.seen?.numpy !== seen.numpy) this.offer();
    this.seen = seen;
    this.expression.textContent = seen.numpy;
    // Where no name reaches the tensor there is no line that would not be another's.
    for (const copy of this.copies) copy.hidden = !seen.numpy && !seen.torch;
    this.copies[0].disabled = !seen.numpy;
    this.copies[1].disabled = !seen.torch;
    this.paintLine();
  }

  // The element that one is at; none where its index is no index of the tensor itself.
  at(index) {
    const { whole } = this.seen ?? {};
    this.elementCode = whole && index ? `${whole}${index.length ? `[${index.join(", ")}]` : ""}` : "";
    this.element.hidden = !this.elementCode;
    this.element.title = `Copy ${this.elementCode}`;
  }

  // The line that does the same in a cell.
  paintLine() {
    const { bound = "" } = this.seen ?? {};
    this.line.textContent = bound && !this.form.hidden ? `${this.name.value.trim()} = ${bound}` : "";
  }

  offer(canOverwrite = false, text = "", isError = false) {
    this.canOverwrite = canOverwrite;
    this.press.textContent = canOverwrite ? "Overwrite" : "Bind window";
    this.said.textContent = text;
    this.said.classList.toggle("tensornp-error", isError);
  }
}
