// Makes a static table sortable and searchable: adds buttons to the headings and a search over it, and takes both away
// again when it leaves. Both see all rows that the kernel has rendered, not only those that are printed.

import { latest } from "../page/ask.js";
import { button, element, tell } from "../page/elements.js";
import { Stops } from "../page/stops.js";

const ARROWS = { ascending: " ▲", descending: " ▼", none: "" };
const WINDOW = 200;

export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export class Sorter {
  order = "none";
  column = 0;
  limit = WINDOW;
  // All headings are one stop of the Tab key.
  headStops = new Stops(() => this.heads.map((head) => head.firstElementChild), ["ArrowLeft", "ArrowRight"]);

  constructor(model, ask) {
    this.model = model;
    this.ask = ask;
    this.find = latest(() => this.fetch());
  }

  dock(card) {
    this.root = card;
    // Where outputs are kept apart, the table is in another one.
    if (!card.querySelector("table")) card.innerHTML = this.model.get("table_html");
    this.table = card.querySelector("table");
    this.body = this.table.tBodies[0];
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

  // Returns whether the key was used.
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
    tell(this.status, text);
  }

  die() {}

  // --- what is shown

  // Of numbers, the largest come first.
  sort(column) {
    const isNumber = this.every().some((row) => row.cells[column].dataset.n);
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

  // Every row, made of the kernel's HTML when it is first asked for.
  every() {
    if (!this.all) {
      const made = document.createElement("tbody");
      made.innerHTML = this.model.get("rows");
      this.all = [...made.rows];
    }
    return this.all;
  }

  // As long as nobody asks for anything else, the rows that were printed stand.
  paint() {
    const isPrinted = !this.fits && this.order === "none";
    const all = isPrinted ? this.printedRows() : this.sorted(this.fits?.map((i) => this.every()[i]) ?? this.every());
    const shown = isPrinted ? all : all.slice(0, this.limit);
    this.body.replaceChildren(...shown);
    const numHidden = all.length - shown.length;
    this.more.hidden = !numHidden;
    this.more.textContent = `${counted(Math.min(numHidden, WINDOW), "row")} more of ${all.length.toLocaleString("en")}`;
    if (this.leftOut) this.leftOut.hidden = !isPrinted;
    this.tell(all.length, isPrinted);
  }

  // A printed line may be of several, and not all have one.
  tell(num, isPrinted) {
    const [numRows, left] = [this.model.get("num_rows"), this.model.get("num_left_out")];
    const all = counted(numRows, this.model.get("noun"));
    const part = isPrinted ? `${counted(num, "line")} of ${all}` : `${num.toLocaleString("en")} of ${all}`;
    const unsearched = left ? `; ${left.toLocaleString("en")} more were not searched` : "";
    this.say((num === numRows ? all : part) + unsearched);
  }

  printedRows() {
    return this.printed;
  }

  leave() {
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
