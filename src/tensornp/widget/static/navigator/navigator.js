// The navigator: a window on the values of a tensor. The page asks for a window, and paints the answer.

import { latest } from "../page/ask.js";
import { element, focused } from "../page/elements.js";
import { Axes, clamp } from "./axes.js";
import { Binding } from "./binding.js";
import { Controls } from "./controls.js";
import { Grid } from "./grid.js";
import { Overview, WIDTH } from "./overview.js";
import { Status } from "./status.js";

const NUM_ROWS = 16;
const MAX_COLUMNS = 24;
const NARROW_PX = 480;
// The width of a number of ten characters, of the row headings, and of the gap beside the overview.
const CELL_PX = 84;
const HEAD_PX = 60;
const GAP_PX = 16;

function factsOf({ dtype, shape, device }) {
  return `${dtype} of shape (${shape.join(", ")}${shape.length === 1 ? "," : ""}) on ${device}`;
}

export class Navigator {
  seen;
  news = "";
  plane = "";
  numPlanes = 0;
  isAsking = false;

  // `opened` is the answer that the values were opened with. `closed()` is told that it is to go, and `seen()` that the
  // first window is there; `takesFocus` says whether the grid gets the focus then.
  constructor(ask, { name, suggestion, goal }, { closed, seen, takesFocus = false }) {
    this.ask = ask;
    this.name = name;
    this.came = seen ?? (() => this.root.scrollIntoView({ block: "nearest" }));
    this.columns = 12;
    this.move = latest(() => this.fetch());
    this.axes = new Axes({
      choose: (axes) => this.wish({ axes, show: this.current }),
      turn: (axis, value) => this.turn(axis, value),
      part: (value) => this.wish({ part: value, corner: null }),
      isMoving: () => this.isMoving(),
    });
    this.controls = new Controls({
      go: (index) => this.wish({ index }, "grid"),
      seek: (what) => this.seek(what),
      face: (face) => this.wish({ face, show: this.current }),
      close: closed,
    });
    this.overview = new Overview({ ask: () => this.draw(), go: (row, column) => this.goTo(row, column) });
    this.binding = new Binding({ bind: (as, overwrite) => this.bind(as, overwrite), suggestion });
    this.grid = new Grid();
    this.status = new Status();
    this.root = element("section", "values");
    this.root.setAttribute("aria-label", "Values");
    const parts = [this.axes, this.controls].map(({ node }) => node);
    this.body = element("div", "body");
    const scroller = element("div", "scroller");
    scroller.append(this.grid.node);
    this.body.append(this.overview.node, scroller);
    this.root.append(...parts, this.body, this.status.node, this.binding.node);
    this.watcher = new ResizeObserver(() => {
      if (this.width === this.root.clientWidth) return;
      this.width = this.root.clientWidth;
      // The window has all of a narrow page, with its overview below.
      this.body.classList.toggle("tensornp-narrow", this.width < NARROW_PX);
      this.fit();
    });
    this.watcher.observe(this.root);
    const grid = this.grid.node;
    grid.addEventListener("focusin", ({ target }) => this.entered(target));
    grid.addEventListener("pointermove", (event) => this.pointAt(event));
    grid.addEventListener("pointerleave", () => this.tell(this.current));
    grid.addEventListener("wheel", (event) => this.roll(event), { passive: false });
    this.reach(goal, takesFocus ? "grid" : undefined);
  }

  // --- asking

  // Whether a window is under way or wished for.
  isMoving() {
    return this.isAsking || Boolean(this.wished);
  }

  // The values may have changed.
  again() {
    this.numPlanes += 1;
    this.wish({ isAgain: true });
  }

  // `then` says where the focus goes with the answer: "grid", or nowhere.
  wish(wanted, then = this.wished?.then) {
    if (this.dead) return;
    const kept = { ...(this.wished?.wanted ?? {}) };
    // What is gone to is one thing.
    if (wanted.show || wanted.index !== undefined || wanted.seek || wanted.corner) {
      for (const other of ["show", "index", "seek", "after", "isInMiddle"]) delete kept[other];
    }
    this.wished = { wanted: { ...kept, ...wanted }, then, from: focused() };
    this.move();
  }

  async fetch() {
    const { axes = null, corner = null, part = 0, face } = this.seen ?? {};
    const { wanted, then, from } = this.wished;
    this.wished = undefined;
    this.under = then;
    const { isAgain, ...asked } = wanted;
    const shown = { part, axes, corner, size: [NUM_ROWS, this.columns], ...(face === undefined ? {} : { face }) };
    this.isAsking = true;
    const content = await this.ask({ type: "move", ...shown, ...asked });
    this.isAsking = false;
    if (this.dead) return;
    // Whoever has gone elsewhere meanwhile keeps the focus.
    const now = focused();
    const isFree = now === from || now === document.body || this.root.contains(now);
    if (content.type === "window") this.take(content, isFree ? then : undefined, isFree, asked.seek !== undefined);
    else this.refuse(content.text, asked.index !== undefined);
  }

