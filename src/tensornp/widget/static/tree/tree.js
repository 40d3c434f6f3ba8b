// A tree of rows that the kernel renders. The page puts them under their branch, folds them, and moves the focus: only a
// branch that opens for the first time, a search, a sort or a filter asks the kernel.

import { latest } from "../page/ask.js";
import { copyButton } from "../page/copy.js";
import { inPlace, stopListening } from "../page/docking.js";
import { button, element, focused, liveRegion } from "../page/elements.js";
import { Stops } from "../page/stops.js";
import { Filters } from "./controls.js";

const PAGE_ROWS = 10;

export class Tree {
  asked = { search: "", sort: "", descending: false, filters: {} };
  hidden = [];
  links = [];
  opened = null;
  opening = new Set();
  current;
  facts;
  wished = {};
  stops;
  isList = false;
  head = "";
  heardText;

  // `kind` is the class of its root, `unsorted` the name of the first order; `panelOf(calls)` makes the panel of a row.
  constructor(model, ask, { kind, label, unsorted, panelOf }) {
    this.model = model;
    this.request = ask;
    this.unsorted = unsorted;
    this.list = latest(() => this.fetch());
    this.controls = new Filters({ ask: (changed) => this.ask(changed), filters: () => this.asked.filters });
    this.root = element("section", `explorer tensornp-${kind}`);
    this.root.setAttribute("aria-label", label);
    this.root.append(this.controls.node, this.table(label), this.line());
    this.panel = panelOf({
      announce: (text) => (this.live.textContent = text),
      row: () => this.rowOf(this.panel.opened),
      place: () => this.placePanel(),
      lead: (number) => this.open(number),
      room: this.scroller,
      closed: () => {
        this.close();
        this.current?.focus({ preventScroll: true });
      },
    });
    this.panelRow = element("tr", "panel-row");
    const cell = element("td");
    cell.colSpan = 100;
    cell.append(this.panel.node);
    this.panelRow.append(cell);
    this.listeners = {};
    this.wish();
  }

  listen(listeners) {
    Object.assign(this.listeners, listeners);
    for (const [event, listener] of Object.entries(listeners)) this.model.on(event, listener);
  }

  table(label) {
    this.grid = element("table", "tree");
    this.grid.setAttribute("role", "treegrid");
    this.grid.setAttribute("aria-label", label);
    this.headRow = element("tr");
    const head = element("thead");
    head.append(this.headRow);
    this.body = element("tbody");
    this.grid.append(head, this.body);
    // All headings are one stop of the Tab key.
    this.stops = new Stops(() => this.sorters(), ["ArrowLeft", "ArrowRight"]);
    head.addEventListener("click", ({ target }) => this.sortBy(target.closest("button")));
    head.addEventListener("focusin", ({ target }) => this.stops.at(target));
    this.body.addEventListener("click", ({ target }) => this.press(target));
    this.body.addEventListener("focusin", ({ target }) => {
      const row = target.closest("tr[data-id]");
      if (row) this.setCurrent(row);
    });
    this.scroller = element("div", "scroller tensornp-rows");
    this.scroller.append(this.grid);
    return this.scroller;
  }

  line() {
    const line = element("div", "line-of-cell");
    this.said = element("span", "said");
    this.status = element("span", "said");
    this.code = element("code", "code");
    this.copy = copyButton("the expression of what is listed", () => this.code.textContent);
    this.live = liveRegion();
    const expression = element("span", "expression");
    expression.append(this.code, this.copy);
    line.append(this.said, this.status, expression, this.live);
    return line;
  }

  // --- asking

  ask(changed) {
    if (changed.search === "") this.controls.search.value = "";
    this.asked = { ...this.asked, ...changed };
    this.wish();
  }

  // `target` is the number of a row that opens with the answer, at `goal`.
  wish(target, goal) {
    if (this.dead) return;
    if (target !== undefined) this.wished = { target, goal };
    this.list();
  }

  async fetch() {
    if (!this.isList && this.head) this.opened = this.openIds();
    const { wished } = this;
    const { target: reveal = null } = wished;
    const content = await this.request({ type: "rows", opened: this.opened, reveal, ...this.asked });
    if (this.dead) return;
    if (content.type === "error") {
      this.controls.refuse(content.text);
      this.heardText = undefined;
      this.live.textContent = content.text;
      return;
    }
    if (this.wished === wished) this.wished = {};
    this.take(content, wished);
  }

  openIds() {
    const opened = this.rows().filter((row) => row.getAttribute("aria-expanded") === "true");
    return opened.map((row) => Number(row.dataset.id));
  }

