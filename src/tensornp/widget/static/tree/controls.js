// What is over a tree: a search, and filters of what differs.

import { button, element, field, groupOf } from "../page/elements.js";

export class Controls {
  // `ask(changed)` asks for other lines, of which `filters()` gives the filters.
  constructor({ ask, filters }) {
    this.ask = ask;
    this.filtersNow = filters;
    this.node = element("div", "controls");
    this.search = field("input", "text", "field tensornp-search", "Search the names");
    this.search.spellcheck = false;
    this.search.placeholder = "words, *glob* or /regex/";
    this.search.title =
      "Search the names (/): words that all fit, globs, numbers as in {0..5} or {3,4}, or a regular expression between slashes";
    this.search.addEventListener("input", () => ask({ search: this.search.value }));
    this.problem = element("span", "problem");
    this.filters = groupOf("Show only");
    this.chosen = button("", "List the others again", () => ask({ filters: this.without(this.unseen()) }));
    this.chosen.hidden = true;
    this.node.append(this.search, this.problem, this.filters, this.chosen);
  }

  // A filter is offered where its values differ; made once, since what there is does not change.
  offer(choices) {
    if (this.filters.childElementCount) return;
    const selects = choices.map(({ column, label, values, shown }) => {
      const named = values.map((value, i) => [shown?.[i] ?? value, value]);
      return this.select(column, label, [[`any ${label.toLowerCase()}`, ""], ...named]);
    });
    this.filters.append(...selects);
  }

  select(column, label, options) {
    const select = element("select", "select");
    select.setAttribute("aria-label", label);
    select.append(...options.map(([text, value]) => new Option(text, value)));
    select.addEventListener("change", () => {
      const value = select.value ? { [column]: select.value } : {};
      this.ask({ filters: { ...this.without(column), ...value } });
    });
    select.name = column;
    return select;
  }

  without(column) {
    return Object.fromEntries(Object.entries(this.filtersNow()).filter(([name]) => name !== column));
  }

  // The filter for which there is no list: something else has led to it.
  unseen() {
    const listed = new Set([...this.filters.querySelectorAll("select")].map(({ name }) => name));
    return Object.keys(this.filtersNow()).find((name) => !listed.has(name));
  }

  // What was chosen elsewhere is seen here, and can be left.
  paintFilters() {
    const filters = this.filtersNow();
    for (const select of this.filters.querySelectorAll("select")) select.value = filters[select.name] ?? "";
    const unseen = this.unseen();
    this.chosen.hidden = !unseen;
    this.chosen.textContent = unseen ? `only ${filters[unseen]} ✕` : "";
  }

  refuse(text) {
    this.problem.textContent = text;
    this.search.setAttribute("aria-invalid", String(Boolean(text)));
  }
}
