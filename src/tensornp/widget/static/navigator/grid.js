// The window of values as a grid: its cells, and the element of each.

import { element } from "../page/elements.js";

const FULL = 100;
const STRONGEST = 0.5;
const ORANGE = "219, 125, 50";
const BLUE = "60, 130, 210";
const SPECIAL = { 127: "nan", 126: "inf", "-126": "inf", 125: "unshown" };

// Orange above zero, blue below, as strong as the value is large.
function colourOf(shade) {
  const strength = (STRONGEST * Math.min(Math.abs(shade), FULL)) / FULL;
  return `rgba(${shade > 0 ? ORANGE : BLUE}, ${strength.toFixed(3)})`;
}

function cellOf(text, shade) {
  const special = SPECIAL[shade];
  const cell = element("td", special ? `cell tensornp-${special}` : "cell", text);
  cell.tabIndex = -1;
  if (shade && !special) cell.style.backgroundColor = colourOf(shade);
  return cell;
}

function headOf(scope, text) {
  const head = element("th", "heading", text);
  head.scope = scope;
  return head;
}

// `nodes` begin at the column `first` of the whole grid, after the heading.
function rowOf(number, nodes, first) {
  const row = element("tr");
  row.setAttribute("aria-rowindex", String(number));
  nodes.forEach((node, j) => node.setAttribute("aria-colindex", String(j ? first + j + 1 : 1)));
  row.append(...nodes);
  return row;
}

export class Grid {
  cells = [];

  constructor(name) {
    this.node = element("table", "grid");
    this.node.setAttribute("role", "grid");
    this.node.setAttribute("aria-label", `Values of ${name}`);
  }

  // `buffers` has the shade of each element.
  paint(seen) {
    this.seen = seen;
    const { shape, axes, corner, size, places, texts, buffers } = seen;
    const [rows, columns] = size;
    const [shade] = buffers;
    const shades = shade ? new Int8Array(shade.buffer, shade.byteOffset, shade.byteLength) : [];
    const first = axes.map((axis) => (axis === null ? 0 : corner[axis]));
    axes.forEach((axis, i) =>
      this.node.setAttribute(i ? "aria-colcount" : "aria-rowcount", String((axis === null ? 1 : shape[axis]) + 1)),
    );
    const label = (i, number) => (axes[i] === null ? [" ", number][i] : places[axes[i]][number]);
    this.columnHeads = Array.from({ length: columns }, (_, j) => headOf("col", label(1, j)));
    this.rowHeads = Array.from({ length: rows }, (_, i) => headOf("row", label(0, i)));
    this.cells = texts.map((text, k) => cellOf(text, shades[k]));
    const [head, body] = [element("thead"), element("tbody")];
    head.append(rowOf(1, [element("td", "corner"), ...this.columnHeads], first[1]));
    const lines = this.rowHeads.map((own, i) => [own, ...this.cells.slice(i * columns, (i + 1) * columns)]);
    body.append(...lines.map((nodes, i) => rowOf(first[0] + i + 2, nodes, first[1])));
    this.node.replaceChildren(head, body);
  }

  // Makes a cell the current one, with the headings of its row and column.
  mark(cell) {
    const at = this.cells.indexOf(cell);
    const columns = this.seen.size[1];
    this.cells.forEach((one) => {
      one.tabIndex = one === cell ? 0 : -1;
      one.classList.toggle("tensornp-current", one === cell);
    });
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
