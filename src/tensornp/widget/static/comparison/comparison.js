// The table of two models: sorted and searched, and each row opens both sides of a weight under it.

import { dockingEach } from "../page/docking.js";
import { button, element } from "../page/elements.js";
import { inPlace } from "../page/in_place.js";
import { partsOf } from "../table/name.js";
import { OWN, Sorter, counted } from "../table/sorter.js";
import { Pair } from "./pair.js";

class Comparison extends Sorter {
  noun = "weight";

  /** @type {{ pair: Pair, node: HTMLElement, opener: HTMLElement } | undefined} */
  opened;

  // Of repeated layers, which are one row here, the one that comes first is opened.
  printedRows() {
    const leads = this.model.get("printed");
    return this.printed.map((row, i) => this.dressed(/** @type {HTMLTableRowElement} */ (row.cloneNode(true)), leads[i]));
  }

  rowOf(number) {
    return this.dressed(super.rowOf(number), number);
  }

  dressed(row, number) {
    const cell = row.cells[0];
    if (!cell) return row;
    const alarm = cell.querySelector("span");
    alarm?.remove();
    const { titles, cells } = this.rows[number];
    const title = `Show both sides of ${titles[0] || cells[0]}`;
    const opener = button("", title, () => this.toggle(row, opener, number), "sort tensornp-opener");
    opener.setAttribute("aria-expanded", "false");
    opener.append(...partsOf(cell.textContent.trim()));
    cell.replaceChildren(opener, ...(alarm ? [" ", alarm] : []));
    return row;
  }

  // Lines beyond the first are not printed, and of what is left out no row is here.
  printedPart(numLines) {
    const [num, all] = [this.model.get("num_printed"), this.rows.length + this.numLeftOut];
    const part = num === all ? "" : `${num.toLocaleString("en")} of `;
    return `${part}${counted(all, this.noun)} in ${counted(numLines, "line")}`;
  }

  paint() {
    this.close();
    super.paint();
  }

  toggle(row, opener, number) {
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
    const pair = new Pair(this.model, number, () => {
      this.close();
      opener.focus({ preventScroll: true });
    });
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
    return this.opened?.pair.root.contains(event.target) ? this.opened.pair.key(event) : false;
  }

  die() {
    super.die();
    this.opened?.pair.die();
  }

  leave() {
    this.close();
    super.leave();
  }
}

export default () => dockingEach(Comparison, `${OWN}, .tensornp-pair`);
