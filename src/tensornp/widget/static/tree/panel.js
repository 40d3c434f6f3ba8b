// The panel of a row: its name, the kernel's HTML, and, for an array, its statistics, values and a name to bind it to.

import { Navigator } from "../navigator/navigator.js";
import { Binding } from "../page/binding.js";
import { copyButton } from "../page/copy.js";
import { button, element, focused } from "../page/elements.js";

export class Panel {
  // `announce(text)` has a screen reader say it, `row()` gives the row, `place()` puts the panel under it, `closed()` is
  // told that the user closes it, and `lead(number)` opens another row.
  constructor(ask, { announce, row, place, closed, lead }) {
    Object.assign(this, { ask, announce, row, putUnderRow: place });
    this.node = element("section", "panel");
    this.node.hidden = true;
    this.node.addEventListener("click", ({ target }) => {
      const link = target.closest("button");
      const { to, kept, seek } = link?.dataset ?? {};
      if (link?.classList.contains("tensornp-close")) closed();
      if (to) lead(Number(to));
      if (kept || seek) this.openValues(kept ? { value: Number(kept) } : { goal: seek }, link, true);
    });
  }

  // `from` is the row with the focus if a key opened it, which then comes here; `goal` is a place among the values.
  async open(number, from, goal) {
    this.opened = number;
    const content = await this.ask({ type: "open", row: number });
    if (this.opened !== number) return;
    // The values stay open from row to row.
    const wanted = goal ?? (this.values?.isConnected && this.navigator ? "" : undefined);
    this.show(content);
    const isHere = from && [from, this.row()].includes(focused());
    const stop = this.values ?? this.node.querySelector(".tensornp-close");
    if (isHere && !goal) stop.focus({ preventScroll: true });
    if (wanted !== undefined && this.values) await this.openValues({ goal: wanted }, this.values, Boolean(goal));
    this.scrollIntoView();
    this.announce(content.type === "error" ? content.text : `${content.name} is shown`);
  }

  show({ type, text, name, html, copies = {}, cost, suggestion }) {
    this.leave();
    const isThere = type !== "error";
    const head = element("div", "panel-head");
    head.append(element("bdi", isThere ? "panel-name" : "problem", isThere ? name : text));
    for (const [word, code] of Object.entries(copies)) head.append(copyButton(`the ${word} expression`, code, word));
    head.append(button("close", "", () => {}, "copy tensornp-close"));
    this.node.setAttribute("aria-label", isThere ? name : text);
    this.node.replaceChildren(head);
    this.node.hidden = false;
    this.values = undefined;
    this.place = element("div");
    if (cost) this.node.append(this.offers(cost, suggestion));
    if (isThere) {
      this.card = element("div", "scroller");
      this.card.innerHTML = html;
      this.node.append(this.card, this.place);
    }
    this.putUnderRow();
  }

  offers(cost, suggestion) {
    const bar = element("div", "controls");
    this.values = button("Values", "Walk through the values; only what is seen is read", () => {
      if (this.navigator) this.closeValues();
      else this.openValues({}, this.values, false);
    });
    this.values.setAttribute("aria-expanded", "false");
    const stats = button("Statistics", `Read all values (${cost})`, () => this.takeStats());
    this.status = element("span", "said");
    const bind = (asked) => this.ask({ type: "bind", row: this.opened, ...asked });
    bar.append(this.values, stats, new Binding(suggestion, bind, (answer) => this.say(answer)).node, this.status);
    return bar;
  }

  async takeStats() {
    const { card } = this;
    this.say({ text: "reading …" });
    const answer = await this.ask({ type: "stats", row: this.opened }, true);
    if (!card.isConnected) return;
    this.say(answer.type === "error" ? answer : { text: "" });
    if (answer.type === "error") return;
    this.closeValues();
    card.querySelector(".tensornp-all-figures")?.remove();
    card.append(element("div", "all-figures"));
    card.lastChild.innerHTML = answer.html;
    this.scrollIntoView();
    this.announce("the statistics are shown");
  }

  // Opens a window on the values in the place of the array; `opener` gets the focus when it is closed.
  async openValues(message, opener, takesFocus) {
    const { place } = this;
    const opened = await this.ask({ type: "values", row: this.opened, ...message });
    if (!place.isConnected) return;
    this.closeValues();
    if (opened.type === "error") {
      place.replaceChildren(element("div", "said tensornp-error", opened.text));
      return;
    }
    this.navigator = new Navigator(this.ask, opened, {
      takesFocus,
      row: this.row,
      seen: () => this.scrollIntoView(),
      closed: () => {
        this.closeValues();
        opener.focus();
      },
    });
    place.replaceChildren(this.navigator.root);
    this.values?.setAttribute("aria-expanded", "true");
  }

  closeValues() {
    this.leave();
    this.values?.setAttribute("aria-expanded", "false");
  }

  // Heard as well.
  say({ text, type = "plain" }) {
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${type === "error" ? "error" : "plain"}`;
    if (text) this.announce(text);
  }

  // The panel with its row, and at least what has the focus, unless the user has gone elsewhere.
  scrollIntoView() {
    const now = focused();
    if (now !== document.body && !this.row()?.parentElement.contains(now)) return;
    for (const node of [this.node, this.row(), this.node.contains(now) && now]) {
      if (node) node.scrollIntoView({ block: "nearest" });
    }
  }

  // Returns whether a key was used.
  key(event) {
    return this.navigator?.root.contains(event.target) ? this.navigator.key(event) : false;
  }

  close() {
    this.leave();
    this.opened = undefined;
    this.node.hidden = true;
  }

  leave() {
    this.navigator?.leave();
    this.navigator = undefined;
  }
}
