// What is over the tree: a search, filters of what differs, and the scan.

import { button, element, field, groupOf } from "../page/elements.js";

const SIZES = [["any size", ""], ["≥ 1 KiB", 2 ** 10], ["≥ 1 MiB", 2 ** 20], ["≥ 100 MiB", 100 * 2 ** 20]];

export class Controls {
  /** @type {Record<string, string>} By its column, the values that a filter has. */
  offered = {};

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

  // A filter is offered where its values differ; made once, and with other values where a scan has found some. One that is
  // chosen stays among them.
  offer(choices, filters) {
    const isNew = !this.filters.childElementCount;
    for (const { column, label, values } of choices) {
      const chosen = filters[column];
      const all = chosen && !values.includes(chosen) ? [...values, chosen] : values;
      if (!isNew && all.join("\n") === this.offered[column]) continue;
      this.offered[column] = all.join("\n");
      const shown = (value) => (column === "where" ? value.split(/[\\/]/).at(-1) : value);
      const options = [[`any ${label}`, ""], ...all.map((value) => [shown(value), value])];
      if (isNew) this.filters.append(this.select(column, label, options));
      else this.filters.querySelector(`select[name="${column}"]`).replaceChildren(...optionsOf(options));
    }
    if (isNew) this.filters.append(this.select("bytes", "Size", SIZES));
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

function optionsOf(options) {
  return options.map(([text, value]) => new Option(text, value));
}
