// What a line of a tree opens: a head with its name, below it what the kernel renders of it, and a window on its values.

import { Navigator } from "../navigator/navigator.js";
import { button, element, focused, nameOf } from "../page/elements.js";

export class Panel {
  navigator;

  // `announce(text)` has a screen reader say it, `row()` gives its row in the tree, under which `place()` puts it, and
  // `closed()` is told when it is closed here; `lead(number)` opens another line.
  constructor(ask, { announce, row, place, closed, lead }) {
    this.ask = ask;
    this.announce = announce;
    this.row = row;
    this.putUnderRow = place;
    this.closed = closed;
    this.lead = lead;
    this.node = element("section", "panel");
    this.node.hidden = true;
  }

  // `from` is what had the focus when a key opened it, which then comes here.
  async open(number, from, goal = "") {
    this.opened = number;
    const opening = (this.opening = {});
    const content = await this.ask(this.request(number));
    if (opening !== this.opening) return;
    this.from = from;
    this.goal = goal;
    this.show(content);
  }

  // What is asked of the kernel to show a line by its number.
  request(number) {
    return { type: "open", row: number };
  }

  close() {
    this.left();
    this.opened = this.opening = undefined;
    this.node.hidden = true;
    this.node.replaceChildren();
  }

  // Comes before it is closed, or shows another.
  left() {
    this.navigator?.leave();
    this.navigator = undefined;
  }

  show(content) {
    this.left();
    this.putUnderRow();
    this.node.hidden = false;
    const isThere = content.type !== "error";
    const head = element("div", "panel-head");
    head.append(isThere ? nameOf("panel-name", content.name) : element("span", "problem", content.text));
    if (isThere) head.append(...this.inHead(content));
    const close = button("close", "", () => this.closed(), "copy tensornp-close");
    head.append(close);
    this.node.replaceChildren(head);
    if (isThere) {
      this.node.setAttribute("aria-label", content.name);
      this.paint(content);
    }
    this.goOn(close);
    this.seen();
    this.announce(isThere ? `${content.name} is shown` : content.text);
  }

  // What stands beside the name.
  inHead(_) {
    return [];
  }

  paint(_) {}

  // From the line on which a key was pressed, which may have been painted anew.
  goOn(stop) {
    if (this.from && [this.from, this.row()].includes(focused())) stop.focus({ preventScroll: true });
  }

  // Whatever a gesture opens comes into view, once, unless one has gone on to something else meanwhile: all of it and its
  // line, or where there is no room for both, its line and what is next to that. What has the focus is seen in any case.
  seen() {
    const now = focused();
    if (now !== document.body && !this.node.closest(".tensornp-explorer")?.contains(now)) return;
    for (const node of [this.node, this.row(), this.node.contains(now) && now]) {
      if (node) node.scrollIntoView({ block: "nearest" });
    }
  }

  // Opens the values in `place`; `closed()` is told when they are closed there.
  async openValues(message, place, takesFocus, closed) {
    const opening = (this.openingValues = {});
    const opened = await this.ask({ type: "values", ...message });
    if (opening !== this.openingValues || !place.isConnected) return;
    Panel.prototype.left.call(this);
    if (opened.type === "error") {
      place.replaceChildren(element("div", "said tensornp-error", opened.text));
      return;
    }
    this.navigator = new Navigator(this.ask, opened, {
      takesFocus,
      seen: () => this.seen(),
      closed: () => {
        Panel.prototype.left.call(this);
        closed();
      },
    });
    place.replaceChildren(this.navigator.root);
  }

  // Returns whether a key was used.
  key(event) {
    return this.navigator?.root.contains(event.target) ? this.navigator.key(event) : false;
  }
}
