// The lines of a tree, of which the page has those that are seen: headings that sort, and one row a line.

import { button, element, focused, nameOf, pictureOf } from "../page/elements.js";
import { Stops } from "../page/stops.js";

const NUM_LINES = 20;
// Beside a weight that is open.
const FEW_LINES = 8;
const INDENT_PX = 16;
const NARROW_INDENT_PX = 8;
// Between columns, and what a mark takes beside a figure.
const GAP_PX = 8;
const MARK_PX = 40;
// Up to how many letters a part of a name is one, and of a longer one the end that stays where the rest has no room; and
// what is left of each part.
const PART_LETTERS = 20;
const MAX_END = 14;
const FEWEST_LETTERS = 2;
// What a name keeps in any case beside what is said of it.
const NAME_LETTERS = 10;
const NUM_DIGITS = 100;
// In words beside a name, what stays where there is no room: numbers, what is not finite, and that it is of a gradient; of
// others, so many letters.
const STAYS = /((?:\d(?:[^\s,.]|\.(?=\d))*(?: (?:NaN|[+\u2212-]?Inf)\b)?|(?:\bNaN|[+\u2212-]?\bInf)\b)|\.grad\b)/;
const FEW_LETTERS = 6;
const MIN_THUMB_PX = 20;

export class Lines {
  /** @type {SeenLines} */
  seen;
  /** @type {Column[]} */
  columns = [];
  /** @type {HTMLTableRowElement[]} */
  rows = [];
  count = NUM_LINES;

  // `unsorted` names the order of lines that nothing sorts. `sort(order)` asks for another order than `order()`, which was
  // asked for last; `act(line)` opens a line, `toggle(line)` what is below it, `seek(place)` what is not finite or odd,
  // `list(filters)` lists what these choose, `moveTo(first)` shows others from there on, and `entered(at)` is told that the
  // focus has come to a line.
  constructor({ label, unsorted }, { sort, order, act, toggle, list, seek, moveTo, entered }) {
    this.unsorted = unsorted;
    this.sort = sort;
    this.act = act;
    this.toggle = toggle;
    this.list = list;
    this.seek = seek;
    this.order = order;
    this.node = element("div", "beside");
    this.scroller = element("div", "scroller");
    this.scroller.addEventListener("scroll", () => this.paintEdges(), { passive: true });
    this.grid = element("table", "tree");
    this.grid.setAttribute("role", "treegrid");
    this.grid.setAttribute("aria-label", label);
    this.head = element("tr", "heads");
    this.head.setAttribute("aria-rowindex", "1");
    this.body = element("tbody");
    this.stops = new Stops(() => this.sorters(), ["ArrowLeft", "ArrowRight"]);
    const thead = element("thead");
    thead.append(this.head);
    this.widths = element("colgroup");
    this.grid.append(this.widths, thead, this.body);
    this.grid.addEventListener("click", ({ target }) => this.press(target));
    this.grid.addEventListener("focusin", ({ target }) => this.numberOf(target) >= 0 && entered(this.numberOf(target)));
    // It does for the mouse what keys do in the tree, and is no stop of its own.
    this.slider = element("input", "down");
    this.slider.type = "range";
    this.slider.tabIndex = -1;
    this.slider.hidden = true;
    this.slider.setAttribute("aria-label", "First line that is shown");
    this.slider.addEventListener("input", () => moveTo(Number(this.slider.value)));
    this.scroller.append(this.grid);
    const edges = ["left", "right"].map((side) => element("span", `edge tensornp-at-${side}`));
    this.node.append(this.scroller, ...edges, this.slider);
  }

  // --- painting

