// What is over a tree: a search, and filters of what differs.

import { button, element, field, groupOf } from "../page/elements.js";

export class Filters {
  offered = {};

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

  // A filter is offered where its values differ; made once, and with other values where there are others by now. One that
  // is chosen stays among them.
  offer(choices) {
    const filters = this.filtersNow();
    for (const { column, label, values, shown } of choices) {
      const chosen = filters[column];
      const all = chosen && !values.includes(chosen) ? [...values, chosen] : values;
      const kind = JSON.stringify(all);
      if (kind === this.offered[column]) continue;
      this.offered[column] = kind;
      const options = [[`any ${label.toLowerCase()}`, ""], ...all.map((value, i) => [shown?.[i] ?? value, value])];
      const made = this.filters.querySelector(`select[name="${column}"]`);
      if (made) made.replaceChildren(...optionsOf(options));
      else this.filters.append(this.select(column, label, options));
    }
  }

  select(column, label, options) {
    const select = element("select", "select");
    select.setAttribute("aria-label", label);
    select.append(...optionsOf(options));
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

function optionsOf(options) {
  return options.map(([text, value]) => new Option(text, value));
}
