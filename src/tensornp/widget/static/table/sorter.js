// Makes a static table sortable and searchable. Both see all rows that the kernel has rendered, not only the printed ones.

import { latest } from "../page/ask.js";
import { button, element, tell } from "../page/elements.js";
import { Stops } from "../page/stops.js";

const ARROWS = { ascending: " ▲", descending: " ▼", none: "" };
const MAX_ROWS = 200;
const BAR = `<input type="search" class="tensornp-filter" placeholder="words, *glob* or /regex/" aria-label="Search the names"
  title="Search the names: words that all fit, globs, or a regular expression between slashes">
<span class="tensornp-found" aria-live="polite"></span>`;

const numbered = (count) => count.toLocaleString("en");

export class Sorter {
  order = "none";
  column = 0;
  headStops = new Stops(() => this.heads.map((head) => head.firstElementChild), ["ArrowLeft", "ArrowRight"]);

  constructor(model, ask) {
    this.model = model;
    this.ask = ask;
    this.find = latest(() => this.fetch());
  }

  dock(card) {
    this.root = card;
    this.table = card.querySelector("details table") ?? card.querySelector("table");
    this.body = this.table.tBodies[0];
    this.printed = [...this.body.rows];
    this.leftOut = card.querySelector(".tensornp-left-out");
    this.heads = [...this.table.tHead.rows[0].cells];
    this.texts = this.heads.map((head) => head.textContent);
    const title = "Sort all rows; a third press gives the first order again";
    this.heads.forEach((head, column) => {
      head.ariaSort = "none";
      head.replaceChildren(button(this.texts[column], title, () => this.sort(column), "sort"));
      head.firstElementChild.addEventListener("focus", ({ target }) => this.headStops.at(target));
    });
    this.headStops.at();
    this.bar = element("div", "filter-bar");
    this.bar.innerHTML = BAR;
    [this.filter, this.status] = this.bar.children;
    this.filter.addEventListener("input", () => this.find());
    this.table.before(this.bar);
    this.paint();
  }

  key(event) {
    return !event.altKey && !event.ctrlKey && !event.metaKey && this.headStops.key(event);
  }

  async fetch() {
    const text = this.filter.value.trim();
    const answer = text ? await this.ask({ type: "search", text }) : {};
    // An invalid expression keeps the rows.
    this.fits = text ? (answer.found ?? this.fits) : undefined;
    this.paint();
    if (answer.text) this.say(answer);
  }

  say({ text }) {
    tell(this.status, text);
  }

  die() {}

  sort(column) {
    const isNumber = this.every().some((row) => row.cells[column].dataset.n);
    const cycle = isNumber ? ["none", "descending", "ascending"] : ["none", "ascending", "descending"];
    this.order = cycle[column === this.column ? (cycle.indexOf(this.order) + 1) % cycle.length : 1];
    this.column = column;
    this.heads.forEach((head, i) => {
      head.ariaSort = i === column ? this.order : "none";
      head.firstElementChild.textContent = this.texts[i] + ARROWS[head.ariaSort];
    });
    this.paint();
  }

  // Cells without a number come last.
  sorted(rows) {
    if (this.order === "none") return rows;
    const sign = this.order === "descending" ? -1 : 1;
    const cellOf = (row) => row.cells[this.column];
    return [...rows].sort((i, j) => {
      const [a, b] = [cellOf(i).dataset.n, cellOf(j).dataset.n];
      if (a && b) return sign * (Number(a) - Number(b));
      if (a || b) return a ? -1 : 1;
      return sign * cellOf(i).textContent.localeCompare(cellOf(j).textContent, undefined, { numeric: true });
    });
  }

  // Every row, made of the kernel's HTML at the first call.
  every() {
    if (!this.all) {
      const made = document.createElement("tbody");
      made.innerHTML = this.model.get("rows");
      this.all = [...made.rows];
    }
    return this.all;
  }

  // The printed rows stand until something is searched or sorted.
  paint() {
    const isPrinted = !this.fits && this.order === "none";
    const all = isPrinted ? this.printedRows() : this.sorted(this.fits?.map((i) => this.every()[i]) ?? this.every());
    const shown = isPrinted ? all : all.slice(0, MAX_ROWS);
    this.body.replaceChildren(...shown);
    if (all.length > shown.length) {
      const rest = this.body.insertRow().insertCell();
      rest.colSpan = this.heads.length;
      rest.textContent = `… ${numbered(all.length - shown.length)} more; search for them`;
    }
    if (this.leftOut) this.leftOut.hidden = !isPrinted;
    const left = this.model.get("num_left_out");
    const unsearched = left ? `; ${numbered(left)} more were not searched` : "";
    this.say({ text: isPrinted ? "" : `${numbered(all.length)} of ${numbered(this.every().length)}${unsearched}` });
  }

  printedRows() {
    return this.printed;
  }

  leave() {
    this.bar.remove();
    if (this.leftOut) this.leftOut.hidden = false;
    this.heads.forEach((head, i) => {
      head.ariaSort = null;
      head.replaceChildren(this.texts[i]);
    });
    this.body.replaceChildren(...this.printed);
  }
}