  // `columns` are those that are shown, names with the room that they have at least; `stop` is the line that the Tab key
  // stops at, `opened` the number of the one that is open.
  paint(seen, columns, { sort, descending }, stop, opened) {
    this.node.style.setProperty("--tensornp-names", `${columns[0].roomPx}px`);
    this.seen = seen;
    this.columns = columns;
    const { lines, total, first } = seen;
    this.grid.setAttribute("aria-rowcount", String(total + 1));
    this.paintHeads(columns, sort, descending);
    const at = Math.min(Math.max(stop, first), first + Math.max(lines.length - 1, 0));
    this.rows = lines.map((line, i) => this.row(line, first + i, at, opened));
    this.body.replaceChildren(...(lines.length ? this.rows : [this.nothing(seen, columns.length)]));
    this.paintEdges();
    this.slider.max = String(Math.max(total - this.count, 0));
    this.slider.value = String(first);
    this.slider.hidden = total <= this.count;
    // As much of it as is seen of all lines.
    const thumb = Math.max((this.slider.clientHeight * this.count) / total, MIN_THUMB_PX);
    this.slider.style.setProperty("--tensornp-thumb", `${thumb}px`);
  }

  // Seen however far across one has scrolled.
  nothing({ nothing: text, instead }, numColumns) {
    const row = element("tr");
    const cell = element("td", "nothing");
    const said = element("span", "", text);
    said.style.maxWidth = `${this.scroller.clientWidth}px`;
    if (instead) said.append(" · ", button(instead.text, "List them", () => this.list(instead.filters), "copy tensornp-link"));
    cell.colSpan = numColumns;
    cell.append(said);
    row.append(cell);
    return row;
  }

  // A shade at an edge says that there is more behind it.
  paintEdges() {
    const { scrollLeft, scrollWidth, clientWidth } = this.scroller;
    this.node.classList.toggle("tensornp-has-left", scrollLeft > 1);
    this.node.classList.toggle("tensornp-has-right", scrollLeft + clientWidth < scrollWidth - 1);
    const name = /** @type {HTMLElement | null} */ (this.head.firstElementChild);
    this.node.style.setProperty("--tensornp-left", `${name?.offsetWidth ?? 0}px`);
  }

  // The pixels of a column; what a character takes is told by some.
  sizeOf({ width, hasMark, isFixed }) {
    if (!this.characterPx) {
      const probe = element("span", "probe", "0".repeat(NUM_DIGITS));
      this.scroller.append(probe);
      this.characterPx = probe.offsetWidth / NUM_DIGITS;
      probe.remove();
    }
    // In front of a name there is a mark.
    return width * this.characterPx + GAP_PX + (hasMark ? MARK_PX : 0) + (isFixed ? INDENT_PX : 0);
  }

  // Scrolls across to a column, beside the one that lines are sorted by where there is room for both.
  showColumn(name) {
    const wanted = [this.order().sort, name].map((one) => this.columns.findIndex((column) => column.name === one));
    const [first, ...others] = /** @type {HTMLElement[]} */ ([...this.head.children]);
    // A number of which the names hide the first digits would be read as another one.
    const starts = others.map(({ offsetLeft }) => offsetLeft - first.offsetWidth);
    for (const at of wanted.filter((one) => one > 0)) {
      const { offsetLeft, offsetWidth } = others[at - 1];
      const least = Math.max(this.scroller.scrollLeft, offsetLeft + offsetWidth - this.scroller.clientWidth);
      this.scroller.scrollLeft = starts.slice(0, at).find((start) => start >= least) ?? starts[at - 1];
    }
  }

  // Columns are as wide as what they may have to say, whatever is seen of it; names have the room that these leave.
  fitColumns(columns) {
    const own = ({ width, hasMark }) => [width, GAP_PX + (hasMark ? MARK_PX : 0)];
    const sizes = columns.map((column) => (column.isFixed ? undefined : own(column)));
    const said = ([characters, pixels]) => `calc(${characters}ch + ${pixels}px)`;
    this.widths.replaceChildren(
      ...sizes.map((size) => {
        const one = element("col");
        if (size) one.style.width = said(size);
        return one;
      }),
    );
    const all = sizes.reduce(([a, b], [c, d] = [0, 0]) => [a + c, b + d], [0, 0]);
    this.node.style.setProperty("--tensornp-others", said(all));
  }