  // --- answers

  take(seen, then, isFree, isSought) {
    const before = this.seen;
    this.seen = seen;
    this.grid.take(seen, seen.buffers);
    const isOther = before?.part === seen.part && factsOf(before) !== factsOf(seen);
    this.controls.problem.textContent = "";
    this.root.classList.remove("tensornp-failed");
    if (isOther) this.news = `the tensor is now ${factsOf(seen)}`;
    this.say(this.news || seen.text);
    // A key that was pressed meanwhile goes on from where it wants to be.
    if (!this.wished?.wanted.show) this.current = this.grid.intoView(this.whereNow(seen));
    const had = this.grid.node.contains(focused()) && focused();
    this.paint();
    this.refocus(had, then, Boolean(before));
    if (before && isSought) this.grid.cellOf(this.current)?.scrollIntoView({ block: "nearest" });
    this.paintOverview();
    // What was wished for before it was said does not take it away.
    if (!this.isMoving()) this.news = "";
    if (!before && isFree) this.came();
  }

  // `had` is the cell that had the focus, if one had.
  refocus(had, then, wasThere) {
    const cell = this.grid.cellOf(this.current);
    if (cell && (had || then === "grid")) cell.focus({ preventScroll: true });
    else if (had && !had.isConnected) this.keepFocus();
    // A cell that takes the focus is read out by itself; one that has kept it has a new value.
    if (wasThere && !this.wished && (!cell || had === cell || focused() !== cell)) this.status.announceAll();
  }

  // Where one is in a window that has come.
  whereNow({ show, corner, shape }) {
    const at = (show ?? this.current ?? corner).map((i, axis) => clamp(i, shape[axis]));
    return at.length === shape.length ? at : [...corner];
  }

  // The cell that had the focus is no more, and where it goes to has not come yet: no key may fall through meanwhile.
  keepFocus() {
    this.isKeeping = true;
    (this.grid.cells[0] ?? this.controls.index).focus({ preventScroll: true });
    this.isKeeping = false;
  }

  refuse(text, isOfIndex) {
    if (isOfIndex) {
      this.controls.refuse(text);
      this.say("");
    } else {
      this.root.classList.add("tensornp-failed");
      this.say(text, "error");
    }
    this.status.announce(text);
  }

  say(text, tone) {
    this.status.say(text, tone);
  }

  tell(index) {
    this.status.tell(this.grid, index);
  }

  // --- painting

  paint() {
    this.controls.paint(this.seen);
    this.binding.paint(this.seen);
    this.axes.paint(this.seen);
    this.grid.paint(this.name, this.current);
    this.status.legend.textContent = this.seen.legend;
    this.tell(this.current);
    this.binding.at(this.current);
  }

  // One is drawn for each plane that is stayed at, and anew where it may have been written to.
  paintOverview() {
    const { shape, axes, corner, part, face } = this.seen;
    const others = corner.filter((_, axis) => !axes.includes(axis));
    const plane = JSON.stringify([shape, axes, others, part, face, this.numPlanes]);
    const isMoving = this.isMoving();
    this.overview.paint(this.seen, plane !== this.plane && !isMoving);
    if (!isMoving) this.plane = plane;
  }

  async draw() {
    const { part, face, axes, corner } = this.seen;
    const drawing = (this.drawing = {});
    const content = await this.ask({ type: "overview", part, face, axes, corner }, true);
    if (drawing !== this.drawing || this.dead) return;
    if (content.type === "overview") this.overview.take(content);
    else this.overview.refuse(content.text);
  }

  // As many columns as there is room for; wider numbers scroll.
  fit() {
    const room = this.width - HEAD_PX - (this.width < NARROW_PX ? 0 : WIDTH + GAP_PX);
    const columns = clamp(Math.floor(room / CELL_PX) - 1, MAX_COLUMNS) + 1;
    if (columns === this.columns) return;
    this.columns = columns;
    if (this.seen) this.wish({ show: this.current, isInMiddle: true });
  }

  // --- moving

  entered(target) {
    const index = this.grid.indexOf(target);
    if (!index || this.isKeeping) return;
    const before = this.grid.cellOf(this.current);
    if (before && before !== target) {
      before.tabIndex = -1;
      before.classList.remove("tensornp-current");
    }
    this.current = index;
    target.tabIndex = 0;
    this.grid.mark(target);
    this.tell(index);
    this.binding.at(index);
  }

  // A mouse that rests points at nothing, whatever comes to lie under it.
  pointAt({ target, screenX, screenY }) {
    const at = `${screenX} ${screenY}`;
    if (at !== this.pointer) this.tell(this.grid.indexOf(target));
    this.pointer = at;
  }

  go(index) {
    const to = index.map((i, axis) => clamp(i, this.seen.shape[axis]));
    const cell = !this.wished?.wanted.show && !this.isAsking && this.grid.cellOf(to);
    if (cell) {
      cell.focus({ preventScroll: true });
      return;
    }
    this.target = to;
    this.wish({ show: to }, "grid");
  }

