// All figures of one weight: a line, a heat map, and tables.

import { element, pictureOf } from "../page/elements.js";

export function figuresOf({ figures, tables, heatmap }) {
  const line = element("div", "figures-line");
  if (figures.picture.src) line.append(pictureOf(figures.picture));
  line.append(element("span", "", [...figures.words, ...figures.alarms.map(([, text]) => text)].join(" · ")));
  const nodes = [line];
  if (heatmap.shown) {
    const picture = element("div", "heatmap");
    picture.append(pictureOf(heatmap.shown), element("div", "said", heatmap.caption));
    nodes.push(picture);
  }
  return [...nodes, ...tables.map(({ headings, rows }) => tableOf(headings, rows))];
}

function tableOf(headings, rows) {
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
