// Makes a static table sortable and searchable: adds buttons to the headings and a filter over it, and takes both away
// again when it leaves. Both see all rows that the kernel has sent, not only those that are printed.

import { latest } from "../page/ask.js";
import { button, element, tell } from "../page/elements.js";
import { Stops } from "../page/stops.js";
import { partsOf } from "./name.js";

const ARROWS = { ascending: " ▲", descending: " ▼", none: "" };
const WINDOW = 200;

function plainName(row) {
  return row.cells[0].replace(/^└ /, "");
}

export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}


export class Sorter {
  // What each row is of.
  noun = "name";
  root;
  table;
  body;
  leftOut;
  heads;
  // All headings are one stop of the Tab key.
  headStops = new Stops(() => this.heads.map((head) => head.firstElementChild), ["ArrowLeft", "ArrowRight"]);
  texts;
  rows;
  printed;
  order = "none";
  fits;
  column = 0;
  limit = WINDOW;

  constructor(model, ask) {
    this.model = model;
    this.ask = ask;
    this.find = latest(() => this.fetch());
  }

  dock(card) {
    this.root = card;
    // The kernel's own HTML, in which every name is escaped: where outputs are kept apart, the table is in another one.
    if (!card.querySelector("table")) card.innerHTML = this.model.get("table_html") ?? "";
    this.table = card.querySelector("table");
    this.body = this.table?.tBodies[0];
    if (!this.body) return;
    this.rows = this.model.get("rows");
    this.numLeftOut = this.model.get("num_left_out");
    this.printed = [...this.body.rows];
    this.leftOut = card.querySelector(".tensornp-left-out");
    this.heads = [...this.table.tHead.rows[0].cells];
    this.texts = this.heads.map((head) => head.textContent);
    this.heads.forEach((head, column) => this.addButton(head, column));
    this.table.tHead.addEventListener("focusin", this.entered);
    this.headStops.at();
    this.addBar();
    this.paint();
  }

  addButton(head, column) {
    const title = "Sort all rows; a third press gives the first order again";
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button(this.texts[column], title, () => this.sort(column), "sort"));
  }

  addBar() {
    this.bar = element("div", "filter-bar");
    this.filter = element("input", "filter");
    this.filter.type = "search";
    this.filter.placeholder = "words, *glob* or /regex/";
    this.filter.title = "Search the names: words that all fit, globs, or a regular expression between slashes";
    this.filter.setAttribute("aria-label", "Search the names");
    this.filter.addEventListener("input", () => this.search());
    this.status = element("span", "found");
    this.status.setAttribute("aria-live", "polite");
    this.bar.append(this.filter, this.status);
    this.table.before(this.bar);
    this.more = button("", "", () => {
      this.limit += WINDOW;
      this.paint();
    }, "more");
    this.table.after(this.more);
  }

  entered = ({ target }) => this.headStops.at(target);

  key(event) {
    return !event.altKey && !event.ctrlKey && !event.metaKey && this.headStops.key(event);
  }

  // --- what is looked for

  search() {
    this.limit = WINDOW;
    if (this.filter.value.trim()) {
      this.find();
      return;
    }
    this.fits = undefined;
    this.paint();
  }

  async fetch() {
    const { found, text } = await this.ask({ type: "search", text: this.filter.value.trim() });
    // What was emptied meanwhile looks for nothing.
    if (!this.filter.value.trim()) return;
    this.fits = found ?? this.fits;
    this.paint();
    if (text) this.say(text);
  }

  say(text) {
    if (this.body) tell(this.status, text);
  }

  die() {}

  // --- what is shown

  // Of numbers, the largest come first.
  sort(column) {
    const isNumber = this.rows.some((row) => typeof row.numbers[column] === "number");
    const cycle = isNumber ? ["none", "descending", "ascending"] : ["none", "ascending", "descending"];
    this.order = cycle[column === this.column ? (cycle.indexOf(this.order) + 1) % cycle.length : 1];
    this.column = column;
    this.limit = WINDOW;
    this.heads.forEach((head, i) => {
      const order = i === column ? this.order : "none";
      head.setAttribute("aria-sort", order);
      head.firstElementChild.textContent = this.texts[i] + ARROWS[order];
    });
    this.paint();
  }

  // Of what has no number, nothing comes first.
  sorted(lines) {
    const { column } = this;
    const sign = this.order === "descending" ? -1 : 1;
    const textOf = ({ data }) => (column ? data.cells[column] : plainName(data));
    return lines.sort((i, j) => {
      const [a, b] = [i.data.numbers[column], j.data.numbers[column]];
      if (typeof a === "number" && typeof b === "number") return sign * (a - b);
      if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? -1 : 1;
      return sign * textOf(i).localeCompare(textOf(j), undefined, { numeric: true });
    });
  }

  // What is sorted where nothing is looked for.
  every() {
    return this.rows.map((_, number) => this.lineOf(number));
  }

  lineOf(number) {
    return { data: this.rows[number], row: () => this.rowOf(number) };
  }

  // As long as nobody asks for anything else, the rows that were printed stand.
  paint() {
    const isPrinted = !this.fits && this.order === "none";
    const found = this.fits ? this.fits.map((number) => this.lineOf(number)) : this.every();
    if (this.order !== "none") this.sorted(found);
    const shown = isPrinted ? this.printedRows() : found.slice(0, this.limit).map((line) => line.row());
    this.body.replaceChildren(...shown);
    const numHidden = isPrinted ? 0 : found.length - shown.length;
    this.more.hidden = !numHidden;
    this.more.textContent = `${counted(Math.min(numHidden, WINDOW), "row")} more of ${found.length.toLocaleString("en")}`;
    if (this.leftOut) this.leftOut.hidden = !isPrinted;
    this.tell(isPrinted ? this.printed.length : found.length, isPrinted);
  }

  // A printed line may be of several, and not all have one.
  tell(num, isPrinted) {
    const all = counted(this.rows.length, this.noun);
    const unsearched = this.numLeftOut ? `; ${this.numLeftOut.toLocaleString("en")} more were not searched` : "";
    const part = isPrinted ? this.printedPart(num) : `${num.toLocaleString("en")} of ${all}`;
    this.say((num === this.rows.length ? all : part) + unsearched);
  }

  printedPart(numLines) {
    return `${counted(numLines, "line")} of ${counted(this.rows.length, this.noun)}`;
  }

  printedRows() {
    return this.printed;
  }

  rowOf(number) {
    return this.rowFrom(this.rows[number]);
  }

  rowFrom({ cells, titles, begins, alarm }) {
    const row = element("tr", begins && this.order === "none" ? "begins" : "");
    cells.forEach((text, i) => {
      const cell = element(i ? "td" : "th");
      cell.append(...partsOf(i || this.order === "none" ? text : text.replace(/^└ /, "")));
      cell.className = this.heads[i].className;
      cell.style.cssText = this.heads[i].style.cssText;
      if (!i) Object.assign(cell, { scope: "row" }).style.fontWeight = "400";
      if (titles[i]) cell.title = titles[i];
      if (alarm && !i) {
        cell.append(" ", element("span", "alarm", alarm));
        cell.style.whiteSpace = "normal";
      }
      row.append(cell);
    });
    return row;
  }

  leave() {
    if (!this.body) return;
    this.table.tHead.removeEventListener("focusin", this.entered);
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
