// The same window on a weight of two models, and on the difference.

import { GONE } from "../page/docking.js";
import { button, element, field, focused, groupOf, liveRegion, nameOf } from "../page/elements.js";
import { Wishes } from "../page/wishes.js";
import { clamp } from "../navigator/axes.js";
import { Grid } from "../navigator/grid.js";
import { Legend } from "../navigator/legend.js";
import { Overview } from "../navigator/overview.js";

const NUM_ROWS = { beside: 8, below: 5 };
const WHERE_TITLE = "Shares of the sum of |Δ|²: nearly all is 90% or more of it, most is half of it or more";
const MAX_COLUMNS = 24;
// Until it is known how wide they are.
const CELL_WIDTH = 78;
const HEAD_WIDTH = 60;
const PADDING = 24;
const WINDOWS_GAP = 24;
const ROLES = ["before", "after"];
// Below it, one window stands under the other.
const MIN_WIDTH_BESIDE = 620;
// Of the map, which stands above the windows.
const MAX_MAP_HEIGHT = 144;
const STEPS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [1, -1], ArrowRight: [1, 1] };

export class Pair {
  /** @type {any} */
  seen;
  /** @type {any[]} */
  grids = [];
  /** @type {any[]} */
  legends = [];
  /** @type {string[]} */
  titles = [];
  width = 0;
  columns = 2;
  numFits = 0;

  // `closed()` is told that it is to go.
  /** @param {Model} model @param {number[]} members @param {(number: number) => string} called @param {() => void} closed */
  constructor(model, members, called, closed) {
    this.model = model;
    this.members = members;
    this.called = called;
    this.place = 0;
    this.closed = closed;
    this.wishes = new Wishes(model, this);
    this.heard = (content) => this.hear(content);
    this.root = element("section", "values tensornp-pair");
    this.map = new Overview({
      ask: () => this.draw(),
      go: (row, column) => this.goTo(row, column),
      name: "Map of Δ",
      maxHeight: MAX_MAP_HEIGHT,
    });
    const [top, beside] = [element("div", "pair-top"), element("div", "pair-beside")];
    this.where = element("div", "pair-where");
    this.where.title = WHERE_TITLE;
    beside.append(this.controls(), this.where, this.map.words);
    top.append(this.map.node, beside);
    this.root.append(top, this.windows());
    this.root.addEventListener("focusin", ({ target }) => this.entered(target));
  }

  // The weight that is shown, or will be.
  get number() {
    return this.members[this.place];
  }

