// What a line of a tree opens: a head with its name, and below it what whoever extends this shows of it.

import { button, element, focused, nameOf } from "../page/elements.js";
import { partsOf } from "../table/name.js";

export class Panel {
  // `post(message, isSlow)` asks the kernel and returns by what number it answers; `announce(text)` has a screen reader
  // say it, `row()` gives its row in the tree, under which `place()` puts it, and `closed()` is told when it is closed here.
  /** @param {Record<string, (...args: any[]) => any>} calls */
  constructor({ post, announce, row, place, closed }) {
    this.post = post;
    this.announce = announce;
    this.row = row;
    this.putUnderRow = place;
    this.closed = closed;
    this.node = element("section", "panel");
    this.node.hidden = true;
  }

  // `from` is what had the focus when a key opened it, which then comes here.
  open(number, from) {
    this.opened = number;
    this.from = from;
    this.opening = this.post(this.request(number));
  }

  // What is asked of the kernel to show a line by its number.
  /** @param {number} number @returns {Message} */
  request(number) {
    return { type: "open", row: number };
  }

  close() {
    if (this.node.hidden) return;
    this.left();
    this.opened = this.opening = undefined;
    this.node.hidden = true;
    this.node.replaceChildren();
  }

  // Comes before it is closed, or shows another.
  left() {}

  // Returns whether an answer is one to what was asked here.
  take(content) {
    if (content.number !== this.opening) return false;
    this.show(content);
    return true;
  }

  show(content) {
    this.left();
    this.opening = undefined;
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
  /** @returns {HTMLElement[]} */
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

  // Returns whether a key was used.
  key(_) {
    return false;
  }

  // Says what became of a request; returns whether there is a place here to say it.
  tell(_) {
    return false;
  }

  leave() {
    this.left();
  }
}

// What is known in a word or two: a label, and what is said.
/** @param {[string, string][]} facts */
export function factsOf(facts) {
  const node = element("div", "facts");
  for (const [label, said] of facts) {
    const pair = element("span", "fact");
    const value = element("bdi");
    // A path breaks after its parts.
    value.append(...partsOf(said));
    pair.append(element("span", "label", `${label} `), value);
    node.append(pair);
  }
  return node;
}
