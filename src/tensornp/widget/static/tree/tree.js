// A tree of which the kernel has the lines: the page asks for those that it has room for, and paints the answer. What
// they are of is known to whoever extends it.

import { copyButton } from "../page/copy.js";
import { GONE, disable, stopListening } from "../page/docking.js";
import { button, element, focused, liveRegion } from "../page/elements.js";
import { WAITING } from "../page/request.js";
import { Wishes } from "../page/wishes.js";
import { Columns } from "./columns.js";
import { Controls } from "./controls.js";
import { Lines } from "./lines.js";

// From where on what is open stands beside the tree, and what a scrollbar takes at most: one that comes and goes
// with the height of the page does not move it to and fro.
const WIDE_PX = 1280;
const SCROLLBAR_PX = 20;
// What the bar beside the lines takes.
const BAR_PX = 14;
// What a wheel that is turned by one notch goes by is three lines.
const LINE_OF_WHEEL_PX = 33;

export class Tree {
  /** @type {SeenLines} */
  seen;
  /** @type {HTMLElement[]} */
  hidden = [];
  /** @type {(() => void)[]} */
  links = [];
  /** @type {{ search: string, sort: string, descending: boolean, filters: Record<string, string>, toggled: number[] }} */
  asked = { search: "", sort: "", descending: false, filters: {}, toggled: [] };
  isWide = false;
  first = 0;
  firstBefore = 0;
  rolled = 0;
  sortBefore = "";
  /** @type {string | undefined} */
  heardText;
  current = 0;

