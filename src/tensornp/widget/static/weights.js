// The weights of a model as a tree: the page asks for the lines that it has room for, and paints the answer. One request
// is under way at most, and what is wished for meanwhile is one wish, the latest.

const NUM_LINES = 20;
const SIZES = [["any size", ""], ["≥ 1 KB", "1000"], ["≥ 1 MB", "1000000"], ["≥ 100 MB", "100000000"]];
const FILTERS = { dtype: "dtype", where: "place", kind: "kind", state: "state" };
const RIGHT = new Set(["bytes"]);
const INDENT_PX = 16;

// The parts of a name keep their order, whatever their letters.
function nameOf(kind, text) {
  const node = element("bdi", kind, text);
  node.dir = "ltr";
  return node;
}

class Weights {
  constructor(model) {
    this.model = model;
    this.request = new Request(model, this);
    // Each front end of the kernel gets all answers.
    this.page = `page-${Math.random().toString(36).slice(2)}`;
    this.number = 0;
    this.first = 0;
    this.current = 0;
    this.asked = { search: "", sort: "", descending: false, filters: {}, toggled: [] };
    this.root = element("section", "weights");
    this.root.setAttribute("aria-label", `Weights of ${model.get("label")}`);
    this.root.append(this.controls(), this.table(), this.line(), this.panel());
    this.heard = (content) => this.hear(content);
    this.told = () => this.paintScan();
    this.found = () => this.foundOut();
    model.on("msg:custom", this.heard);
    model.on("change:progress", this.told);
    model.on("change:scanned", this.found);
    this.paintResults();
    this.wish();
  }

  // --- what is on the page

  controls() {
    const bar = element("div", "controls");
    this.search = element("input", "field tensornp-search");
    this.search.type = "text";
    this.search.autocomplete = "off";
    this.search.spellcheck = false;
    this.search.placeholder = "name, *glob* or /regex/";
    this.search.title = "Search the names (/): a part of them, a glob, or a regular expression between slashes";
    this.search.setAttribute("aria-label", "Search the names");
    this.search.addEventListener("input", () => this.ask({ search: this.search.value }));
    this.problem = element("span", "problem");
    this.filters = element("span", "group");
    this.filters.setAttribute("role", "group");
    this.filters.setAttribute("aria-label", "Show only");
    this.scan = button("Scan", "", () => this.send({ type: this.isScanning() ? "end" : "scan", ...this.asked }));
    this.meter = element("progress", "meter");
    this.meter.setAttribute("aria-label", "Read");
    this.meter.hidden = true;
    bar.append(this.search, this.problem, this.filters, this.scan, this.meter);
    return bar;
  }

  // A filter is offered where its values differ; made once, since what there is does not change.
  paintFilters(choices) {
    if (this.filters.childElementCount) return;
    const offered = Object.entries(FILTERS).filter(([column]) => choices[column]?.length);
    const selects = offered.map(([column, word]) => {
      const shown = (value) => (column === "where" ? value.split(/[\\/]/).at(-1) : value);
      return this.select(column, [[`any ${word}`, ""], ...choices[column].map((value) => [shown(value), value])]);
    });
    this.filters.append(...selects, this.select("bytes", SIZES));
  }

  select(column, options) {
    const select = element("select", "select");
    select.setAttribute("aria-label", column === "bytes" ? "Size" : FILTERS[column]);
    select.append(...options.map(([text, value]) => new Option(text, value)));
    select.addEventListener("change", () => {
      const filters = { ...this.asked.filters, [column]: select.value };
      if (!select.value) delete filters[column];
      this.ask({ filters });
    });
    return select;
  }

  table() {
    const beside = element("div", "beside");
    const scroller = element("div", "scroller");
    this.grid = element("table", "tree");
    this.grid.setAttribute("role", "treegrid");
    this.grid.setAttribute("aria-label", `Weights of ${this.model.get("label")}`);
    this.head = element("tr", "heads");
    this.head.setAttribute("aria-rowindex", "1");
    this.body = element("tbody");
    const thead = element("thead");
    thead.append(this.head);
    this.grid.append(thead, this.body);
    this.grid.addEventListener("click", (event) => this.press(event));
    this.grid.addEventListener("focusin", ({ target }) => this.entered(target));
    this.grid.addEventListener("wheel", (event) => this.roll(event), { passive: false });
    // It does for the mouse what keys do in the tree, and is no stop of its own.
    this.slider = element("input", "down");
    this.slider.type = "range";
    this.slider.tabIndex = -1;
    this.slider.hidden = true;
    this.slider.setAttribute("aria-label", "First line that is shown");
    this.slider.addEventListener("input", () => this.moveTo(Number(this.slider.value)));
    scroller.append(this.grid);
    beside.append(scroller, this.slider);
    return beside;
  }

