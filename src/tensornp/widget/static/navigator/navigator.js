// The navigator: a window on the values of a tensor. The page asks for a window, and paints the answer.

import { latest } from "../page/ask.js";
import { Binding } from "../page/binding.js";
import { clamp, element, focused, tell } from "../page/elements.js";
import { Axes } from "./axes.js";
import { Controls } from "./controls.js";
import { Grid } from "./grid.js";
import { Overview, WIDTH } from "./overview.js";

const NUM_ROWS = 16;
const MAX_COLUMNS = 16;
const NARROW_PX = 480;
// The width of a number of ten characters, and of the gap beside the overview.
const CELL_PX = 84;
const GAP_PX = 16;
const STATUS = `<span class="tensornp-where"></span><span class="tensornp-said"></span><span class="tensornp-scope"></span>
<span class="tensornp-live-region" aria-live="polite"></span>`;

export class Navigator {
  columns = 0;
  isAsking = false;
  // The requested axes and face; the kernel chooses what is not there.
  view = {};

  // `closed()` is told that it is to go, and `seen()` that the first window is there; `takesFocus` says whether the grid
  // gets the focus then. `row()` is what it was opened from.
  constructor(ask, { name, suggestion, goal }, { closed, seen, row = () => undefined, takesFocus = false }) {
    this.ask = ask;
    this.row = row;
    this.came = seen ?? (() => this.root.scrollIntoView({ block: "nearest" }));
    this.move = latest(() => this.fetch());
    this.axes = new Axes({
      choose: (axes) => this.look({ axes }, this.current),
      turn: (axis, value) => this.wish({ show: (this.current = this.current.with(axis, value)) }),
    });
    this.controls = new Controls({
      go: (index) => this.wish({ index }, true),
      seek: (what) => this.seek(what),
      turn: (face) => this.look({ face }, this.current),
      close: closed,
    });
    this.overview = new Overview({
      ask: async () => this.overview.take(await this.ask({ type: "overview", ...this.place() }, true)),
      go: (down, along) => this.far(down, along, true),
    });
    this.grid = new Grid(name);
    const status = element("div", "line-of-cell");
    status.innerHTML = STATUS;
    [this.where, this.said, this.scope, this.live] = status.children;
    this.outcome = Object.assign(element("span", "outcome"), { role: "status" });
    const bind = (asked) => this.ask({ type: "bind window", ...this.place(), ...asked });
    const told = ({ text }) => (this.outcome.textContent = text);
    const assigning = element("div", "assigning");
    assigning.append(new Binding(suggestion, bind, told, "Assign window").node, this.outcome);
    this.root = element("section", "values");
    this.root.setAttribute("aria-label", "Values");
    this.body = element("div", "body");
    const scroller = element("div", "scroller");
    scroller.append(this.grid.node);
    this.body.append(this.overview.node, scroller);
    this.root.append(this.axes.node, this.controls.node, this.body, status, assigning);
    this.watcher = new ResizeObserver(() => this.fit());
    for (const node of [this.root, this.grid.node]) this.watcher.observe(node);
    const index = ({ target }) => this.grid.indexOf(target);
    scroller.addEventListener("click", (event) => index(event) && this.go(index(event)));
    // A browser reports a move when cells come to lie under a mouse that rests.
    scroller.addEventListener("pointermove", (event) => (event.movementX || event.movementY) && this.tell(index(event)));
    scroller.addEventListener("pointerleave", () => this.tell(this.current));
    // The first window is asked for when the page has given it a width.
    this.begin = () => {
      if (Array.isArray(goal)) this.wish({ show: goal, isInMiddle: true }, true);
      else if (goal) this.seek(goal, true);
      else this.wish({}, takesFocus);
    };
  }

  // --- asking

  again() {
    this.plane = undefined;
    this.wish({});
  }

  look(view, show) {
    Object.assign(this.view, view);
    this.wish(show ? { show } : { corner: null });
  }

  // A later goal replaces one that was not yet asked for; the grid gets the focus if one of them wants that.
  wish(goal, takesFocus = false) {
    if (this.dead) return;
    this.wished = { goal, takesFocus: takesFocus || Boolean(this.wished?.takesFocus), from: focused() };
    this.move();
  }

  async fetch() {
    const { goal, takesFocus, from } = this.wished;
    this.wished = undefined;
    this.isAsking = true;
    const { corner = null } = this.seen ?? {};
    const seen = await this.ask({ type: "move", corner, size: [NUM_ROWS, this.columns], ...this.view, ...goal });
    this.isAsking = false;
    if (this.dead) return;
    if (seen.type === "window") this.take(seen, { isSought: Boolean(goal.seek), takesFocus, from });
    else this.refuse(seen.text, goal.index !== undefined);
  }

  take(seen, { isSought, takesFocus, from }) {
    const [isFirst, before] = [!this.seen, this.where.textContent];
    const had = this.grid.node.contains(focused());
    // Whoever has gone elsewhere meanwhile keeps the focus.
    const isFree = [from, this.row(), document.body].includes(focused()) || this.root.contains(focused());
    this.seen = seen;
    const cell = this.paint(seen);
    const stop = (had || (takesFocus && isFree)) && (cell ?? this.controls.index);
    // A cell that takes the focus is read out by itself.
    if (stop && stop !== focused()) stop.focus({ preventScroll: true });
    else if (!isFirst) this.hear(before);
    if (isSought) cell?.scrollIntoView({ block: "nearest" });
    this.paintOverview();
    if (isFirst && isFree) this.came();
  }

