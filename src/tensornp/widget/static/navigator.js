// The navigator: a window on the values of a tensor. The page asks for a window and paints the answer; one request is
// under way at most, and what is wished for meanwhile is one wish, the latest, so that a held key never queues up.

const NUM_ROWS = 16;
const MAX_COLUMNS = 24;
const SEARCHES = [
  ["absmax", "max |x|", "Go to the value of the largest magnitude"],
  ["min", "min", "Go to the least value"],
  ["max", "max", "Go to the largest value"],
  ["nan", "next NaN", "Go to the next NaN (n)"],
  ["inf", "next Inf", "Go to the next infinity"],
];
// What the shades of a value without a place on the scale say of it.
const SPECIAL = { 127: "nan", 126: "inf", "-126": "inf", 125: "unshown" };
const FULL = 100;
const STRONGEST = 0.55;
const ORANGE = "230, 97, 1";
const BLUE = "33, 102, 172";
const BAR_WIDTH = 16;
const READ_ONLY = "nothing is changed here: run this line in a cell";

function colour(shade) {
  const strength = (STRONGEST * Math.min(Math.abs(shade), FULL)) / FULL;
  return `rgba(${shade > 0 ? ORANGE : BLUE}, ${strength.toFixed(3)})`;
}

function clamp(value, size) {
  return Math.min(Math.max(value, 0), Math.max(size - 1, 0));
}

function field(tag, type, className, label) {
  const node = element(tag, className);
  if (type) node.type = type;
  node.setAttribute("aria-label", label);
  node.autocomplete = "off";
  return node;
}

class Navigator {
  constructor(model) {
    this.model = model;
    this.request = new Request(model, this);
    // Each front end of the kernel gets all answers.
    this.page = `page-${Math.random().toString(36).slice(2)}`;
    this.number = 0;
    this.columns = 12;
    this.root = element("section", "values");
    this.root.setAttribute("aria-label", "Values");
    this.axes = element("div", "controls");
    this.root.append(this.axes, this.controls(), this.table(), this.line(), this.editor(), this.expressions());
    this.heard = (content, buffers) => this.hear(content, buffers ?? []);
    model.on("msg:custom", this.heard);
    this.watcher = new ResizeObserver(() => {
      if (this.width === this.root.clientWidth) return;
      this.width = this.root.clientWidth;
      this.numFits = 0;
      this.refit();
    });
    this.watcher.observe(this.root);
    const [goal] = model.get("goal") ?? [];
    this.wish(goal ? { seek: goal } : {}, goal ? "grid" : undefined);
    this.aimed = () => {
      const [what] = model.get("goal");
      if (what) this.seek(what, "grid");
    };
    model.on("change:goal", this.aimed);
    this.asked = () => this.wish({ isAgain: true });
    model.on("change:rounds", this.asked);
  }

  // --- what is on the page