  // Where the user is, or will be once what is under way has come.
  here() {
    const isMoving = (this.isAsking && this.under === "grid") || this.wished?.then === "grid";
    return (isMoving && this.target?.length === this.current.length && this.target) || this.current;
  }

  step(i, by) {
    const axis = this.seen.axes[i];
    if (axis === null) return;
    const to = [...this.here()];
    to[axis] += by;
    this.go(to);
  }

  turn(axis, value) {
    const to = [...(this.wished?.wanted.show ?? this.current)];
    to[axis] = value;
    this.along = axis;
    this.wish({ show: to });
  }

  // Only once the grid has the focus: until then, the wheel scrolls the notebook.
  roll(event) {
    if (!this.grid.node.contains(focused()) || event.ctrlKey) return;
    const i = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY) ? 1 : 0;
    const axis = this.seen.axes[i];
    const by = Math.sign(event.deltaY || event.deltaX) * (i ? 1 : 3);
    if (axis === null) return;
    const from = (this.wished?.wanted.corner ?? this.seen.corner)[axis];
    const to = Math.min(Math.max(from + by, 0), this.seen.shape[axis] - this.seen.size[i]);
    if (to === from) return;
    event.preventDefault();
    const corner = [...this.seen.corner];
    corner[axis] = to;
    this.wish({ corner });
  }

  // To what is looked for at once: a value, an index, or nothing.
  reach(goal, then) {
    if (Array.isArray(goal)) this.wish({ show: goal, isInMiddle: true }, "grid");
    else if (goal) this.seek(goal, "grid");
    else this.wish({}, then);
  }

  seek(what, then) {
    this.wish({ seek: what, after: this.current ?? null }, then);
  }

  // To a place of the plane, or to where one is.
  goTo(row, column) {
    const to = [...this.current];
    const { axes } = this.seen;
    [row, column].forEach((at, i) => at !== undefined && axes[i] !== null && (to[axes[i]] = at));
    if (row === undefined) this.go(to);
    else this.wish({ show: to, isInMiddle: true }, "grid");
  }

  // By as many windows along an axis of the plane; the focus stays where it is.
  skip(i, by) {
    const axis = this.seen.axes[i];
    if (axis === null) return;
    const to = [...(this.wished?.wanted.show ?? this.current)];
    to[axis] = clamp(to[axis] + by * this.seen.size[i], this.seen.shape[axis]);
    this.wish({ show: to });
  }

  async bind(name, overwrite) {
    const { part, face, axes, corner, size } = this.seen;
    const asked = { part, face, axes, corner, size, name, overwrite };
    const { type, text, canOverwrite } = await this.ask({ type: "bind window", ...asked });
    this.binding.offer(Boolean(canOverwrite), text, type === "error");
  }

  // --- keys

  // Returns whether the key was used here.
  key(event) {
    if (event.key === "Escape") return this.escape(event.target);
    if (this.dead || !this.seen || event.altKey || event.metaKey) return false;
    if (event.target === this.overview.map) return this.keyInOverview(event.key);
    if (!this.grid.node.contains(event.target)) return false;
    const act = this.acts(event.ctrlKey)[event.key];
    if (!act) return false;
    act();
    return true;
  }

  keyInOverview(key) {
    const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [1, -1], ArrowRight: [1, 1] };
    if (!steps[key]) return false;
    this.skip(...steps[key]);
    return true;
  }

  // What the keys do in the grid.
  acts(hasCtrl) {
    const { axes, shape, size } = this.seen;
    const ends = axes.map((axis) => (axis === null ? 0 : shape[axis] - 1));
    const far = (rows, columns) => {
      const to = [...this.here()];
      [rows, columns].forEach((at, i) => at !== undefined && axes[i] !== null && (to[axes[i]] = at));
      this.go(to);
    };
    if (hasCtrl) return { Home: () => far(0, 0), End: () => far(ends[0], ends[1]) };
    return {
      ArrowUp: () => this.step(0, -1),
      ArrowDown: () => this.step(0, 1),
      ArrowLeft: () => this.step(1, -1),
      ArrowRight: () => this.step(1, 1),
      PageUp: () => this.step(0, -Math.max(size[0], 1)),
      PageDown: () => this.step(0, Math.max(size[0], 1)),
      Home: () => far(undefined, 0),
      End: () => far(undefined, ends[1]),
      g: () => this.controls.index.focus(),
      n: () => this.seek("nan", "grid"),
    };
  }

  // From a field back to the grid, and from the grid back to the notebook.
  escape(target) {
    if (this.controls.form.contains(target)) {
      this.controls.clear();
      const cell = this.seen && this.grid.cellOf(this.current);
      if (cell) {
        cell.focus({ preventScroll: true });
        return true;
      }
    }
    return false;
  }

  die() {
    this.dead = true;
  }

  leave() {
    this.dead = true;
    this.watcher.disconnect();
    this.root.remove();
  }
}