  paintHeads(columns, sort, descending) {
    const kind = JSON.stringify(columns);
    if (kind !== this.kindOfHeads) this.makeHeads(columns, kind, sort);
    // In place: what is being pressed as an answer comes must not go.
    columns.forEach(({ name, heading, rule, isLargeFirst }, i) => {
      const head = this.head.children[i];
      head.querySelector(".tensornp-arrow")?.remove();
      const sorter = head.querySelector("button");
      const isLast = name === sort && descending !== isLargeFirst;
      const press = isLast ? `Back to ${this.unsorted}` : `Sort by ${heading}`;
      if (sorter) sorter.title = rule ? `${heading} ${rule}.\n${press}` : press;
      if (name !== sort) return head.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sorter?.append(element("span", "arrow", descending ? " ▼" : " ▲"));
    });
  }

  makeHeads(columns, kind, sort) {
    this.kindOfHeads = kind;
    this.fitColumns(columns);
    const had = this.sorters().find((one) => one === focused())?.name;
    this.head.replaceChildren(
      ...columns.map((column) => {
        const head = element("th", column.isRight ? "head tensornp-right" : "head");
        head.scope = "col";
        if (!column.isSortable) head.textContent = column.heading;
        else head.append(this.sorter(column));
        return head;
      }),
    );
    this.stops.at(this.sorters().find((one) => one.name === sort));
    if (had) this.sorters().find((one) => one.name === had)?.focus();
  }

  // Ascending, descending, and as they were.
  sorter({ name, heading, isLargeFirst }) {
    const press = () => {
      // Where an answer is on its way, the next press goes on from what it will be.
      const now = this.order();
      if (now.sort !== name) this.sort({ sort: name, descending: isLargeFirst });
      else if (now.descending === isLargeFirst) this.sort({ descending: !now.descending });
      else this.sort({ sort: "", descending: false });
    };
    const node = button(heading, "", press, "sort");
    node.name = name;
    node.addEventListener("focus", () => this.stops.at(node));
    return node;
  }

  sorters() {
    return [...this.head.querySelectorAll("button")];
  }

  row(line, at, stop, opened) {
    const row = element("tr", line.branch >= 0 ? "row tensornp-branch" : "row");
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", String(at + 2));
    row.setAttribute("aria-level", String(line.level));
    row.setAttribute("aria-posinset", String(line.position));
    row.setAttribute("aria-setsize", String(line.size));
    if (line.branch >= 0) row.setAttribute("aria-expanded", String(line.open));
    row.tabIndex = at === stop ? 0 : -1;
    if (line.isQuiet) row.classList.add("tensornp-counts");
    if (line.number >= 0 && line.number === opened) row.classList.add("tensornp-opened");
    row.title = [line.wholeName, line.title].filter(Boolean).join("\n");
    const beside = this.seen.lines.filter((one) => one !== line && one.parent === line.parent).map(({ cells }) => cells.name);
    row.append(...this.columns.map((column) => this.cell(line, column, beside)));
    return row;
  }

  // `beside` are the names of the lines that are seen with it and belong to the same.
  /** @param {Line} line @param {Column} column @param {string[]} beside */
  cell(line, { name, heading, isRight, hasMark, goal, isNarrow }, beside) {
    const cell = element("td", isRight ? "right" : name);
    const text = line.cells[name] ?? "";
    const isLink = goal && text && leads(line);
    if (isLink) cell.classList.add("tensornp-leads");
    if (name === "name") {
      cell.setAttribute("role", "rowheader");
      cell.append(this.nameBox(line, text, beside, Boolean(isNarrow)));
    } else if (name === "figures") {
      if (line.picture.src) cell.append(pictureOf(line.picture));
    } else if (name === this.seen.marked && line.mark) cell.append(markOf(line.mark, hasMark), document.createTextNode(text));
    else cell.textContent = text;
    const title = isLink ? `Go to the element of the ${heading} (m)` : this.titleOf(line, name, heading || name, isRight);
    if (title) cell.title = title;
    return cell;
  }

