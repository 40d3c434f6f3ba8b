// The live toggle of a tensor card: view / share / copy, the receipt of the mode, and a name to bind.

const PENDING_AFTER_MS = 150;

function badge({ text, title, tone }) {
  const node = element("span", `badge tensornp-${tone}`, text);
  node.title = title;
  return node;
}

class Toggle {
  constructor(model) {
    this.model = model;
    // Each widget has its own copy of this module, so a counter would give two radio groups of a page one name.
    this.group = `tensornp-mode-${Math.random().toString(36).slice(2)}`;
    this.root = element("div", "live");
    this.badges = element("div", "badges");
    this.array = element("pre", "array");
    this.receipt = element("details", "receipt");
    this.root.append(this.badges, this.array, this.receipt, this.bar());
    this.hidden = [];
    this.paint();
  }

  bar() {
    const bar = element("div", "bar");
    this.modes = element("div", "modes");
    this.modes.setAttribute("role", "radiogroup");
    this.modes.setAttribute("aria-label", "How the array uses the tensor's memory");
    this.form = element("form", "bind");
    this.name = element("input", "name");
    this.name.setAttribute("aria-label", "Name to bind the array to");
    this.name.spellcheck = false;
    this.name.autocomplete = "off";
    this.name.value = this.model.get("suggestion");
    this.button = element("button", "button", "Bind");
    this.button.title = "Bind the array of this mode to that name in the notebook";
    this.form.append(this.name, this.button);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask(() => this.model.send({ type: "bind", name: this.name.value, overwrite: this.overwrites() }));
    });
    this.name.addEventListener("input", () => this.paintButton());
    this.status = element("output", "status");
    this.status.setAttribute("role", "status");
    bar.append(this.modes, this.form, this.status);
    return bar;
  }

  overwrites() {
    return this.model.get("message").confirm === this.name.value;
  }

  ask(send) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.root.classList.add("tensornp-pending");
      this.say("waiting for the kernel …");
    }, PENDING_AFTER_MS);
    send();
  }

  answered() {
    clearTimeout(this.timer);
    this.root.classList.remove("tensornp-pending");
    this.badges.classList.remove("tensornp-unconfirmed");
    this.receipt.classList.remove("tensornp-unconfirmed");
    this.paint();
  }

  // Badges and receipt of the new mode are shown at once, faint until the kernel has confirmed them.
  choose(mode) {
    this.model.set("mode", mode);
    this.paint();
    this.badges.classList.add("tensornp-unconfirmed");
    this.receipt.classList.add("tensornp-unconfirmed");
    this.ask(() => this.model.save_changes());
  }

  paint() {
    const card = this.model.get("cards")[this.model.get("mode")];
    this.badges.replaceChildren(...card.badges.map(badge));
    this.array.textContent = this.model.get("array_text");
    this.array.hidden = this.docked || !this.array.textContent;
    this.paintReceipt(card.receipt);
    this.paintModes(this.model.get("choices"));
    this.paintButton();
    const { text = "", tone = "plain" } = this.model.get("message");
    this.say(text, tone);
  }

  paintReceipt({ mode, code, lines }) {
    const summary = element("summary", "", `${mode} · `);
    summary.append(element("code", "code", code));
    this.receipt.replaceChildren(summary, ...lines.map((line) => element("div", "line", line)));
  }

  paintModes(modes) {
    const current = this.model.get("mode");
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

  say(text, tone = "plain") {
    this.status.textContent = text;
    this.status.className = `tensornp-status tensornp-${tone}`;
  }

  // Take the place of the card's own badges and receipt, which come back when the toggle leaves.
  dock(card) {
    this.docked = true;
    this.hidden = [card.firstElementChild, card.querySelector("details")].filter(Boolean);
    for (const node of this.hidden) node.style.display = "none";
    card.prepend(this.badges);
    card.append(this.root);
    this.paint();
  }

  undock() {
    clearTimeout(this.timer);
    for (const node of this.hidden) node.style.display = "";
    this.badges.remove();
    this.root.remove();
  }

  die() {
    this.dead = true;
    clearTimeout(this.timer);
    this.root.classList.remove("tensornp-pending");
    this.root.classList.add("tensornp-dead");
    this.paint();
    this.say("the kernel was restarted; run the cell again", "error");
  }
}

export default () => {
  const toggles = new Set();
  const add = (model) => {
    const toggle = new Toggle(model);
    toggles.add(toggle);
    return toggle;
  };
  return docking({
    own: ".tensornp-bar",
    answered(model, card) {
      if (card && ![...toggles].some((toggle) => toggle.root.isConnected)) add(model).dock(card);
      toggles.forEach((toggle) => toggle.answered());
    },
    lost: () => toggles.forEach((toggle) => toggle.die()),
    rendered(model, el) {
      const toggle = add(model);
      el.append(toggle.root);
      return () => toggles.delete(toggle);
    },
    closed: () => toggles.forEach((toggle) => toggle.undock()),
  });
};
