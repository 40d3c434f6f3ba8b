// The live toggle of a tensor card: view / share / copy, the receipt of the mode, and a name to bind.

import { copyButton } from "../page/copy.js";
import { GONE, docking } from "../page/docking.js";
import { button, element, focused, tell } from "../page/elements.js";
import { Request } from "../page/request.js";

// Lines that are worth a fold, and that are paler above it.
const MIN_FOLDED = 3;
const NUM_PALER = 2;

class Toggle {
  constructor(model) {
    this.model = model;
    this.request = new Request(model, this);
    // Each widget has its own copy of this module, so a counter would give two radio groups of a page one name.
    this.group = `tensornp-mode-${Math.random().toString(36).slice(2)}`;
    this.root = element("div", "live");
    // By this class the navigator finds a toggle that stands alone; else it docks into the card.
    if (!model.get("anchor")) this.root.classList.add(model.get("place"));
    this.head = element("div", "head");
    this.badges = element("span", "badges");
    this.memory = element("div", "memory");
    this.array = element("div", "array");
    this.receipt = element("details", "receipt");
    const code = () => this.receipt.querySelector("code").textContent;
    this.figures = element("span", "figures");
    this.figures.setAttribute("role", "status");
    this.head.append(this.badges, this.figures, this.receipt, copyButton("the code", code));
    this.root.append(this.head, this.memory, this.array, this.bar());
    this.printed = [];
    this.count = 0;
    this.paint();
  }