  // What is behind a cell: all that it says in words, which may have no room, and what a picture in it is.
  titleOf(line, name, heading, isRight) {
    const said = [];
    if (line.titles[name]) said.push(`${heading} ${line.titles[name]}`);
    else if (!isRight && name !== "name") said.push(line.cells[name]);
    if (name === "figures") said.push(line.picture.alt);
    if (name === this.seen.marked && line.mark) said.push(`the bar: ${this.seen.bar}`);
    return said.filter(Boolean).join("\n");
  }

  // Where there is little room, only the number or the first word of an alarm is said; the rest is behind it.
  /** @param {Line} line @param {string} text @param {string[]} beside @param {boolean} isNarrow */
  nameBox(line, text, beside, isNarrow) {
    const box = element("div", "name-box");
    if (!this.seen.isList) {
      const mark = element("span", "mark", line.branch >= 0 ? (line.open ? "▾" : "▸") : "");
      mark.setAttribute("aria-hidden", "true");
      const indent = element("span", "indent");
      indent.style.flexBasis = `${(line.level - 1) * (isNarrow ? NARROW_INDENT_PX : INDENT_PX)}px`;
      box.append(indent, mark);
    }
    box.append(nameInParts(text, beside));
    if (line.className) box.append(nameOf("class-name", line.className));
    const said = (place) => (isNarrow ? place.short || (place.text.match(STAYS)?.[0] ?? place.text) : place.text);
    const way = line.alarm?.goal ? "show the values there" : "show it";
    if (line.alarm) box.append(this.link(line.alarm, said(line.alarm), `${line.alarm.text}: ${way} (n)`, "alarm"));
    else if (line.odd) box.append(this.link(line.odd, said(line.odd), `${line.odd.title}; show it`, "odd"));
    return box;
  }

  // What is open, by its number.
  mark(opened) {
    this.rows.forEach((row, i) => row.classList.toggle("tensornp-opened", this.seen.lines[i].number === opened));
  }

  // Has room for few lines, or for all that it may; returns whether that is another number.
  shrink(isShort) {
    const before = this.count;
    this.count = isShort ? FEW_LINES : NUM_LINES;
    return this.count !== before;
  }

  // --- where is what

  rowOf(at) {
    return this.seen && this.rows[at - this.seen.first];
  }

  rowOpened() {
    return this.rows.find((row) => row.classList.contains("tensornp-opened"));
  }

  lineOf(at) {
    return this.seen?.lines[at - this.seen.first];
  }

  // The number of the line in which a node is; -1 where it is in none.
  numberOf(node) {
    const i = this.rows.indexOf(node.closest("tbody tr"));
    return i < 0 ? -1 : this.seen.first + i;
  }

  // The line that the Tab key stops at.
  stopAt(at, before) {
    this.rowOf(before)?.setAttribute("tabindex", "-1");
    this.rowOf(at).tabIndex = 0;
  }

  press(target) {
    const at = this.numberOf(target);
    if (at < 0) return;
    const line = this.lineOf(at);
    this.rowOf(at).focus({ preventScroll: true });
    const { goal } = this.columns[target.closest("td")?.cellIndex] ?? {};
    // What can be shown itself opens below by its mark alone, and an extreme leads to where it is.
    if (line.branch >= 0 && target.closest(".tensornp-mark")) this.toggle(line);
    else if (goal && leads(line)) this.seek({ number: line.number, goal });
    else this.act(line);
  }

