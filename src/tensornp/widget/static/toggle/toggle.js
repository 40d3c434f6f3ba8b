// The live toggle of a tensor card: view / share / copy, a name to bind, and the values. The kernel renders the card.

import { Navigator } from "../navigator/navigator.js";
import { copyButton } from "../page/copy.js";
import { docking, stopListening } from "../page/docking.js";
import { element, tell } from "../page/elements.js";

const BAR = `<div class="tensornp-modes" role="radiogroup" aria-label="How the array uses the tensor's memory"></div>
<form class="tensornp-bind">
  <input class="tensornp-field tensornp-name" aria-label="Name to bind the array to" spellcheck="false" autocomplete="off">
  <button class="tensornp-button" title="Bind the array of this mode to that name in the notebook">Bind</button>
</form>
<button type="button" class="tensornp-button tensornp-open" title="Look at the values, a window at a time">Values</button>
<button type="button" class="tensornp-button tensornp-stats">Statistics</button>
<output class="tensornp-status" role="status"></output>
<span class="tensornp-again" hidden><code class="tensornp-code"></code> </span>`;

class Toggle {
  constructor(model, ask) {
    this.model = model;
    this.ask = ask;
    this.root = element("div", "live");
    this.face = element("div", "face");
    const bar = element("div", "bar");
    bar.innerHTML = BAR;
    this.root.append(this.face, bar);
    const find = (selector) => (bar.querySelector(selector));
    this.modes = find(".tensornp-modes");
    this.form = find("form");
    this.name = find("input");
    this.button = find("form button");
    this.values = find(".tensornp-open");
    this.stats = find(".tensornp-stats");
    this.status = find("output");
    this.again = find(".tensornp-again");
    this.again.append(copyButton("the line that binds it again", () => this.again.firstChild.textContent));
    // Each widget has its own copy of this module, so a counter would give two radio groups of a page one name.
    this.group = `tensornp-mode-${Math.random().toString(36).slice(2)}`;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.bind();
    });
    this.name.addEventListener("input", () => this.paintButton());
    this.values.addEventListener("click", () => (this.navigator ? this.closeValues() : this.openValues()));
    this.stats.addEventListener("click", () => ask({ type: this.model.get("progress") >= 0 ? "end" : "stats" }));
    this.face.addEventListener("click", ({ target }) => {
      const goal = target.closest("[data-seek]")?.dataset.seek;
      if (goal) this.openValues(goal);
    });
    this.listeners = {
      "change:html": () => this.paintFace(),
      "change:choices": () => this.paintModes(),
      "change:progress": () => this.paintStats(),
      "change:message": () => this.say(model.get("message")),
    };
    for (const [event, listener] of Object.entries(this.listeners)) model.on(event, listener);
    this.name.value = model.get("suggestion");
    this.form.hidden = !model.get("can_bind");
    this.again.hidden = true;
    this.paintModes();
    this.paintStats();
    this.say(model.get("message"));
  }

  // --- asking

  // An answer takes back nothing of what was chosen since.
  async choose(mode) {
    this.chosen = mode;
    this.paintModes();
    const { type, text = "" } = await this.ask({ type: "choose", mode });
    if (this.chosen !== mode) return;
    this.chosen = undefined;
    this.paintModes();
    this.say(text, type);
  }

  async bind() {
    const name = this.name.value;
    // What is bound once more is heard once more.
    this.say("");
    const { type, text, again = "", canOverwrite } = await this.ask({ type: "bind", name, overwrite: this.taken === name });
    this.taken = canOverwrite ? name : undefined;
    this.paintButton();
    this.say(text, type);
    this.again.firstChild.textContent = again;
    this.again.hidden = !again;
  }

  async openValues(goal = "") {
    if (this.navigator) {
      this.navigator.reach(goal);
      return;
    }
    const opened = await this.ask({ type: "values", goal });
    if (opened.type === "error") {
      this.say(opened.text, "error");
      return;
    }
    this.navigator?.leave();
    this.navigator = new Navigator(this.ask, opened, {
      closed: () => {
        this.closeValues();
        this.values.focus();
      },
    });
    this.root.append(this.navigator.root);
    this.paintValues();
  }

  closeValues() {
    this.navigator?.leave();
    this.navigator = undefined;
    this.paintValues();
  }

  // --- painting

  // What was unfolded stays so; of the first face, what the reader has unfolded in the static card.
  paintFace(card = this.face) {
    const before = [...card.querySelectorAll("details")];
    this.face.innerHTML = this.model.get("html");
    const folds = [...this.face.querySelectorAll("details")];
    folds.forEach((fold, i) => {
      if (before.length === folds.length) fold.open = before[i].open;
    });
    const receipt = folds[0]?.querySelector("code");
    receipt?.after(" ", copyButton("the code", () => receipt.textContent));
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
    this.paintValues();
  }

  radio(name) {
    const label = element("label", "mode");
    const radio = Object.assign(element("input"), { type: "radio", name: this.group, value: name });
    radio.addEventListener("change", () => this.choose(name));
    label.append(radio, element("span", "", name));
    return label;
  }

  paintButton() {
    this.button.textContent = this.taken === this.name.value ? "Overwrite" : "Bind";
  }

  paintValues() {
    this.values.setAttribute("aria-expanded", String(Boolean(this.navigator)));
  }

  // Offered where the card does not tell them: it reads all values, in a thread of the kernel's.
  paintStats() {
    const share = this.model.get("progress");
    const isRunning = share >= 0 && share !== null;
    if (share === null && document.activeElement === this.stats) this.values.focus();
    this.stats.hidden = share === null;
    this.stats.textContent = isRunning ? `Cancel (${Math.round(100 * share)} %)` : "Statistics";
    this.stats.title = isRunning
      ? "End the scan, and show what it has read so far"
      : "Read all values: mean, deviation, extremes, NaN, and a histogram";
  }

  say(text, type = "plain") {
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
    this.navigator?.die();
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
