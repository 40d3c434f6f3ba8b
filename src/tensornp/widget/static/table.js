// Makes the static table of %tensors sortable and searchable: adds buttons to the headings and a filter over it, and
// takes both away again when it leaves.

const ARROWS = { ascending: " ▲", descending: " ▼", none: "" };

// The exact number of bytes stands in the title of a cell, since "1.5 KiB" does not sort.
function keyOf(row, column) {
  const cell = row.cells[column];
  const exact = /^([\d,]+) bytes$/.exec(cell.title);
  return exact ? Number(exact[1].replaceAll(",", "")) : cell.textContent.replace(/^└ /, "");
}

function compare(a, b) {
  return typeof a === "number" && typeof b === "number"
    ? a - b
    : String(a).localeCompare(String(b), undefined, { numeric: true });
}

class Sorter {
  constructor(card) {
    this.card = card;
    this.table = card.querySelector("table");
    this.body = this.table?.tBodies[0];
    if (!this.body) return;
    this.grouped = [...this.body.rows];
    this.names = this.grouped.map((row) => row.cells[0].textContent);
    this.heads = [...this.table.tHead.rows[0].cells];
    this.texts = this.heads.map((head) => head.textContent);
    this.heads.forEach((head, column) => this.addButton(head, column));
    this.addFilter();
  }

  addButton(head, column) {
    const button = element("button", "sort", this.texts[column]);
    button.type = "button";
    button.title = "Sort; a third press groups by memory again";
    button.addEventListener("click", () => this.sort(column));
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button);
  }

  addFilter() {
    this.filter = element("input", "filter");
    this.filter.type = "search";
    this.filter.placeholder = "Filter by name";
    this.filter.setAttribute("aria-label", "Show only names that contain");
    this.filter.addEventListener("input", () => this.show());
    this.table.before(this.filter);
  }

  sort(column) {
    const next = { none: "ascending", ascending: "descending", descending: "none" };
    const order = next[this.heads[column].getAttribute("aria-sort")];
    this.heads.forEach((head, i) => {
      head.setAttribute("aria-sort", i === column ? order : "none");
      head.firstElementChild.textContent = this.texts[i] + (i === column ? ARROWS[order] : "");
    });
    const sign = order === "descending" ? -1 : 1;
    const rows = [...this.grouped];
    if (order !== "none") rows.sort((a, b) => sign * compare(keyOf(a, column), keyOf(b, column)));
    this.grouped.forEach((row, i) => {
      row.cells[0].textContent = order === "none" ? this.names[i] : this.names[i].replace(/^└ /, "");
    });
    this.body.replaceChildren(...rows);
  }

  show() {
    const wanted = this.filter.value.toLowerCase();
    this.grouped.forEach((row, i) => {
      row.hidden = !this.names[i].toLowerCase().includes(wanted);
    });
  }

  leave() {
    if (!this.body) return;
    this.filter.remove();
    this.heads.forEach((head, i) => {
      head.removeAttribute("aria-sort");
      head.replaceChildren(this.texts[i]);
    });
    this.grouped.forEach((row, i) => {
      row.hidden = false;
      row.cells[0].textContent = this.names[i];
    });
    this.body.replaceChildren(...this.grouped);
  }
}

export default () =>
  docking({
    own: ".tensornp-filter, .tensornp-sort",
    dock(model, card) {
      const sorter = new Sorter(card);
      return () => sorter.leave();
    },
    rendered(model, el) {
      // The kernel's own HTML, in which every name is escaped.
      el.innerHTML = model.get("table_html");
      const own = new Sorter(el);
      return () => own.leave();
    },
  });
