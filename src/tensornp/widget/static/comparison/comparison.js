// The table of two models: sorted and searched, and each row opens a window on both sides of a weight under it.

import { Navigator } from "../navigator/navigator.js";
import { docking, inPlace } from "../page/docking.js";
import { button, element } from "../page/elements.js";
import { Stops } from "../page/stops.js";
import { Sorter } from "../table/sorter.js";

const PAIR = `<td><section class="tensornp-opened-pair tensornp-live"><div class="tensornp-controls">
  <span class="tensornp-pair-name"></span>
  <span class="tensornp-said tensornp-error" role="alert"></span></div></section></td>`;

class Comparison extends Sorter {
  lineStops = new Stops(() => [...this.body.querySelectorAll("button.tensornp-opener")], ["ArrowUp", "ArrowDown"]);

  // Repeated layers are one row, which opens the one that changed most.
  printedRows() {
    const numbers = this.model.get("printed");
    this.lines ??= this.printed.map((row, i) => this.dressed(row.cloneNode(true), numbers[i]));
    return this.lines;
  }

  every() {
    if (!this.all) super.every().forEach((row, i) => this.dressed(row, i));
    return this.all;
  }

  // The name becomes a button, and the whole row opens, unless the user selects text in it.
  dressed(row, number) {
    const cell = row.cells[0];
    const alarm = cell.querySelector("span");
    alarm?.remove();
    const name = cell.textContent.trim();
    const opener = button("", `Show both sides of ${name}`, () => this.toggle(row, opener, number), "sort tensornp-opener");
    opener.setAttribute("aria-expanded", "false");
    opener.addEventListener("focus", () => this.lineStops.at(opener));
    opener.append(...cell.childNodes);
    cell.replaceChildren(opener, ...(alarm ? [" ", alarm] : []));
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

  async toggle(row, opener, number) {
    const isOpen = this.opened?.opener === opener;
    // A panel above it disappears.
    inPlace(row, () => this.close());
    if (isOpen) return;
    const node = element("tr", "pair-row");
    node.innerHTML = PAIR;
    node.firstChild.colSpan = this.heads.length;
    const section = node.querySelector("section");
    const [name, status] = section.firstElementChild.children;
    const opened = (this.opened = { node, opener });
    row.after(node);
    row.classList.add("tensornp-opened");
    opener.setAttribute("aria-expanded", "true");
    const content = await this.ask({ type: "values", row: number });
    if (this.opened !== opened) return;
    name.textContent = content.label ?? opener.textContent;
    name.title = content.title ?? "";
    section.setAttribute("aria-label", `Both sides of ${name.textContent}`);
    status.textContent = content.text ?? "";
    if (content.type === "error") return;
    opened.navigator = new Navigator(this.ask, content, {
      closed: () => this.closeToRow(),
      seen: () => section.scrollIntoView({ block: "nearest" }),
    });
    section.append(opened.navigator.root);
  }

  closeToRow() {
    const { opener } = this.opened;
    this.close();
    opener.focus({ preventScroll: true });
  }

  close() {
    if (!this.opened) return;
    const { navigator, node, opener } = this.opened;
    this.opened = undefined;
    navigator?.leave();
    node.remove();
    opener.setAttribute("aria-expanded", "false");
    opener.closest("tr").classList.remove("tensornp-opened");
  }

  key(event) {
    const { key, target } = event;
    if (this.opened?.node.contains(target)) return this.keyInside(event);
    if (event.altKey || event.ctrlKey || event.metaKey) return false;
    const [lines, heads] = [this.lineStops, this.headStops];
    if (key === "ArrowUp" && target === lines.all()[0]) heads.now()?.focus();
    else if (key === "ArrowDown" && heads.all().includes(target)) lines.now()?.focus();
    else return super.key(event) || lines.key(event);
    return true;
  }

  keyInside(event) {
    if (this.opened.navigator?.key(event)) return true;
    if (event.key !== "Escape") return false;
    this.closeToRow();
    return true;
  }

  reread() {
    this.opened?.navigator?.again();
  }

  die() {
    if (this.opened?.navigator) this.opened.navigator.dead = true;
  }

  leave() {
    this.close();
    super.leave();
  }
}

export default () => docking(Comparison);
