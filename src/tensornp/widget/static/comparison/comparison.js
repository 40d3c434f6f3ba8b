// The table of two models: sorted and searched, and each row opens both sides of a weight under it.

import { docking, inPlace } from "../page/docking.js";
import { button, element } from "../page/elements.js";
import { Stops } from "../page/stops.js";
import { Sorter } from "../table/sorter.js";
import { Opened } from "./opened.js";

class Comparison extends Sorter {
  // So are all lines.
  lineStops = new Stops(() => [...this.body.querySelectorAll("button.tensornp-opener")], ["ArrowUp", "ArrowDown"]);

  // Of repeated layers, which are one row, the odd one or the first is opened, and leads to the others.
  printedRows() {
    const members = this.model.get("printed");
    this.lines ??= this.printed.map((row, i) => this.dressed(row.cloneNode(true), members[i]));
    return this.lines;
  }

  every() {
    if (!this.all) super.every().forEach((row, i) => this.dressed(row, [i]));
    return this.all;
  }

  dressed(row, members) {
    const cell = row.cells[0];
    if (!members?.length) return row;
    const alarm = cell.querySelector("span");
    alarm?.remove();
    const name = cell.title || cell.textContent.trim();
    const opener = button("", `Show both sides of ${name}`, () => this.toggle(row, opener, name, members), "sort tensornp-opener");
    opener.setAttribute("aria-expanded", "false");
    opener.addEventListener("focus", () => this.lineStops.at(opener));
    opener.append(...cell.childNodes);
    cell.replaceChildren(opener, ...(alarm ? [" ", alarm] : []));
    // All of the line lights up; who selects figures of it does not press.
    row.addEventListener("click", ({ target }) => {
      if (!target.closest("button, a") && document.getSelection()?.isCollapsed) opener.click();
    });
    return row;
  }

  paint() {
    this.close();
    super.paint();
    this.lineStops.at();
  }

  toggle(row, opener, name, members) {
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
    const pair = new Opened(this.ask, members, name, () => this.closeToRow());
    this.opened = { pair, node, opener };
    cell.append(pair.root);
    pair.begin();
  }

  closeToRow() {
    const { opener } = this.opened;
    this.close();
    opener.focus({ preventScroll: true });
  }

  close() {
    if (!this.opened) return;
    const { pair, node, opener } = this.opened;
    this.opened = undefined;
    pair.leave();
    node.remove();
    opener.setAttribute("aria-expanded", "false");
    opener.closest("tr").classList.remove("tensornp-opened");
  }

  key(event) {
    if (this.opened?.pair.root.contains(event.target)) {
      if (this.opened.pair.key(event)) return true;
      if (event.key === "Escape") this.closeToRow();
      return event.key === "Escape";
    }
    if (event.altKey || event.ctrlKey || event.metaKey) return false;
    const [lines, heads] = [this.lineStops, this.headStops];
    const isUp = event.key === "ArrowUp" && event.target === lines.all()[0];
    const isDown = event.key === "ArrowDown" && heads.all().includes(event.target);
    if (isUp) heads.now()?.focus();
    else if (isDown) lines.now()?.focus();
    else return super.key(event) || lines.key(event);
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
    super.leave();
  }
}

export default () => docking(Comparison);
