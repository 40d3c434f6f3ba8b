// What is over the tree: a search, filters of what differs, and the scan.

import { button, element, field, groupOf } from "../page/elements.js";

const SIZES = [["any size", ""], ["≥ 1 KiB", 2 ** 10], ["≥ 1 MiB", 2 ** 20], ["≥ 100 MiB", 100 * 2 ** 20]];

export class Controls {
  // `ask(changed)` asks for other lines, of which `filters()` gives the filters; `scan()` begins or ends a scan.
  constructor({ ask, filters, scan }) {
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
    this.scan = button("Scan", "", scan);
    this.meter = element("progress", "meter");
    this.meter.setAttribute("aria-label", "Read");
    this.meter.hidden = true;
    this.chosen = button("", "List the others again", () => ask({ filters: this.without("findings") }));
    this.chosen.hidden = true;
    this.node.append(this.search, this.problem, this.filters, this.chosen, this.scan, this.meter);
  }

  // A filter is offered where its values differ; made once, since what there is does not change.
  offer(choices) {
    if (this.filters.childElementCount) return;
    const selects = choices.map(({ column, label, values }) => {
      const shown = (value) => (column === "where" ? value.split(/[\\/]/).at(-1) : value);
      return this.select(column, label, [[`any ${label}`, ""], ...values.map((value) => [shown(value), value])]);
    });
    this.filters.append(...selects, this.select("bytes", "Size", SIZES));
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

  // What was chosen elsewhere is seen here, and what findings have led to can be left.
  paintFilters() {
    const filters = this.filtersNow();
    for (const select of this.filters.querySelectorAll("select")) select.value = filters[select.name] ?? "";
    this.chosen.hidden = !filters.findings;
    this.chosen.textContent = `only ${filters.findings} ✕`;
  }

  // `share` is negative where none runs; `cost` is what one of all that is listed costs.
  paintScan(share, isPart, isAgain, cost) {
    const isRunning = share >= 0;
    this.scan.textContent = isRunning ? "Stop" : isPart ? "Scan these" : isAgain ? "Scan again" : "Scan";
    const begin = `Read all that is listed, and tell what stands out (${cost})`;
    this.scan.title = isRunning ? "Stop, and show what was read so far" : begin;
    this.meter.hidden = !isRunning;
    if (isRunning) this.meter.value = share;
  }

  refuse(text) {
    this.problem.textContent = text;
    this.search.setAttribute("aria-invalid", String(Boolean(text)));
  }
}
