// The table of two models: sorted and searched, and each row opens both sides of a weight under it.

import { docking, inPlace } from "../page/docking.js";
import { button, element } from "../page/elements.js";
import { Stops } from "../page/stops.js";
import { partsOf } from "../table/name.js";
import { Sorter, counted } from "../table/sorter.js";
import { Opened } from "./opened.js";

class Comparison extends Sorter {
  opened;
  folded = null;
  // So are all lines.
  lineStops = new Stops(() => [...this.body.querySelectorAll("button.tensornp-opener")], ["ArrowUp", "ArrowDown"]);

  dock(card) {
    this.noun = this.model.get("noun");
    super.dock(card);
    // What is folded there is opened here.
    this.folded = card.querySelector(".tensornp-folds");
    if (this.folded) this.folded.hidden = true;
  }

  printedRows() {
    const members = this.model.get("printed");
    const printed = this.printed.map((row, i) => this.dressed((row.cloneNode(true)), members[i]));
    return [...printed, ...this.model.get("folds").map((fold) => this.foldRow(fold))];
  }

  rowOf(number) {
    return this.dressed(super.rowOf(number), [number]);
  }

  // Repeated layers stay one row, sorted by what it says: the largest of them.
  every() {
    const ofRow = (members, cells, made) => ({
      data: { cells, numbers: this.heads.map((_, column) => this.largest(members, column)) },
      row: () => this.dressed(made(), members),
    });
    const printed = this.model.get("printed").map((members, i) => {
      const cells = [...this.printed[i].cells].map((cell) => cell.textContent ?? "");
      return ofRow(members, cells, () => (this.printed[i].cloneNode(true)));
    });
    const folded = this.model.get("folds").map(({ rows, members }) =>
      rows.map((data, i) => ofRow(members[i], data.cells, () => this.rowFrom(data))));
    return [...printed, ...folded.flat()];
  }

  largest(members, column) {
    const known = members.map((number) => this.rows[number].numbers[column]).filter((one) => typeof one === "number");
    return known.length ? Math.max(...known) : null;
  }

  // Of repeated layers, which are one row, the odd one or the first is opened, and leads to the others.
  dressed(row, members) {
    const cell = row.cells[0];
    if (!cell || !members.length) return row;
    const alarm = cell.querySelector("span");
    alarm?.remove();
    const others = members.length > 1 ? `, the first of ${members.length.toLocaleString("en")}` : "";
    const title = `Show both sides of ${this.nameOf(members[0])}${others}`;
    const opener = button("", title, () => this.toggle(row, opener, members), "sort tensornp-opener");
    opener.setAttribute("aria-expanded", "false");
    opener.addEventListener("focus", () => this.lineStops.at(opener));
    opener.append(...partsOf(cell.textContent.trim()));
    cell.replaceChildren(opener, ...(alarm ? [" ", alarm] : []));
    // All of the line lights up; who selects figures of it does not press.
    row.addEventListener("click", ({ target }) => {
      const isPressed = !(target instanceof Element && target.closest("button, a")) && document.getSelection()?.isCollapsed;
      if (isPressed) this.toggle(row, opener, members);
    });
    return row;
  }

  nameOf(number) {
    const { titles, cells } = this.rows[number];
    return titles[0] || cells[0];
  }

  // A line of what is not printed, which opens under it.
  foldRow({ said, rows, members, rest }) {
    const row = this.wideRow();
    let below = [];
    const opener = button(said, "Show them, or fold them again", () => {
      const isOpen = below.length > 0;
      opener.setAttribute("aria-expanded", String(!isOpen));
      if (below.some((one) => one.contains(this.opened?.opener ?? null))) this.close();
      below.forEach((one) => one.remove());
      below = isOpen ? [] : rows.map((data, i) => this.dressed(this.rowFrom(data), members[i]));
      if (below.length && rest) below.push(this.wideRow(rest));
      row.after(...below);
      this.lineStops.at(opener);
    }, "sort tensornp-opener tensornp-fold");
    opener.setAttribute("aria-expanded", "false");
    opener.addEventListener("focus", () => this.lineStops.at(opener));
    row.cells[0].append(opener);
    return row;
  }

  wideRow(text = "") {
    const row = element("tr", "wide-row");
    const cell = element("td", "", text);
    cell.colSpan = this.heads.length;
    row.append(cell);
    return row;
  }

  // Lines beyond the first are not printed, and of what is left out no row is here.
  printedPart(numLines) {
    const [num, equal] = [this.model.get("num_printed"), this.model.get("num_equal")];
    const all = this.rows.length + this.numLeftOut - equal;
    const part = num === all ? "" : `${num.toLocaleString("en")} of `;
    const same = equal ? `, ${equal.toLocaleString("en")} more equal` : "";
    return `${part}${counted(all, this.noun)} in ${counted(numLines, "line")}${same}`;
  }

  tell(num, isPrinted) {
    if (isPrinted || this.fits) super.tell(num, isPrinted);
    else this.say(`${counted(this.rows.length, this.noun)} in ${counted(num, "line")}`);
  }

  // What is too much to be sorted is said below it.
  paint() {
    this.close();
    super.paint();
    this.lineStops.at();
    if (this.fits || this.order === "none") return;
    for (const { rest } of this.model.get("folds")) if (rest) this.body.append(this.wideRow(rest));
  }

  toggle(row, opener, members) {
    const isOpen = this.opened?.opener === opener;
    // What was open above it is gone.
    inPlace(row, () => this.close());
    if (isOpen) return;
    const node = element("tr", "pair-row");
    const cell = element("td");
    cell.colSpan = this.heads.length;
    node.append(cell);
    row.after(node);
    row.classList.add("tensornp-opened");
    opener.setAttribute("aria-expanded", "true");
    const closed = () => {
      this.close();
      opener.focus({ preventScroll: true });
    };
    const pair = new Opened(this.ask, members, (number) => this.nameOf(number), closed);
    this.opened = { pair, node, opener };
    cell.append(pair.root);
    pair.begin();
  }

  close() {
    if (!this.opened) return;
    const { pair, node, opener } = this.opened;
    this.opened = undefined;
    pair.leave();
    node.remove();
    opener.setAttribute("aria-expanded", "false");
    opener.closest("tr")?.classList.remove("tensornp-opened");
  }

  key(event) {
    if (this.opened?.pair.root.contains(event.target)) return this.keyInPair(event);
    if (event.altKey || event.ctrlKey || event.metaKey) return false;
    const [lines, heads] = [this.lineStops, this.headStops];
    const isUp = event.key === "ArrowUp" && event.target === lines.all()[0];
    const isDown = event.key === "ArrowDown" && heads.all().includes(event.target);
    if (isUp) heads.now()?.focus();
    else if (isDown) lines.now()?.focus();
    else return super.key(event) || lines.key(event);
    return true;
  }

  keyInPair(event) {
    if (this.opened.pair.key(event)) return true;
    if (event.key !== "Escape") return false;
    const { opener } = this.opened;
    this.close();
    opener.focus({ preventScroll: true });
    return true;
  }

  reread() {
    this.opened?.pair.navigator?.again();
  }

  die() {
    this.opened?.pair.navigator?.die();
  }

  leave() {
    this.close();
    if (this.folded) this.folded.hidden = false;
    super.leave();
  }
}

export default () => docking(Comparison);
