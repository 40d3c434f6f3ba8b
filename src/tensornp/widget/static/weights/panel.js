// One weight that was opened: its facts, and in tabs what NumPy prints, all figures, and a window on the values.

import { copyButton } from "../page/copy.js";
import { button, element, field } from "../page/elements.js";
import { Tabs } from "../page/tabs.js";
import { Panel } from "../tree/panel.js";

const CHARACTER_PX = 7.8;
// The space around what is in a panel.
const PANEL_PX = 24;

export class WeightPanel extends Panel {
  tabs;
  hadValues = false;

  constructor(ask, calls, canBind) {
    super(ask, calls);
    this.canBind = canBind;
    this.room = calls.room;
    this.node.classList.add("tensornp-weight");
  }

  request(number) {
    return { type: "open", weight: number, width: this.numCharacters() };
  }

  // The characters of a line of an array.
  numCharacters() {
    return Math.max(Math.floor((this.room.clientWidth - PANEL_PX) / CHARACTER_PX), 0);
  }

  inHead({ numpy, torch }) {
    return [
      ...(numpy ? [copyButton("the NumPy expression", () => numpy, "NumPy")] : []),
      ...(torch ? [copyButton("the PyTorch expression", () => torch, "PyTorch")] : []),
    ];
  }

  // To what was sought, to the values if those of another weight were shown, or from the line on which a key was pressed.
  goOn(close) {
    const isSought = Boolean(this.goal);
    if (this.tabs && (isSought || this.hadValues)) {
      this.tabs.show("values");
      this.chose("values", isSought);
    }
    if (!isSought) super.goOn(this.tabs?.chosen() ?? close);
  }

  paint({ facts, array, cost, hasValues, suggestion }) {
    const told = element("div");
    told.innerHTML = facts;
    this.array = element("div");
    this.array.innerHTML = array;
    this.figures = element("div", "all-figures");
    this.figures.addEventListener("click", ({ target }) => {
      this.goal = target.closest("[data-seek]")?.dataset.seek;
      if (this.goal) this.tabs?.choose("values");
    });
    this.place = element("div");
    this.tabs = undefined;
    this.node.append(told);
    if (hasValues) this.node.append(this.offers(cost, suggestion));
    this.node.append(this.array, this.figures, this.place);
  }

  // --- what is offered

  offers(cost, suggestion) {
    const bar = element("div", "controls");
    this.tabs = new Tabs(
      "What is shown of it",
      [
        { name: "array", text: "Array", title: "What NumPy prints", node: this.array },
        { name: "stats", text: "Statistics", title: `All figures, quantiles and a heat map: ${cost}`, node: this.figures },
        { name: "values", text: "Values", title: "Walk through the values; only what is seen is read", node: this.place },
      ],
      (name) => this.chose(name),
    );
    this.status = element("span", "said");
    bar.append(this.tabs.node, ...(this.canBind ? [this.binder(suggestion)] : []), this.status);
    return bar;
  }

  chose(name, takesFocus = true) {
    this.hadValues = name === "values";
    if (name === "stats" && !this.figures.firstChild) this.takeStats();
    if (name === "values" && (this.goal || !this.navigator)) {
      const message = { weight: this.opened, goal: this.goal };
      this.openValues(message, this.place, takesFocus, () => {
        this.tabs?.show("array");
        this.tabs?.chosen()?.focus();
      });
      this.goal = "";
    }
    this.seen();
  }

  async takeStats() {
    const { figures, opened } = this;
    this.say("reading …");
    const { type, text, html } = await this.ask({ type: "stats", weight: opened }, true);
    if (!figures.isConnected) return;
    this.say(type === "error" ? text : "", type);
    if (type === "error") return;
    figures.innerHTML = html;
    if (this.tabs?.shown === "stats") this.seen();
    this.announce("the figures are shown");
  }

  binder(suggestion) {
    const form = element("form", "go");
    const name = field("input", "text", "field tensornp-bind-name", "Name for the array");
    name.spellcheck = false;
    name.value = suggestion;
    const bind = element("button", "button", "Bind array");
    bind.title = "Bind the whole array to a name in the notebook";
    form.append(name, bind);
    const post = async (overwrite) => {
      const asked = name.value.trim();
      const { type, text, canOverwrite } = await this.ask({ type: "bind", weight: this.opened, name: asked, overwrite });
      if (!form.isConnected) return;
      this.say(text, type);
      // What may be overwritten is the name that was asked for, and no other.
      if (canOverwrite && name.value.trim() === asked) {
        const again = () => {
          post(true);
          name.focus();
        };
        this.status.append(button("Overwrite", "Replace what the name stands for", again));
      }
    };
    name.addEventListener("input", () => this.status?.querySelector("button")?.remove());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      post(false);
    });
    return form;
  }

  // Heard as well.
  say(text, type = "plain") {
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${type === "error" ? "error" : "plain"}`;
    if (text) this.announce(text);
  }

  key(event) {
    return super.key(event) || (this.tabs?.key(event) ?? false);
  }
}