  controls() {
    const bar = element("div", "controls");
    this.form = element("form", "go");
    this.index = field("input", "text", "field tensornp-index", "Go to an index, such as 3, :, 5:9");
    this.index.spellcheck = false;
    this.index.title = "An index as NumPy writes it: integers, slices, ... (g)";
    this.form.append(element("span", "label", "index"), this.index);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.wish({ index: this.index.value }, "grid");
    });
    this.problem = element("span", "problem");
    const group = element("span", "group");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "Jump to");
    group.append(...SEARCHES.map(([what, text, title]) => button(text, title, () => this.seek(what))));
    bar.append(this.form, this.problem, group);
    return bar;
  }

  expressions() {
    const bar = element("div", "expressions");
    this.copies = [["numpy", "NumPy"], ["torch", "PyTorch"]].map(([kind, name]) =>
      copyButton(`the ${name} expression of what is shown`, () => this.seen?.[kind] ?? "", `copy ${name}`),
    );
    this.expression = element("code", "code");
    bar.append(this.expression, ...this.copies);
    return bar;
  }

  table() {
    this.scroller = element("div", "scroller");
    this.grid = element("table", "grid");
    this.grid.setAttribute("role", "grid");
    this.grid.addEventListener("focusin", ({ target }) => this.entered(target));
    this.grid.addEventListener("pointermove", (event) => this.pointAt(event));
    this.grid.addEventListener("pointerleave", () => this.tell(this.current));
    this.grid.addEventListener("dblclick", ({ target }) => this.indexOf(target) && this.edit());
    this.grid.addEventListener("wheel", (event) => this.roll(event), { passive: false });
    // They do for the mouse what keys do in the grid, and are no stops of their own.
    this.bars = ["down", "across"].map((way) => {
      const slider = field("input", "range", way, `First ${way === "down" ? "row" : "column"} that is shown`);
      slider.tabIndex = -1;
      slider.addEventListener("input", () => this.slide(way === "down" ? 0 : 1, Number(slider.value)));
      return slider;
    });
    const beside = element("div", "beside");
    this.scroller.append(this.grid);
    beside.append(this.scroller, this.bars[0]);
    const all = element("div", "sheet");
    all.append(beside, this.bars[1]);
    return all;
  }

  line() {
    const line = element("div", "line-of-cell");
    this.where = element("span", "where");
    this.legend = element("span", "legend");
    this.scale = element("span", "scale");
    this.scale.setAttribute("aria-hidden", "true");
    this.legendText = element("span", "legend-text");
    this.legend.append(this.scale, this.legendText);
    this.said = element("span", "said");
    this.live = element("span", "live-region");
    this.live.setAttribute("aria-live", "polite");
    line.append(this.where, this.said, this.legend, this.live);
    return line;
  }

  editor() {
    this.edits = element("form", "edits");
    this.edits.hidden = true;
    this.editLabel = element("label", "label", "new value ");
    this.editText = field("input", "text", "field tensornp-edit", "New value");
    this.editText.spellcheck = false;
    this.editLabel.append(this.editText);
    this.editCode = element("code", "code");
    this.editCopy = copyButton("the line of code", () => this.editCode.textContent);
    this.editNote = element("span", "note");
    this.editText.addEventListener("input", () => this.wishEdit());
    this.edits.addEventListener("submit", (event) => {
      event.preventDefault();
      this.editCopy.focus();
    });
    this.edits.append(this.editLabel, this.editCode, this.editCopy, this.editNote);
    return this.edits;
  }

  // --- asking

  // `then` says where the focus goes with the answer: "grid", or nowhere.
  wish(wanted, then = this.wished?.then) {
    if (this.dead) return;
    if (!wanted.isFit) this.numFits = 0;
    const kept = { ...(this.wished?.wanted ?? {}) };
    // What is gone to is one thing.
    if (wanted.show || wanted.index !== undefined || wanted.seek || wanted.corner) {
      for (const other of ["show", "index", "seek", "after"]) delete kept[other];
    }
    this.wished = { wanted: { ...kept, ...wanted }, then, from: document.activeElement };
    this.pump();
  }

  wishEdit() {
    this.editCode.textContent = "";
    this.wishedEdit = { index: this.editIndex, text: this.editText.value };
    this.pump();
  }

  pump() {
    if (this.pending) return;
    if (this.wished) {
      const { isFit, isAgain, ...wanted } = this.wished.wanted;
      const { then, from } = this.wished;
      this.wished = undefined;
      const { axes = null, corner = null, part = 0 } = this.seen ?? {};
      this.send({ type: "move", part, axes, corner, size: [NUM_ROWS, this.columns], ...wanted }, then, from);
    } else if (this.wishedEdit) {
      const edit = this.wishedEdit;
      this.wishedEdit = undefined;
      this.send({ type: "edit", part: this.seen?.part ?? 0, ...edit });
    }
  }

  send(request, then, from) {
    const message = { ...request, page: this.page, number: (this.number += 1) };
    this.pending = { number: message.number, type: message.type, index: message.index, then, from };
    this.request.send(message);
  }

  hear(content, buffers) {
    if (content?.page !== this.page || content.number !== this.pending?.number || this.dead) return;
    const { type, index, from } = this.pending;
    const then = isFocusFree(from, this.root) ? this.pending.then : undefined;
    this.pending = undefined;
    this.request.end();
    if (content.type === "window") this.take(content, buffers, then);
    else if (content.type === "code") this.takeCode(content.text);
    else if (type === "edit") this.takeCode("", content.text);
    else this.refuse(content.text, index !== undefined);
    this.pump();
  }

  // --- answers

  take(seen, buffers, then) {
    const before = this.seen;
    this.seen = seen;
    [this.shades, this.bits] = [Int8Array, Uint8Array].map((Numbers, i) => {
      const { buffer = new ArrayBuffer(0), byteOffset = 0, byteLength = 0 } = buffers[i] ?? {};
      return new Numbers(buffer, byteOffset, byteLength);
    });
    const isOther = before?.part === seen.part && ["shape", "dtype", "device"].some((fact) => String(before[fact]) !== String(seen[fact]));
    if (isOther) this.edits.hidden = true;
    this.problem.textContent = "";
    this.root.classList.remove("tensornp-failed");
    this.say(isOther ? `the tensor is now ${this.facts()}` : seen.text);
    // A key that was pressed meanwhile goes on from where it wants to be.
    if (!this.wished?.wanted.show) {
      this.current = (seen.show ?? this.current ?? seen.corner).map((i, axis) => clamp(i, seen.shape[axis]));
      if (this.current.length !== seen.shape.length) this.current = [...seen.corner];
      this.current = this.intoView(this.current);
    }
    const had = this.grid.contains(document.activeElement) && document.activeElement;
    this.paint();
    const cell = this.cellOf(this.current);
    if (cell && (had || then === "grid")) cell.focus({ preventScroll: true });
    else if (had && !had.isConnected) this.keepFocus();
    // A cell that takes the focus is read out by itself; one that has kept it has a new value.
    if (before && !this.wished && (!cell || had === cell || document.activeElement !== cell)) {
      this.announce([this.said.textContent, this.where.textContent].filter(Boolean).join("; "));
    }
    this.refit();
  }

  // The cell that had the focus is no more, and where it goes to has not come yet: no key may fall through meanwhile.
  keepFocus() {
    this.isKeeping = true;
    (this.cells[0] ?? this.index).focus({ preventScroll: true });
    this.isKeeping = false;
  }

  takeCode(code, problem = "") {
    this.editCode.textContent = code;
    this.editCopy.hidden = !code;
    this.editNote.textContent = problem || READ_ONLY;
    this.editNote.classList.toggle("tensornp-error", Boolean(problem));
    this.editText.setAttribute("aria-invalid", String(Boolean(problem)));
    this.announce(problem || code);
  }

  refuse(text, isOfIndex) {
    if (isOfIndex) {
      this.problem.textContent = text;
      this.index.setAttribute("aria-invalid", "true");
      this.say("");
    } else {
      this.root.classList.add("tensornp-failed");
      this.say(text, "error");
    }
    this.announce(text);
  }

  facts() {
    const { dtype, shape, device } = this.seen;
    return `${dtype} of shape (${shape.join(", ")}${shape.length === 1 ? "," : ""}) on ${device}`;
  }

  say(text, tone = "plain") {
    this.said.textContent = text;
    this.said.className = `tensornp-said tensornp-${tone}`;
  }

  announce(text) {
    this.live.textContent = text;
  }

  // --- painting

  paint() {
    const { axes, corner, size, legend } = this.seen;
    this.index.setAttribute("aria-invalid", "false");
    this.index.placeholder = (this.seen.numpy.match(/\[([^[\]]*)\]$/) ?? ["", ""])[1];
    this.expression.textContent = this.seen.numpy;
    this.copies[1].disabled = !this.seen.torch;
    this.paintAxes();
    this.paintGrid();
    this.legendText.textContent = legend;
    const [low, high] = this.seen.scale;
    const ends = [low < 0 ? colour(-FULL) : "transparent", "transparent", high > 0 ? colour(FULL) : "transparent"];
    const shown = low < 0 && high > 0 ? ends : low < 0 ? ends.slice(0, 2) : ends.slice(1);
    this.scale.style.backgroundImage = `linear-gradient(to right, ${shown.join(", ")})`;
    this.scale.hidden = !(low < 0 || high > 0);
    this.bars.forEach((slider, i) => {
      const last = axes[i] === null ? 0 : this.seen.shape[axes[i]] - size[i];
      slider.max = String(Math.max(last, 0));
      slider.value = String(axes[i] === null ? 0 : corner[axes[i]]);
      slider.hidden = last <= 0;
    });
    this.tell(this.current);
  }

  // The controls are made anew only where the tensor has other axes, so that none is lost under a finger.
  paintAxes() {
    const { shape, axes, num_parts: numParts } = this.seen;
    const kind = JSON.stringify([shape, axes, numParts]);
    if (kind !== this.kindOfAxes) {
      this.kindOfAxes = kind;
      const others = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
      const had = this.axes.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
      const parts = numParts ? [this.dial("part", numParts, (value) => this.wish({ part: value, corner: null }))] : [];
      this.dials = others.map((axis) => this.dial(`axis ${axis}`, shape[axis], (value) => this.turn(axis, value)));
      this.others = others;
      this.partDial = parts[0];
      const selects = shape.length > 1 ? [0, 1].map((i) => this.select(i)) : [];
      this.axes.replaceChildren(...selects, ...[...parts, ...this.dials].map(({ node }) => node));
      if (had) [...this.axes.querySelectorAll("[aria-label]")].find((n) => n.getAttribute("aria-label") === had)?.focus();
    }
    this.others.forEach((axis, i) => this.dials[i].set(this.seen.corner[axis]));
    this.partDial?.set(this.seen.part);
  }

  select(i) {
    const label = element("label", "choice", i ? "columns " : "rows ");
    const select = element("select", "select");
    select.setAttribute("aria-label", i ? "Axis of the columns" : "Axis of the rows");
    this.seen.shape.forEach((size, axis) => {
      const option = new Option(`axis ${axis} (${size.toLocaleString("en")})`, String(axis));
      option.selected = axis === this.seen.axes[i];
      select.append(option);
    });
    select.addEventListener("change", () => {
      const axes = [...this.seen.axes];
      const chosen = Number(select.value);
      // The other one gets what this one had, so that the two are never the same.
      if (axes[1 - i] === chosen) axes[1 - i] = axes[i];
      axes[i] = chosen;
      this.wish({ axes, show: this.current });
    });
    label.append(select);
    return label;
  }

  dial(name, size, turn) {
    const node = element("span", "dial");
    const number = field("input", "number", "field tensornp-number", `Index on ${name} of ${size.toLocaleString("en")}`);
    const slider = field("input", "range", "slider", `Slide along ${name}`);
    for (const input of [number, slider]) {
      input.min = "0";
      input.max = String(Math.max(size - 1, 0));
      input.addEventListener("input", () => {
        if (input.value === "") return;
        const value = clamp(Math.trunc(Number(input.value)) || 0, size);
        (input === number ? slider : number).value = String(value);
        turn(value);
      });
    }
    number.style.width = `${String(size).length + 6}ch`;
    node.append(element("span", "label", name), number, slider);
    const set = (value) => {
      // What is typed right now stays.
      if (this.pending || this.wished) return;
      if (document.activeElement !== number || number.value !== "") number.value = String(value);
      slider.value = String(value);
    };
    return { node, set };
  }

  paintGrid() {
    const { shape, axes, corner, size } = this.seen;
    const [rows, columns] = size;
    const [numRows, numColumns] = axes.map((axis) => (axis === null ? 1 : shape[axis]));
    const first = axes.map((axis) => (axis === null ? 0 : corner[axis]));
    this.makeCells(rows, columns);
    this.grid.setAttribute("aria-label", `Values of ${this.model.get("name")}`);
    // The heading of each is a row and a column too.
    this.grid.setAttribute("aria-rowcount", String(numRows + 1));
    this.grid.setAttribute("aria-colcount", String(numColumns + 1));
    this.columnHeads.forEach((head, j) => {
      head.setAttribute("aria-colindex", String(first[1] + j + 2));
      head.firstChild.data = String(first[1] + j);
    });
    this.rowHeads.forEach((head, i) => {
      head.parentElement.setAttribute("aria-rowindex", String(first[0] + i + 2));
      head.firstChild.data = axes[0] === null ? " " : String(first[0] + i);
    });
    this.cells.forEach((cell, k) => {
      const shade = this.shades[k];
      const special = SPECIAL[shade];
      put(cell, "aria-colindex", String(first[1] + (k % columns) + 2));
      put(cell, "class", special ? `tensornp-cell tensornp-${special}` : "tensornp-cell");
      put(cell, "style", special || !shade ? "" : `background-color: ${colour(shade)}`);
      if (cell.firstChild.data !== this.seen.texts[k]) cell.firstChild.data = this.seen.texts[k];
    });
    const at = this.cellOf(this.current) ?? this.cells[0];
    this.cells.forEach((cell) => put(cell, "tabindex", cell === at ? "0" : "-1"));
    at?.classList.add("tensornp-current");
  }

  makeCells(rows, columns) {
    if (this.made?.[0] === rows && this.made[1] === columns) return;
    this.made = [rows, columns];
    const text = (node) => {
      node.append(document.createTextNode(" "));
      return node;
    };
    const head = (scope) => {
      const node = text(element("th", "head"));
      node.scope = scope;
      return node;
    };
    const top = element("tr", "heads");
    top.setAttribute("aria-rowindex", "1");
    const corner = text(element("td", "corner"));
    corner.setAttribute("aria-colindex", "1");
    this.columnHeads = Array.from({ length: columns }, () => head("col"));
    top.append(corner, ...this.columnHeads);
    this.rowHeads = [];
    this.cells = [];
    const body = Array.from({ length: rows }, () => {
      const row = element("tr", "row");
      const own = head("row");
      own.setAttribute("aria-colindex", "1");
      const cells = Array.from({ length: columns }, () => text(element("td", "cell")));
      this.rowHeads.push(own);
      this.cells.push(...cells);
      row.append(own, ...cells);
      return row;
    });
    const [thead, tbody] = [element("thead"), element("tbody")];
    thead.append(top);
    tbody.append(...body);
    this.grid.replaceChildren(thead, tbody);
  }

  // As many columns as there is room for. Other ones may be wider, so this is asked for three times after a move at most,
  // the last time for fewer only.
  refit() {
    const room = this.root.clientWidth - BAR_WIDTH;
    if (!this.cells?.length || room <= 0 || this.pending || this.wished || this.numFits > 2) return;
    const widest = Math.max(...this.columnHeads.map((head) => head.offsetWidth + 1));
    const fits = Math.min(Math.max(Math.floor((room - this.rowHeads[0].offsetWidth - 2) / widest), 1), MAX_COLUMNS);
    const axis = this.seen.axes[1];
    const wanted = Math.min(fits, axis === null ? 1 : this.seen.shape[axis]);
    const shown = this.seen.size[1];
    if (wanted === shown || (this.numFits > 1 && wanted > shown)) return;
    this.columns = fits;
    this.wish({ show: this.current, isFit: true });
    this.numFits += 1;
  }

  // --- where is what

  // The nearest element of the window.
  intoView(index) {
    const { axes, corner, size } = this.seen;
    return index.map((i, axis) => {
      const seen = axis === axes[0] ? size[0] : axis === axes[1] ? size[1] : 1;
      return Math.min(Math.max(i, corner[axis]), corner[axis] + Math.max(seen, 1) - 1);
    });
  }

  cellOf(index) {
    const { axes, corner, size } = this.seen;
    if (!index || !this.cells?.length || String(this.intoView(index)) !== String(index)) return undefined;
    const [i, j] = axes.map((axis) => (axis === null ? 0 : index[axis] - corner[axis]));
    return this.cells[i * size[1] + j];
  }

  indexOf(node) {
    const k = this.cells?.indexOf(node.closest?.("td"));
    if (k === undefined || k < 0 || !this.seen) return undefined;
    const { axes, corner, size } = this.seen;
    const at = [Math.floor(k / size[1]), k % size[1]];
    return corner.map((i, axis) => i + (axis === axes[0] ? at[0] : axis === axes[1] ? at[1] : 0));
  }

  // The index, the exact value and the bits of one element, as they were read.
  tell(index) {
    const cell = index && this.cellOf(index);
    if (!cell) {
      if (!this.seen?.exact.length) this.where.textContent = "";
      return;
    }
    const k = this.cells.indexOf(cell);
    const bits = this.bitsOf(k);
    const parts = [`[${index.join(", ")}]  ${this.seen.exact[k]}`, bits && `${bits}  ${this.seen.bits_dtype ?? this.seen.dtype}`];
    this.where.textContent = parts.filter(Boolean).join("  ·  ");
  }

  // A mouse that rests points at nothing, whatever comes to lie under it.
  pointAt({ target, screenX, screenY }) {
    const at = `${screenX} ${screenY}`;
    if (at !== this.pointer) this.tell(this.indexOf(target));
    this.pointer = at;
  }

  bitsOf(k) {
    if (SPECIAL[this.shades[k]] === "unshown") return "";
    const each = this.bits.length / this.shades.length;
    const own = [...this.bits.slice(k * each, (k + 1) * each)];
    const digits = this.seen.digits || 2;
    const hex = (bytes) => `0x${bytes.map((byte) => byte.toString(16).padStart(digits, "0")).join("")}`;
    const half = each / 2;
    return this.seen.num_numbers === 2 ? `${hex(own.slice(0, half))} ${hex(own.slice(half))}` : hex(own);
  }

  // --- moving

  entered(target) {
    const index = this.indexOf(target);
    if (!index || this.isKeeping) return;
    const before = this.cellOf(this.current);
    if (before && before !== target) {
      before.tabIndex = -1;
      before.classList.remove("tensornp-current");
    }
    this.current = index;
    target.tabIndex = 0;
    target.classList.add("tensornp-current");
    this.tell(index);
  }

  go(index) {
    const { shape } = this.seen;
    const to = index.map((i, axis) => clamp(i, shape[axis]));
    const cell = !this.wished?.wanted.show && !this.pending && this.cellOf(to);
    if (cell) {
      cell.focus({ preventScroll: true });
      return;
    }
    this.target = to;
    this.wish({ show: to }, "grid");
  }

  // Where the user is, or will be once what is under way has come.
  here() {
    const isMoving = this.pending?.then === "grid" || this.wished?.then === "grid";
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

  turnBy(by) {
    const axis = this.others.includes(this.along) ? this.along : this.others.at(-1);
    const { part, num_parts: numParts, shape } = this.seen;
    if (axis === undefined) {
      if (numParts) this.wish({ part: clamp((this.wished?.wanted.part ?? part) + by, numParts) }, "grid");
      return;
    }
    const to = [...this.here()];
    to[axis] = clamp(to[axis] + by, shape[axis]);
    this.along = axis;
    this.target = to;
    this.wish({ show: to }, "grid");
  }

  slide(i, value) {
    const corner = [...this.seen.corner];
    corner[this.seen.axes[i]] = value;
    this.wish({ corner });
  }

  // Only once the grid has the focus: until then, the wheel scrolls the notebook.
  roll(event) {
    if (!this.grid.contains(document.activeElement) || event.ctrlKey) return;
    const i = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY) ? 1 : 0;
    const axis = this.seen.axes[i];
    const by = Math.sign(event.deltaY || event.deltaX) * (i ? 1 : 3);
    if (axis === null) return;
    const from = (this.wished?.wanted.corner ?? this.seen.corner)[axis];
    const to = Math.min(Math.max(from + by, 0), this.seen.shape[axis] - this.seen.size[i]);
    if (to === from) return;
    event.preventDefault();
    this.slide(i, to);
  }

  seek(what, then) {
    this.wish({ seek: what, after: this.current ?? null }, then);
  }

  edit() {
    if (!this.cellOf(this.current)) return;
    this.editIndex = [...this.current];
    this.edits.hidden = false;
    this.editText.value = this.seen.exact[this.cells.indexOf(this.cellOf(this.current))];
    this.editText.focus();
    this.editText.select();
    this.wishEdit();
  }

  // --- keys

  // Returns whether the key was used here.
  key(event) {
    if (event.key === "Escape") return this.escape(event.target);
    if (this.dead || !this.seen || event.altKey || event.metaKey) return false;
    if (!this.grid.contains(event.target)) return false;
    const { axes, shape, size } = this.seen;
    const ends = axes.map((axis) => (axis === null ? 0 : shape[axis] - 1));
    const far = (rows, columns) => {
      const to = [...this.here()];
      [rows, columns].forEach((at, i) => at !== undefined && axes[i] !== null && (to[axes[i]] = at));
      this.go(to);
    };
    const withCtrl = { Home: () => far(0, 0), End: () => far(ends[0], ends[1]) };
    const plain = {
      ArrowUp: () => this.step(0, -1),
      ArrowDown: () => this.step(0, 1),
      ArrowLeft: () => this.step(1, -1),
      ArrowRight: () => this.step(1, 1),
      PageUp: () => this.step(0, -Math.max(size[0], 1)),
      PageDown: () => this.step(0, Math.max(size[0], 1)),
      Home: () => far(undefined, 0),
      End: () => far(undefined, ends[1]),
      "[": () => this.turnBy(-1),
      "]": () => this.turnBy(1),
      g: () => this.index.focus(),
      n: () => this.seek("nan", "grid"),
      Enter: () => this.edit(),
      F2: () => this.edit(),
    };
    const act = event.ctrlKey ? withCtrl[event.key] : plain[event.key];
    if (!act || (event.shiftKey && event.key === "Enter")) return false;
    act();
    return true;
  }

  // From a field back to the grid, and from the grid back to the notebook.
  escape(target) {
    const isInField = this.edits.contains(target) || this.form.contains(target);
    if (this.edits.contains(target)) this.edits.hidden = true;
    if (isInField) {
      this.problem.textContent = "";
      this.index.value = "";
      const cell = this.seen && this.cellOf(this.current);
      if (cell) {
        cell.focus({ preventScroll: true });
        return true;
      }
    }
    const outside = this.root.parentElement?.closest("[tabindex]");
    outside?.focus({ preventScroll: true });
    if (this.root.contains(document.activeElement)) document.activeElement.blur();
    return true;
  }

  // --- leaving

  die() {
    this.dead = true;
    this.request.end();
    this.pending = this.wished = undefined;
    this.root.classList.add("tensornp-dead");
    for (const control of this.root.querySelectorAll("input, select, button")) control.disabled = true;
    this.say(GONE, "error");
  }

  leave() {
    this.request.end();
    this.watcher.disconnect();
    this.model.off("msg:custom", this.heard);
    this.model.off("change:goal", this.aimed);
    this.model.off("change:rounds", this.asked);
    this.dead = true;
    this.root.remove();
  }
}

export default () => {
  const navigators = new Set();
  let isLost = false;
  const add = (model, place) => {
    const one = new Navigator(model);
    navigators.add(one);
    place.append(one.root);
    if (isLost) one.die();
    return () => {
      one.leave();
      navigators.delete(one);
    };
  };
  return docking({
    own: ".tensornp-values",
    taken: "data-tensornp-values",
    dock: add,
    rendered: add,
    keys: (event) => [...navigators].find((one) => one.root.contains(event.target))?.key(event),
    lost: () => {
      isLost = true;
      navigators.forEach((one) => one.die());
    },
  });
};
