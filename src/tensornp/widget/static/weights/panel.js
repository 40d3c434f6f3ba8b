// One weight that was opened: its facts, what NumPy prints, and what can be asked of it.

import { copyButton } from "../page/copy.js";
import { button, element, field, nameOf } from "../page/elements.js";
import { figuresOf } from "./figures.js";

export class Panel {
  // `post(message, isSlow)` asks the kernel and returns by what number it answers; `announce(text)` has a screen reader
  // say it, `closed()` is told when it is closed from here.
  /** @param {Model} model @param {Record<string, (...args: any[]) => any>} calls */
  constructor(model, { post, announce, closed }) {
    this.model = model;
    this.post = post;
    this.announce = announce;
    this.closed = closed;
    this.node = element("section", "weight");
    this.node.hidden = true;
  }

  open(number) {
    this.figuring = undefined;
    this.opened = number;
    this.opening = this.post({ type: "open", weight: number });
  }

  close() {
    if (this.node.hidden) return;
    if (this.node.querySelector(".tensornp-values")) this.post({ type: "values", weight: this.opened, open: false });
    this.opened = this.opening = undefined;
    this.node.hidden = true;
    this.node.replaceChildren();
  }

  // Returns whether an answer is one to what was asked here.
  take(content) {
    if (content.number === this.opening) this.show(content);
    else if (content.type === "stats") this.takeStats(content);
    else return false;
    return true;
  }

  // --- the weight

  show(content) {
    this.opening = undefined;
    this.node.hidden = false;
    const isThere = content.type === "weight";
    const head = element("div", "weight-head");
    head.append(isThere ? nameOf("weight-name", content.name) : element("span", "problem", content.text));
    if (isThere && content.numpy) head.append(copyButton("the NumPy expression", () => content.numpy, "copy NumPy"));
    if (isThere && content.torch) head.append(copyButton("the PyTorch expression", () => content.torch, "copy PyTorch"));
    head.append(button("close", "", () => this.closed(), "copy tensornp-close"));
    this.node.replaceChildren(head);
    if (isThere) this.showFacts(content);
    this.announce(isThere ? `${content.name} is shown below` : content.text);
  }

  showFacts(content) {
    const facts = element("div", "facts");
    for (const [label, said] of content.facts) {
      const pair = element("span", "fact");
      pair.append(element("span", "label", `${label} `), element("bdi", "", said));
      facts.append(pair);
    }
    this.node.setAttribute("aria-label", content.name);
    this.node.append(facts);
    if (content.text) this.node.append(element("pre", "array", content.text));
    if (content.note) this.node.append(element("div", "said", content.note));
    this.figures = element("div", "all-figures");
    // The navigator docks into it by this class.
    this.place = element("div");
    this.place.className = this.model.get("place");
    if (content.hasValues) this.node.append(this.offers(content));
    this.node.append(this.figures, this.place);
    this.leaves?.observe(this.place, { childList: true });
  }

  // --- what is offered

  offers({ cost }) {
    const bar = element("div", "controls");
    const weight = this.opened;
    this.stats = button("Statistics", `All figures, quantiles and a heat map: ${cost}`, () => {
      this.stats.disabled = true;
      this.status.textContent = "reading …";
      this.figuring = this.post({ type: "stats", weight }, true);
    });
    bar.append(this.stats);
    if (this.model.get("has_values")) bar.append(this.valuesButton(weight));
    if (this.model.get("can_bind")) bar.append(this.binder(weight));
    this.status = element("span", "said");
    bar.append(this.status);
    return bar;
  }

  valuesButton(weight) {
    const isOpen = () => Boolean(this.place?.querySelector(".tensornp-values"));
    const values = button("Values", "Walk through the values; only what is seen is read", () => {
      const wasOpen = isOpen();
      this.post({ type: "values", weight, open: !wasOpen });
      values.setAttribute("aria-expanded", String(!wasOpen));
    });
    values.setAttribute("aria-expanded", "false");
    // The navigator also leaves for another card.
    this.leaves?.disconnect();
    this.leaves = new MutationObserver(() => {
      if (!isOpen()) values.setAttribute("aria-expanded", "false");
    });
    return values;
  }

  binder(weight) {
    const form = element("form", "go");
    const name = field("input", "text", "field tensornp-bind-name", "Name for the array");
    name.spellcheck = false;
    name.placeholder = "name";
    const bind = element("button", "button", "Bind array");
    bind.type = "submit";
    bind.title = "Bind the whole array to a name in the notebook";
    form.append(name, bind);
    let asked = "";
    const post = (overwrite) => {
      asked = overwrite ? asked : name.value.trim();
      this.post({ type: "bind", weight, name: asked, overwrite });
    };
    // What may be overwritten is the name that was asked for, and no other.
    name.addEventListener("input", () => this.status?.querySelector("button")?.remove());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      post(false);
    });
    this.overwrite = () => {
      post(true);
      name.focus();
    };
    return form;
  }

  // What became of a request; returns whether there is a place here to say it.
  tell({ type, text, canOverwrite }) {
    if (this.stats) this.stats.disabled = false;
    if (!this.status?.isConnected) return false;
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${type === "error" ? "error" : "plain"}`;
    if (canOverwrite) this.status.append(button("Overwrite", "Replace what the name stands for", this.overwrite));
    this.announce(text);
    return true;
  }

  takeStats(content) {
    if (content.number !== this.figuring || !this.figures?.isConnected) return;
    this.stats.disabled = false;
    this.status.textContent = "";
    this.figures.replaceChildren(...figuresOf(content));
    this.announce(this.figures.firstChild.textContent);
  }

  leave() {
    this.leaves?.disconnect();
  }
}