  line() {
    const line = element("div", "line-of-cell");
    this.said = element("span", "said");
    this.status = element("span", "said");
    // What a scan has found leads to it.
    this.results = element("button", "copy tensornp-results");
    this.results.type = "button";
    this.results.hidden = true;
    this.results.title = "List all weights, those with the worst findings first";
    this.results.addEventListener("click", () => this.ask({ sort: "findings", descending: false }));
    this.code = element("code", "code");
    this.copy = copyButton("the expression of what is listed", () => this.code.textContent);
    this.live = element("span", "live-region");
    this.live.setAttribute("aria-live", "polite");
    line.append(this.said, this.results, this.status, this.code, this.copy, this.live);
    return line;
  }

  panel() {
    this.card = element("section", "weight");
    this.card.hidden = true;
    return this.card;
  }

  // --- asking

  ask(changed) {
    this.asked = { ...this.asked, ...changed };
    this.first = 0;
    this.current = 0;
    this.wish();
  }

  // `then` says where the focus goes with the answer: "tree", or nowhere.
  wish(then = this.wished?.then) {
    if (this.dead) return;
    this.wished = { then, from: document.activeElement };
    this.pump();
  }

  pump() {
    if (this.pending || !this.wished) return;
    this.pending = this.wished;
    this.wished = undefined;
    const message = { type: "lines", first: this.first, count: NUM_LINES, ...this.asked };
    this.pending.number = this.send(message, true);
  }

  send(request, isWaitedFor = false) {
    const message = { ...request, page: this.page, number: (this.number += 1) };
    if (isWaitedFor) {
      this.request.send(message);
      return message.number;
    }
    this.request.post(message);
    // Statistics say themselves that they take long.
    clearTimeout(this.waits);
    if (message.type !== "stats") this.waits = setTimeout(() => this.say(WAITING), PENDING_AFTER_MS);
    return message.number;
  }

  hear(content) {
    if (content?.page !== this.page || this.dead) return;
    clearTimeout(this.waits);
    if (this.status.textContent === WAITING) this.say("");
    if (content.number === this.pending?.number) {
      const { from } = this.pending;
      const then = isFocusFree(from, this.root) ? this.pending.then : undefined;
      this.pending = undefined;
      this.request.end();
      if (content.type === "lines") this.take(content, then);
      else this.refuse(content.text);
      this.pump();
    } else if (content.number === this.opening) this.takeWeight(content);
    else if (content.type === "stats") this.takeStats(content);
    else if (content.type === "bound" || content.type === "error") this.tellOf(content);
  }

  refuse(text) {
    this.problem.textContent = text;
    put(this.search, "aria-invalid", "true");
    this.say("");
    this.live.textContent = text;
  }

  say(text, tone = "plain") {
    this.status.textContent = text;
    this.status.className = `tensornp-said tensornp-${tone}`;
  }

  // --- lines

  take(seen, then) {
    const had = this.body.contains(document.activeElement);
    this.seen = seen;
    // A later wish has another first line.
    if (!this.wished) this.first = seen.first;
    this.problem.textContent = "";
    put(this.search, "aria-invalid", "false");
    this.say("");
    this.paintFilters(seen.choices);
    if (!this.wished) this.current = Math.min(Math.max(this.current, 0), Math.max(seen.total - 1, 0));
    this.paint();
    const row = this.rowOf(this.current) ?? this.rows[0];
    // Where a later wish is waiting, the line that is wanted is not here yet: the focus goes on to it from there.
    this.isTaking = true;
    if (row && (had || then === "tree")) row.focus({ preventScroll: true });
    else if (had) this.search.focus({ preventScroll: true });
    this.isTaking = false;
    if (!had) this.live.textContent = seen.text;
  }

