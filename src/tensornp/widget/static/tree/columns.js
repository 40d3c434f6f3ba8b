// Which columns are shown: what someone chooses, and beside that what there is room for, of which the browser keeps what was
// chosen before.

import { button, element, groupOf } from "../page/elements.js";

// From where on there is room for a mark beside a figure, and for words beside a name.
const MARKS_FROM_PX = 480;
// Names have this share of a page before other columns have room, if they are as long.
const SHARE_OF_NAMES = 0.45;

export class Columns {
  /** @type {Record<string, boolean>} By its name, whether a column was chosen or left out. */
  chosen;
  /** @type {Set<string>} What was chosen on this page, and is shown whatever room there is. */
  wanted = new Set();
  /** @type {Set<string>} What had no room as one was left out, and so does not come in its place. */
  passed = new Set();
  /** @type {Set<string>} */
  shown = new Set();
  width = Infinity;

  // `kept` is where the browser keeps what was chosen; `sizeOf(column)` gives the pixels of a column; `changed(name)` is
  // told that others are to be shown, and which one was chosen, if one was.
  constructor(kept, sizeOf, changed) {
    this.kept = kept;
    this.chosen = keptChoice(kept);
    this.sizeOf = sizeOf;
    this.changed = changed;
    this.button = button("Columns", "Choose what is shown of each line", () => this.open(this.list.hidden));
    this.button.hidden = true;
    this.list = groupOf("Columns");
    this.list.classList.add("tensornp-columns");
    this.rest = element("span", "said");
    this.open(false);
  }

  open(isOpen) {
    this.list.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", String(isOpen));
  }

  // Takes the width of the page, and returns whether it is another; what is out of sight has none.
  fit(width) {
    if (!width || width === this.width) return false;
    if (width > this.width) this.passed.clear();
    this.width = width;
    return true;
  }

  // Offers those that may be left out, and returns those that are shown, among them the one that lines are sorted by.
  /** @param {Column[]} all @param {string} sort */
  offer(all, sort) {
    const free = all.filter((column) => !column.isFixed);
    // A mark in its own room is more than a narrow page can give.
    const inRoom = all.map((column) => ({ ...column, hasMark: column.hasMark && this.width >= MARKS_FROM_PX }));
    const fitting = this.fitting(inRoom, sort);
    const columns = inRoom.filter(({ name }) => fitting.has(name));
    Object.assign(columns[0], { roomPx: this.roomOf(columns[0]), isNarrow: this.width < MARKS_FROM_PX });
    this.shown = fitting;
    const kind = JSON.stringify([free.map(({ name }) => name), [...fitting]]);
    this.button.hidden = free.length === 0;
    if (kind === this.kind) return columns;
    this.kind = kind;
    const names = free.map(({ name }) => name).join();
    // What was made already keeps the focus.
    if (names !== this.names) this.list.replaceChildren(...free.map((column) => this.box(column)), this.rest);
    this.names = names;
    for (const box of this.list.querySelectorAll("input")) box.checked = fitting.has(box.value);
    const left = free.filter(({ name }) => !fitting.has(name) && this.chosen[name] !== false && !this.passed.has(name));
    this.rest.textContent = left.length ? `no room for ${left.length} of these: what is chosen is shown all the same` : "";
    return columns;
  }

  // The names of what is shown in any case, and then of what there is room for, up to the first for which there is none.
  /** @param {Column[]} all @param {string} sort */
  fitting(all, sort) {
    const isForced = ({ name, isFixed }) => isFixed || name === sort || this.wanted.has(name);
    const order = ({ name, rank }) => (this.chosen[name] ? rank - all.length : rank);
    const [first] = all.filter(({ isFixed }) => !isFixed).sort((a, b) => a.rank - b.rank);
    const forced = all.filter(isForced);
    const isFree = ({ name }) => this.chosen[name] !== false && !this.passed.has(name);
    const others = all.filter((one) => !isForced(one) && isFree(one));
    // What matters most is not pushed out by what was chosen elsewhere.
    others.sort((a, b) => Number(b === first) - Number(a === first) || order(a) - order(b));
    let room = this.width - forced.reduce((sum, one) => sum + this.roomOf(one), 0);
    const fits = new Set(forced.map(({ name }) => name));
    for (const one of others) {
      room -= this.roomOf(one);
      if (room < 0) break;
      fits.add(one.name);
    }
    return fits;
  }

  roomOf(column) {
    return column.isFixed ? Math.min(this.sizeOf(column), this.width * SHARE_OF_NAMES) : this.sizeOf(column);
  }

  box({ name, heading }) {
    const label = element("label", "column");
    const box = element("input");
    box.type = "checkbox";
    box.value = name;
    box.addEventListener("change", () => {
      this.chosen = { ...this.chosen, [name]: box.checked };
      // What comes besides pushes nothing out.
      if (box.checked) this.wanted = new Set([...this.wanted, ...this.shown, name]);
      else {
        this.wanted.delete(name);
        for (const { value } of this.list.querySelectorAll("input")) if (!this.shown.has(value)) this.passed.add(value);
      }
      this.passed.delete(name);
      keep(this.kept, this.chosen);
      this.changed(box.checked ? name : "");
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
function keptChoice(place) {
  try {
    const kept = Object.entries(JSON.parse(localStorage.getItem(place) ?? "{}"));
    return Object.fromEntries(kept.filter(([, isShown]) => typeof isShown === "boolean"));
  } catch {
    return {};
  }
}

function keep(place, chosen) {
  try {
    localStorage.setItem(place, JSON.stringify(chosen));
  } catch {
    // It is kept as long as the page, then.
  }
}
