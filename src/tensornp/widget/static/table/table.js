// Makes the static table of %tensors sortable and searchable: adds buttons to the headings and a filter over it, and
// takes both away again when it leaves. Both see all rows that the kernel has sent, not only those that are printed.

import { docking } from "../page/docking.js";
import { button, element } from "../page/elements.js";

const ARROWS = { ascending: " ▲", descending: " ▼", none: "" };
const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
const WINDOW = 200;

function plainName(row) {
  return row.cells[0].replace(/^└ /, "");
}

// The exact number of bytes stands in the title of a cell, since "1.5 KiB" does not sort.
function keyOf(row, column) {
  const exact = /^([\d,]+) bytes$/.exec(row.titles[column] ?? "");
  if (exact) return Number(exact[1].replaceAll(",", ""));
  return column ? row.cells[column] : plainName(row);
}

function compare(a, b) {
  return typeof a === "number" && typeof b === "number"
    ? a - b
    : String(a).localeCompare(String(b), undefined, { numeric: true });
}

function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

class Sorter {
  /** @type {any} */
  table;
  /** @type {any} */
  body;
  /** @type {any} */
  leftOut;
  /** @type {any[]} */
  heads;
  /** @type {string[]} */
  texts;
  /** @type {{ cells: string[], titles: string[], begins: boolean }[]} */
  rows;
  /** @type {HTMLTableRowElement[]} */
  printed;
  /** @type {string} */
  order;
  column = 0;
  limit = WINDOW;

  /** @param {Model} model @param {HTMLElement} card */
  constructor(model, card) {
    this.table = card.querySelector("table");
    this.body = this.table?.tBodies[0];
    if (!this.body) return;
    this.rows = model.get("rows");
    this.numLeftOut = model.get("num_left_out");
    this.printed = [...this.body.rows];
    this.leftOut = card.querySelector(".tensornp-left-out");
    this.heads = [...this.table.tHead.rows[0].cells];
    this.texts = this.heads.map((head) => head.textContent);
    this.order = "none";
    this.heads.forEach((head, column) => this.addButton(head, column));
    this.addBar();
    this.paint();
  }

  addButton(head, column) {
    const title = "Sort all rows; a third press groups by memory again";
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button(this.texts[column], title, () => this.sort(column), "sort"));
  }

  addBar() {
    this.bar = element("div", "filter-bar");
    this.filter = element("input", "filter");
    this.filter.type = "search";
    this.filter.placeholder = "Filter by name";
    this.filter.setAttribute("aria-label", "Show only names that contain");
    this.filter.addEventListener("input", () => {
      this.limit = WINDOW;
      this.paint();
    });
    this.status = element("span", "found");
    this.status.setAttribute("aria-live", "polite");
    this.bar.append(this.filter, this.status);
    this.table.before(this.bar);
    this.more = element("button", "more");
    this.more.type = "button";
    this.more.addEventListener("click", () => {
      this.limit += WINDOW;
      this.paint();
    });
    this.table.after(this.more);
  }

  sort(column) {
    this.order = column === this.column ? NEXT[this.order] : "ascending";
    this.column = column;
    this.limit = WINDOW;
    this.heads.forEach((head, i) => {
      const order = i === column ? this.order : "none";
      head.setAttribute("aria-sort", order);
      head.firstElementChild.textContent = this.texts[i] + ARROWS[order];
    });
    this.paint();
  }

  // As long as nobody asks for anything else, the rows that were printed stand.
  paint() {
    const wanted = this.filter.value.trim().toLowerCase();
    const isPrinted = !wanted && this.order === "none";
    const found = wanted ? this.rows.filter((row) => plainName(row).toLowerCase().includes(wanted)) : [...this.rows];
    if (this.order !== "none") {
      const sign = this.order === "descending" ? -1 : 1;
      found.sort((a, b) => sign * compare(keyOf(a, this.column), keyOf(b, this.column)));
    }
    const shown = isPrinted ? this.printed : found.slice(0, this.limit).map((row) => this.rowOf(row));
    this.body.replaceChildren(...shown);
    const numHidden = isPrinted ? 0 : found.length - shown.length;
    this.more.hidden = !numHidden;
    this.more.textContent = `${counted(Math.min(numHidden, WINDOW), "row")} more of ${found.length.toLocaleString("en")}`;
    if (this.leftOut) this.leftOut.hidden = !isPrinted;
    this.say(wanted, found.length);
  }

  say(wanted, numFound) {
    const all = counted(this.rows.length, "row");
    const unsearched = this.numLeftOut ? `; ${this.numLeftOut.toLocaleString("en")} more were not searched` : "";
    this.status.textContent = (wanted ? `${numFound.toLocaleString("en")} of ${all}` : all) + unsearched;
  }

  rowOf({ cells, titles, begins, alarm }) {
    const row = element("tr", begins && this.order === "none" ? "begins" : "");
    cells.forEach((text, i) => {
      const cell = element("td", "", i || this.order === "none" ? text : text.replace(/^└ /, ""));
      cell.style.cssText = this.heads[i].style.cssText;
      if (titles[i]) cell.title = titles[i];
      if (alarm && !i) cell.append(" ", element("span", "alarm", alarm));
      row.append(cell);
    });
    return row;
  }

  leave() {
    if (!this.body) return;
    this.bar.remove();
    this.more.remove();
    if (this.leftOut) this.leftOut.hidden = false;
    this.heads.forEach((head, i) => {
      head.removeAttribute("aria-sort");
      head.replaceChildren(this.texts[i]);
    });
    this.body.replaceChildren(...this.printed);
  }
}

export default () =>
  docking({
    own: ".tensornp-filter, .tensornp-sort, .tensornp-more",
    dock(model, card) {
      const sorter = new Sorter(model, card);
      return () => sorter.leave();
    },
    rendered(model, el) {
      // The kernel's own HTML, in which every name is escaped.
      el.innerHTML = model.get("table_html");
      const own = new Sorter(model, el);
      return () => own.leave();
    },
  });