  paint() {
    const { columns, lines, total, first, text, code } = this.seen;
    this.grid.setAttribute("aria-rowcount", String(total + 1));
    this.paintHeads(columns);
    // One of those that are seen is the stop of the Tab key.
    const stop = Math.min(Math.max(this.current, first), first + Math.max(lines.length - 1, 0));
    this.rows = lines.map((line, i) => this.row(line, first + i, stop));
    const nothing = element("tr");
    const cell = element("td", "nothing", "no weight fits");
    cell.colSpan = columns.length;
    nothing.append(cell);
    this.body.replaceChildren(...(lines.length ? this.rows : [nothing]));
    this.slider.max = String(Math.max(total - NUM_LINES, 0));
    this.slider.value = String(first);
    this.slider.hidden = total <= NUM_LINES;
    this.said.textContent = text || `${total.toLocaleString("en")} ${total === 1 ? "line" : "lines"}`;
    this.code.textContent = code;
    this.copy.hidden = !code;
    this.paintScan();
  }

  paintHeads(columns) {
    const { sort, descending } = this.asked;
    const kind = JSON.stringify([columns, sort, descending]);
    if (kind === this.kindOfHeads) return;
    this.kindOfHeads = kind;
    const had = this.head.contains(document.activeElement) && document.activeElement.title;
    this.head.replaceChildren(
      ...columns.map((column) => {
        const head = element("th", RIGHT.has(column) ? "head tensornp-right" : "head");
        head.scope = "col";
        const isSorted = sort === column;
        if (isSorted) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        if (column === "figures") head.textContent = "values";
        else head.append(this.sorter(column, isSorted));
        return head;
      }),
    );
    if (had) this.sorters().find((one) => one.title === had)?.focus();
  }

  // Ascending, descending, and as the model has them.
  sorter(column, isSorted) {
    const node = element("button", "sort", column);
    node.type = "button";
    node.title = `Sort by ${column}`;
    // Reached from the first line, upwards: the tree is one stop of the Tab key.
    node.tabIndex = -1;
    if (isSorted) node.append(element("span", "arrow", this.asked.descending ? " ▼" : " ▲"));
    node.addEventListener("click", () => {
      const isLargeFirst = column === "bytes" || column === "shape";
      const { sort, descending } = this.asked;
      if (sort !== column) this.ask({ sort: column, descending: isLargeFirst });
      else if (descending === isLargeFirst) this.ask({ descending: !descending });
      else this.ask({ sort: "", descending: false });
    });
    return node;
  }

  row(line, at, stop) {
    const row = element("tr", line.branch >= 0 ? "row tensornp-branch" : "row");
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", String(at + 2));
    row.setAttribute("aria-level", String(line.level));
    row.setAttribute("aria-posinset", String(line.position));
    row.setAttribute("aria-setsize", String(line.size));
    if (line.branch >= 0) row.setAttribute("aria-expanded", String(line.open));
    row.tabIndex = at === stop ? 0 : -1;
    if (line.number >= 0 && line.number === this.opened) row.classList.add("tensornp-opened");
    row.title = `${line.cells.name}\n${line.title}`;
    row.append(...this.seen.columns.map((column) => this.cell(line, column)));
    return row;
  }

  cell(line, column) {
    const cell = element("td", RIGHT.has(column) ? "right" : column);
    const text = line.cells[column] ?? "";
    if (column === "name") {
      const mark = element("span", "mark", line.branch >= 0 ? (line.open ? "▾" : "▸") : "");
      mark.setAttribute("aria-hidden", "true");
      // A name of right-to-left letters reorders nothing beside it.
      cell.append(mark, nameOf("name-text", text));
      cell.style.paddingLeft = `${(line.level - 1) * INDENT_PX}px`;
    } else if (column === "figures") {
      if (line.picture.src) cell.append(Object.assign(element("img"), line.picture));
      cell.title = text;
    } else cell.textContent = text;
    if (column === "findings" && line.isAlarm) cell.classList.add("tensornp-alarm");
    return cell;
  }

  rowOf(at) {
    return this.rows?.[at - this.seen.first];
  }

  lineOf(at) {
    return this.seen?.lines[at - this.seen.first];
  }

  // --- moving

  entered(target) {
    if (this.isTaking && this.wished) return;
    const i = this.rows?.indexOf(target.closest("tr")) ?? -1;
    if (i < 0) return;
    this.rowOf(this.current)?.setAttribute("tabindex", "-1");
    this.current = this.seen.first + i;
    this.rows[i].tabIndex = 0;
  }

  go(to) {
    if (!this.seen?.total) return;
    const at = Math.min(Math.max(to, 0), this.seen.total - 1);
    const row = !this.pending && !this.wished && this.rowOf(at);
    if (row) {
      row.focus({ preventScroll: true });
      return;
    }
    this.current = at;
    if (at < this.first) this.first = at;
    else if (at >= this.first + NUM_LINES) this.first = at - NUM_LINES + 1;
    this.wish("tree");
  }

