// One weight that was opened: its facts, and in tabs what NumPy prints, all figures, and a window on the values.

import { copyButton } from "../page/copy.js";
import { button, element, field, focused } from "../page/elements.js";
import { Tabs } from "../page/tabs.js";
import { Panel, factsOf } from "../tree/panel.js";
import { figuresOf } from "./figures.js";

const NUM_PROBED = 1000;
// The space around what is in a panel.
const PANEL_PX = 24;

export class WeightPanel extends Panel {
  /** @type {Tabs | undefined} */
  tabs;
  hadValues = false;

  /** @param {Model} model @param {Record<string, (...args: any[]) => any>} calls */
  constructor(model, calls) {
    super(calls);
    this.model = model;
    /** @type {any} */
    this.room = calls.room;
    this.node.classList.add("tensornp-weight");
  }

  // With a `goal`, the values are shown at once, where that is: "nan", "inf", or an extreme.
  open(number, from, goal = "") {
    this.goal = goal;
    this.figuring = undefined;
    super.open(number, from);
  }

  request(number) {
    return { type: "open", weight: number, width: this.numCharacters() };
  }

  // The characters of a line of an array, measured by one that has room nowhere.
  numCharacters() {
    const probe = printed("0".repeat(NUM_PROBED));
    this.room.append(probe);
    const { scrollWidth } = probe;
    const { clientWidth } = this.room;
    probe.remove();
    return clientWidth && Math.max(Math.floor(((clientWidth - PANEL_PX) * NUM_PROBED) / scrollWidth), 1);
  }

  close() {
    if (!this.node.hidden && this.hasNavigator()) this.post({ type: "values", weight: this.opened, open: false });
    super.close();
  }

  left() {
    this.tabs = undefined;
    this.comes?.disconnect();
  }

  // Returns whether an answer is one to what was asked here.
  take(content) {
    if (super.take(content)) return true;
    if (content.type === "found" && content.number === this.asked) this.paintFound(content);
    else if (content.type === "stats") this.takeStats(content);
    else return content.type === "found";
    return true;
  }

  // --- the weight

  inHead({ numpy, torch }) {
    return [
      ...(numpy ? [copyButton("the NumPy expression", () => numpy, "NumPy")] : []),
      ...(torch ? [copyButton("the PyTorch expression", () => torch, "PyTorch")] : []),
    ];
  }

  // To what was sought, to the values if those of another weight were shown, or from the line on which a key was pressed.
  goOn(close) {
    const isSought = Boolean(this.goal);
    if (this.tabs?.has("values") && (isSought || this.hadValues)) {
      this.tabs.show("values");
      this.chose("values", isSought);
    }
    if (!isSought) super.goOn(this.tabs?.chosen() ?? close);
  }

  paint(content) {
    this.array = element("div");
    if (content.text) this.array.append(printed(content.text));
    if (content.note) this.array.append(element("div", "said", content.note));
    this.figures = element("div", "all-figures");
    // The navigator docks into it by this class.
    this.place = element("div");
    this.place.className = this.model.get("place");
    this.node.append(factsOf(content.facts));
    this.found = element("div", "panel-found");
    this.node.append(this.found);
    this.paintFound(content);
    if (content.hasValues) this.node.append(this.offers(content));
    this.node.append(this.array, this.figures, this.place);
  }

  // What a scan has found, which another scan may find otherwise.
  paintFound({ found }) {
    this.found?.replaceChildren(...(found ? [element("div", "said", found)] : []));
  }

  askFound() {
    if (!this.node.hidden) this.asked = this.post({ type: "found", weight: this.opened });
  }

  // --- what is offered

  offers({ cost }) {
    const bar = element("div", "controls");
    const values = { name: "values", text: "Values", title: "Walk through the values; only what is seen is read" };
    this.tabs = new Tabs(
      "What is shown of it",
      [
        { name: "array", text: "Array", title: "What NumPy prints", node: this.array },
        { name: "stats", text: "Statistics", title: `All figures, quantiles and a heat map: ${cost}`, node: this.figures },
        ...(this.model.get("has_values") ? [{ ...values, node: this.place }] : []),
      ],
      (name) => this.chose(name),
    );
    bar.append(this.tabs.node);
    if (this.model.get("can_bind")) bar.append(this.binder(this.opened));
    this.status = element("span", "said");
    bar.append(this.status);
    return bar;
  }

  chose(name, takesFocus = true) {
    const weight = this.opened;
    this.hadValues = name === "values";
    if (name === "stats" && this.figuring === undefined) {
      this.status.textContent = "reading …";
      this.figuring = this.post({ type: "stats", weight }, true);
    } else if (name === "values" && (this.goal || !this.hasNavigator())) {
      this.awaitGrid(takesFocus);
      this.post({ type: "values", weight, open: true, goal: this.goal });
      this.goal = "";
    }
    this.seen();
  }

  hasNavigator() {
    return Boolean(this.place?.querySelector(".tensornp-values"));
  }

  // The grid has the focus once it is there, if nobody has gone on meanwhile; and it may leave for another card.
  awaitGrid(takesFocus) {
    const from = focused();
    let isThere = false;
    this.comes?.disconnect();
    this.comes = new MutationObserver(() => {
      if (isThere && !this.hasNavigator()) {
        this.comes.disconnect();
        if (this.tabs?.shown === "values") this.tabs.show("array");
      }
      const cell = this.place.querySelector("[role='grid'] [tabindex='0']");
      if (isThere || !cell) return;
      isThere = true;
      if (takesFocus && from === focused()) cell.focus({ preventScroll: true });
      this.seen();
    });
    this.comes.observe(this.place, { childList: true, subtree: true });
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
  tell({ type, text, canOverwrite, number }) {
    // It may be asked for again.
    if (number === this.figuring) this.figuring = undefined;
    if (!this.status?.isConnected) return false;
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${type === "error" ? "error" : "plain"}`;
    if (canOverwrite) this.status.append(button("Overwrite", "Replace what the name stands for", this.overwrite));
    this.announce(text);
    return true;
  }

  takeStats(content) {
    if (content.number !== this.figuring || !this.figures?.isConnected) return;
    this.status.textContent = "";
    const seek = (goal) => {
      this.goal = goal;
      this.tabs?.choose("values");
    };
    this.figures.replaceChildren(...figuresOf(content, this.tabs?.has("values") ? seek : undefined));
    if (this.tabs?.shown === "stats") this.seen();
    this.announce(this.figures.firstChild.textContent);
  }

  key(event) {
    return this.tabs?.key(event) ?? false;
  }
}

// What NumPy prints, which keys scroll where it is wider than the page.
function printed(text) {
  const node = element("pre", "array", text);
  node.tabIndex = 0;
  node.setAttribute("role", "region");
  node.setAttribute("aria-label", "Array");
  return node;
}
