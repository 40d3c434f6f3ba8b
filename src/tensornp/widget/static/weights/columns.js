// Which columns are shown: what someone has chosen, kept by the browser, or else what there is room for.

import { button, element, groupOf } from "../page/elements.js";

const KEPT = "tensornp.columns";
const MARKS_FROM_PX = 480;

export class Columns {
  /** @type {Record<string, boolean>} By its name, whether a column was chosen or left out. */
  chosen = keptChoice();
  width = Infinity;

  // `changed()` is told that others are to be shown.
  constructor(changed) {
    this.changed = changed;
    this.button = button("Columns", "Choose what is shown of each weight", () => this.open(this.list.hidden));
    this.button.hidden = true;
    this.list = groupOf("Columns");
    this.list.classList.add("tensornp-columns");
    this.open(false);
  }

  open(isOpen) {
    this.list.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", String(isOpen));
  }

  // Takes the width of the page, and returns whether it is another; what is out of sight has none.
  fit(width) {
    if (!width || width === this.width) return false;
    this.width = width;
    return true;
  }

  // Offers those that may be left out, and returns those that are shown, among them the one that lines are sorted by.
  /** @param {Column[]} all @param {string} sort */
  offer(all, sort) {
    const free = all.filter((column) => !column.isFixed);
    const isShown = ({ name, isFixed, minWidth }) => isFixed || name === sort || (this.chosen[name] ?? this.width >= minWidth);
    // A mark in its own room is more than a narrow page can give.
    const inRoom = (column) => ({ ...column, hasMark: column.hasMark && this.width >= MARKS_FROM_PX });
    const columns = all.filter(isShown).map(inRoom);
    const shown = new Set(columns.map(({ name }) => name));
    const kind = JSON.stringify([free.map(({ name }) => name), [...shown]]);
    this.button.hidden = free.length === 0;
    if (kind === this.kind) return columns;
    this.kind = kind;
    const names = free.map(({ name }) => name).join();
    // What was made already keeps the focus.
    if (names !== this.names) this.list.replaceChildren(...free.map((column) => this.box(column)));
    this.names = names;
    for (const box of this.list.querySelectorAll("input")) box.checked = shown.has(box.value);
    return columns;
  }

  box({ name, heading }) {
    const label = element("label", "column");
    const box = element("input");
    box.type = "checkbox";
    box.value = name;
    box.addEventListener("change", () => {
      this.chosen = { ...this.chosen, [name]: box.checked };
      keep(this.chosen);
      this.changed();
    });
    label.append(box, document.createTextNode(heading));
    return label;
  }

  // Returns whether it was open, and is closed now, with the focus on what opens it.
  close() {
    if (this.list.hidden) return false;
    this.open(false);
    this.button.focus();
    return true;
  }
}

// A page may have no storage, or another's words in it.
function keptChoice() {
  try {
    const kept = Object.entries(JSON.parse(localStorage.getItem(KEPT) ?? "{}"));
    return Object.fromEntries(kept.filter(([, isShown]) => typeof isShown === "boolean"));
  } catch {
    return {};
  }
}

function keep(chosen) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(chosen));
  } catch {
    // It is kept as long as the page, then.
  }
}
