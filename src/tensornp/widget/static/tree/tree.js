// A tree of rows that the kernel renders. Only a branch that opens for the first time, a search or a sort asks the kernel.

import { latest } from "../page/ask.js";
import { inPlace, stopListening } from "../page/docking.js";
import { button, element, focused, place } from "../page/elements.js";
import { Stops } from "../page/stops.js";
import { Panel } from "./panel.js";

const PAGE_ROWS = 10;
const FACE = `<div class="tensornp-controls">
  <input class="tensornp-field tensornp-search" aria-label="Search the names" placeholder="words, *glob* or /regex/"
    title="Search the names (/): words that all fit, globs, numbers as in {0..5} or {3,4}, or a regular expression between slashes"
    spellcheck="false" autocomplete="off"><span class="tensornp-problem"></span></div>
<div class="tensornp-scroller tensornp-rows"><table class="tensornp-tree" role="treegrid">
  <thead><tr></tr></thead><tbody></tbody></table></div>
<div class="tensornp-line-of-cell"><span class="tensornp-said"></span><span class="tensornp-said tensornp-status"></span>
  <span class="tensornp-live-region" aria-live="polite"></span></div>`;
const EVERY = { search: "", sort: "", descending: false };

export class Tree {
  asked = EVERY;
  hidden = [];
  links = [];
  listeners = {};
  opened = null;
  isList = false;

  constructor(model, ask, { kind, label, unsorted }) {
    this.model = model;
    this.request = ask;
    this.unsorted = unsorted;
    this.list = latest(() => this.fetch());
    this.root = element("section", `explorer tensornp-${kind}`);
    this.root.setAttribute("aria-label", label);
    this.root.innerHTML = FACE;
    const find = (selector) => this.root.querySelector(selector);
    this.controls = find(".tensornp-controls");
    [this.search, this.problem] = this.controls.children;
    this.grid = find("table");
    this.grid.setAttribute("aria-label", label);
    this.headRow = find("thead tr");
    this.body = find("tbody");
    [this.said, this.status] = this.root.querySelectorAll(".tensornp-line-of-cell > .tensornp-said");
    this.live = find("[aria-live]");
    this.stops = new Stops(() => this.sorters(), ["ArrowLeft", "ArrowRight"]);
    this.panel = new Panel(ask, {
      announce: (text) => (this.live.textContent = text),
      row: () => this.rowOf(this.panel.opened),
      place: () => this.placePanel(),
      lead: (number) => this.open(number),
      closed: () => {
        this.close();
        this.current?.focus({ preventScroll: true });
      },
    });
    this.panelRow = element("tr", "panel-row");
    this.panelRow.innerHTML = '<td colspan="100"></td>';
    this.panelRow.firstChild.append(this.panel.node);
    this.hear();
    this.wish();
  }

  hear() {
    this.search.addEventListener("input", () => this.look({ search: this.search.value }));
    this.headRow.addEventListener("click", ({ target }) => this.sortBy(target.closest("button")));
    this.headRow.addEventListener("focusin", ({ target }) => this.stops.at(target));
    this.body.addEventListener("click", ({ target }) => this.press(target));
  }

  listen(listeners) {
    Object.assign(this.listeners, listeners);
    for (const [event, listener] of Object.entries(listeners)) this.model.on(event, listener);
  }

  // --- asking

  look(changed) {
    this.asked = { ...this.asked, ...changed };
    if (this.search.value !== this.asked.search) this.search.value = this.asked.search;
    this.wish();
  }

  // `target` is the number of a row that opens with the answer, at `goal`.
  wish(target, goal) {
    if (target !== undefined) this.wished = { target, goal };
    this.list();
  }

  async fetch() {
    if (!this.isList && this.facts) {
      const opened = this.rows().filter((row) => row.getAttribute("aria-expanded") === "true");
      this.opened = opened.map((row) => Number(row.dataset.id));
    }
    const { wished } = this;
    const content = await this.request({ type: "rows", opened: this.opened, reveal: wished?.target ?? null, ...this.asked });
    if (this.dead) return;
    const isError = content.type === "error";
    this.problem.textContent = isError ? content.text : "";
    this.search.setAttribute("aria-invalid", String(isError));
    // The number of rows is announced if it changes.
    if (content.text !== this.heard) this.live.textContent = content.text;
    this.heard = content.text;
    if (isError) return;
    if (this.wished === wished) this.wished = undefined;
    this.take(content);
    if (wished) this.open(wished.target, undefined, wished.goal);
  }