  // `kind` is the class of its root, `unsorted` the name of the order of lines that nothing sorts, `kept` where the browser
  // keeps which columns were chosen; `panelOf(calls)` makes what shows a line that is opened.
  /**
   * @param {Model} model
   * @param {{ kind: string, label: string, unsorted: string, kept: string, panelOf: (calls: any) => any }} what
   */
  constructor(model, { kind, label, unsorted, kept, panelOf }) {
    this.model = model;
    this.wishes = new Wishes(model, this);
    this.controls = new Controls({ ask: (changed) => this.ask(changed), filters: () => this.asked.filters });
    this.lines = new Lines({ label, unsorted }, {
      sort: (order) => this.ask(order),
      order: () => this.asked,
      act: (line) => this.act(line),
      toggle: (line) => this.toggle(line),
      list: (filters) => this.ask({ search: "", filters }),
      seek: ({ number, goal }) => this.open(number, undefined, goal),
      moveTo: (first) => this.moveTo(first),
      entered: (at) => this.entered(at),
    });
    this.columns = new Columns(
      kept,
      (column) => this.lines.sizeOf(column),
      (name) => {
        if (this.seen) this.repaint();
        this.lines.showColumn(name);
      },
    );
    this.controls.node.append(this.columns.button);
    this.panel = panelOf({
      post: (message, isSlow) => this.wishes.post(message, isSlow),
      announce: (text) => (this.live.textContent = text),
      row: () => this.lines.rowOpened(),
      lead: (number) => this.lead(number),
      closed: () => {
        this.close();
        this.lines.rowOf(this.current)?.focus({ preventScroll: true });
      },
    });
    this.root = element("section", `explorer tensornp-${kind}`);
    this.root.setAttribute("aria-label", label);
    this.listing = element("div", "listing");
    this.listing.append(this.lines.node, this.line());
    const both = element("div", "listing-and-panel");
    both.append(this.listing, this.panel.node);
    this.root.append(this.controls.node, this.columns.list, both);
    this.lines.grid.addEventListener("wheel", (event) => this.roll(event, () => event.preventDefault()), { passive: false });
    this.listeners = {};
    this.listen({ "msg:custom": (content) => this.hear(content) });
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.root);
    this.watcher.observe(this.listing);
    this.wish();
  }

  listen(listeners) {
    Object.assign(this.listeners, listeners);
    for (const [event, listener] of Object.entries(listeners)) this.model.on(event, listener);
  }

  line() {
    const line = element("div", "line-of-cell");
    this.said = element("span", "said");
    this.status = element("span", "said");
    this.code = element("code", "code");
    this.copy = copyButton("the expression of what is listed", () => this.code.textContent);
    this.live = liveRegion();
    const expression = element("span", "expression");
    expression.append(this.code, this.copy);
    line.append(this.said, this.status, expression, this.live);
    return line;
  }

  // --- asking

  ask(changed) {
    if (changed.search === "") this.controls.search.value = "";
    this.asked = { ...this.asked, ...changed };
    this.first = 0;
    this.current = 0;
    this.wish();
  }

  // `then` says where the focus goes with the answer: "tree", or nowhere.
  // `reveal` is the number of a line that is to be seen, whatever is closed.
  wish(then = this.wished?.then, reveal = this.wished?.reveal) {
    if (this.dead) return;
    this.wished = { then, reveal, from: focused() };
    this.wishes.pump();
  }

  next() {
    const wished = this.wished;
    this.wished = undefined;
    if (!wished) return undefined;
    const { reveal = null } = wished;
    return { ...wished, message: { type: "lines", first: this.first, count: this.lines.count, reveal, ...this.asked } };
  }

  hear(content) {
    if (!this.wishes.isHeard(content)) return;
    if (this.status.textContent === WAITING) this.say("");
    const answered = this.wishes.answered(content);
    if (answered) {
      if (content.type === "lines") this.take(content, answered.then);
      else this.refuse(content.text);
      this.wishes.pump();
    } else if (!this.panel.take(content) && ["bound", "error"].includes(content.type) && !this.panel.tell(content)) {
      this.say(content.text, content.type === "error" ? "error" : "plain");
    }
  }

  refuse(text) {
    this.controls.refuse(text);
    this.say("");
    this.heardText = undefined;
    this.live.textContent = text;
  }

  say(text, tone = "plain") {
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${tone}`;
  }

  // --- lines

  take(seen, then) {
    const had = this.lines.body.contains(focused());
    this.seen = seen;
    // A later wish has another first line.
    if (!this.wished) this.first = seen.first;
    if (!this.wished && seen.revealed >= 0) {
      this.asked = { ...this.asked, toggled: seen.toggled };
      this.current = seen.revealed;
    }
    this.controls.refuse("");
    this.say("");
    this.controls.offer(seen.choices);
    if (!this.wished) this.current = Math.min(Math.max(this.current, 0), Math.max(seen.total - 1, 0));
    this.paint();
    const row = this.lines.rowOf(this.current) ?? this.lines.rows[0];
    // Where a later wish is waiting, the line that is wanted is not here yet: the focus goes on to it from there.
    this.isTaking = true;
    if (row && (had || then === "tree")) row.focus({ preventScroll: true });
    else if (had) this.controls.search.focus({ preventScroll: true });
    this.isTaking = false;
    // How many lines there are is heard where it is another number.
    if (!had && seen.text !== this.heardText) this.live.textContent = seen.text;
    this.heardText = seen.text;
    if (!this.wished && seen.revealed >= 0) this.panel.seen();
  }

  // What there is room for; what is out of sight stays as it is.
  fit() {
    const { clientWidth } = this.root;
    if (!clientWidth) return;
    const isWide = clientWidth >= WIDE_PX - (this.isWide ? SCROLLBAR_PX : 0);
    if (isWide !== this.isWide) {
      this.isWide = isWide;
      this.root.classList.toggle("tensornp-wide", isWide);
      this.shrink();
    }
    if (this.columns.fit(this.listing.clientWidth - BAR_PX) && this.seen) this.repaint();
    this.lines.paintEdges();
  }

  // The same lines, with other columns.
  repaint() {
    const had = this.lines.body.contains(focused());
    this.paint();
    if (had) this.lines.rowOf(this.current)?.focus({ preventScroll: true });
  }

  paint() {
    const { total, text, code } = this.seen;
    const columns = this.columns.offer(this.seen.columns, this.asked.sort);
    this.lines.paint(this.seen, columns, this.asked, this.current, this.panel.opened);
    if (this.asked.sort !== this.sortBefore) this.lines.showColumn(this.asked.sort);
    this.sortBefore = this.asked.sort;
    this.said.textContent = text || `${total.toLocaleString("en")} ${total === 1 ? "line" : "lines"}`;
    this.code.textContent = code;
    this.copy.hidden = !code;
    this.controls.paintFilters();
  }

  // --- moving

  entered(at) {
    if (this.isTaking && this.wished) return;
    this.lines.stopAt(at, this.current);
    this.current = at;
  }

  go(to) {
    if (!this.seen?.total) return;
    const at = Math.min(Math.max(to, 0), this.seen.total - 1);
    const row = !this.wishes.pending && !this.wished && this.lines.rowOf(at);
    if (row) {
      row.focus({ preventScroll: true });
      return;
    }
    this.current = at;
    if (at < this.first) this.first = at;
    else if (at >= this.first + this.lines.count) this.first = at - this.lines.count + 1;
    this.wish("tree");
  }

  moveTo(first) {
    this.first = Math.min(Math.max(first, 0), Math.max((this.seen?.total ?? 0) - this.lines.count, 0));
    this.wish();
  }

  // Over the lines the wheel scrolls these, wherever the focus is, and the notebook only at their ends.
  roll({ deltaX, deltaY, deltaMode, ctrlKey }, use) {
    if (ctrlKey || Math.abs(deltaX) > Math.abs(deltaY)) return;
    const last = Math.max((this.seen?.total ?? 0) - this.lines.count, 0);
    if (this.dead || this.first === (deltaY > 0 ? last : 0)) return;
    use();
    // Fingers on a pad roll by less than a line at a time.
    if (this.rolled * deltaY < 0) this.rolled = 0;
    this.rolled += deltaMode ? deltaY : deltaY / LINE_OF_WHEEL_PX;
    const by = Math.trunc(this.rolled);
    if (!by) return;
    this.rolled -= by;
    const to = Math.min(Math.max(this.first + by, 0), last);
    this.current = Math.min(Math.max(this.current, to), to + this.lines.count - 1);
    this.moveTo(to);
  }

  toggle(line) {
    const toggled = new Set(this.asked.toggled);
    if (!toggled.delete(line.branch)) toggled.add(line.branch);
    this.asked = { ...this.asked, toggled: [...toggled] };
    this.wish("tree");
  }

  // `from` is what had the focus when a key was pressed.
  act(line, from) {
    if (line.number >= 0) this.open(line.number, from);
    else if (line.branch >= 0) this.toggle(line);
  }

  // `goal` is what is looked for in it.
  open(number, from, goal) {
    if (this.dead) return;
    this.panel.open(number, from, goal);
    this.lines.mark(number);
    this.shrink();
    // What a finding leads to may be closed, or far from here.
    if (this.lines.lineOf(this.current)?.number !== number) this.wish(undefined, number);
  }

  // From what leads to a line the focus goes there; what was searched may have left it out.
  lead(number) {
    if (this.dead) return;
    this.lines.rowOf(this.current)?.focus({ preventScroll: true });
    this.controls.search.value = "";
    this.asked = { ...this.asked, search: "", filters: {} };
    this.open(number);
    this.wish(undefined, number);
  }

  close() {
    this.panel.close();
    this.lines.mark(undefined);
    this.shrink();
  }

  // What is open below leaves room for few lines, its own among them; else all stand as before.
  shrink() {
    const isShort = this.panel.opened !== undefined && !this.isWide;
    if (this.dead || !this.lines.shrink(isShort)) return;
    const last = Math.max((this.seen?.total ?? 0) - this.lines.count, 0);
    const { count } = this.lines;
    if (isShort) {
      this.firstBefore = this.first;
      this.first = Math.min(Math.max(this.current - count / 2, this.first), last);
      this.leaveFew(count);
    } else this.first = Math.min(Math.max(this.firstBefore, this.current - count + 1, 0), this.current, last);
    this.wish();
  }

  // At once, so that what comes into view below them is where it stays.
  leaveFew(count) {
    if (!this.seen) return;
    const { first, lines } = this.seen;
    const from = Math.min(Math.max(this.first - first, 0), Math.max(lines.length - count, 0));
    this.seen = { ...this.seen, first: first + from, lines: lines.slice(from, from + count) };
    this.repaint();
  }

  // --- keys

  // Returns whether the key was used here.
  key(event) {
    if (event.key === "Escape") return this.escape(event.target);
    if (this.dead || event.altKey || event.metaKey || event.ctrlKey) return false;
    const down = () => this.go(this.current);
    if (event.target === this.controls.search && (event.key === "ArrowDown" || event.key === "Enter")) {
      down();
      return true;
    }
    if (this.panel.key(event)) return true;
    if (this.lines.head.contains(event.target)) return this.lines.keyInHead(event, down);
    if (!this.lines.body.contains(event.target)) return false;
    const act = this.acts(this.lines.lineOf(this.current), event.shiftKey)[event.key];
    act?.();
    return Boolean(act);
  }

  // What the keys do on a line of the tree.
  acts(line, isShifted) {
    const open = () => {
      if (line?.branch >= 0 && !line.open) this.toggle(line);
      else if (line?.branch >= 0) this.go(this.current + 1);
    };
    const close = () => {
      if (line?.open) this.toggle(line);
      else if (line?.parent >= 0) this.go(line.parent);
    };
    return {
      ArrowUp: () => (this.current > 0 ? this.go(this.current - 1) : this.lines.sorters()[0]?.focus()),
      ArrowDown: () => this.go(this.current + 1),
      PageUp: () => this.go(this.current - this.lines.count),
      PageDown: () => this.go(this.current + this.lines.count),
      Home: () => this.go(0),
      End: () => this.go(this.seen.total - 1),
      ArrowRight: isShifted ? () => this.lines.shift(1) : open,
      ArrowLeft: isShifted ? () => this.lines.shift(-1) : close,
      Enter: () => line && this.act(line, focused()),
      " ": () => line && this.act(line, focused()),
      m: () => this.seen.columns.some(({ goal }) => goal) && line?.number >= 0 && this.open(line.number, undefined, "absmax"),
      n: () => line?.alarm && this.open(line.alarm.number, undefined, line.alarm.goal),
      "/": () => this.controls.search.focus(),
    };
  }

  // From a field and the card back to the tree, and from the tree back to the notebook.
  escape(target) {
    const { search } = this.controls;
    if ([this.columns.button, this.columns.list].some((node) => node.contains(target)) && this.columns.close()) return true;
    if (target === search && search.value) {
      search.value = "";
      this.ask({ search: "" });
      return true;
    }
    if (this.panel.node.contains(target)) this.close();
    const row = this.lines.rowOf(this.current);
    if (!this.lines.body.contains(target) && row) {
      row.focus({ preventScroll: true });
      return true;
    }
    this.root.parentElement?.closest("[tabindex]")?.focus({ preventScroll: true });
    if (this.root.contains(focused())) focused()?.blur();
    return true;
  }

  // --- coming and leaving

  // In a card, the static table gives its place to the tree, and takes it back.
  /** @param {HTMLElement} card */
  dock(card) {
    this.hidden = /** @type {HTMLElement[]} */ ([...card.querySelectorAll(":scope > .tensornp-static")]);
    for (const node of this.hidden) node.style.display = "none";
    const above = this.hidden.at(-1) ?? card.lastElementChild;
    if (above) above.after(this.root);
    else card.append(this.root);
    for (const name of card.querySelectorAll("[class^='tensornp-to-']")) this.link(name);
  }

  // What a card says of a line leads to it, as long as the tree is there.
  link(name) {
    const text = name.textContent;
    const number = Number(name.className.slice("tensornp-to-".length));
    name.replaceChildren(button(text, "Show it in the tree", () => this.lead(number), "to-line"));
    this.links.push(() => name.replaceChildren(text));
  }

  end() {
    this.dead = true;
    for (const undo of this.links) undo();
    this.wished = undefined;
    this.wishes.end();
  }

  die() {
    this.end();
    disable(this.root);
    this.say(GONE, "error");
  }

  leave() {
    this.end();
    this.panel.leave();
    this.watcher.disconnect();
    for (const node of this.hidden) node.style.display = "";
    stopListening(this.model, this.listeners);
    this.root.remove();
  }
}
