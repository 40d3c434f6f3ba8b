// The live toggle of a tensor card: view / share / copy, a name to bind, and the values. The kernel renders the card.

import { Navigator } from "../navigator/navigator.js";
import { Binding } from "../page/binding.js";
import { copyButton } from "../page/copy.js";
import { docking, inPlace, stopListening } from "../page/docking.js";
import { element, focused, tell } from "../page/elements.js";

const BAR = `<div class="tensornp-modes" role="radiogroup" aria-label="How the array uses the tensor's memory"></div>
<button type="button" class="tensornp-button tensornp-open" title="Look at the values, a window at a time">Values</button>
<button type="button" class="tensornp-button tensornp-stats" title="Read all values: mean, deviation, extremes, NaN, and a histogram">Statistics</button>
<button type="button" class="tensornp-button" title="Print the numbers as NumPy does, with all digits">All digits</button>
<output class="tensornp-status" role="status"></output>
<span class="tensornp-again" hidden><code class="tensornp-code"></code> </span>`;

class Toggle {
  // Each widget has its own copy of this module, so a counter would give two radio groups of a page one name.
  group = `tensornp-mode-${Math.random().toString(36).slice(2)}`;
  covered = [];

  constructor(model, ask) {
    this.model = model;
    this.ask = ask;
    this.root = element("div", "live");
    this.face = element("div", "face");
    const bar = element("div", "bar");
    bar.innerHTML = BAR;
    this.root.append(this.face, bar);
    [this.modes, this.values, this.stats, this.digits, this.status, this.again] = bar.children;
    const suggestion = model.get("can_bind") ? model.get("suggestion") : "";
    const bind = (asked) => ask({ type: "bind", ...asked });
    this.modes.after(new Binding(suggestion, bind, (answer) => this.bound(answer)).node);
    this.copy = copyButton("the line that binds it again", "");
    this.again.append(this.copy);
    this.values.addEventListener("click", () => (this.navigator ? this.closeValues() : this.openValues()));
    this.stats.addEventListener("click", () => this.request("stats"));
    this.digits.addEventListener("click", () => this.request("digits"));
    this.face.addEventListener("click", ({ target }) => {
      const goal = target.closest("[data-seek]")?.dataset.seek;
      if (goal) this.openValues(goal);
    });
    this.listeners = {
      "change:all_digits": () => this.repaint(),
      "change:html": () => this.repaint(),
      "change:choices": () => this.paintModes(),
    };
    for (const [event, listener] of Object.entries(this.listeners)) model.on(event, listener);
    this.paintModes();
  }

  // A later choice stands when the answer to an earlier one comes.
  async choose(mode) {
    this.chosen = mode;
    this.paintModes();
    const answer = await this.ask({ type: "choose", mode });
    if (this.chosen !== mode) return;
    this.chosen = undefined;
    this.paintModes();
    this.say(answer);
  }

  bound({ again = "", ...answer }) {
    this.say(answer);
    this.again.firstChild.textContent = this.copy.dataset.copy = again;
    this.again.hidden = !again;
  }

  async openValues(goal = "") {
    if (this.navigator) return this.navigator.seek(goal, true);
    const opened = await this.ask({ type: "values", goal });
    if (opened.type === "error") return this.say(opened);
    this.closeValues();
    const closed = () => {
      this.closeValues();
      this.values.focus();
    };
    this.navigator = new Navigator(this.ask, opened, { closed });
    this.root.append(this.navigator.root);
    this.values.setAttribute("aria-expanded", "true");
  }

  closeValues() {
    this.navigator?.leave();
    this.navigator = undefined;
    this.values.setAttribute("aria-expanded", "false");
  }

  // --- painting

  // What is pressed stays under the mouse.
  repaint() {
    if (this.root.contains(focused())) inPlace(this.modes, () => this.paintFace());
    else this.paintFace();
  }

  // What was unfolded stays so; at first, what the reader has unfolded in the static card.
  paintFace(card = this.face) {
    const before = [...card.querySelectorAll("details")];
    this.face.innerHTML = this.model.get("html");
    if (!this.model.get("has_more") && focused() === this.stats) this.values.focus();
    this.stats.hidden = !this.model.get("has_more");
    this.digits.hidden = this.model.get("all_digits") === null;
    this.digits.ariaPressed = this.model.get("all_digits");
    const folds = [...this.face.querySelectorAll("details")];
    if (before.length === folds.length) folds.forEach((fold, i) => (fold.open = before[i].open));
    const receipt = folds[0]?.querySelector("code");
    receipt?.after(" ", copyButton("the code", receipt.textContent));
  }

  // The radio buttons stay in the page, since one of them may have the focus.
  paintModes() {
    const choices = this.model.get("choices");
    if (!this.modes.children.length) this.modes.append(...choices.map(({ name }) => this.radio(name)));
    choices.forEach(({ name, enabled, title, chosen }, i) => {
      const label = this.modes.children[i];
      const radio = label.firstChild;
      radio.disabled = !enabled || this.dead;
      radio.checked = this.chosen ? name === this.chosen : chosen;
      label.title = title;
      label.classList.toggle("tensornp-chosen", radio.checked);
      label.classList.toggle("tensornp-disabled", radio.disabled);
    });
    this.values.hidden = !choices.some(({ enabled }) => enabled);
  }

  radio(name) {
    const label = element("label", "mode");
    const radio = Object.assign(element("input"), { type: "radio", name: this.group, value: name });
    radio.addEventListener("change", () => this.choose(name));
    label.append(radio, element("span", "", name));
    return label;
  }

  async request(type) {
    this.say({ text: "reading …" });
    this.say(await this.ask({ type }, true));
  }

  say({ text = "", type }) {
    tell(this.status, text);
    this.status.className = `tensornp-status tensornp-${type === "error" ? "error" : "plain"}`;
  }

  // --- coming and leaving

  // The live card takes the place of the static one, which comes back when the toggle leaves.
  dock(card) {
    const isDocked = card.classList.contains("tensornp");
    this.covered = isDocked ? [...card.children].map((node) => [node, node.style.display]) : [];
    for (const [node] of this.covered) node.style.display = "none";
    this.face.classList.toggle("tensornp-docked", isDocked);
    this.paintFace(card);
    card.append(this.root);
  }

  key(event) {
    return this.navigator?.root.contains(event.target) ? this.navigator.key(event) : false;
  }

  reread() {
    this.navigator?.again();
  }

  die() {
    this.dead = true;
    if (this.navigator) this.navigator.dead = true;
    this.paintModes();
  }

  leave() {
    this.navigator?.leave();
    stopListening(this.model, this.listeners);
    for (const [node, display] of this.covered) node.style.display = display;
    this.root.remove();
  }
}

export default () => docking(Toggle);
