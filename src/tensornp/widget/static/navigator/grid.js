// The window of values as a grid: its cells, and the element of each.

import { element } from "../page/elements.js";

const ORANGE = [219, 125, 50];
const BLUE = [60, 130, 210];
const SPECIAL = { 127: "nan", 126: "inf", "-126": "inf", 125: "unshown" };

// Orange above zero, blue below, and half opaque at 100.
const colourOf = (shade) => [...(shade > 0 ? ORANGE : BLUE), SPECIAL[shade] ? 0 : 1.27 * Math.abs(shade)];
const longest = (nodes) => Math.max(0, ...nodes.map((node) => node.textContent.length));
const headsOf = (length, scope) => Array.from({ length }, () => Object.assign(element("th", "heading", " "), { scope }));

export class Grid {
  cells = [];

  constructor(name) {
    this.node = element("table", "grid");
    this.picture = Object.assign(element("canvas"), { ariaHidden: "true" });
    this.node.setAttribute("role", "grid");
    this.node.setAttribute("aria-label", `Values of ${name}`);
  }

  // `buffers` has the shade of each element.
  paint(seen) {
    const { shape, axes, corner, size, places, texts, buffers: [shade] } = seen;
    const shades = shade ? [...new Int8Array(shade.buffer, shade.byteOffset, shade.byteLength)] : [];
    // A cell with the focus keeps it: JupyterLab styles the whole notebook again when it is lost.
    if (String(size) !== String(this.seen?.size)) this.build(size);
    this.seen = seen;
    const first = axes.map((axis) => (axis === null ? 0 : corner[axis]));
    [this.rowHeads, this.columnHeads].forEach((heads, i) => {
      const axis = axes[i];
      this.node.setAttribute(i ? "aria-colcount" : "aria-rowcount", String((axis === null ? 1 : shape[axis]) + 1));
      heads.forEach((head, j) => (head.firstChild.data = axis === null ? [" ", j][i] : places[axis][j]));
    });
    this.cells.forEach((cell, k) => {
      cell.firstChild.data = texts[k];
      cell.className = `tensornp-cell tensornp-${SPECIAL[shades[k]] ?? "plain"}`;
    });
    [...this.node.rows].forEach((row, i) => {
      row.setAttribute("aria-rowindex", String(i ? first[0] + i + 1 : 1));
      [...row.cells].forEach((cell, j) => cell.setAttribute("aria-colindex", String(j ? first[1] + j + 1 : 1)));
    });
    this.widen(size);
    if (shades.length) this.colour(shades, size);
  }

  // Columns are equally wide, and no narrower than they were: they stay in place from window to window.
  widen([rows, columns]) {
    const chars = [this.rowHeads, [...this.columnHeads, ...this.cells]].map(longest);
    this.chars = chars.map((n, i) => Math.max(n, this.chars[i]));
    const [head, cell] = this.chars.map((n) => `${n}ch`);
    const own = { rows, columns, head, cell };
    for (const [name, value] of Object.entries(own)) this.node.style.setProperty(`--tensornp-${name}`, value);
  }

  // The colours are one picture behind the cells: styles of their own would take longer.
  colour(shades, [, columns]) {
    const pixels = new ImageData(Uint8ClampedArray.from(shades.flatMap(colourOf)), columns);
    this.picture.getContext("2d").putImageData(pixels, 0, 0);
  }

  build([rows, columns]) {
    this.chars = [0, 0];
    this.columnHeads = headsOf(columns, "col");
    this.rowHeads = headsOf(rows, "row");
    this.cells = Array.from({ length: rows * columns }, () => Object.assign(element("td", "cell", " "), { tabIndex: -1 }));
    const lines = this.rowHeads.map((own, i) => [own, ...this.cells.slice(i * columns, (i + 1) * columns)]);
    const [head, body] = [element("thead"), element("tbody")];
    head.insertRow().append(element("td", "corner"), ...this.columnHeads);
    for (const nodes of lines) body.insertRow().append(...nodes);
    this.node.replaceChildren(head, body);
    Object.assign(this.picture, { width: columns, height: rows });
    this.rowHeads[0]?.append(this.picture);
  }

  // Makes a cell the current one, with the headings of its row and column.
  mark(cell) {
    const at = this.cells.indexOf(cell);
    const columns = this.seen.size[1];
    for (const one of [this.marked, cell].filter(Boolean)) {
      one.tabIndex = one === cell ? 0 : -1;
      one.classList.toggle("tensornp-current", one === cell);
    }
    this.marked = cell;
    this.rowHeads.forEach((head, i) => head.classList.toggle("tensornp-here", i === Math.floor(at / columns)));
    this.columnHeads.forEach((head, j) => head.classList.toggle("tensornp-here", at >= 0 && j === at % columns));
  }

  intoView(index) {
    const { axes, corner, size } = this.seen;
    return index.map((i, axis) => {
      const room = axis === axes[0] ? size[0] : axis === axes[1] ? size[1] : 1;
      return Math.min(Math.max(i, corner[axis]), corner[axis] + Math.max(room, 1) - 1);
    });
  }

  cellOf(index) {
    if (!this.cells.length || String(this.intoView(index)) !== String(index)) return undefined;
    const { axes, corner, size } = this.seen;
    const [i, j] = axes.map((axis) => (axis === null ? 0 : index[axis] - corner[axis]));
    return this.cells[i * size[1] + j];
  }

  indexOf(node) {
    const k = this.cells.indexOf(node.closest("td"));
    if (k < 0) return undefined;
    const { axes, corner, size } = this.seen;
    const at = [Math.floor(k / size[1]), k % size[1]];
    return corner.map((i, axis) => i + (axis === axes[0] ? at[0] : axis === axes[1] ? at[1] : 0));
  }

  // The index and the exact value of an element; a shard gives its index in the whole.
  textOf(index) {
    const cell = this.cellOf(index);
    if (!cell) return "";
    const { corner, exact, dtype, places } = this.seen;
    const whole = index.map((i, axis) => places[axis][i - corner[axis]]);
    return `[${whole.join(", ")}]  ${exact[this.cells.indexOf(cell)]}  ${dtype}`;
  }
}
