// The window of values as a grid: its cells, and which element each of them shows.

import { element, put } from "../page/elements.js";

const FULL = 100;
const STRONGEST = 0.5;
const ORANGE = "219, 125, 50";
const BLUE = "60, 130, 210";
// The shades of values without a place on the scale.
const SPECIAL = { 127: "nan", 126: "inf", "-126": "inf", 125: "unshown" };

// Orange above zero, blue below, as strong as the value is large.
function colourOf(shade) {
  const strength = (STRONGEST * Math.min(Math.abs(shade), FULL)) / FULL;
  return `rgba(${shade > 0 ? ORANGE : BLUE}, ${strength.toFixed(3)})`;
}

// A node with one text in it, which is changed in place.
function withText(node) {
  node.append(document.createTextNode(" "));
  return node;
}

function headOf(scope) {
  const node = withText(element("th", "heading"));
  node.scope = scope;
  return node;
}

// The index of an element of the window; of a part of a sharded tensor, that in the whole.
export function inWhole({ places, corner }, index) {
  return index.map((i, axis) => places[axis][i - corner[axis]]);
}

export class Grid {
  seen;
  made;
  cells = [];
  columnHeads = [];
  rowHeads = [];
  shades = new Int8Array();

  constructor() {
    this.node = element("table", "grid");
    this.node.setAttribute("role", "grid");
  }

  // --- painting

  // `buffers` has the shade of each element.
  take(seen, buffers) {
    this.seen = seen;
    const [shades] = buffers;
    this.shades = shades ? new Int8Array(shades.buffer, shades.byteOffset, shades.byteLength) : new Int8Array();
  }

  paint(name, current) {
    const { shape, axes, corner, size } = this.seen;
    const [rows, columns] = size;
    const [numRows, numColumns] = axes.map((axis) => (axis === null ? 1 : shape[axis]));
    const first = axes.map((axis) => (axis === null ? 0 : corner[axis]));
    this.makeCells(rows, columns);
    this.node.setAttribute("aria-label", `Values of ${name}`);
    // The heading of each is a row and a column too.
    this.node.setAttribute("aria-rowcount", String(numRows + 1));
    this.node.setAttribute("aria-colcount", String(numColumns + 1));
    this.columnHeads.forEach((head, j) => {
      head.setAttribute("aria-colindex", String(first[1] + j + 2));
      head.firstChild.data = String(this.label(1, j));
    });
    this.rowHeads.forEach((head, i) => {
      head.parentElement.setAttribute("aria-rowindex", String(first[0] + i + 2));
      head.firstChild.data = axes[0] === null ? " " : String(this.label(0, i));
    });
    this.cells.forEach((cell, k) => this.paintCell(cell, k, first[1] + (k % columns) + 2));
    const at = this.cellOf(current) ?? this.cells[0];
    this.cells.forEach((cell) => put(cell, "tabindex", cell === at ? "0" : "-1"));
    this.mark(at);
  }

  // What a row (0) or a column (1) of the window is called.
  label(i, number) {
    const axis = this.seen.axes[i];
    if (axis === null) return number;
    return this.seen.places[axis][number];
  }

  // The cell that one is at, with the headings of its row and column.
  mark(cell) {
    const at = this.cells.indexOf(cell);
    if (at < 0) return;
    const here = [Math.floor(at / this.seen.size[1]), at % this.seen.size[1]];
    [this.rowHeads, this.columnHeads].forEach((heads, i) =>
      heads.forEach((head, k) => head.classList.toggle("tensornp-here", k === here[i])),
    );
    cell.classList.add("tensornp-current");
  }

  paintCell(cell, k, columnIndex) {
    const shade = this.shades[k];
    const special = SPECIAL[shade];
    put(cell, "aria-colindex", String(columnIndex));
    put(cell, "class", special ? `tensornp-cell tensornp-${special}` : "tensornp-cell");
    put(cell, "style", special || !shade ? "" : `background-color: ${colourOf(shade)}`);
    if (cell.firstChild.data !== this.seen.texts[k]) cell.firstChild.data = this.seen.texts[k];
  }

  makeCells(rows, columns) {
    if (this.made?.[0] === rows && this.made?.[1] === columns) return;
    this.made = [rows, columns];
    const top = element("tr", "headings");
    top.setAttribute("aria-rowindex", "1");
    const corner = withText(element("td", "corner"));
    corner.setAttribute("aria-colindex", "1");
    this.columnHeads = Array.from({ length: columns }, () => headOf("col"));
    top.append(corner, ...this.columnHeads);
    this.rowHeads = [];
    this.cells = [];
    const body = Array.from({ length: rows }, () => {
      const row = element("tr", "row");
      const own = headOf("row");
      own.setAttribute("aria-colindex", "1");
      const cells = Array.from({ length: columns }, () => withText(element("td", "cell")));
      this.rowHeads.push(own);
      this.cells.push(...cells);
      row.append(own, ...cells);
      return row;
    });
    const [thead, tbody] = [element("thead"), element("tbody")];
    thead.append(top);
    tbody.append(...body);
    this.node.replaceChildren(thead, tbody);
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
    if (!index || !this.cells.length || String(this.intoView(index)) !== String(index)) return undefined;
    const { axes, corner, size } = this.seen;
    const [i, j] = axes.map((axis) => (axis === null ? 0 : index[axis] - corner[axis]));
    return this.cells[i * size[1] + j];
  }

  indexOf(node) {
    const k = this.cells.indexOf(node.closest?.("td"));
    if (k < 0 || !this.seen) return undefined;
    const { axes, corner, size } = this.seen;
    const at = [Math.floor(k / size[1]), k % size[1]];
    return corner.map((i, axis) => i + (axis === axes[0] ? at[0] : axis === axes[1] ? at[1] : 0));
  }

  // --- one element, as it was read

  exactOf(cell) {
    return this.seen.exact[this.cells.indexOf(cell)];
  }
}
