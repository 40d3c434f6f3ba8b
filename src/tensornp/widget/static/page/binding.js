// A name to assign an array to. A taken name is overwritten only at a second press.

const FORM = `<input class="tensornp-field tensornp-name" aria-label="Name to assign the array to" spellcheck="false" autocomplete="off">
<button class="tensornp-button" title="Assign the array to that name in the notebook"></button>`;

export class Binding {
  // `bind({ name, overwrite })` asks the kernel, and `told(answer)` gets its answer, first an empty one.
  constructor(suggestion, bind, told, word = "Assign") {
    this.node = document.createElement("form");
    this.node.className = "tensornp-bind";
    this.node.innerHTML = FORM;
    this.node.hidden = !suggestion;
    const [name, press] = this.node.children;
    const paint = () => (press.textContent = this.taken === name.value ? "Overwrite" : word);
    name.value = suggestion;
    paint();
    name.addEventListener("input", paint);
    this.node.addEventListener("submit", async (event) => {
      event.preventDefault();
      const asked = name.value;
      // A screen reader hears the same answer again.
      told({ text: "" });
      const answer = await bind({ name: asked, overwrite: this.taken === asked });
      this.taken = answer.canOverwrite ? asked : undefined;
      paint();
      told(answer);
    });
  }
}
