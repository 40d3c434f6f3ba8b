// One call that was opened: where it was called, and all that it got, gave and held.

import { copyButton } from "../page/copy.js";
import { button, element, focused, nameOf, pictureOf } from "../page/elements.js";
import { Panel, factsOf } from "../tree/panel.js";

export class CallPanel extends Panel {
  /** @param {Model} model @param {Record<string, (...args: any[]) => any>} calls */
  constructor(model, calls) {
    super(calls);
    this.model = model;
    this.lead = calls.lead;
  }

  inHead({ className, code }) {
    return [
      ...(className ? [nameOf("class-name", className)] : []),
      ...(code ? [copyButton("the expression of this call", () => code, code)] : []),
    ];
  }

  /** @param {SeenCall} content */
  paint({ facts, error, notes, places, pictures, headings, groups, hint, operators }) {
    this.node.append(factsOf(facts));
    if (error) this.node.append(element("div", "call-error", error));
    this.node.append(...notes.map((note) => element("div", "said", note)));
    this.node.append(...places.map(placeOf));
    if (groups.length) this.node.append(this.table("Inputs, outputs and parameters", headings, groups));
    // The navigator docks into it by this class.
    this.place = element("div");
    this.place.className = this.model.get("place");
    this.node.append(this.place);
    if (pictures.length) {
      const row = element("div", "samples");
      row.append(...pictures.map(sampleOf));
      this.node.append(row);
    }
    if (hint) this.node.append(hintOf(hint));
    if (operators.groups.length) this.node.append(this.table("Operators", operators.headings, operators.groups));
  }

  close() {
    if (!this.node.hidden && this.hasNavigator()) this.post({ type: "values", open: false });
    super.close();
  }

  left() {
    this.comes?.disconnect();
  }

  hasNavigator() {
    return Boolean(this.place?.querySelector(".tensornp-values"));
  }

  // The grid has the focus once it is there, if nobody has gone on meanwhile.
  showValues(value) {
    const from = focused();
    this.comes?.disconnect();
    this.comes = new MutationObserver(() => {
      const cell = this.place.querySelector("[role='grid'] [tabindex='0']");
      if (!cell) return;
      this.comes.disconnect();
      if (from === focused()) cell.focus({ preventScroll: true });
      this.seen();
    });
    this.comes.observe(this.place, { childList: true, subtree: true });
    this.post({ type: "values", row: this.opened, value, open: true });
  }

  table(label, headings, groups) {
    const scroller = scrollerOf(label);
    const table = element("table", "figure-table");
    const head = element("tr");
    head.append(...headings.map(({ text, isRight }) => headOf(text, isRight)));
    const thead = element("thead");
    thead.append(head);
    table.append(thead, ...groups.map((group) => this.group(group, headings)));
    scroller.append(table);
    return scroller;
  }

  group({ title, rows, more }, headings) {
    const body = element("tbody");
    if (title) body.append(rowAcross("th", title, headings.length));
    for (const cells of rows) {
      const row = element("tr");
      row.append(...cells.map((cell, i) => this.cell(cell, headings[i].isRight)));
      row.cells[0].setAttribute("role", "rowheader");
      body.append(row);
    }
    if (more) body.append(rowAcross("td", more, headings.length));
    return body;
  }

  // What another call has made leads to that, and what was kept to its values.
  cell({ text, number, isAlarm, isBelow, kept, alarm }, isRight) {
    const cell = element("td", isRight ? "right" : isBelow ? "below" : "");
    if (number !== undefined) cell.append(button(text, "Show this call", () => this.lead(number), "copy tensornp-link"));
    else if (kept !== undefined) cell.append(button(text, "Walk through the values", () => this.showValues(kept), "copy tensornp-link"));
    else if (isAlarm && text) cell.append(element("span", "alarm", text));
    else cell.textContent = text;
    if (alarm) cell.append(document.createTextNode(" "), element("span", "alarm", alarm));
    return cell;
  }
}

function headOf(text, isRight) {
  const head = element("th", isRight ? "right" : "", text);
  head.scope = "col";
  return head;
}

function rowAcross(tag, text, numColumns) {
  const row = element("tr");
  const cell = element(tag, "group-title", text);
  cell.colSpan = numColumns;
  if (tag === "th") cell.scope = "rowgroup";
  row.append(cell);
  return row;
}

// Keys scroll it, where it is wider than the page.
function scrollerOf(label) {
  const node = element("div", "scroller");
  node.tabIndex = 0;
  node.setAttribute("role", "region");
  node.setAttribute("aria-label", label);
  return node;
}

function placeOf({ where, lines }) {
  const node = element("div", "place");
  node.append(element("div", "said", where));
  if (lines.length) {
    const program = scrollerOf("Program");
    const digits = Math.max(...lines.map(({ line }) => String(line).length));
    program.append(
      ...lines.map(({ line, text, isIt }) => {
        const one = element("div", isIt ? "program-line tensornp-it" : "program-line");
        const number = element("span", "label", String(line).padStart(digits));
        one.append(number, element("span", "program-text", text));
        return one;
      }),
    );
    node.append(program);
  }
  return node;
}

function sampleOf({ src, alt, caption, ends }) {
  const node = element("div", "sample");
  const between = element("div", "sample-ends");
  between.append(...ends.map((end) => element("span", "", end)));
  node.append(pictureOf({ src, alt }), between, element("div", "said", caption));
  return node;
}

// What follows it again, with all that is not here.
function hintOf(line) {
  const node = element("div", "said tensornp-hint", "Of each value a sample was kept; for all elements: ");
  node.append(element("span", "program-text", line), copyButton("this line", () => line));
  return node;
}