  say({ text, type = "plain" }) {
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${type}`;
  }

  // --- rows

  take(content) {
    const had = this.current && this.current === focused();
    const id = this.current?.dataset.id;
    this.facts = content;
    this.isList = content.isList;
    this.grid.classList.toggle("tensornp-list", this.isList);
    this.paintHead(content);
    this.paintRows(content);
    this.paint();
    this.setCurrent(this.body.querySelector(`:scope > [data-id="${id}"]`) ?? this.rows()[0]);
    if (had) (this.current ?? this.search).focus({ preventScroll: true });
  }

  // The kernel has escaped all names. An open panel stays where it is, with its focus.
  paintRows({ html }) {
    const made = document.createElement("tbody");
    made.innerHTML = html;
    const above = made.querySelector(`[data-number="${this.panel.opened}"]`);
    const isKept = this.panelRow.isConnected && above;
    if (!above) this.panel.close();
    for (const row of [...this.body.children]) if (row !== this.panelRow || !isKept) row.remove();
    const rows = [...made.children];
    const at = above ? rows.indexOf(above) + 1 : rows.length;
    this.body.prepend(...rows.slice(0, at));
    this.body.append(...rows.slice(at));
    this.mark();
  }

  paint() {
    this.said.textContent = this.facts.text;
  }

  paintHead({ head, width }) {
    place(this.headRow, head);
    this.grid.style.maxWidth = `${width}ch`;
    const { sort, descending } = this.asked;
    for (const sorter of this.sorters()) {
      const isSorted = sorter.name === sort;
      const isLast = isSorted && descending !== isLargeFirst(sorter);
      sorter.title = isLast ? `Back to ${this.unsorted}` : `Sort by ${sorter.textContent}`;
      sorter.parentElement.ariaSort = isSorted ? (descending ? "descending" : "ascending") : null;
    }
    this.stops.at(this.sorters().find((one) => one === focused() || one.name === sort));
  }

  // A second press turns the order round, and a third one gives the first order.
  sortBy(sorter) {
    if (!sorter || this.dead) return;
    const { name } = sorter;
    const { sort, descending } = this.asked;
    if (sort !== name) this.look({ sort: name, descending: isLargeFirst(sorter) });
    else if (descending === isLargeFirst(sorter)) this.look({ descending: !descending });
    else this.look({ sort: "", descending: false });
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
    row.setAttribute("aria-expanded", String(isOpen));
    this.hideClosed();
    const isEmpty = () => levelOf(row.nextElementSibling) <= levelOf(row);
    if (!isOpen || !isEmpty()) return;
    const { html = "" } = await this.request({ type: "rows", parent: Number(row.dataset.id), ...this.asked });
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
      this.go(row, false);
      this.panel.open(number, from, goal);
      this.mark();
      return;
    }
    // A search may have left it out, or its branch is closed.
    this.asked = EVERY;
    this.search.value = "";
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
    this.go(row, false);
    if (link) this.open(Number(link.dataset.target), undefined, link.dataset.goal || undefined);
    else if (target.closest(".tensornp-mark") && row.hasAttribute("aria-expanded")) this.toggle(row);
    else this.act(row);
  }

  toggle(row) {
    if (row.hasAttribute("aria-expanded")) this.fold(row, row.getAttribute("aria-expanded") === "false");
  }

  act(row, from) {
    if (row.dataset.number) this.open(Number(row.dataset.number), from);
    else this.toggle(row);
  }

  go(row, scrolls = true) {
    if (!row) return;
    this.setCurrent(row);
    row.focus({ preventScroll: true });
    if (scrolls) row.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const { target, key } = event;
    if (this.panel.key(event)) return true;
    if (key === "Escape") return this.escape(target);
    if (this.dead || event.altKey || event.metaKey || event.ctrlKey) return false;
    const act = target === this.current ? this.acts(target)[key] : this.actsAbove(target)[key];
    if (!act) return this.headRow.contains(target) && this.stops.key(event);
    act();
    return true;
  }

  actsAbove(target) {
    const down = () => this.go(this.current);
    if (target === this.search) return { ArrowDown: down, Enter: down };
    return this.headRow.contains(target) ? { ArrowDown: down, ArrowUp: () => {} } : {};
  }

  acts(row) {
    const seen = this.rows().filter((one) => !one.hidden);
    const at = seen.indexOf(row);
    const isOpen = row.getAttribute("aria-expanded");
    const to = (number) => () => this.go(seen[Math.min(Math.max(number, 0), seen.length - 1)]);
    const right = () => {
      if (isOpen === "false") this.fold(row, true);
      else if (isOpen) this.go(seen[at + 1]);
    };
    const left = () => {
      if (isOpen === "true") this.fold(row, false);
      else this.go(seen.slice(0, at).findLast((one) => levelOf(one) < levelOf(row)));
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
      n: () => row.querySelector(".tensornp-alarm")?.click(),
      "/": () => this.search.focus(),
    };
  }

  // From a field and the panel back to the tree, and from the tree back to the notebook.
  escape(target) {
    if (target === this.search && this.search.value) {
      this.look({ search: "" });
      return true;
    }
    const isInPanel = this.panel.node.contains(target);
    if (isInPanel) this.close();
    if (!this.current || (!isInPanel && target !== this.search)) return false;
    this.current.focus({ preventScroll: true });
    return true;
  }

  reread() {
    this.panel.navigator?.again();
  }

  // --- coming and leaving

  // In a card, the static table gives its place to the tree, and takes it back.
  dock(card) {
    this.hidden = [...card.querySelectorAll(":scope > .tensornp-static")];
    for (const node of this.hidden) node.style.display = "none";
    card.insertBefore(this.root, (this.hidden.at(-1) ?? card.lastChild)?.nextSibling ?? null);
    for (const name of card.querySelectorAll("[class^='tensornp-to-']")) this.link(name);
  }

  // A name in the card leads to its row as long as the tree is there.
  link(name) {
    const parts = [...name.childNodes];
    const number = Number(name.className.slice("tensornp-to-".length));
    const link = button("", "Show it in the tree", () => this.open(number), "to-line");
    link.append(...parts);
    name.append(link);
    this.links.push(() => name.replaceChildren(...parts));
  }

  die() {
    this.dead = true;
    for (const undo of this.links) undo();
    if (this.panel.navigator) this.panel.navigator.dead = true;
  }

  leave() {
    this.die();
    this.panel.leave();
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