  say(text, tone = "plain") {
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${tone}`;
  }

  // --- rows

  take(content, { target, goal }) {
    const had = this.current === focused();
    const id = this.current?.dataset.id;
    this.facts = content;
    this.isList = content.isList;
    this.grid.classList.toggle("tensornp-list", this.isList);
    this.opening.clear();
    this.controls.refuse("");
    this.controls.offer(content.choices);
    this.paintHead(content);
    this.paintRows(content);
    this.paint();
    this.setCurrent(this.body.querySelector(`:scope > [data-id="${id}"]`) ?? this.rows()[0]);
    if (had) (this.current ?? this.controls.search).focus({ preventScroll: true });
    // The number of rows is announced if it changes.
    if (!had && content.text !== this.heardText) this.live.textContent = content.text;
    this.heardText = content.text;
    if (target !== undefined) this.open(target, undefined, goal);
  }

  // The kernel has escaped all names. An open panel stays where it is, with its focus.
  paintRows({ html, nothing }) {
    const made = document.createElement("tbody");
    made.innerHTML = html;
    if (nothing) {
      const cell = element("td", "rest", nothing);
      cell.colSpan = 100;
      const row = element("tr");
      row.append(cell);
      made.append(row);
    }
    const above = made.querySelector(`[data-number="${this.panel.opened}"]`);
    const isKept = this.panelRow.isConnected && above;
    if (this.panelRow.isConnected && !above) this.panel.close();
    for (const row of [...this.body.children]) if (row !== this.panelRow || !isKept) row.remove();
    const rows = [...made.children];
    const at = above ? rows.indexOf(above) + 1 : rows.length;
    this.body.prepend(...rows.slice(0, at));
    this.body.append(...rows.slice(at));
    this.mark();
  }

  paint() {
    const { text, code } = this.facts;
    this.said.textContent = text;
    this.code.textContent = code;
    this.copy.hidden = !code;
    this.controls.paintFilters();
  }

  // A heading that is pressed as an answer comes stays if it is the same.
  paintHead({ head, width }) {
    const had = this.sorters().find((one) => one === focused())?.name;
    if (head !== this.head) this.headRow.innerHTML = head;
    this.head = head;
    this.grid.style.maxWidth = `${width}ch`;
    const { sort, descending } = this.asked;
    for (const sorter of this.sorters()) {
      const isSorted = sorter.name === sort;
      const isLast = isSorted && descending !== isLargeFirst(sorter);
      sorter.title = isLast ? `Back to ${this.unsorted}` : `Sort by ${sorter.textContent}`;
      const order = descending ? "descending" : "ascending";
      if (isSorted) sorter.parentElement.setAttribute("aria-sort", order);
      else sorter.parentElement.removeAttribute("aria-sort");
    }
    this.stops.at(this.sorters().find((one) => one.name === (had ?? sort)));
    if (had) this.sorters().find((one) => one.name === had)?.focus();
  }

  // A second press turns the order round, and a third one gives the first order.
  sortBy(sorter) {
    if (!sorter || this.dead) return;
    const { name } = sorter;
    const { sort, descending } = this.asked;
    if (sort !== name) this.ask({ sort: name, descending: isLargeFirst(sorter) });
    else if (descending === isLargeFirst(sorter)) this.ask({ descending: !descending });
    else this.ask({ sort: "", descending: false });
  }

  sorters() {
    return [...this.headRow.querySelectorAll("button")];
  }

  rows() {
    return [...this.body.querySelectorAll(":scope > [data-id]")];
  }

  rowOf(number) {
    return this.body.querySelector(`:scope > [data-number="${number}"]`);
  }

  setCurrent(row) {
    if (this.current) this.current.tabIndex = -1;
    this.current = row;
    if (row) row.tabIndex = 0;
  }

  // Rows that are there are shown at once, others come with the answer; nothing above the row moves.
  async fold(row, isOpen) {
    if (this.dead) return;
    row.setAttribute("aria-expanded", String(isOpen));
    this.hideClosed();
    const isEmpty = () => levelOf(row.nextElementSibling) <= levelOf(row);
    if (!isOpen || !isEmpty() || this.opening.has(row)) return;
    this.opening.add(row);
    const { html = "" } = await this.request({ type: "rows", parent: Number(row.dataset.id), ...this.asked });
    this.opening.delete(row);
    if (!row.isConnected || !isEmpty()) return;
    row.insertAdjacentHTML("afterend", html);
    this.hideClosed();
  }

  hideClosed() {
    let closed = Infinity;
    for (const row of this.body.querySelectorAll(":scope > [aria-level]")) {
      const level = levelOf(row);
      row.hidden = level > closed;
      if (!row.hidden) closed = row.getAttribute("aria-expanded") === "false" ? level : Infinity;
    }
    if (this.rowOf(this.panel.opened)?.hidden) this.close();
  }

  // --- the panel

  // `from` is the row with the focus if a key opens it, `goal` a place among the values.
  open(number, from, goal) {
    if (this.dead) return;
    const row = this.rowOf(number);
    if (row && !row.hidden) {
      this.setCurrent(row);
      row.focus({ preventScroll: true });
      this.panel.open(number, from, goal);
      this.mark();
      return;
    }
    // A search may have left it out, or its branch is closed.
    this.controls.search.value = "";
    this.asked = { search: "", sort: "", descending: false, filters: {} };
    this.wish(number, goal);
  }

  // The panel moves under its row, which stays where it is on the screen.
  placePanel() {
    const row = this.rowOf(this.panel.opened);
    if (row && row.nextElementSibling !== this.panelRow) inPlace(row, () => row.after(this.panelRow));
  }

  mark() {
    for (const row of this.rows()) row.classList.toggle("tensornp-opened", row.dataset.number === `${this.panel.opened}`);
  }

  close() {
    this.panel.close();
    this.panelRow.remove();
    this.mark();
  }

  // --- mouse and keys

  press(target) {
    const row = target.closest("tr[data-id]");
    if (!row || this.dead || this.panelRow.contains(target)) return;
    const link = target.closest("[data-target]");
    const { goal } = target.closest("td").dataset;
    this.setCurrent(row);
    row.focus({ preventScroll: true });
    if (link) this.open(Number(link.dataset.target), undefined, link.dataset.goal);
    else if (goal && row.dataset.number) this.open(Number(row.dataset.number), undefined, goal);
    else if (target.closest(".tensornp-mark") && row.hasAttribute("aria-expanded")) this.toggle(row);
    else this.act(row);
  }

  toggle(row) {
    this.fold(row, row.getAttribute("aria-expanded") === "false");
  }

  act(row, from) {
    if (row.dataset.number) this.open(Number(row.dataset.number), from);
    else this.toggle(row);
  }

  go(row) {
    if (!row) return;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  // Returns whether the key was used here.
  key(event) {
    const { target, key } = event;
    if (this.panel.key(event)) return true;
    if (key === "Escape") return this.escape(target);
    if (this.dead || event.altKey || event.metaKey || event.ctrlKey || this.panel.node.contains(target)) return false;
    if (target === this.controls.search && ["ArrowDown", "Enter"].includes(key)) this.go(this.current);
    else if (this.headRow.contains(target)) {
      if (key === "ArrowDown") this.go(this.current);
      else return this.stops.key(event) || key === "ArrowUp";
    } else if (target !== this.current) return false;
    else {
      const act = this.acts(target)[key];
      act?.();
      return Boolean(act);
    }
    return true;
  }

  acts(row) {
    const seen = this.rows().filter((one) => !one.hidden);
    const at = seen.indexOf(row);
    const isOpen = row.getAttribute("aria-expanded");
    const to = (place) => () => this.go(seen[Math.min(Math.max(place, 0), seen.length - 1)]);
    const right = () => {
      if (isOpen === "false") this.fold(row, true);
      else if (isOpen) this.go(seen[at + 1]);
    };
    const left = () => {
      if (isOpen === "true") this.fold(row, false);
      else this.go(seen.slice(0, at).reverse().find((one) => levelOf(one) < levelOf(row)));
    };
    return {
      ArrowUp: () => (at > 0 ? this.go(seen[at - 1]) : this.sorters()[0]?.focus()),
      ArrowDown: to(at + 1),
      PageUp: to(at - PAGE_ROWS),
      PageDown: to(at + PAGE_ROWS),
      Home: to(0),
      End: to(seen.length - 1),
      ArrowRight: right,
      ArrowLeft: left,
      Enter: () => this.act(row, row),
      " ": () => this.act(row, row),
      m: () => row.querySelector("[data-goal='absmax']") && this.open(Number(row.dataset.number), undefined, "absmax"),
      n: () => row.querySelector(".tensornp-alarm")?.click(),
      "/": () => this.controls.search.focus(),
    };
  }

  // From a field and the panel back to the tree, and from the tree back to the notebook.
  escape(target) {
    const { search } = this.controls;
    if (target === search && search.value) {
      this.ask({ search: "" });
      return true;
    }
    const isInPanel = this.panel.node.contains(target);
    if (isInPanel) this.close();
    if ((isInPanel || !this.body.contains(target)) && this.current) {
      this.current.focus({ preventScroll: true });
      return true;
    }
    return false;
  }

  reread() {
    this.panel.navigator?.again();
  }

  // --- coming and leaving

  // In a card, the static table gives its place to the tree, and takes it back.
  dock(card) {
    this.hidden = ([...card.querySelectorAll(":scope > .tensornp-static")]);
    for (const node of this.hidden) node.style.display = "none";
    const above = this.hidden.at(-1) ?? card.lastElementChild;
    if (above) above.after(this.root);
    else card.append(this.root);
    for (const name of card.querySelectorAll("[class^='tensornp-to-']")) this.link(name);
  }

  // A name in the card leads to its row as long as the tree is there.
  link(name) {
    const text = name.textContent;
    const number = Number(name.className.slice("tensornp-to-".length));
    name.replaceChildren(button(text, "Show it in the tree", () => this.open(number), "to-line"));
    this.links.push(() => name.replaceChildren(text));
  }

  die() {
    this.dead = true;
    for (const undo of this.links) undo();
    this.panel.navigator?.die();
  }

  leave() {
    this.die();
    this.panel.left();
    for (const node of this.hidden) node.style.display = "";
    stopListening(this.model, this.listeners);
    this.root.remove();
  }
}

function levelOf(row) {
  return Number(row?.getAttribute("aria-level") ?? 0);
}

function isLargeFirst(sorter) {
  return "large" in sorter.dataset;
}