  moveTo(first) {
    this.first = Math.min(Math.max(first, 0), Math.max((this.seen?.total ?? 0) - NUM_LINES, 0));
    this.wish();
  }

  // Only once the tree has the focus: until then, the wheel scrolls the notebook.
  roll(event) {
    if (!this.grid.contains(document.activeElement) || event.ctrlKey) return;
    const from = this.first;
    const last = Math.max((this.seen?.total ?? 0) - NUM_LINES, 0);
    const to = Math.min(Math.max(from + 3 * Math.sign(event.deltaY), 0), last);
    if (to === from) return;
    event.preventDefault();
    this.current = Math.min(Math.max(this.current, to), to + NUM_LINES - 1);
    this.moveTo(to);
  }

  toggle(line) {
    const toggled = new Set(this.asked.toggled);
    if (!toggled.delete(line.branch)) toggled.add(line.branch);
    this.asked = { ...this.asked, toggled: [...toggled] };
    this.wish("tree");
  }

  press({ target }) {
    const row = target.closest("tbody tr");
    const i = this.rows?.indexOf(row) ?? -1;
    if (i < 0) return;
    row.focus({ preventScroll: true });
    this.act(this.seen.lines[i]);
  }

  act(line) {
    if (line.number >= 0) this.open(line.number);
    else if (line.branch >= 0) this.toggle(line);
  }

  // Returns whether the key was used here.
  key(event) {
    if (event.key === "Escape") return this.escape(event.target);
    if (this.dead || event.altKey || event.metaKey || event.ctrlKey) return false;
    if (event.target === this.search && (event.key === "ArrowDown" || event.key === "Enter")) {
      this.go(this.current);
      return true;
    }
    if (this.head.contains(event.target)) return this.keyInHead(event);
    if (!this.body.contains(event.target)) return false;
    const line = this.lineOf(this.current);
    const open = () => {
      if (line?.branch >= 0 && !line.open) this.toggle(line);
      else if (line?.branch >= 0) this.go(this.current + 1);
    };
    const close = () => {
      if (line?.open) this.toggle(line);
      else if (line?.parent >= 0) this.go(line.parent);
    };
    const acts = {
      ArrowUp: () => (this.current > 0 ? this.go(this.current - 1) : this.sorters()[0]?.focus()),
      ArrowDown: () => this.go(this.current + 1),
      PageUp: () => this.go(this.current - NUM_LINES),
      PageDown: () => this.go(this.current + NUM_LINES),
      Home: () => this.go(0),
      End: () => this.go(this.seen.total - 1),
      ArrowRight: event.shiftKey ? () => this.shift(1) : open,
      ArrowLeft: event.shiftKey ? () => this.shift(-1) : close,
      Enter: () => line && this.act(line),
      " ": () => line && this.act(line),
      "/": () => this.search.focus(),
    };
    if (!acts[event.key]) return false;
    acts[event.key]();
    return true;
  }

  // Columns that are out of sight on a narrow page.
  shift(by) {
    this.grid.parentElement.scrollBy({ left: (by * this.grid.parentElement.clientWidth) / 2 });
  }

  sorters() {
    return [...this.head.querySelectorAll("button")];
  }