  // The weights of one row, what moved most first.
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
    this.wish({ type: "largest" }, undefined);
  }

  controls() {
    const bar = element("div", "controls");
    this.name = element("span", "pair-name");
    this.largest = button("largest |Δ|", "Show the largest difference (l)", () => this.wish({ type: "largest" }, "grid"));
    const form = element("form", "go");
    this.index = field("input", "text", "field tensornp-index", "Go to an index, such as 3, 40");
    this.index.title = "An index as NumPy writes it, such as 3, 40 (g)";
    this.index.placeholder = "index";
    form.append(this.index);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.wish({ index: this.index.value }, "grid");
    });
    this.status = element("span", "said");
    this.live = liveRegion();
    const close = button("close", "Close both sides (Escape)", this.closed, "copy");
    bar.append(this.name, this.ofRow(), groupOf("Show", [this.largest]), form, this.status, this.live, close);
    return bar;
  }

  windows() {
    this.all = element("div", "pair-windows");
    const sides = this.model.get("sides");
    const names = sides.map((side, i) => (side === ROLES[i] ? "" : side));
    this.titles = [...sides.map((side, i) => (names[i] ? `${ROLES[i]}, ${side}` : side)), "Δ"];
    [...ROLES, "Δ"].forEach((role, i) => {
      const [grid, legend] = [new Grid(), new Legend()];
      const [node, label, scroller] = [element("div", "pair-window"), element("div", "label"), element("div", "scroller")];
      label.append(element("b", "", role), names[i] ? " " : "", nameOf("", names[i] ?? " = after − before"));
      scroller.append(grid.node);
      node.append(label, scroller, legend.node);
      this.all.append(node);
      this.grids.push(grid);
      this.legends.push(legend);
    });
    return this.all;
  }

  // Once it is in the page, which tells how much room there is. Where a mouse goes from row to row, the page moves no
  // further than that its top is seen.
  begin(isFollowing) {
    this.toView = isFollowing ? this.root.firstElementChild : this.root;
    this.model.on("msg:custom", this.heard);
    // The table is as wide as it needs, which may be more or less than is seen of it.
    this.outer = this.root.closest(".tensornp") ?? this.root;
    this.measure();
    this.watcher = new ResizeObserver(() => {
      if (this.outer.clientWidth - PADDING === this.width) return;
      this.measure();
      if (this.seen) this.fit();
    });
    this.watcher.observe(this.outer);
    this.wish({ type: "largest" }, "grid");
  }

  measure() {
    this.width = this.outer.clientWidth - PADDING;
    this.root.style.width = `${this.width}px`;
    this.isBeside = this.width >= MIN_WIDTH_BESIDE;
    this.all.classList.toggle("tensornp-pair-below", !this.isBeside);
    this.rows = this.isBeside ? NUM_ROWS.beside : NUM_ROWS.below;
    const each = this.isBeside ? this.width / this.grids.length : this.width;
    this.columns = Math.min(Math.max(Math.floor((each - HEAD_WIDTH) / CELL_WIDTH), 2), MAX_COLUMNS);
    this.numFits = 0;
  }

  // --- asking

  wish(wanted, then) {
    if (!wanted.isFit) this.numFits = 0;
    this.wished = { wanted: { type: "window", ...wanted }, then, from: focused() };
    this.wishes.pump();
  }

  draw() {
    const { axes, corner } = this.seen;
    this.drawing = this.wishes.post({ type: "overview", row: this.seen.row, axes, corner }, true);
    if (!this.seen.isWhereFree && !this.where.textContent) this.locate();
  }

  locate() {
    this.locating = this.wishes.post({ type: "where", row: this.seen.row }, true);
  }

  // To a place of the plane, or to where one is.
  goTo(row, column) {
    const { axes } = this.seen;
    const to = [...this.current];
    [row, column].forEach((at, i) => at !== undefined && axes[i] !== null && (to[axes[i]] = at));
    this.wish({ show: to, isInMiddle: true }, "grid");
  }

  // The same window, as large as there is room for; what was sought stays in its middle.
  fit() {
    const anew = this.isAtSought ? { corner: null } : {};
    this.wish({ show: this.current, isInMiddle: true, isFit: true, ...anew }, undefined);
  }

  // As many columns as there is room for in all windows. Other ones may be wider, so this is asked for three times at most,
  // the last time for fewer only.
  refit() {
    if (!this.seen.windows[0].texts.length || this.wishes.pending || this.wished || this.numFits > 2) return;
    const { shape, axes, size } = this.seen;
    const parts = this.grids.map((grid) => grid.widths());
    const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
    const room = this.width - WINDOWS_GAP * (parts.length - 1);
    const narrowest = parseFloat(getComputedStyle(this.all.firstElementChild).minWidth);
    // Of those that are seen it is known how wide they are; others may be as wide as the widest.
    const wide = (columns) => parts.map(({ beside, widest, num, all }) => {
      const inside = columns < num ? Math.min(columns * widest, all) : all + (columns - num) * widest;
      return Math.max(beside + inside, narrowest);
    });
    const fitsIn = (columns) => (this.isBeside ? sum(wide(columns)) <= room : Math.max(...wide(columns)) <= this.width);
    this.columns = MAX_COLUMNS;
    while (this.columns > 1 && !fitsIn(this.columns)) this.columns -= 1;
    const wanted = Math.min(this.columns, axes[1] === null ? 1 : shape[axes[1]]);
    if (wanted === size[1] || (this.numFits > 1 && wanted > size[1])) return;
    this.fit();
    this.numFits += 1;
  }

  next() {
    if (!this.wished) return undefined;
    const { wanted: { isFit, ...wanted }, then, from } = this.wished;
    this.wished = undefined;
    const { corner = null, axes = null } = this.seen?.row === this.number ? this.seen : {};
    const size = [this.rows, this.columns];
    return { then, from, isFit, message: { row: this.number, size, corner, axes, ...wanted } };
  }

  hear(content) {
    if (!this.wishes.isHeard(content)) return;
    const answered = this.wishes.answered(content);
    if (!answered) {
      this.hearOther(content);
      return;
    }
    if (content.type === "window") this.take(content, answered);
    else this.refuse(content.text);
    this.wishes.pump();
  }

  // What nobody waits for.
  hearOther(content) {
    if (content.number === this.locating && content.type === "where") this.tellWhere(content.text);
    else if (content.number !== this.drawing) return;
    else if (content.type === "overview") this.takeMap(content);
    else this.map.refuse(content.text);
  }

  takeMap(drawn) {
    this.map.words.dataset.cover = drawn.cover ?? "";
    this.map.take(drawn);
  }

  // Of another weight, nothing is shown under this one's name.
  refuse(text) {
    this.fail(text);
    if (this.seen?.row === this.number) return;
    this.name.textContent = this.called(this.number);
    this.tellWhere("");
    this.all.hidden = this.map.node.hidden = true;
  }

  tellWhere(text) {
    this.where.textContent = text && `Δ: ${text}`;
  }

  say(text, tone = "plain") {
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${tone}`;
  }

  // Heard as well: where one is, each cell says itself.
  fail(text) {
    this.say(text, "error");
    this.live.textContent = text;
  }

  // --- what is seen

  /** @param {any} seen @param {Wish} answered */
  take(seen, { then, message, isFit }) {
    const isFirst = this.seen?.row !== seen.row;
    if (isFirst) this.begun(seen);
    this.isAtSought = message.type !== "window" || (isFit && this.isAtSought);
    const had = this.grids.findIndex((grid) => grid.node.contains(focused()));
    this.seen = seen;
    this.name.textContent = seen.name;
    this.name.title = seen.title;
    this.root.setAttribute("aria-label", `Both sides of ${seen.name}`);
    this.largest.disabled = !seen.hasLargest;
    this.say(seen.text);
    this.paintGrids(seen);
    const grid = this.grids[had < 0 ? this.grids.length - 1 : had];
    if (had >= 0 || then === "grid") grid.cellOf(this.current)?.focus({ preventScroll: true });
    this.refit();
    this.paintMap();
    if (isFirst && !seen.where && seen.isWhereFree) this.locate();
    this.toView?.scrollIntoView({ block: "nearest" });
    this.toView = undefined;
  }

  begun(seen) {
    this.tellWhere(seen.where);
    this.all.hidden = false;
    this.plane = this.current = this.drawing = this.locating = undefined;
  }

  paintGrids(seen) {
    this.grids.forEach((grid, i) => {
      const { texts, shades } = seen.windows[i];
      this.legends[i].paint(seen.windows[i]);
      grid.take({ ...seen, texts, rows: [], columns: [] }, [new Int8Array(shades)]);
    });
    this.current = this.grids[0].intoView(seen.show ?? this.current ?? seen.corner);
    this.grids.forEach((grid, i) => grid.paint(`${seen.name}, ${this.titles[i]}`, this.current));
  }

  // One is drawn for each plane that is stayed at.
  paintMap() {
    const { shape, axes, corner } = this.seen;
    const plane = JSON.stringify([shape, axes, corner.filter((_, axis) => !axes.includes(axis))]);
    const isMoving = this.wishes.pending || this.wished;
    this.map.paint(this.seen, plane !== this.plane && !isMoving);
    if (!isMoving) this.plane = plane;
  }

  entered(target) {
    const index = this.grids.map((grid) => grid.indexOf(target)).find(Boolean);
    if (!index) return;
    for (const grid of this.grids) {
      const before = grid.cellOf(this.current);
      if (before) before.tabIndex = -1;
      before?.classList.remove("tensornp-current");
      const now = grid.cellOf(index);
      if (now) now.tabIndex = 0;
      grid.mark(now);
    }
    this.current = index;
  }

  // --- keys

  // Returns whether the key was used here.
  key(event) {
    if (event.key === "Escape") {
      this.closed();
      return true;
    }
    if (!this.seen || event.altKey || event.metaKey || event.ctrlKey) return false;
    if (event.target === this.map.map) return this.keyInMap(event.key);
    const grid = this.grids.find((one) => one.node.contains(event.target));
    if (!grid) return false;
    const { axes, size, shape } = this.seen;
    const steps = {
      ...STEPS,
      PageUp: [0, -size[0]],
      PageDown: [0, size[0]],
      Home: [1, -Infinity],
      End: [1, Infinity],
    };
    if (event.key === "l") this.wish({ type: "largest" }, "grid");
    else if (event.key === "g") this.index.focus();
    else if (!(event.key in steps)) return false;
    else {
      const [i, by] = steps[event.key];
      const axis = axes[i];
      if (axis !== null) this.go(grid, this.current.map((at, k) => (k === axis ? clamp(at + by, shape[axis]) : at)));
    }
    return true;
  }

  // By as many windows; the focus stays where it is.
  keyInMap(key) {
    if (!STEPS[key]) return false;
    const [i, by] = STEPS[key];
    const { axes, size, shape } = this.seen;
    const from = this.wished?.wanted.show ?? this.current;
    this.wish({ show: from.map((at, axis) => (axis === axes[i] ? clamp(at + by * size[i], shape[axis]) : at)) });
    return true;
  }

  go(grid, to) {
    const cell = !this.wishes.pending && !this.wished && grid.cellOf(to);
    if (cell) {
      cell.focus({ preventScroll: true });
      return;
    }
    // A key that is held goes on from where it wants to be.
    this.current = to;
    this.wish({ show: to }, "grid");
  }

  die() {
    this.wishes.end();
    for (const control of /** @type {any} */ (this.root.querySelectorAll("input, button"))) control.disabled = true;
    this.fail(GONE);
  }

  leave() {
    this.wishes.end();
    this.watcher?.disconnect();
    this.model.off("msg:custom", this.heard);
    this.root.remove();
  }
}
