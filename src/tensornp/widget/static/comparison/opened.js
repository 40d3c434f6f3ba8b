// The weights of one row: the navigator on both sides and the difference docks in here.

import { GONE } from "../page/docking.js";
import { button, element, focused, groupOf, liveRegion } from "../page/elements.js";
import { Wishes } from "../page/wishes.js";
import { clamp } from "../navigator/axes.js";

const PADDING = 24;
const WHERE_TITLE = "Shares of the sum of |Δ|²: nearly all is 90% or more of it, most is half of it or more";

export class Opened {
  place = 0;

  // `closed()` is told that it is to go.
  /** @param {Model} model @param {number[]} members @param {(number: number) => string} called @param {() => void} closed */
  constructor(model, members, called, closed) {
    this.model = model;
    this.members = members;
    this.called = called;
    this.closed = closed;
    this.wishes = new Wishes(model, this);
    this.heard = (content) => this.hear(content);
    this.root = element("section", "opened-pair tensornp-live");
    this.name = element("span", "pair-name");
    this.where = element("span", "pair-where");
    this.where.title = WHERE_TITLE;
    this.status = element("span", "said");
    this.live = liveRegion();
    const bar = element("div", "controls");
    bar.append(this.name, this.ofRow(), this.where, this.status, this.live);
    // The navigator docks into it by this class.
    this.node = element("div");
    this.node.className = model.get("place");
    this.root.append(bar, this.node);
  }

  get number() {
    return this.members[this.place];
  }

  // The weights of one row, the largest change first.
  ofRow() {
    this.before = button("‹", "The one that moved more", () => this.turn(-1));
    this.after = button("›", "The one that moved less", () => this.turn(1));
    this.which = element("span", "which");
    const group = groupOf("The weights of this row", [this.before, this.which, this.after]);
    group.hidden = this.members.length === 1;
    this.tellWhich();
    return group;
  }

  tellWhich() {
    this.which.textContent = `${(this.place + 1).toLocaleString("en")} of ${this.members.length.toLocaleString("en")}`;
    this.before.disabled = !this.place;
    this.after.disabled = this.place === this.members.length - 1;
  }

  turn(by) {
    this.place = clamp(this.place + by, this.members.length);
    this.tellWhich();
    this.wish();
  }

  // Once it is in the page, which tells how much room there is.
  begin() {
    this.model.on("msg:custom", this.heard);
    // The table is as wide as it needs, which may be more or less than is seen of it.
    const outer = this.root.closest(".tensornp") ?? this.root;
    this.watcher = new ResizeObserver(() => (this.root.style.width = `${outer.clientWidth - PADDING}px`));
    this.watcher.observe(outer);
    // It leaves by its own button too.
    this.leaving = new MutationObserver(() => {
      const isThere = Boolean(this.node.firstElementChild);
      if (this.wasThere && !isThere && !this.wishes.pending) this.closed();
      this.wasThere = isThere;
    });
    this.leaving.observe(this.node, { childList: true });
    this.wish();
  }

  wish() {
    this.wished = { then: undefined, from: focused(), message: { type: "open", row: this.number } };
    this.wishes.pump();
  }

  next() {
    const { wished } = this;
    this.wished = undefined;
    return wished;
  }

  hear(content) {
    if (!this.wishes.isHeard(content)) return;
    if (!this.wishes.answered(content)) {
      if (content.number === this.locating && content.type === "where") this.tellWhere(content.text);
      return;
    }
    this.wishes.pump();
    if (this.wishes.pending) return;
    this.tellWhere(content.where);
    this.name.textContent = content.name ?? this.called(this.number);
    this.name.title = content.title ?? "";
    this.root.setAttribute("aria-label", `Both sides of ${this.name.textContent}`);
    if (content.type === "error") this.fail(content.text);
    else this.say("");
    if (content.isWhereFree && !content.where) {
      this.locating = this.wishes.post({ type: "where", row: this.number }, true);
    }
    this.root.scrollIntoView({ block: "nearest" });
  }

  tellWhere(text) {
    this.where.textContent = text ? `Δ: ${text}` : "";
  }

  say(text, tone = "plain") {
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${tone}`;
  }

  // Heard as well.
  fail(text) {
    this.say(text, "error");
    this.live.textContent = text;
  }

  die() {
    this.wishes.end();
    for (const one of [this.before, this.after]) one.disabled = true;
    this.fail(GONE);
  }

  leave() {
    this.leaving?.disconnect();
    this.watcher?.disconnect();
    if (!this.wishes.isDead) this.wishes.post({ type: "close" }, true);
    this.wishes.end();
    this.model.off("msg:custom", this.heard);
    this.root.remove();
  }
}