  keyInHead({ key, target }) {
    const all = this.sorters();
    const at = all.indexOf(target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[key];
    if (key === "ArrowDown") this.go(this.current);
    else if (to !== undefined) all[Math.min(Math.max(to, 0), all.length - 1)].focus();
    else return key === "ArrowUp";
    return true;
  }

  // From a field and the card back to the tree, and from the tree back to the notebook.
  escape(target) {
    if (target === this.search && this.search.value) {
      this.search.value = "";
      this.ask({ search: "" });
      return true;
    }
    if (this.card.contains(target)) this.close();
    const row = this.rowOf(this.current);
    if (!this.body.contains(target) && row) {
      row.focus({ preventScroll: true });
      return true;
    }
    this.root.parentElement?.closest("[tabindex]")?.focus({ preventScroll: true });
    if (this.root.contains(document.activeElement)) document.activeElement.blur();
    return true;
  }

  // --- one weight

  open(number) {
    if (this.dead) return;
    this.figuring = undefined;
    this.opened = number;
    this.opening = this.send({ type: "open", weight: number });
    for (const [i, row] of this.rows.entries()) {
      row.classList.toggle("tensornp-opened", this.seen.lines[i].number === number);
    }
  }

  close() {
    if (this.card.hidden) return;
    if (this.card.querySelector(".tensornp-values")) this.send({ type: "values", weight: this.opened, open: false });
    this.opened = this.opening = undefined;
    this.card.hidden = true;
    this.card.replaceChildren();
    for (const row of this.rows) row.classList.remove("tensornp-opened");
  }

  takeWeight(content) {
    this.opening = undefined;
    this.card.hidden = false;
    const head = element("div", "weight-head");
    const isThere = content.type === "weight";
    if (isThere) {
      head.append(nameOf("weight-name", content.name));
      if (content.numpy) head.append(copyButton("the NumPy expression", () => content.numpy, "copy NumPy"));
    } else head.append(element("span", "problem", content.text));
    if (isThere && content.torch) head.append(copyButton("the PyTorch expression", () => content.torch, "copy PyTorch"));
    const close = element("button", "copy tensornp-close", "close");
    close.type = "button";
    close.addEventListener("click", () => {
      this.close();
      this.rowOf(this.current)?.focus({ preventScroll: true });
    });
    head.append(close);
    if (!isThere) {
      this.card.replaceChildren(head);
      this.live.textContent = content.text;
      return;
    }
    const facts = element("div", "facts");
    for (const [label, said] of content.facts) {
      const pair = element("span", "fact");
      pair.append(element("span", "label", `${label} `), element("bdi", "", said));
      facts.append(pair);
    }
    this.card.setAttribute("aria-label", content.name);
    this.card.replaceChildren(head, facts);
    if (content.text) this.card.append(element("pre", "array", content.text));
    if (content.note) this.card.append(element("div", "said", content.note));
    if (content.hasValues) this.card.append(this.offers(content));
    this.figures = element("div", "all-figures");
    this.place = element("div", this.model.get("place").replace("tensornp-", ""));
    this.place.className = this.model.get("place");
    this.card.append(this.figures, this.place);
    this.leaves?.observe(this.place, { childList: true });
    this.live.textContent = `${content.name} is shown below`;
  }

  offers({ cost }) {
    const bar = element("div", "controls");
    const weight = this.opened;
    const stats = button("Statistics", `All figures, quantiles and a heat map: ${cost}`, () => {
      stats.disabled = true;
      this.tell.textContent = "reading …";
      this.figuring = this.send({ type: "stats", weight });
    });
    this.statsButton = stats;
    bar.append(stats);
    if (this.model.get("has_values")) {
      const values = button("Values", "Walk through the values; only what is seen is read", () => {
        const isOpen = Boolean(this.place.querySelector(".tensornp-values"));
        this.send({ type: "values", weight, open: !isOpen });
        values.setAttribute("aria-expanded", String(!isOpen));
      });
      values.setAttribute("aria-expanded", "false");
      // The navigator also leaves for another card.
      this.leaves?.disconnect();
      this.leaves = new MutationObserver(() => {
        const isOpen = Boolean(this.place?.querySelector(".tensornp-values"));
        if (!isOpen) values.setAttribute("aria-expanded", "false");
      });
      bar.append(values);
    }
    if (this.model.get("can_bind")) bar.append(this.binder(weight));
    this.tell = element("span", "said");
    bar.append(this.tell);
    return bar;
  }

  binder(weight) {
    const form = element("form", "go");
    const name = element("input", "field tensornp-bind-name");
    name.type = "text";
    name.autocomplete = "off";
    name.spellcheck = false;
    name.placeholder = "name";
    name.setAttribute("aria-label", "Name for the array");
    const bind = element("button", "button", "Bind array");
    bind.type = "submit";
    bind.title = "Bind the whole array to a name in the notebook";
    form.append(name, bind);
    let asked = "";
    const post = (overwrite) => {
      asked = overwrite ? asked : name.value.trim();
      this.send({ type: "bind", weight, name: asked, overwrite });
    };
    // What may be overwritten is the name that was asked for, and no other.
    name.addEventListener("input", () => this.tell?.querySelector("button")?.remove());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      post(false);
    });
    this.overwrite = () => {
      post(true);
      name.focus();
    };
    return form;
  }

  tellOf(content) {
    if (this.statsButton) this.statsButton.disabled = false;
    if (!this.tell?.isConnected) {
      this.say(content.text, content.type === "error" ? "error" : "plain");
      return;
    }
    this.tell.textContent = content.text;
    this.tell.className = `tensornp-said tensornp-${content.type === "error" ? "error" : "plain"}`;
    if (content.canOverwrite) this.tell.append(button("Overwrite", "Replace what the name stands for", this.overwrite));
    this.live.textContent = content.text;
  }

  takeStats({ figures, tables, heatmap, number }) {
    if (number !== this.figuring || !this.figures?.isConnected) return;
    this.statsButton.disabled = false;
    this.tell.textContent = "";
    const line = element("div", "figures-line");
    if (figures.picture.src) line.append(Object.assign(element("img"), figures.picture));
    line.append(element("span", "", [...figures.words, ...figures.alarms.map(([, text]) => text)].join(" · ")));
    const nodes = [line];
    if (heatmap.shown) {
      const picture = element("div", "heatmap");
      picture.append(Object.assign(element("img"), heatmap.shown), element("div", "said", heatmap.caption));
      nodes.push(picture);
    }
    nodes.push(...tables.map(({ headings, rows }) => this.figureTable(headings, rows)));
    this.figures.replaceChildren(...nodes);
    this.live.textContent = line.textContent;
  }

  figureTable(headings, rows) {
    const scroller = element("div", "scroller");
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "region");
    scroller.setAttribute("aria-label", headings.filter(Boolean).join(", "));
    const table = element("table", "figure-table");
    const head = element("tr");
    head.append(...headings.map((text) => Object.assign(element("th", "", text), { scope: "col" })));
    const body = rows.map((cells) => {
      const row = element("tr");
      row.append(...cells.map((text) => element("td", "", text)));
      if (cells.length < headings.length) row.lastChild.colSpan = headings.length;
      return row;
    });
    const [thead, tbody] = [element("thead"), element("tbody")];
    thead.append(head);
    tbody.append(...body);
    table.append(thead, tbody);
    scroller.append(table);
    return scroller;
  }

  // --- a scan of all

  isScanning() {
    return this.model.get("progress") >= 0;
  }

  paintScan() {
    const share = this.model.get("progress");
    this.scan.textContent = this.isScanning() ? "Stop" : this.seen?.isList ? "Scan these" : "Scan";
    const begin = `Read all that is listed, and tell what stands out (${this.seen?.cost})`;
    this.scan.title = this.isScanning() ? "Stop, and show what was read so far" : begin;
    this.meter.hidden = !this.isScanning();
    if (this.isScanning()) this.meter.value = share;
  }

  foundOut() {
    this.live.textContent = this.model.get("scanned");
    this.paintResults();
    this.wish();
  }

  paintResults() {
    this.results.textContent = this.model.get("scanned");
    this.results.hidden = !this.results.textContent;
  }

  // --- leaving

  die() {
    this.dead = true;
    clearTimeout(this.waits);
    this.request.end();
    this.pending = this.wished = undefined;
    this.root.classList.add("tensornp-dead");
    for (const control of this.root.querySelectorAll("input, select, button")) control.disabled = true;
    this.say(GONE, "error");
  }

  // The static table gives its place to the tree, and takes it back.
  dock(card) {
    this.hidden = [...card.querySelectorAll(":scope > .tensornp-static")];
    for (const node of this.hidden) node.style.display = "none";
    (this.hidden.at(-1) ?? card.lastElementChild).after(this.root);
  }

  leave() {
    this.request.end();
    clearTimeout(this.waits);
    this.leaves?.disconnect();
    for (const node of this.hidden ?? []) node.style.display = "";
    this.model.off("msg:custom", this.heard);
    this.model.off("change:progress", this.told);
    this.model.off("change:scanned", this.found);
    this.dead = true;
    this.root.remove();
  }
}

export default () => {
  const all = new Set();
  let isLost = false;
  const add = (model, place) => {
    const one = new Weights(model);
    all.add(one);
    place(one);
    if (isLost) one.die();
    return () => {
      one.leave();
      all.delete(one);
    };
  };
  return docking({
    own: ".tensornp-weights",
    taken: "data-tensornp-weights",
    dock: (model, card) => add(model, (one) => one.dock(card)),
    rendered: (model, el) => add(model, (one) => el.append(one.root)),
    keys: (event) => [...all].find((one) => one.root.contains(event.target))?.key(event),
    lost: () => {
      isLost = true;
      all.forEach((one) => one.die());
    },
  });
};
