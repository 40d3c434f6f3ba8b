// The weights of one row: the window on both sides of each and on the difference.

import { Navigator } from "../navigator/navigator.js";
import { clamp } from "../navigator/axes.js";
import { latest } from "../page/ask.js";
import { button, element, groupOf, liveRegion } from "../page/elements.js";

const PADDING = 24;

export class Opened {
  place = 0;
  navigator;

  // `name` is that of the row, and `closed()` is told that it is to go.
  constructor(ask, members, name, closed) {
    this.ask = ask;
    this.members = members;
    this.rowName = name;
    this.closed = closed;
    this.show = latest(() => this.fetch());
    this.root = element("section", "opened-pair tensornp-live");
    this.name = element("span", "pair-name");
    this.note = element("span", "pair-note");
    this.status = element("span", "said");
    this.live = liveRegion();
    const bar = element("div", "controls");
    bar.append(this.name, this.ofRow(), this.note, this.status, this.live);
    this.node = element("div");
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
    this.show();
  }

  // Once it is in the page, which tells how much room there is.
  begin() {
    // The table is as wide as it needs, which may be more or less than is seen of it.
    const outer = this.root.closest(".tensornp") ?? this.root;
    this.watcher = new ResizeObserver(() => (this.root.style.width = `${outer.clientWidth - PADDING}px`));
    this.watcher.observe(outer);
    this.show();
  }

  async fetch() {
    const { number } = this;
    const content = await this.ask({ type: "values", row: number });
    if (number !== this.number || !this.root.isConnected) return;
    this.navigator?.leave();
    this.navigator = undefined;
    this.name.textContent = content.label ?? this.rowName;
    this.name.title = content.title ?? "";
    this.root.setAttribute("aria-label", `Both sides of ${this.name.textContent}`);
    this.fail(content.type === "error" ? content.text : "");
    this.note.textContent = content.note ?? "";
    if (content.type === "error") return;
    this.navigator = new Navigator(this.ask, content, {
      closed: this.closed,
      seen: () => this.root.scrollIntoView({ block: "nearest" }),
    });
    this.node.append(this.navigator.root);
  }

  // Heard as well.
  fail(text) {
    this.status.textContent = text;
    this.status.className = "tensornp-said tensornp-error";
    this.live.textContent = text;
  }

  key(event) {
    return this.navigator?.root.contains(event.target) ? this.navigator.key(event) : false;
  }

  leave() {
    this.navigator?.leave();
    this.watcher?.disconnect();
    this.root.remove();
  }
}