  hear(before) {
    const { textContent } = this.where;
    if (textContent !== before) this.live.textContent = [this.seen.text, textContent].filter(Boolean).join("; ");
  }

  refuse(text, isOfIndex) {
    if (isOfIndex) this.controls.refuse(text);
    else {
      if (this.seen) this.view = { axes: this.seen.axes, face: this.seen.face };
      this.root.classList.add("tensornp-failed");
      this.say(text, "error");
    }
    this.live.textContent = text;
  }

  // --- painting

  paint(seen) {
    this.grid.paint(seen);
    if (!this.wished || !this.current) {
      const { axes, face, show, corner, shape } = seen;
      this.view = { axes, ...(face === undefined ? {} : { face }) };
      const at = show ?? this.current ?? corner;
      this.current = this.grid.intoView(at.length === shape.length ? at : corner);
      this.axes.paint(seen);
    }
    this.root.classList.remove("tensornp-failed");
    this.controls.paint(seen);
    this.scope.textContent = seen.scope;
    this.outcome.textContent = "";
    this.say(seen.text);
    return this.mark();
  }

  say(text, tone = "plain") {
    this.said.textContent = text;
    this.said.className = `tensornp-said tensornp-${tone}`;
  }

  // The exact value of an element of the window.
  tell(index) {
    const text = index && this.grid.textOf(index);
    if (text || !this.grid.cells.length) tell(this.where, text || "");
  }

  mark() {
    const cell = this.grid.cellOf(this.current) ?? this.grid.cells[0];
    this.grid.mark(cell);
    this.tell(this.current);
    return cell;
  }

  paintOverview() {
    const { shape, axes, corner, face } = this.seen;
    if (this.wished) return;
    const others = corner.filter((_, axis) => !axes.includes(axis));
    const plane = JSON.stringify([shape, axes, others, face]);
    this.overview.paint(this.seen, plane !== this.plane);
    this.plane = plane;
  }

  place() {
    const { face, axes, corner, size } = this.seen;
    return { face, axes, corner, size };
  }

  // As many columns as there is room for; wider numbers scroll. A narrow page has the overview below.
  fit() {
    const width = this.root.clientWidth;
    this.body.classList.toggle("tensornp-narrow", width < NARROW_PX);
    const room = width - (width < NARROW_PX ? 0 : WIDTH + GAP_PX);
    // The headings of the rows count with the columns that are shown.
    const shown = this.seen?.size[1];
    const px = shown ? Math.ceil(this.grid.node.offsetWidth / shown) : CELL_PX;
    const columns = clamp(Math.floor(room / Math.max(px, 1)) - 1, MAX_COLUMNS) + 1;
    const isFitted = width === this.width && this.grid.node.offsetWidth <= this.grid.node.parentNode.clientWidth;
    if (shown) this.width = width;
    if (!width || isFitted || columns === this.columns) return;
    const isFirst = !this.columns;
    this.columns = columns;
    if (isFirst) this.begin();
    else if (this.seen) this.wish({ show: this.current, isInMiddle: true });
  }

  // --- moving

  go(index, isInMiddle = false) {
    this.current = index.map((i, axis) => clamp(i, this.seen.shape[axis]));
    if (this.isAsking || this.wished || !this.grid.cellOf(this.current)) this.wish({ show: this.current, isInMiddle }, true);
    else this.mark().focus({ preventScroll: true });
  }

  step(i, by) {
    const axis = this.seen.axes[i];
    if (axis !== null) this.go(this.current.with(axis, this.current[axis] + by));
  }

  // To a row and a column of the plane, or along one of them.
  far(row, column, isInMiddle) {
    const to = [...this.current];
    const { axes } = this.seen;
    [row, column].forEach((at, i) => at !== undefined && axes[i] !== null && (to[axes[i]] = at));
    this.go(to, isInMiddle);
  }

  seek(what, takesFocus) {
    this.wish({ seek: what, after: this.current ?? null }, takesFocus);
  }

  key({ key, target, altKey, ctrlKey, metaKey }) {
    if (key === "Escape") return this.escape(target);
    if (this.dead || !this.seen || altKey || metaKey || !this.grid.node.contains(target)) return false;
    const page = Number(this.seen.axes[0] === null);
    const far = (row, column) => () => this.far(row, column);
    const acts = {
      ArrowUp: () => this.step(0, -1),
      ArrowDown: () => this.step(0, 1),
      ArrowLeft: () => this.step(1, -1),
      ArrowRight: () => this.step(1, 1),
      PageUp: () => this.step(page, -this.seen.size[page]),
      PageDown: () => this.step(page, this.seen.size[page]),
      Home: far(undefined, 0),
      End: far(undefined, Infinity),
      g: () => this.controls.index.focus(),
      n: () => this.seek("nan", true),
    };
    const act = (ctrlKey ? { Home: far(0, 0), End: far(Infinity, Infinity) } : acts)[key];
    act?.();
    return Boolean(act);
  }

  // From the field back to the grid, and from the grid back to the notebook.
  escape(target) {
    const cell = this.controls.form.contains(target) && this.grid.node.querySelector("[tabindex='0']");
    if (!cell) return false;
    this.controls.index.value = "";
    cell.focus({ preventScroll: true });
    return true;
  }

  leave() {
    this.dead = true;
    this.watcher.disconnect();
    this.root.remove();
  }
}