  // A click on what is not finite, or odd, leads to it, and is none on its line.
  link(place, text, title, kind) {
    const press = (event) => {
      event.stopPropagation();
      this.seek(place);
    };
    const node = button("", title, press, `copy tensornp-link tensornp-${kind}`);
    node.tabIndex = -1;
    // Of what is cut off, a reader hears all.
    if (text !== place.text) node.setAttribute("aria-label", place.text);
    // What gives way to a name keeps its numbers.
    const said = text.split(STAYS).filter(Boolean);
    node.append(...said.map((one) => element("span", STAYS.test(one) ? "stays" : "words", one)));
    const room = (one) => (STAYS.test(one) ? one.length : FEWEST_LETTERS);
    const least = said.some((one) => STAYS.test(one)) ? said.reduce((sum, one) => sum + room(one), 0) : FEW_LETTERS;
    node.style.minWidth = `calc(${Math.min(least, text.length)}ch + 8px)`;
    return node;
  }

  // Columns that are out of sight on a narrow page.
  shift(by) {
    this.scroller.scrollBy({ left: (by * this.scroller.clientWidth) / 2 });
  }

  // Returns whether the key was used among the headings; `down` leads to the lines.
  keyInHead(event, down) {
    if (event.key === "ArrowDown") down();
    else return this.stops.key(event) || event.key === "ArrowUp";
    return true;
  }
}

// Whether a figure of a line is that of one weight, among whose values it is.
function leads(line) {
  return line.number >= 0;
}

// Where a figure lies among those of all: a dot, or how far those of several go. It stands beside it where there is
// room, else under it.
function markOf([from, to], hasRoom) {
  const mark = element("span", hasRoom ? "scale" : "scale tensornp-under");
  mark.setAttribute("aria-hidden", "true");
  const dot = element("span", "dot");
  dot.style.left = `${100 * from}%`;
  dot.style.width = `${100 * (to - from)}%`;
  mark.append(dot);
  return mark;
}

// A name in parts, of which those give way that do not tell it from the lines beside it: numbers do, its end unless all end
// so, and the first key in which it differs from any of them.
/** @param {string} text @param {string[]} beside */
function nameInParts(text, beside) {
  // What is short is one part, also for whoever copies it.
  const keys = text.length > PART_LETTERS ? keysOf(text) : [text];
  const others = beside.map(keysOf);
  const firsts = new Set(others.map((other) => keys.findIndex((key, i) => key !== other[i])));
  const isEndAlike = others.length > 0 && others.every((other) => other.at(-1) === keys.at(-1));
  const last = keys.length - (isEndAlike ? 0 : 1);
  /** @type {[string, string][]} Parts, with what they do where there is no room. */
  const parts = [];
  keys.forEach((key, i) => {
    const said = i ? `.${key}` : key;
    const before = parts.at(-1);
    if (keys.length > 1 && /^\d+$|[{]/.test(key)) parts.push([said, "stays"]);
    else if (i < last && keys.length > 1 && !firsts.has(i)) {
      if (before?.[1] === "alike") before[0] += said;
      else parts.push([said, "alike"]);
    } else if (said.length <= PART_LETTERS) parts.push([said, "differs"]);
    else {
      // Parted at a word where there is one.
      const at = said.length - MAX_END + Math.max(said.slice(-MAX_END).indexOf("_"), 0);
      parts.push([said.slice(0, at), "alike"], [said.slice(at), "differs"]);
    }
  });
  const node = nameOf("name-text", "");
  node.style.minWidth = `${Math.min(text.length, NAME_LETTERS)}ch`;
  node.append(...parts.map(([said, kind]) => partOf(said, kind)));
  return node;
}

function partOf(said, kind) {
  const part = element("span", `part tensornp-${kind}`, said);
  part.style.minWidth = `${kind === "stays" ? said.length : Math.min(said.length, FEWEST_LETTERS)}ch`;
  return part;
}

// A pattern of numbers is one key.
function keysOf(name) {
  return name.split(/\.(?![^{]*\})/);
}