  bar() {
    const bar = element("div", "bar");
    this.modes = element("div", "modes");
    this.modes.setAttribute("role", "radiogroup");
    this.modes.setAttribute("aria-label", "How the array uses the tensor's memory");
    this.form = element("form", "bind");
    this.name = element("input", "field tensornp-name");
    this.name.setAttribute("aria-label", "Name to bind the array to");
    this.name.spellcheck = false;
    this.name.autocomplete = "off";
    this.name.value = this.model.get("suggestion");
    this.button = element("button", "button", "Bind");
    this.button.title = "Bind the array of this mode to that name in the notebook";
    this.form.append(this.name, this.button);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      // What is bound once more is heard once more.
      this.say("");
      this.ask({ type: "bind", name: this.name.value, overwrite: this.overwrites() });
    });
    this.name.addEventListener("input", () => this.paintButton());
    this.values = element("button", "button tensornp-open", "Values");
    this.values.type = "button";
    this.values.title = "Look at the values, a window at a time";
    this.values.addEventListener("click", () =>
      this.model.get("shows_values") ? this.ask({ type: "values", open: false }) : this.openValues(),
    );
    this.stats = element("button", "button", "Statistics");
    this.stats.type = "button";
    this.stats.addEventListener("click", () => this.ask({ type: this.isScanning() ? "end" : "stats" }));
    this.status = element("output", "status");
    this.status.setAttribute("role", "status");
    this.again = element("span", "again");
    this.againCode = element("code", "code");
    this.again.append(this.againCode, " ", copyButton("the line that binds it again", () => this.againCode.textContent));
    bar.append(this.modes, this.form, this.values, this.stats, this.status, this.again);
    return bar;
  }

  overwrites() {
    return this.model.get("message").confirm === this.name.value;
  }

  ask(request) {
    this.asked = `${this.group}-${(this.count += 1)}`;
    this.request.send({ ...request, id: this.asked });
  }

  // The values come into view with their cells, unless one has gone on to something else meanwhile.
  openValues(wanted = {}) {
    this.ask({ type: "values", open: true, ...wanted });
    const [card, from] = [this.root.closest(".tensornp"), focused()];
    if (!card) return;
    this.comes?.disconnect();
    const show = () => {
      const values = card.querySelector(".tensornp-values");
      if (!values?.querySelector("[role='grid'] td")) return;
      this.comes?.disconnect();
      const now = focused();
      if (now === from || now === document.body || card.contains(now)) values.scrollIntoView({ block: "nearest" });
    };
    this.comes = new MutationObserver(show);
    this.comes.observe(card, { childList: true, subtree: true });
    show();
  }

  // An answer to what was asked before takes back nothing of what one has chosen since.
  answered() {
    if (this.dead || !this.asked || this.model.get("answered") === this.asked) {
      this.asked = undefined;
      this.request.end();
      this.chosen = undefined;
    }
    this.paint();
  }

  choose(mode) {
    this.chosen = mode;
    this.paintModes(this.model.get("choices"));
    this.ask({ type: "choose", mode });
  }

  mode() {
    return this.chosen ?? this.model.get("mode");
  }

  paint() {
    const card = this.model.get("card");
    // As the static card writes them, with a space between.
    this.badges.replaceChildren(...card.badges.flatMap((badge) => [this.badge(badge), " "]));
    this.memory.replaceChildren(...card.memory.map((line) => element("div", "line", line)));
    this.paintArray(this.model.get("array_text"));
    this.paintReceipt(card.receipt);
    this.paintModes(this.model.get("choices"));
    this.paintButton();
    this.paintValues();
    this.paintFigures();
    const { text = "", tone = "plain", again = "" } = this.model.get("message");
    this.say(text, tone);
    this.againCode.textContent = again;
    this.again.hidden = !again;
  }

  // What gives cause for alarm leads to it.
  badge({ kind, text, title, tone }) {
    const isLink = (kind === "nan" || kind === "inf") && this.model.get("has_values");
    const node = isLink ? this.alarm([kind, text]) : element("span", `badge tensornp-${tone}`, text);
    node.classList.add("tensornp-badge");
    if (isLink) node.title = `${title} ${node.title}.`;
    // The receipt says it; who listens would hear it with the badge as well.
    else node.addEventListener("pointerenter", () => { node.title = title; });
    return node;
  }

  // In a card, its own text stands as long as that is what the array of this mode prints.
  paintArray(text) {
    const isOwn = Boolean(text);
    if (isOwn && text !== this.shownText) this.array.replaceChildren(...this.linesOf(text));
    this.shownText = text;
    this.array.hidden = !isOwn;
    if (this.model.get("is_in_row")) this.figures.before(this.array);
    for (const node of this.printed) node.style.display = isOwn ? "none" : "";
  }

  // As the static card folds them.
  linesOf(text) {
    const lines = text.split("\n");
    const most = this.model.get("max_height");
    const hidden = most ? lines.slice(most) : [];
    const numMore = hidden.filter((line) => line.trim()).length;
    if (numMore < MIN_FOLDED) return [element("pre", "lines", text)];
    const pre = element("pre", "lines", lines.slice(0, Math.max(most - NUM_PALER, 0)).join("\n"));
    const paler = lines.slice(Math.max(most - NUM_PALER, 0), most);
    pre.append(...paler.flatMap((line, i) => ["\n", element("span", `paler-${NUM_PALER - paler.length + i}`, line)]));
    if (most <= NUM_PALER) pre.firstChild?.remove();
    const more = element("details", "more");
    more.append(element("summary", "", `${numMore.toLocaleString("en-US")} more lines`));
    more.append(element("pre", "lines", hidden.join("\n")));
    return [pre, more];
  }

  paintReceipt({ code, lines }) {
    const nodes = [element("summary", "", "code"), element("code", "code", code)];
    this.receipt.replaceChildren(...nodes, ...lines.map((line) => element("div", "line", line)));
  }

  paintModes(modes) {
    const current = this.mode();
    if (!this.radios) {
      this.radios = modes.map(({ name }) => {
        const label = element("label", "mode");
        const radio = element("input");
        Object.assign(radio, { type: "radio", name: this.group, value: name });
        radio.addEventListener("change", () => this.choose(name));
        label.append(radio, element("span", "", name));
        this.modes.append(label);
        return radio;
      });
    }
    modes.forEach(({ enabled, title }, i) => {
      const radio = this.radios[i];
      radio.disabled = !enabled || this.dead;
      radio.checked = radio.value === current;
      radio.parentElement.title = title;
      radio.parentElement.classList.toggle("tensornp-chosen", radio.checked);
      radio.parentElement.classList.toggle("tensornp-disabled", radio.disabled);
    });
  }

  paintButton() {
    this.form.hidden = !this.model.get("can_bind");
    this.button.textContent = this.overwrites() ? "Overwrite" : "Bind";
    this.button.disabled = this.name.disabled = Boolean(this.dead);
  }

  paintValues() {
    this.values.hidden = !this.model.get("has_values");
    this.values.disabled = Boolean(this.dead);
    this.values.setAttribute("aria-expanded", String(Boolean(this.model.get("shows_values"))));
  }

  isScanning() {
    return this.model.get("progress") >= 0;
  }

  // Offered where the card does not tell them: it reads all values, in a thread of the kernel's.
  paintFigures() {
    const { words = [], title = "", picture, isPartial } = this.model.get("figures");
    const isThere = Boolean(words.length);
    // What was only read in part can be read whole.
    const isWhole = isThere && !isPartial;
    const hadFocus = document.activeElement === this.stats;
    this.stats.hidden = !this.model.get("has_stats") || isWhole;
    if (hadFocus && this.stats.hidden) (this.values.hidden ? this.name : this.values).focus();
    this.stats.disabled = Boolean(this.dead);
    const share = Math.round(100 * this.model.get("progress"));
    this.stats.textContent = this.isScanning() ? `Cancel (${share} %)` : "Statistics";
    this.stats.title = this.isScanning()
      ? "End the scan, and show what it has read so far"
      : "Read all values: mean, deviation, extremes, NaN, and a histogram";
    this.figures.hidden = !isThere;
    const painted = JSON.stringify([words, title, picture]);
    if (painted === this.paintedFigures) return;
    this.paintedFigures = painted;
    // As a badge.
    this.figures.removeAttribute("title");
    this.figures.onpointerenter = () => { this.figures.title = title; };
    const nodes = [words.join(" · ")];
    if (picture?.src) {
      const image = Object.assign(element("img"), picture, { width: 64, height: 16 });
      nodes.unshift(image, " ");
    }
    this.figures.replaceChildren(...nodes);
  }

  alarm([what, text]) {
    const title = `Go to the first ${what === "nan" ? "NaN" : "infinity"}`;
    return button(text, title, () => this.openValues({ goal: what }), "alarm");
  }

  say(text, tone = "plain") {
    tell(this.status, text);
    this.status.className = `tensornp-status tensornp-${tone}`;
  }

  // Take the place of the card's own badges, text and receipt, which come back when the toggle leaves.
  dock(card) {
    this.covered = card.firstElementChild;
    this.display = this.covered?.style.display;
    if (this.covered) this.covered.style.display = "none";
    this.badges.style.minWidth = this.covered?.firstElementChild?.style.minWidth ?? "";
    this.printed = [...card.querySelectorAll(":scope > pre, :scope > details")];
    card.prepend(this.head);
    this.printed.at(-1)?.after(this.array);
    // The static card goes on to name who shares the memory.
    this.memory.remove();
    // The navigator stays below, whoever came first.
    const values = card.querySelector(":scope > .tensornp-values");
    if (values) values.before(this.root);
    else card.append(this.root);
    this.paint();
  }

  undock() {
    this.comes?.disconnect();
    this.request.end();
    for (const node of this.printed) node.style.display = "";
    if (this.covered) this.covered.style.display = this.display;
    this.head.remove();
    this.array.remove();
    this.root.remove();
  }

  die() {
    this.dead = true;
    this.answered();
    this.root.classList.add("tensornp-dead");
    this.say(GONE, "error");
  }
}

export default () => {
  const toggles = new Set();
  let isLost = false;
  let watched;
  const add = (model) => {
    const toggle = new Toggle(model);
    // The navigator also leaves for another toggle, which is no answer to this one.
    if (watched !== model) {
      model.on("change:shows_values", () => toggles.forEach((one) => one.paintValues()));
      model.on("change:progress change:figures", () => toggles.forEach((one) => one.paintFigures()));
    }
    watched = model;
    toggles.add(toggle);
    // The page renders a widget again when its cell is moved.
    if (isLost) toggle.die();
    return toggle;
  };
  return docking({
    own: ".tensornp-bar, .tensornp-head",
    dock(model, card) {
      const toggle = add(model);
      toggle.dock(card);
      return () => {
        toggle.undock();
        toggles.delete(toggle);
      };
    },
    rendered(model, el) {
      const toggle = add(model);
      el.append(toggle.root);
      return () => toggles.delete(toggle);
    },
    answered: () => toggles.forEach((toggle) => toggle.answered()),
    lost: () => {
      isLost = true;
      toggles.forEach((toggle) => toggle.die());
    },
  });
};
